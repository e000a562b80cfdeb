#!/bin/sh
# Time expert parallelism between two hosts of two PEs over a link of a given rate, beside what one row a (token, host)
# takes there: dispatch and combine of 1,024 tokens a rank, 8 of 64 experts, 4,096 bf16 a row, once as weft does by
# itself and once with all puts as messages. The hosts are two network namespaces with a pair of virtual interfaces, a
# core each, and a token bucket filter before each interface. Over the provider tcp unless FI_PROVIDER names another.
# Needs root, iproute2 and libfabric.
# Usage: bench_network_ep.sh [MBIT_PER_S [REPEATS]]
set -eu
cd "$(dirname "$0")/.."
mbit=${1:-1000}
repeats=${2:-21}
built=$PWD/build/release
export FI_PROVIDER="${FI_PROVIDER:-tcp}"
if [ -z "${WEFT_BENCH_INSIDE:-}" ]; then
    scripts/build.sh release weft-ep-bench
    WEFT_BENCH_INSIDE=1 exec unshare -nm "$0" "$mbit" "$repeats"
fi
mount -t sysfs sysfs /sys
unshare -nm sh -c 'mount -t sysfs sysfs /sys && exec sleep 600' &
other=$!
trap 'kill $other' EXIT
there="nsenter -t $other -n -m --wd=$PWD"
until [ "$(readlink /proc/$other/exe)" != "$(readlink /proc/$$/exe)" ]; do
    sleep 0.1
done
ip link add weft0 type veth peer name weft1 netns "$other"

set_up() # HOST COMMAND...
{
    host=$1
    shift
    "$@" ip link set lo up
    "$@" ip addr add "10.213.98.$((1 + host))/24" dev "weft$host"
    "$@" ip link set "weft$host" up
    "$@" tc qdisc add dev "weft$host" root tbf rate "${mbit}mbit" burst 256kb latency 200ms
}
set_up 0
# shellcheck disable=SC2086
set_up 1 $there
until ip link show weft0 | grep -q "state UP"; do
    sleep 0.1
done
echo "one row a (token, host) at $mbit Mbit/s: $((2 * 1024 * 8192 * 8 / mbit)) us"
for bytes in 16384 0; do
    echo "WEFT_RMA_BYTES=$bytes"
    started=
    for pe in 0 1 2 3; do
        prefix=
        [ "$pe" -lt 2 ] || prefix=$there
        # shellcheck disable=SC2086
        env RANK=$pe WORLD_SIZE=4 MASTER_ADDR=10.213.98.1 MASTER_PORT=29500 WEFT_SECRET="between the two hosts" \
            WEFT_TRANSPORT=ofi WEFT_RMA_BYTES=$bytes $prefix timeout 500 taskset -c $((pe / 2)) \
            "$built/weft-ep-bench" -n "$repeats" -w 1 &
        started="$started $!"
    done
    for pid in $started; do
        wait "$pid"
    done
done
