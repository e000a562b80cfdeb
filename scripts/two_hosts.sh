# Two hosts on one machine, for scripts that measure between nodes: network namespaces with a pair of virtual
# interfaces, weft0 of host 0, in which the script runs, and weft1 of host 1; a core each. Needs root and iproute2. A
# script that sources this builds what it runs and then executes itself anew by `unshare -nm`.

# Usage: make_hosts [MBIT_PER_S]; a rate is kept by a token bucket filter before each interface.
make_hosts()
{
    mount -t sysfs sysfs /sys # which tells of the interfaces of whoever mounts it
    unshare -nm sh -c 'mount -t sysfs sysfs /sys && exec sleep 600' &
    other=$!
    trap 'kill $other' EXIT
    there="nsenter -t $other -n -m --wd=$PWD"
    until [ "$(readlink /proc/$other/exe)" != "$(readlink /proc/$$/exe)" ]; do
        sleep 0.1
    done
    ip link add weft0 type veth peer name weft1 netns "$other"
    for host in 0 1; do
        on_host $host ip link set lo up
        on_host $host ip addr add "10.213.98.$((1 + host))/24" dev "weft$host"
        on_host $host ip link set "weft$host" up
        [ -z "${1:-}" ] || on_host $host tc qdisc add dev "weft$host" root tbf rate "${1}mbit" burst 256kb latency 200ms
    done
    for host in 0 1; do # libfabric leaves an interface out that is not up yet
        until on_host $host ip link show "weft$host" | grep -q "state UP"; do
            sleep 0.1
        done
    done
}

# Usage: on_host HOST COMMAND...
on_host()
{
    on=$1
    shift
    if [ "$on" = 0 ]; then
        "$@"
    else
        # shellcheck disable=SC2086 # words
        $there "$@"
    fi
}

# Usage: start_pe PE PES HOST [VARIABLE=VALUE...] COMMAND...; await_pes waits for all.
started=
start_pe()
{
    meet="RANK=$1 WORLD_SIZE=$2 MASTER_ADDR=10.213.98.1 MASTER_PORT=29500"
    place=$3
    shift 3
    # shellcheck disable=SC2086 # words
    on_host "$place" timeout 500 taskset -c "$place" env $meet WEFT_SECRET="between the two hosts" "$@" &
    started="$started $!"
}

await_pes()
{
    for pid in $started; do
        wait "$pid"
    done
    started=
}
