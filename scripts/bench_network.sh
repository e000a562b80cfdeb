#!/bin/sh
# Measure weft between two hosts beside bare calls of libfabric (bench/peers/ofi.c). The hosts are two network
# namespaces with a pair of virtual interfaces, one PE and one core each, over the provider tcp unless FI_PROVIDER names
# another. The last line tells what went through the interface. Needs root, iproute2 and libfabric-dev.
# Usage: bench_network.sh [ROUNDS]
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-15}
scripts/build.sh release weft
built=$PWD/build/release
gcc -std=gnu17 -O2 -Wall -Wextra -Iinclude bench/peers/ofi.c -o "$built/bench_network" -L"$built" -Wl,-rpath,"$built" \
    -lweft -lfabric
export built rounds FI_PROVIDER="${FI_PROVIDER:-tcp}"

run_pe()
{
    RANK=$1 WORLD_SIZE=2 MASTER_ADDR=10.213.98.1 MASTER_PORT=29500 WEFT_SECRET="between the two hosts" \
        timeout 300 taskset -c "$1" "$built/bench_network" "$rounds"
}

# COMMAND... runs in the host's network namespace. libfabric leaves an interface out that is not up yet.
set_up() # PE COMMAND...
{
    pe=$1
    shift
    "$@" ip link set lo up
    "$@" ip addr add "10.213.98.$((1 + pe))/24" dev "weft$pe"
    "$@" ip link set "weft$pe" up
}

await_up() # PE COMMAND...
{
    pe=$1
    shift
    until "$@" ip link show "weft$pe" | grep -q "state UP"; do
        sleep 0.1
    done
}

# In a network namespace of the script's own, which makes the second.
if [ -z "${WEFT_BENCH_INSIDE:-}" ]; then
    WEFT_BENCH_INSIDE=1 exec unshare -n "$0" "$rounds"
fi
unshare -n sleep 600 &
other=$!
trap 'kill $other' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do
    sleep 0.1
done
ip link add weft0 type veth peer name weft1 netns "$other"
there="nsenter -t $other -n"
set_up 0
set_up 1 $there
await_up 0
await_up 1 $there
RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.213.98.1 MASTER_PORT=29500 WEFT_SECRET="between the two hosts" \
    $there timeout 300 taskset -c 1 "$built/bench_network" "$rounds" &
second=$!
run_pe 0
wait "$second"
echo "bytes sent by host 0: $(cat /sys/class/net/weft0/statistics/tx_bytes 2>/dev/null || ip -s link show weft0 | tail -1)"
