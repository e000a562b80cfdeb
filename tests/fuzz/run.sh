#!/bin/sh
# Fuzz what comes from outside, from the inputs that are kept; what is found stays in the build folder.
# Exit 77 where clang has no libFuzzer.
# Usage: run.sh TARGET SOURCE-FOLDER BUILD-FOLDER [LIBFUZZER-OPTION...], as -max_total_time=600 for ten minutes of other
# inputs, with -timeout=300 where other work leaves it little of a processor; a target is tree, topo, outside, launcher,
# network, watch or node (cmake/fuzz.cmake), or shared, which compiles what they have in common and runs nothing
set -eu
target=$1
source=$(cd "$2" && pwd)
build=$3/fuzz_$target
shift 3
clang=$(command -v clang || true)
mkdir -p "$build/new"
[ -n "$clang" ] || exit 77
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d == 0 && n > 9; }' |
    "$clang" -fsanitize=fuzzer -x c - -o "$build/probe" 2>/dev/null; then
    echo "clang has no libFuzzer here"
    exit 77
fi
flags="-g -O1 -D_GNU_SOURCE -DWEFT_HAVE_SODIUM -I$source/include -I$source/src -I$source/tests
    -fsanitize=address,undefined -fno-sanitize-recover=all"

# What all targets have is compiled once, for as long as it stays as it is.
shared=$build/../fuzz_shared
mkdir -p "$shared"
compile_shared()
{
    sources=$(find "$source/src/base" "$source/src/os/posix" "$source/src/bootstrap" -name '*.c' |
        grep -vE '(_test|conformance|/posix/socket|/posix/clock|/pmix/pmix)\.c$')
    key=$({ "$clang" --version; echo "$flags"; find "$source/src" "$source/include" -name '*.h' -o -name '*.c' |
        grep -E '/src/(base|os|bootstrap|common|topo)/|/include/' | sort | xargs cat; } | cksum)
    [ "$(cat "$shared/key" 2>/dev/null)" != "$key" ] || return 0
    rm -f "$shared"/*.o "$shared/key"
    for part in $sources; do
        # shellcheck disable=SC2086 # words
        "$clang" $flags -fsanitize=fuzzer-no-link -c "$part" -o "$shared/$(echo "${part#"$source/"}" | tr / _).o" || return 1
    done
    echo "$key" >"$shared/key"
}
{
    flock 9
    compile_shared
} 9>"$shared/lock"
[ "$target" != shared ] || exit 0
parts=$(echo "$shared"/*.o)
if [ "$target" = topo ]; then
    parts="$parts $(find "$source/src/topo" -name "*.c" | grep -v "_test\.c$")"
fi
if [ "$target" = node ]; then # which has these in it
    # shellcheck disable=SC2086 # words
    parts=$(printf '%s\n' $parts | grep -vE '_posix_(available|pass)\.c\.o$')
fi
if [ "$target" = outside ]; then # what hello.c needs to say hello itself, which nobody does here, is left out
    for part in hello verdict apart directory heaps networks slots; do
        parts="$parts $source/src/world/$part.c"
    done
    parts="$parts $source/src/world/tuning.c -Wl,--defsym=wefti_build_key=0 -Wl,--defsym=wefti_team_refuse=0
        -Wl,--defsym=wefti_transport_plugin=0 -Wl,--defsym=wefti_transport_plugin_load=0"
fi
if [ "$target" = network ]; then # libfabric's headers alone; the target is the rest of it
    if ! echo '#include <rdma/fi_domain.h>' | "$clang" -fsyntax-only -x c - 2>/dev/null; then
        echo "libfabric's headers are not here"
        exit 77
    fi
    parts="$source/src/transport/am/serve.c $(find "$source/src/common" -name "*copy*.c" | grep -v _test) $parts"
fi
# shellcheck disable=SC2086 # lists of words
"$clang" $flags -fsanitize=fuzzer \
    "$source/tests/fuzz/${target}_fuzz.c" "$source/tests/fuzz/wire.c" $parts -ldl -lpthread -lm -o "$build/fuzz"
cd "$build"
WEFT_LOG=none exec ./fuzz -max_len=8192 -timeout=10 -print_final_stats=1 -verbosity=0 \
    "$@" new "$source/tests/fuzz/corpus/$target"
