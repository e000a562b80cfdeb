#!/bin/sh
# Run the programs of tests/multi, and the tests of label network beside them, over several nodes for which this host
# stands in: 2+2, 3+1, 1+5+2 and 4+4+4+4 PEs to a node. The last line is "N passed, N failed, N skipped".
# Usage: test_network.sh [SHAPE...]
set -u
cd "$(dirname "$0")/.."
build=build/release
programs=$(for source in tests/multi/*.c; do basename "$source" .c; done)
scripts/build.sh release weftrun $(for name in $programs; do echo "multi_$name"; done) ofi_test ucx_test gone_hosts_test \
    namespaces_test || exit 1
log=$build/network.log
passed=0
failed=0
skipped=0
: >"$log"

# Usage: note NAME STATUS
note()
{
    case $2 in
    0) passed=$((passed + 1)) word=passed ;;
    77) skipped=$((skipped + 1)) word=skipped ;;
    *) failed=$((failed + 1)) word="FAILED ($2)" ;;
    esac
    echo "$1: $word"
}

# Whether a program is one for so many PEs.
suits()
{
    counts=$(sed -n 's|^/\* PES: \(.*\) \*/$|\1|p' "tests/multi/$1.c" | tr ',' ' ')
    case " ${counts:-$2} " in
    *" $2 "*) return 0 ;;
    *) return 1 ;;
    esac
}

for test in ofi_test ucx_test gone_hosts_test namespaces_test; do
    timeout 600 "$build/tests/$test" >>"$log" 2>&1
    note "$test" $?
done
for shape in ${*:-2+2 3+1 1+5+2 4+4+4+4}; do
    pes=$(($(echo "$shape")))
    for name in $programs; do
        if suits "$name" "$pes"; then
            echo "== $name $shape" >>"$log"
            timeout 600 "$build/weftrun" -n "$pes" tests/support/nodes.sh "$shape" "$build/tests/multi_$name" >>"$log" 2>&1
            note "$name, $shape" $?
        fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped (log: $log)"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
