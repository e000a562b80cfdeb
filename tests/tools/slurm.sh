#!/bin/sh
# Goal: what srun of Slurm starts is one world, on one node and on two, by PMI-2, PMIx or libpmi; processes that it
# leaves without any are told so, never worlds of one; what is started below it is told what it has inherited, unless it
# has torchrun's or weftrun's variables; and a batch script runs programs with and without a step.
# Method: Slurm's own daemons, without munge, for one node, or with WEFT_TEST_SLURM_NODES=2 for two, which are network
# namespaces with a pair of virtual interfaces; a program that checks who came (launched.c), and one of OpenSHMEM.
# Usage: slurm.sh LAUNCHED OSHRUN SHMEM_PROGRAM. WEFT_TEST_SLURM: where Slurm is, if not under /. Exits with 77 where it
# is not, or there are no namespaces.
set -eu
root=${WEFT_TEST_SLURM:-}
launched=$1
count=${WEFT_TEST_SLURM_NODES:-1}
oshrun=$2
shmem=$3
if [ "${WEFT_SLURM_INSIDE:-}" = "" ]; then
    [ "$(id -u)" = 0 ] || { echo "Slurm's daemons want root"; exit 77; }
    unshare -mnu true 2>/dev/null || { echo "no namespaces here"; exit 77; }
    exec env WEFT_SLURM_INSIDE=1 unshare -mnu sh "$0" "$@"
fi

# ---- Slurm ----

daemon()
{
    for path in "$root/usr/sbin/$1-wlm" "$root/usr/sbin/$1"; do
        [ ! -x "$path" ] || { echo "$path"; return; }
    done
}
slurmctld=$(daemon slurmctld)
slurmd=$(daemon slurmd)
plugins=$(find "$root/usr/lib" -name mpi_pmi2.so 2>/dev/null | head -n 1)
if [ "$slurmctld" = "" ] || [ "$slurmd" = "" ] || [ "$plugins" = "" ]; then
    echo "no Slurm (Debian: slurmctld slurmd slurm-client libpmi0)"
    exit 77
fi
plugins=$(dirname "$plugins")
if [ "$root" != "" ]; then
    export LD_LIBRARY_PATH="$(dirname "$plugins"):$plugins"
    export PATH="$root/usr/bin:$PATH"
fi
hostname host1
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip netns add host2
ip link set lo up
ip -n host2 link set lo up
ip link add wire type veth peer name wire netns host2
ip addr add 10.99.1.1/24 dev wire
ip -n host2 addr add 10.99.1.2/24 dev wire
ip link set wire up
ip -n host2 link set wire up

work=$(mktemp -d)
started=
finish()
{
    # shellcheck disable=SC2086
    [ "$started" = "" ] || { kill $started 2>/dev/null || true; wait; }
    rm -rf "$work"
}
trap finish EXIT
mkdir "$work/state" "$work/spool.host1" "$work/spool.host2" "$work/tmp.host1" "$work/tmp.host2"
cp -a /etc "$work/etc" # srun looks for hosts by name; seen in this mount namespace only
printf '10.99.1.1 host1\n10.99.1.2 host2\n' >>"$work/etc/hosts"
mount --bind "$work/etc" /etc
export SLURM_CONF="$work/slurm.conf"
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=host1(10.99.1.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$plugins
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmdSpoolDir=$work/spool.%n
TmpFS=$work/tmp.%n
StateSaveLocation=$work/state
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=host1 NodeAddr=10.99.1.1 CPUs=16 State=UNKNOWN
$([ "$count" = 1 ] || echo "NodeName=host2 NodeAddr=10.99.1.2 CPUs=16 State=UNKNOWN")
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
"$slurmctld" -D >"$work/slurmctld.log" 2>&1 &
started=$!
stepd=$(daemon slurmstepd)
"$slurmd" -D -N host1 ${stepd:+-d "$stepd"} >"$work/host1.log" 2>&1 &
started="$started $!"
if [ "$count" = 2 ]; then
    # Not by ip netns exec, in whose /sys there are no control groups, which slurmd asks for.
    # shellcheck disable=SC2016
    nsenter --net=/run/netns/host2 unshare -u sh -c 'hostname host2; exec "$@"' sh \
        "$slurmd" -D -N host2 ${stepd:+-d "$stepd"} >"$work/host2.log" 2>&1 &
    started="$started $!"
fi
tries=0
until [ "$(sinfo -h -N -o %t 2>/dev/null | grep -c idle)" = "$count" ]; do
    tries=$((tries + 1))
    if [ "$tries" = 100 ]; then
        cat "$work/slurmctld.log" "$work"/host*.log
        exit 1
    fi
    sleep 0.2
done

# ---- worlds ----

export WEFT_DEADLINE=60
said="$work/said"
run()
{
    timeout 100 srun -Q "$@"
}

# CODE TEXT OPTION...: a run that ends with that code and says so.
ends_with()
{
    code=$1
    text=$2
    shift 2
    got=0
    run "$@" >"$said" 2>&1 || got=$?
    if [ "$got" != "$code" ] || ! grep -q -- "$text" "$said"; then
        echo "code $got, and not $code with \"$text\": $*"
        cat "$said"
        exit 1
    fi
}

run --mpi=pmi2 -n 4 "$launched" world 4
run --mpi=pmi2 -n 5 "$launched" parts
run --mpi=pmi2 -n 4 env WEFT_BOOTSTRAP=pmi1 "$launched" world 4
! srun --mpi=list 2>&1 | grep -q pmix || run --mpi=pmix -n 4 "$launched" world 4
run --mpi=pmi2 -n 4 "$shmem"
ends_with 3 "--mpi=pmi2 or srun --mpi=pmix" --mpi=none -n 4 "$launched" world
ends_with 1 "--mpi=pmi2 or srun --mpi=pmix" --mpi=none -n 4 "$shmem"
run --mpi=none -n 1 "$launched" world 1
# PMI-1 by Slurm's libpmi, which needs no plugin of srun.
if [ "$(find "$root/usr/lib" -name 'libpmi.so.0' | head -n 1)" != "" ]; then
    run --mpi=none -n 4 env WEFT_BOOTSTRAP=pmi1 "$launched" world 4
    run --mpi=none -n 3 env WEFT_BOOTSTRAP=pmi1 "$shmem"
    if WEFT_BOOTSTRAP=pmi1 "$launched" world 1 >"$said" 2>&1 || ! grep -q "not started by the launcher" "$said"; then
        echo "without a launcher libpmi makes a world of one"
        cat "$said"
        exit 1
    fi
fi
# torchrun's variables come first, whatever srun offers, and a launcher below srun before them.
kinds="none pmi2"
! srun --mpi=list 2>&1 | grep -q pmix || kinds="$kinds pmix"
for kind in $kinds; do
    # shellcheck disable=SC2016
    run --mpi="$kind" -n 2 sh -c 'RANK=$SLURM_PROCID WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29731 exec "$@"' \
        sh "$launched" world 2
    run --mpi="$kind" -n 1 "$oshrun" -n 3 "$launched" world 3
done
# A program that a PE starts has inherited srun's variables: it is told, and can be a world of one. So is a second one
# in a place, which srun serves no more.
for kind in $kinds; do
    [ "$kind" = none ] || run --mpi="$kind" -n 2 "$launched" child "$launched"
done
# shellcheck disable=SC2016
ends_with 3 "start each program by srun" --mpi=pmi2 -n 2 sh -c '"$@" && exec "$@"' sh "$launched" world 2 ||
    exit 1

# ---- two nodes ----

on_two_nodes()
{
    for kind in $kinds; do
        [ "$kind" = none ] || run -N 2 --mpi="$kind" -n 4 "$launched" world 4
    done
    run -N 2 --mpi=pmi2 -n 5 "$launched" parts
    run -N 2 --mpi=pmi2 -n 4 "$shmem"
    ends_with 3 "--mpi=pmi2 or srun --mpi=pmix" -N 2 --mpi=none -n 2 "$launched" world
    # As torchrun does it: srun starts one on each node, and that starts two processes.
    cat >"$work/torchrun.sh" <<'TORCHRUN'
#!/bin/sh
export WORLD_SIZE=4 MASTER_ADDR=10.99.1.1 MASTER_PORT=29731
RANK=$((2 * SLURM_PROCID)) "$@" &
first=$!
code=0
RANK=$((2 * SLURM_PROCID + 1)) "$@" || code=$?
wait $first && exit $code
TORCHRUN
    chmod +x "$work/torchrun.sh"
    for kind in $kinds; do
        WEFT_SECRET="of this job" run -N 2 -n 2 --mpi="$kind" "$work/torchrun.sh" "$launched" world 4
    done
    # What lacks is named on both sides, once for each process.
    WEFT_DEADLINE=3 ends_with 3 "WEFT_SECRET.*WEFT_INSECURE=1" -N 2 -n 2 --mpi=none "$work/torchrun.sh" "$launched" world
}
if [ "$count" = 2 ]; then
    on_two_nodes
fi

# ---- a batch script ----

cat >"$work/batch.sh" <<BATCH
#!/bin/sh
set -e
"$oshrun" -n 4 "$launched" world 4
srun -Q --mpi=pmi2 "$launched" world 4
"$launched" world 1
echo whole
BATCH
for nodes in $(seq "$count"); do
    rm -f "$said"
    timeout 100 sbatch -Q --wait -N "$nodes" -n 4 -o "$said" -e "$said" "$work/batch.sh" || { cat "$said"; exit 1; }
    grep -q whole "$said"
done
