#!/bin/sh
# Time expert parallelism between two hosts of two PEs over a link of a given rate, beside what one row a (token, host)
# takes there: dispatch and combine of 1,024 tokens a rank, 8 of 64 experts, 4,096 bf16 a row, once as weft does by
# itself and once with all puts as messages. The hosts are those of two_hosts.sh. Over the provider tcp unless
# FI_PROVIDER names another. Needs root, iproute2 and libfabric.
# Usage: bench_network_ep.sh [MBIT_PER_S [REPEATS]]
set -eu
cd "$(dirname "$0")/.."
mbit=${1:-1000}
repeats=${2:-21}
built=$PWD/build/release
. scripts/two_hosts.sh
export FI_PROVIDER="${FI_PROVIDER:-tcp}"
if [ -z "${WEFT_BENCH_INSIDE:-}" ]; then
    scripts/build.sh release weft-ep-bench
    WEFT_BENCH_INSIDE=1 exec unshare -nm "$0" "$mbit" "$repeats"
fi
make_hosts "$mbit"
echo "one row a (token, host) at $mbit Mbit/s: $((2 * 1024 * 8192 * 8 / mbit)) us"
for bytes in 16384 0; do
    echo "WEFT_RMA_BYTES=$bytes"
    for pe in 0 1 2 3; do
        start_pe "$pe" 4 $((pe / 2)) WEFT_TRANSPORT=ofi WEFT_RMA_BYTES=$bytes "$built/weft-ep-bench" -n "$repeats" -w 1
    done
    await_pes
done
