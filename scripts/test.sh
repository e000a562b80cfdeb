#!/bin/sh
# Build and test every preset: all tests in release; unit, threads and multi-PE tests under each sanitizer, and those of the
# GPU part on the fake driver; a part of them for aarch64 under an emulator, where that can be had. The asan preset, which is
# UndefinedBehaviorSanitizer too, also counts which lines of src/ run, in the tests of tools too. The simulator is not run
# under ThreadSanitizer: its PEs are coroutines of one thread.
# The last line is "N passed, N failed, N skipped" over all presets. Fails when a test fails, a build fails or none ran.
# Usage: test.sh [PRESET...]   (default: release asan tsan aarch64; "debug" is known as well)
set -u
cd "$(dirname "$0")/.."
presets=${*:-release asan tsan aarch64}
jobs=$((2 * $(nproc))) # halves of processors: cmake/tests.cmake
results=

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
        if ! reason=$(scripts/aarch64.sh); then
            echo "== $preset: SKIPPED: $reason"
            results="$results $preset=-:77"
            continue
        fi
    fi
    echo "== $preset: build"
    if scripts/build.sh "$preset" $targets; then
        echo "== $preset: test (after $(($(date +%s) - start)) s)"
        case $preset in
        release | debug) labels='.' ;;
        aarch64) labels='aarch64' ;;
        asan) labels='unit|threads|multi|fake|tools' ;;
        *) labels='unit|threads' ;;
        esac
        find "build/$preset" -name '*.gcda' -delete # what earlier runs counted
        run=
        without='^$'
        if [ "$preset" = tsan ]; then
            without='sim'
        fi
        if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
            # gcc 12's ThreadSanitizer does not start where the kernel randomises addresses over 32 bits.
            run="setarch $(uname -m) -R"
        fi
        $run ctest --test-dir "build/$preset" -L "$labels" -LE "$without" -j "$jobs" --output-on-failure --no-tests=error \
            --output-junit "$report" >"build/$preset/tests.log" 2>&1
        code=$?
        python3 scripts/test_summary.py show "$preset" "$report" "$code" "build/$preset/tests.log"
        echo "== $preset: $(($(date +%s) - start)) s"
        results="$results $preset=$report:$code"
        if [ "$preset" = asan ]; then
            python3 scripts/coverage.py . "build/$preset"
            results="$results coverage=-:$?"
        fi
    else
        results="$results $preset=:1"
    fi
done
python3 scripts/test_summary.py total $results
