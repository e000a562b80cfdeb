#!/bin/sh
# Run the programs of tests/multi, and the tests of label network beside them, over several nodes for which this host
# stands in: 2+2, 3+1, 1+5+2 and 4+4+4+4 PEs to a node; over libfabric and over UCX, of the version that the system has
# and of another if there is one: in the folders WEFT_TEST_LIBFABRIC and WEFT_TEST_UCX, or of Python's packages mpich
# and libucx-cu12 (tests/support/libraries.py). What is not here is told, and counts as skipped. The last line is
# "N passed, N failed, N skipped".
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

# Usage: run NAME COMMAND...
run()
{
    name=$1
    shift
    echo "== $name" >>"$log"
    timeout 600 "$@" >>"$log" 2>&1 </dev/null
    note "$name" $?
}

# Usage: run_over LIBRARY, of the transport and from the folders that the environment names
run_over()
{
    run "${WEFT_TRANSPORT}_test, $1" "$build/tests/${WEFT_TRANSPORT}_test"
    run "gone_hosts_test, $1" "$build/tests/gone_hosts_test" "$WEFT_TRANSPORT"
    if [ "$WEFT_TRANSPORT" = ofi ]; then # whichever it is told
        run "namespaces_test, $1" "$build/tests/namespaces_test"
    fi
    for shape in $shapes; do
        pes=$(($(echo "$shape")))
        for program in $programs; do
            if suits "$program" "$pes"; then
                run "$program, $shape, $1" "$build/weftrun" -n "$pes" tests/support/nodes.sh "$shape" \
                    "$build/tests/multi_$program"
            fi
        done
    done
}

# Usage: run_versions LIBRARY VARIABLE PACKAGE
run_versions()
{
    found=$(python3 tests/support/libraries.py "$WEFT_TRANSPORT") || exit 1
    count=0
    while IFS="$(printf '\t')" read -r version folder; do
        [ -n "$version" ] || continue
        count=$((count + 1))
        echo "== $1 $version, ${folder:-of the system}"
        LD_LIBRARY_PATH=$folder${folder:+${before:+:}}$before
        run_over "$1 $version"
        LD_LIBRARY_PATH=$before
    done <<END
$found
END
    if [ "$count" -lt 2 ]; then
        note "$1 of another version: not here (pip install $3, or $2=FOLDER)" 77
    fi
}

shapes=${*:-2+2 3+1 1+5+2 4+4+4+4}
before=${LD_LIBRARY_PATH:-}
export WEFT_TRANSPORT LD_LIBRARY_PATH="$before"
WEFT_TRANSPORT=ofi
run_versions libfabric WEFT_TEST_LIBFABRIC mpich
WEFT_TRANSPORT=ucx
run_versions UCX WEFT_TEST_UCX libucx-cu12
echo "$passed passed, $failed failed, $skipped skipped (log: $log)"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
