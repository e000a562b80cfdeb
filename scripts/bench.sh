#!/bin/sh
# Run the host benchmarks. Each bench/NAME.c prints its own table.
set -eu
cd "$(dirname "$0")/.."
ran=0
for source in bench/*.c; do
    program=build/release/$(basename "$source" .c)
    if [ -x "$program" ]; then
        "$program"
        ran=1
    fi
done
if [ $ran = 0 ]; then
    echo "no benchmark in bench/ yet" >&2
    exit 1
fi
