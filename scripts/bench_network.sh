#!/bin/sh
# Measure weft between two hosts beside bare calls of the library that carries it (bench/peers/network.c): libfabric and
# UCX in turn. The hosts are two network namespaces with a pair of virtual interfaces, one core each; one PE each, and
# for a barrier two. Over the provider tcp unless FI_PROVIDER names another, and over tcp unless UCX_TLS does. A line
# tells what went through the interface. Needs root, iproute2, libfabric-dev and libucx-dev.
# Usage: bench_network.sh [ROUNDS [ofi|ucx ...]]
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-15}
[ $# -gt 0 ] && shift
libraries=${*:-ofi ucx}
built=$PWD/build/release
export FI_PROVIDER="${FI_PROVIDER:-tcp}" UCX_TLS="${UCX_TLS:-tcp}"

# In namespaces of the script's own, which makes the second host; /sys tells of the interfaces of whoever mounts it.
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
mount -t sysfs sysfs /sys
unshare -nm sh -c 'mount -t sysfs sysfs /sys && exec sleep 600' &
other=$!
trap 'kill $other' EXIT
there="nsenter -t $other -n -m --wd=$PWD"
until [ "$(readlink /proc/$other/exe)" != "$(readlink /proc/$$/exe)" ]; do
    sleep 0.1
done
ip link add weft0 type veth peer name weft1 netns "$other"

# COMMAND... runs in the host's network namespace. libfabric leaves an interface out that is not up yet.
set_up() # HOST COMMAND...
{
    host=$1
    shift
    "$@" ip link set lo up
    "$@" ip addr add "10.213.98.$((1 + host))/24" dev "weft$host"
    "$@" ip link set "weft$host" up
}

await_up() # HOST COMMAND...
{
    host=$1
    shift
    until "$@" ip link show "weft$host" | grep -q "state UP"; do
        sleep 0.1
    done
}

# PEs of a host have its core.
start_pe() # LIBRARY PES PE HOST COMMAND...
{
    library=$1
    variables="RANK=$3 WORLD_SIZE=$2 MASTER_ADDR=10.213.98.1 MASTER_PORT=29500 WEFT_TRANSPORT=$library"
    core=$4
    shift 4
    # shellcheck disable=SC2086
    env $variables WEFT_SECRET="between the two hosts" "$@" \
        timeout 300 taskset -c "$core" "$built/bench_network_$library" "$rounds" &
    started="$started $!"
}

run_all() # LIBRARY PES_A_HOST
{
    started=
    for host in 0 1; do
        prefix=
        [ "$host" = 0 ] || prefix=$there
        for pe in $(seq 1 "$2"); do
            # shellcheck disable=SC2086
            start_pe "$1" $((2 * $2)) $((host * $2 + pe - 1)) "$host" $prefix
        done
    done
    for pid in $started; do
        wait "$pid"
    done
}

set_up 0
# shellcheck disable=SC2086
set_up 1 $there
await_up 0
# shellcheck disable=SC2086
await_up 1 $there
for library in $libraries; do
    before=$(cat /sys/class/net/weft0/statistics/tx_bytes)
    run_all "$library" 1
    run_all "$library" 2
    echo "bytes sent by host 0: $(($(cat /sys/class/net/weft0/statistics/tx_bytes) - before))"
done
