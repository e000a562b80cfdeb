#!/bin/sh
# Measure weft between two hosts beside bare calls of the library that carries it (bench/peers/network.c): libfabric and
# UCX in turn. The hosts are those of two_hosts.sh, with one PE each, and for a barrier two. Over the provider tcp
# unless FI_PROVIDER names another, and over tcp unless UCX_TLS does. A line tells what went through the interface.
# Needs root, iproute2, libfabric-dev and libucx-dev. Another version's folder in LD_LIBRARY_PATH is for both.
# Usage: bench_network.sh [ROUNDS [ofi|ucx ...]]
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-15}
[ $# -gt 0 ] && shift
libraries=${*:-ofi ucx}
built=$PWD/build/release
. scripts/two_hosts.sh
export FI_PROVIDER="${FI_PROVIDER:-tcp}" UCX_TLS="${UCX_TLS:-tcp}"

if [ -z "${WEFT_BENCH_INSIDE:-}" ]; then
    scripts/build.sh release weft
    for library in $libraries; do
        case $library in
        ofi) flags=-lfabric ;;
        ucx) flags="-lucp -lucs" ;;
        *) echo "bench_network.sh: \"$library\" is neither ofi nor ucx" >&2; exit 2 ;;
        esac
        # shellcheck disable=SC2086 # several flags
        gcc -std=gnu17 -O2 -Wall -Wextra -Iinclude -Ibench bench/peers/network.c "bench/peers/$library.c" \
            -o "$built/bench_network_$library" -L"$built" -Wl,-rpath,"$built" -lweft $flags
    done
    # shellcheck disable=SC2086
    WEFT_BENCH_INSIDE=1 exec unshare -nm "$0" "$rounds" $libraries
fi
make_hosts

run_all() # LIBRARY PES_A_HOST
{
    for pe in $(seq 0 $((2 * $2 - 1))); do
        start_pe "$pe" $((2 * $2)) $((pe / $2)) WEFT_TRANSPORT="$1" "$built/bench_network_$1" "$rounds"
    done
    await_pes
}

for library in $libraries; do
    before=$(cat /sys/class/net/weft0/statistics/tx_bytes)
    run_all "$library" 1
    run_all "$library" 2
    echo "bytes sent by host 0: $(($(cat /sys/class/net/weft0/statistics/tx_bytes) - before))"
done
