#!/bin/sh
# Goal: what mpirun starts, which speaks PMIx, is one world: of all processes, of one, on one node and on two.
# Method: programs of tests/multi, which check themselves, under Open MPI's mpirun; a PE that does not come is missed in
# time.
# Usage: mpirun.sh TESTS_DIR NODES_SH. Exits with 77 where there is no mpirun that speaks PMIx.
set -eu
tests=$1
nodes=$2
command -v mpirun >/dev/null || exit 77
mpirun --version | grep -q "Open MPI" || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 WEFT_DEADLINE=60

run()
{
    pes=$1
    shift
    mpirun --oversubscribe --mca btl self,vader -n "$pes" "$@"
}

run 4 "$tests/multi_rma_atomics"
run 3 "$tests/multi_rma_order"
run 1 "$tests/multi_rma_order"
# The launcher's variable tells a process its number; nodes.sh asks for weftrun's.
# shellcheck disable=SC2016
run 4 sh -c 'WEFT_LOCAL_PE=$PMIX_RANK exec "$@"' sh "$nodes" 2 "$tests/multi_rma_order"

# PE 0 does not come: the other says so at the deadline.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# shellcheck disable=SC2016
if WEFT_DEADLINE=2 run 2 sh -c '[ "$PMIX_RANK" = 0 ] && exec sleep 5; exec "$@"' sh "$tests/multi_rma_order" \
    >"$said" 2>&1; then
    echo "a world of one of two processes came about"
    exit 1
fi
grep "PE 0 did not come" "$said" || { cat "$said"; exit 1; }
