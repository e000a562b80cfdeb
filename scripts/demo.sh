#!/bin/sh
# The demonstration: PEs on this machine run a MoE layer.
set -eu
cd "$(dirname "$0")/.."
if [ ! -x build/release/weftrun ] || [ ! -x build/release/moe_text ]; then
    echo "the demonstration's programs (weftrun, moe_text) are not in this tree yet" >&2
    exit 1
fi
build/release/weftrun -n 4 build/release/moe_text
