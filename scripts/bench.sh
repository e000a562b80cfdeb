#!/bin/sh
# Measure weft on this machine beside Open MPI's OpenSHMEM, memcpy and the bare hardware, in alternate rounds of one
# run; write bench/records/<date>-<machine>-host.jsonl and print the table. See bench/README.md.
# Usage: bench.sh [--machine NAME] [--rounds N] [--output FILE]
#   NAME also from WEFT_BENCH_MACHINE; without either it is made of what lscpu says
set -eu
cd "$(dirname "$0")/.."

machine=${WEFT_BENCH_MACHINE:-}
rounds=7
output=
while [ $# -gt 1 ]; do
    case $1 in
    --machine) machine=$2 ;;
    --rounds) rounds=$2 ;;
    --output) output=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# != 0 ]; then
    echo "usage: bench.sh [--machine NAME] [--rounds N] [--output FILE]" >&2
    exit 2
fi

scripts/install-deps.sh bench
scripts/build.sh release benches
built=build/release
work=$built/bench
mkdir -p "$work"
rm -f "$work"/*.jsonl

# "2-core-epyc": the cores that this process may use, and the word of the model's name that people say.
describe_machine()
{
    model=$(lscpu | sed -n 's/^Model name: *//p' | head -1 | tr 'A-Z' 'a-z')
    word=$(echo "$model" | grep -oE 'epyc|xeon|ryzen|threadripper|core|neoverse|graviton|grace' | head -1)
    echo "$(nproc)-core-${word:-$(uname -m)}"
}

# The peers are compiled as their users would, against the parts of this tree that time and write.
build_peer()
{
    if ! oshcc -std=gnu17 -O3 -g -Ibench "bench/peers/$1.c" bench/part/*.c -o "$work/$1" >"$work/$1.log" 2>&1; then
        cat "$work/$1.log" >&2
        return 1
    fi
}

# $1 PEs, then the program. Debian's Open MPI fails in shmem_finalize with its rdma windows, and refuses root.
run_peer()
{
    pes=$1
    shift
    place="--bind-to core"
    if [ "$pes" -gt "$(nproc)" ]; then
        place="--oversubscribe --bind-to none"
    fi
    root=
    if [ "$(id -u)" = 0 ]; then
        root=--allow-run-as-root
    fi
    OMPI_MCA_osc=^rdma oshrun $root $place -n "$pes" "$@" >>"$work/peer.log" 2>&1
}

run_weft()
{
    pes=$1
    shift
    bind=--bind
    if [ "$pes" -gt "$(nproc)" ]; then
        bind=
    fi
    "$built/weftrun" -n "$pes" $bind "$@" >>"$work/weft.log" 2>&1
}

fail()
{
    echo "$1 failed; its output:" >&2
    tail -40 "$2" >&2
    exit 1
}

round_of_weft()
{
    run_weft 2 "$built/bench_host" --json "$1" || fail "bench_host" "$work/weft.log"
    for shape in "" "--tokens 128 --hidden 7168"; do
        run_weft 2 "$built/bench_ep" $shape --json "$1" || fail "bench_ep" "$work/weft.log"
    done
    run_weft 2 "$built/bench_coll" --json "$1" || fail "bench_coll" "$work/weft.log"
    for pes in 4 8; do
        run_weft $pes "$built/bench_coll" --blocks 5 --json "$1" || fail "bench_coll" "$work/weft.log"
    done
    for pes in 2 16; do
        for again in 1 2 3; do
            run_weft $pes "$built/bench_world" --blocks 7 --json "$1" || fail "bench_world" "$work/weft.log"
        done
    done
}

# A peer that fails is left out from then on, with its output, and the rest goes on.
round_of_peer()
{
    if [ -z "$peer" ]; then
        return
    fi
    if ! run_peer 2 "$work/oshmem" --json "$1" || ! run_peer 2 "$work/oshmem_world" --json "$1" ||
        ! run_peer 16 "$work/oshmem_world" --json "$1" || ! run_peer 2 "$work/oshmem_coll" --json "$1" ||
        ! run_peer 4 "$work/oshmem_coll" --blocks 5 --json "$1" ||
        ! run_peer 8 "$work/oshmem_coll" --blocks 5 --json "$1"; then
        echo "the peer's benchmark failed, going on without it; its output:" >&2
        tail -40 "$work/peer.log" >&2
        peer=
    fi
}

machine=${machine:-$(describe_machine)}
date=$(date -u +%F)
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
if [ -n "$(git status --porcelain --untracked-files=no -- include src bench scripts cmake CMakeLists.txt 2>/dev/null)" ]; then
    commit=$commit-changed
fi
output=${output:-bench/records/$date-$machine-host.jsonl}

peer=
if command -v oshcc >/dev/null && command -v oshrun >/dev/null; then
    if build_peer oshmem && build_peer oshmem_world && build_peer oshmem_coll; then
        peer=ompi
    else
        echo "the peer's benchmark cannot be built: without the peer" >&2
    fi
else
    echo "no oshcc: without the peer" >&2
fi

if awk '{ exit !($1 > 0.5) }' /proc/loadavg; then
    echo "warning: this machine is busy (load $(cut -d' ' -f1 /proc/loadavg)); the figures will not be worth much" >&2
fi
rm -f "$work/weft.log" "$work/peer.log"
round=1
while [ "$round" -le "$rounds" ]; do
    echo "round $round of $rounds"
    if [ $((round % 2)) = 1 ]; then
        round_of_weft "$work/weft-$round.jsonl"
        round_of_peer "$work/peer-$round.jsonl"
    else
        round_of_peer "$work/peer-$round.jsonl"
        round_of_weft "$work/weft-$round.jsonl"
    fi
    round=$((round + 1))
done

mkdir -p "$(dirname "$output")"
python3 scripts/bench_record.py merge --machine "$machine" --commit "$commit" --date "$date" --output "$output" \
    "$work"/*.jsonl
python3 scripts/bench_record.py table "$output"
echo "record: $output"
