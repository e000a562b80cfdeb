#!/bin/sh
# Build and test every preset: all tests in release; unit and threads tests under each sanitizer, and under asan those
# of several PEs and of the GPU part on the fake driver; a part for aarch64 under an emulator, where that can be had.
# The asan preset, which is UndefinedBehaviorSanitizer too, also counts which lines of src/ run, in the tests of tools
# too. The simulator is not run under ThreadSanitizer: its PEs are coroutines of one thread. The last line is
# "N passed, N failed, N skipped" over all presets. Fails when a test fails, a build fails or none ran.
# Usage: test.sh [PRESET...]   (default: release asan tsan aarch64; "debug" is known as well, and "host", which leaves
#                              out GPUs and what is slow)
set -u
cd "$(dirname "$0")/.."
presets=${*:-release asan tsan aarch64}
jobs=$((8 * $(nproc))) # eighths of processors: cmake/tests.cmake
results=

exec 3>&1 # for progress, whatever the output of a command goes to

# While something long runs: every 15 s a line with how much of it is done, by the last "12/345" in the log that it
# writes, if it writes one.
show_progress()
{
    while sleep 15 >/dev/null 2>&1; do
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

for preset in $presets; do
    start=$(date +%s)
    mkdir -p "build/$preset"
    report=$PWD/build/$preset/tests.xml
    rm -f "$report"
    targets=
    if [ "$preset" = tsan ]; then
        targets=tsan_tests
    fi
    if [ "$preset" = aarch64 ]; then
        targets=aarch64_tests
        if ! reason=$(with_progress "$preset: packages" /dev/null scripts/aarch64.sh); then
            echo "== $preset: SKIPPED: $reason"
            results="$results $preset=-:77"
            continue
        fi
    fi
    echo "== $preset: build"
    if with_progress "$preset: build" "build/$preset/build.log" scripts/build.sh "$preset" $targets; then
        echo "== $preset: test (after $(($(date +%s) - start)) s)"
        case $preset in
        release | debug | host) labels='.' ;;
        aarch64) labels='aarch64' ;;
        asan) labels='unit|threads|multi|fake|tools|covered' ;;
        *) labels='unit|threads' ;;
        esac
        find "build/$preset" -name '*.gcda' -delete # what earlier runs counted
        run=
        without='^$'
        if [ "$preset" = tsan ]; then
            without='sim'
        fi
        if [ "$preset" = host ]; then
            without='slow|cuda' # the tests of cuda without its library compile kernels by nvcc
        fi
        if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
            # gcc 12's ThreadSanitizer does not start where the kernel randomises addresses over 32 bits.
            run="setarch $(uname -m) -R"
        fi
        with_progress "$preset: test" "build/$preset/tests.log" $run ctest --test-dir "build/$preset" -L "$labels" \
            -LE "$without" -j "$jobs" --output-on-failure --no-tests=error --output-junit "$report" >"build/$preset/tests.log" 2>&1
        code=$?
        python3 scripts/test_summary.py show "$preset" "$report" "$code" "build/$preset/tests.log"
        echo "== $preset: $(($(date +%s) - start)) s"
        results="$results $preset=$report:$code"
        if [ "$preset" = asan ]; then
            with_progress "$preset: coverage" /dev/null python3 scripts/coverage.py . "build/$preset"
            results="$results coverage=-:$?"
        fi
    else
        results="$results $preset=:1"
    fi
done
python3 scripts/test_summary.py total $results
