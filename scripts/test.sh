#!/bin/sh
# Build and test every preset: all tests in release; unit, threads and multi-PE tests under each sanitizer, and those of the
# GPU part on the fake driver.
# The last line is "N passed, N failed, N skipped" over all presets. Fails when a test fails, a build fails or none ran.
# Usage: test.sh [PRESET...]   (default: release asan ubsan tsan; "debug" is known as well)
set -u
cd "$(dirname "$0")/.."
presets=${*:-release asan ubsan tsan}
jobs=$(nproc)
results=

for preset in $presets; do
    start=$(date +%s)
    mkdir -p "build/$preset"
    report=$PWD/build/$preset/tests.xml
    rm -f "$report"
    echo "== $preset: build"
    if scripts/build.sh "$preset"; then
        echo "== $preset: test (after $(($(date +%s) - start)) s)"
        case $preset in
        release | debug) labels='.' ;;
        asan | ubsan) labels='unit|threads|multi|fake' ;;
        *) labels='unit|threads|multi' ;;
        esac
        run=
        if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
            # gcc 12's ThreadSanitizer does not start where the kernel randomises addresses over 32 bits.
            run="setarch $(uname -m) -R"
        fi
        $run ctest --test-dir "build/$preset" -L "$labels" -j "$jobs" --output-on-failure --no-tests=error \
            --output-junit "$report" >"build/$preset/tests.log" 2>&1
        code=$?
        python3 scripts/test_summary.py show "$preset" "$report" "$code" "build/$preset/tests.log"
        echo "== $preset: $(($(date +%s) - start)) s"
        results="$results $preset=$report:$code"
    else
        results="$results $preset=:1"
    fi
done
python3 scripts/test_summary.py total $results
