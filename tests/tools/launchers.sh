#!/bin/sh
# Goal: what the launchers of clusters start is one world, on one host and on several; what is started beside or below
# it is told so.
# Method: a program that checks who came (launched.c), under MPICH's mpiexec and Open MPI's mpirun. Hosts are network
# namespaces with names of their own and a virtual interface each on a bridge; the launchers reach them by an agent in
# place of ssh, which enters them.
# Usage: launchers.sh hydra|mpirun LAUNCHED [hosts]. Exits with 77 where there is no such launcher, or no namespaces.
set -eu
launcher=$1
launched=$2
hosts=${3:-}
case $launcher in
hydra) command -v mpiexec.hydra >/dev/null || { echo "no mpiexec.hydra (Debian: mpich)"; exit 77; } ;;
mpirun) mpirun --version 2>/dev/null | grep -q "Open MPI" || { echo "no mpirun of Open MPI"; exit 77; } ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 WEFT_DEADLINE=60

# ---- hosts ----

if [ "$hosts" = hosts ] && [ "${WEFT_LAUNCHERS_INSIDE:-}" = "" ]; then
    unshare -mnu true 2>/dev/null || { echo "no namespaces here"; exit 77; }
    exec env WEFT_LAUNCHERS_INSIDE=1 unshare -mnu sh "$0" "$@"
fi

make_host()
{
    ip netns add "weft$1"
    ip link add "to$1" type veth peer name eth0 netns "weft$1"
    ip link set "to$1" master hub up
    ip -n "weft$1" addr add "10.99.0.$1/24" dev eth0
    ip -n "weft$1" link set eth0 up
    ip -n "weft$1" link set lo up
}

if [ "$hosts" = hosts ]; then
    hostname host1
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    ip link set lo up
    ip link add hub type bridge
    ip addr add 10.99.0.1/24 dev hub
    ip link set hub up
    make_host 2
    make_host 3
    agent=$(mktemp)
    trap 'rm -f "$agent"' EXIT
    cat >"$agent" <<'AGENT'
#!/bin/sh
# AGENT [option...] HOST COMMAND...: as ssh would.
while case $1 in -*) true ;; *) false ;; esac; do shift; done
host=$1
shift
[ "$host" = 10.99.0.1 ] && exec sh -c "$*"
number=${host##*.}
exec ip netns exec "weft$number" unshare -u sh -c "hostname host$number; $*"
AGENT
    chmod +x "$agent"
fi

# ---- launchers ----

# run N PROGRAM...: N processes, on three hosts if there are several.
run()
{
    pes=$1
    shift
    case $launcher$hosts in
    hydra) mpiexec.hydra -n "$pes" "$@" ;;
    hydrahosts)
        mpiexec.hydra -iface hub -launcher ssh -launcher-exec "$agent" -hosts 10.99.0.1:2,10.99.0.2:2,10.99.0.3:1 \
            -n "$pes" "$@"
        ;;
    mpirun) mpirun --oversubscribe --mca btl self,vader -n "$pes" "$@" ;;
    mpirunhosts)
        mpirun --mca plm_rsh_agent "$agent" --mca oob_tcp_if_include 10.99.0.0/24 --mca btl self,vader \
            --mca orte_keep_fqdn_hostnames 1 --host 10.99.0.1:2,10.99.0.2:2,10.99.0.3:1 --oversubscribe -n "$pes" "$@"
        ;;
    esac
}

# What must be said, in a run that must fail.
fails_with()
{
    text=$1
    shift
    if "$@" >"$said" 2>&1; then
        echo "this should have failed: $*"
        exit 1
    fi
    grep -q "$text" "$said" || { echo "nothing says \"$text\":"; cat "$said"; exit 1; }
}

said=$(mktemp)
trap 'rm -f "$said" ${agent:+"$agent"}' EXIT
run 4 "$launched" world 4
run 5 "$launched" world 5
run 1 "$launched" world 1
[ "$launcher" = mpirun ] || WEFT_BOOTSTRAP=pmi2 run 5 "$launched" world 5
run 5 "$launched" parts
# shellcheck disable=SC2016
missing='[ "${PMI_RANK:-$PMIX_RANK}" = 2 ] && exec sleep 5; exec "$@"'
WEFT_DEADLINE=3 fails_with "PE 2 had not come" run 4 sh -c "$missing" sh "$launched" world
[ "$hosts" != hosts ] || exit 0

# One that a launcher cannot serve is told so.
[ "$launcher" = mpirun ] || fails_with "leave out mpiexec's -pmi-port" mpiexec.hydra -pmi-port -n 2 "$launched" world

# A program that a PE starts has inherited the launcher's variables: it is told, and can be a world of one.
run 2 "$launched" child "$launched"
WEFT_BOOTSTRAP=self run 2 "$launched" world 1
# torchrun's variables come first.
# shellcheck disable=SC2016
run 2 sh -c 'RANK=${PMI_RANK:-$PMIX_RANK} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29731 exec "$@"' sh \
    "$launched" world 2
# One world each by those, of two processes, is not without a word.
# shellcheck disable=SC2016
run 2 sh -c 'RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29731 exec "$@"' sh "$launched" world 1 2>"$said"
grep -q "WORLD_SIZE is 1, so this process is a world of one" "$said" || { echo "no word of worlds of one"; exit 1; }
# Beside the launcher's MPI and OpenSHMEM.
if [ "$launcher" = hydra ]; then
    run 3 "$launched" mpi libmpich.so.12 3
    run 3 "$launched" auto libmpich.so.12 3
else
    run 3 "$launched" mpi libmpi.so.40 3
    # Open MPI's OpenSHMEM may crash by itself, at its beginning now and then, at its end mostly: what counts is that
    # both worlds were there.
    if [ -n "$(ldconfig -p | grep liboshmem.so.40)" ]; then
        for try in 1 2 3 4 5; do
            OMPI_MCA_osc=^rdma run 2 "$launched" shmem liboshmem.so.40 2 >"$said" 2>&1 || true
            [ "$(grep -c "a world of 2" "$said")" = 2 ] && break
            grep -q "oshmem_shmem_init" "$said" || break
        done
        [ "$(grep -c "a world of 2" "$said")" = 2 ] || { cat "$said"; exit 1; }
    fi
fi
