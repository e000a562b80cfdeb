#!/bin/sh
# Build and test every preset: all tests in release; unit and threads tests under each sanitizer, and under asan those
# of several PEs and of the GPU part on the fake driver; a part for aarch64 under an emulator, where that can be had.
# The asan preset, which is UndefinedBehaviorSanitizer too, also counts which lines of src/ run, in the tests of tools
# too. The simulator is not run under ThreadSanitizer: its PEs are coroutines of one thread. The last line is
# "N passed, N failed, N skipped" over all presets. Fails when a test fails, a build fails or none ran.
# While a preset is tested those after it are built, with what its tests leave of the processors.
# Usage: test.sh [PRESET...]   (default: release asan tsan aarch64; "debug" is known as well, and "host", which leaves
#                              out GPUs and what is slow)
set -u
cd "$(dirname "$0")/.."
presets=${*:-release asan tsan aarch64}
jobs=$((8 * $(nproc))) # eighths of processors: cmake/tests.cmake
results=

# Without a GPU nothing runs what is assembled for one; tests/gpu/compile.sh sees that it can be.
if ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
    export WEFT_CUDA_ASSEMBLE="${WEFT_CUDA_ASSEMBLE:-OFF}"
fi

exec 3>&1 # for progress, whatever the output of a command goes to

# While something long runs: every 15 s a line with how much of it is done, by the last "12/345" in the log that it
# writes, if it writes one.
show_progress()
{
    while sleep 15 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do # also when this script was killed
        done_of=$(grep -aoE '^ *\[?[0-9]+/[0-9]+' "$2" 2>/dev/null | tail -n 1 | tr -d ' [')
        echo "== $1: ${done_of:-still going on}${done_of:+ done}" >&3
    done
}

# Usage: with_progress WHAT LOG COMMAND...; its status is the command's.
with_progress()
{
    show_progress "$1" "$2" &
    progress=$!
    shift 2
    "$@"
    code=$?
    kill "$progress" 2>/dev/null
    wait "$progress" 2>/dev/null
    return $code
}

# Usage: build_preset PRESET [COMMAND-BEFORE...]; where the preset cannot be had here it says why, and its status is 77.
build_preset()
{
    built=$1
    shift
    targets=
    case $built in
    tsan) targets=tsan_tests ;;
    aarch64)
        targets=aarch64_tests
        scripts/aarch64.sh || return
        ;;
    esac
    # shellcheck disable=SC2086 # words
    "$@" scripts/build.sh "$built" $targets
}

# Usage: build_all PRESET...; one after another while this script runs, the first with all processors. What each says
# goes to build/PRESET/said, and then its status to build/PRESET/built.
build_all()
{
    priority=
    for one; do
        kill -0 $$ 2>/dev/null || return
        # shellcheck disable=SC2086 # words
        build_preset "$one" $priority >"build/$one/said" 2>&1
        echo $? >"build/$one/built"
        priority='nice -n 10'
    done
}

# Usage: wait_for_build PRESET; its status is that of the build.
wait_for_build()
{
    while [ ! -s "build/$1/built" ] && kill -0 "$building" 2>/dev/null; do
        sleep 0.2
    done
    [ -s "build/$1/built" ] || return 1
    return "$(cat "build/$1/built")"
}

# Usage: run_tests PRESET LOG REPORT
run_tests()
{
    case $1 in
    release | debug | host) labels='.' ;;
    aarch64) labels='aarch64' ;;
    asan) labels='unit|threads|multi|fake|tools|covered' ;;
    *) labels='unit|threads' ;;
    esac
    without='^$'
    run=
    case $1 in
    tsan)
        without='sim'
        if setarch "$(uname -m)" -R true 2>/dev/null; then
            # gcc 12's ThreadSanitizer does not start where the kernel randomises addresses over 32 bits.
            run="setarch $(uname -m) -R"
        fi
        ;;
    host) without='slow|cuda' ;; # the tests of cuda without its library compile kernels by nvcc
    esac
    # shellcheck disable=SC2086 # words
    with_progress "$1: test" "$2" $run ctest --test-dir "build/$1" -L "$labels" -LE "$without" -j "$jobs" \
        --output-on-failure --no-tests=error --output-junit "$3" >"$2" 2>&1
}

for preset in $presets; do
    mkdir -p "build/$preset"
    rm -f "build/$preset/built"
done
# shellcheck disable=SC2086 # words
build_all $presets &
building=$!
for preset in $presets; do
    start=$(date +%s)
    report=$PWD/build/$preset/tests.xml
    rm -f "$report"
    echo "== $preset: build"
    with_progress "$preset: build" "build/$preset/build.log" wait_for_build "$preset"
    code=$?
    if [ $code = 77 ]; then
        echo "== $preset: SKIPPED: $(cat "build/$preset/said")"
        results="$results $preset=-:77"
        continue
    fi
    cat "build/$preset/said"
    if [ $code != 0 ]; then
        results="$results $preset=:1"
        continue
    fi
    echo "== $preset: test (after $(($(date +%s) - start)) s)"
    find "build/$preset" -name '*.gcda' -delete # what earlier runs counted
    run_tests "$preset" "build/$preset/tests.log" "$report"
    code=$?
    python3 scripts/test_summary.py show "$preset" "$report" "$code" "build/$preset/tests.log"
    echo "== $preset: $(($(date +%s) - start)) s"
    results="$results $preset=$report:$code"
    if [ "$preset" = asan ]; then
        with_progress "$preset: coverage" /dev/null python3 scripts/coverage.py . "build/$preset"
        results="$results coverage=-:$?"
    fi
done
python3 scripts/test_summary.py total $results
