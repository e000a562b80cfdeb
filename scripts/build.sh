#!/bin/sh
# Configure and build a preset, quietly unless something goes wrong; then every error is shown, not the first alone.
# WEFT_CUDA_ASSEMBLE=OFF in the environment: kernels are compiled for tests without a GPU alone.
# Usage: build.sh PRESET [TARGET...]
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
mkdir -p "build/$preset"
log=build/$preset/build.log

if ! cmake --preset "$preset" -DWEFT_CUDA_ASSEMBLE="${WEFT_CUDA_ASSEMBLE:-ON}" >"$log" 2>&1; then
    cat "$log" >&2
    echo "cannot configure $preset" >&2
    exit 1
fi
# What it says of this machine; a warning in one line.
awk '/^-- weft:/ { print }
    /^CMake Warning/ { text = "--"; next }
    text != "" && /^(Call Stack.*)?$/ { print text; text = "" }
    text != "" { sub(/^ */, " "); text = text $0 }' "$log"
jobs=$(echo "${MAKEFLAGS:-}" | sed -n 's/ -- .*//; s/.*-j\([0-9][0-9]*\).*/\1/p') # of make -jN
if ! cmake --build --preset "$preset" ${jobs:+--parallel "$jobs"} --target "${@:-all}" -- -k 0 >>"$log" 2>&1; then
    grep -v '^\[[0-9]*/[0-9]*\] ' "$log" >&2
    echo "cannot build $preset" >&2
    exit 1
fi
