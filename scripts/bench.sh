#!/bin/sh
# Measure weft on this machine beside Open MPI (its OpenSHMEM, and MPI for expert parallelism), memcpy and the bare
# hardware, side by side in several rounds of one run; write bench/records/<date>-<machine>-host.jsonl and print the
# table. See bench/README.md.
# Usage: bench.sh [--machine NAME] [--rounds N] [--attempts N] [--steps "STEP..."] [--output FILE]
#   machine: also from WEFT_BENCH_MACHINE; without either it is made of what lscpu says
#   attempts: how often in all a step in which others use the machine is done again
#   steps: of host, ep, coll, world, and crowd: worlds of many more PEs than cores, without a peer; its record is
#   bench/records/<date>-<machine>-crowd.jsonl
set -eu
cd "$(dirname "$0")/.."

machine=${WEFT_BENCH_MACHINE:-}
rounds=7
attempts=20
steps="host ep coll world"
output=
while [ $# -gt 1 ]; do
    case $1 in
    --machine) machine=$2 ;;
    --rounds) rounds=$2 ;;
    --attempts) attempts=$2 ;;
    --steps) steps=$2 ;;
    --output) output=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# != 0 ]; then
    echo "usage: bench.sh [--machine NAME] [--rounds N] [--attempts N] [--steps \"STEP...\"] [--output FILE]" >&2
    exit 2
fi
record=host
if [ "$steps" = crowd ]; then
    record=crowd
else
    scripts/install-deps.sh bench
fi

scripts/build.sh release benches $([ $record = host ] && echo weft_shmem)
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

# The peers are compiled as their users would, against the files of this tree that time and write; what does arithmetic
# of its own, for this processor.
build_peer()
{
    compiler="oshcc"
    case $1 in
    mpi_*) compiler="mpicc -march=native" ;;
    esac
    compile "$1" "$1" $compiler
}

# The same programs through weft's own OpenSHMEM: the figures of "weft-shmem".
build_face()
{
    compile "$1" "face-$1" gcc -DFACE_IMPL='"weft-shmem"' -I"$built/include" -L"$built" -Wl,-rpath,"$PWD/$built" \
        -lweft_shmem -lweft -lm
}

# $1 of bench/peers as $2, by the rest.
compile()
{
    source=bench/peers/$1.c
    program=$work/$2
    shift 2
    compiler=$1
    shift
    lib=
    for file in block memory options record stats; do
        lib="$lib src/tools/lib/$file.c"
    done
    case $source in
    */mpi_ep.c) lib="$lib src/tools/weft-ep-bench/gate.c src/tools/weft-ep-bench/sweep_point.c" ;;
    esac
    if ! $compiler -std=gnu17 -D_GNU_SOURCE -O3 -g -Ibench -Isrc -Iinclude "$source" $lib "$@" -o "$program" \
        >"$program.log" 2>&1; then
        cat "$program.log" >&2
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

# The steps of a round: what weft runs and what the peer runs, figures to $1.

weft_host()
{
    run_weft 2 "$built/bench_host" --json "$1" && run_weft 2 "$work/face-oshmem" --json "$1"
}

peer_host()
{
    run_peer 2 "$work/oshmem" --json "$1"
}

# Expert parallelism as its peer has it: rank-major bf16 on a cached route, added without weights, memcpy in turn.
ep_preset="--check --memcpy --unweighted"

weft_ep()
{
    run_weft 2 "$built/weft-ep-bench" $ep_preset --json "$1" &&
        run_weft 4 "$built/weft-ep-bench" $ep_preset --repeats 9 --json "$1" &&
        run_weft 2 "$built/weft-ep-bench" $ep_preset --tokens 128 --hidden 7168 --json "$1"
}

peer_ep()
{
    run_peer 2 "$work/mpi_ep" --json "$1" &&
        run_peer 4 "$work/mpi_ep" --blocks 9 --json "$1" &&
        run_peer 2 "$work/mpi_ep" --tokens 128 --hidden 7168 --json "$1"
}

weft_coll()
{
    run_weft 2 "$built/bench_coll" --json "$1" &&
        run_weft 4 "$built/bench_coll" --blocks 5 --json "$1" &&
        run_weft 8 "$built/bench_coll" --blocks 5 --json "$1" &&
        run_weft 2 "$work/face-oshmem_coll" --json "$1" &&
        run_weft 4 "$work/face-oshmem_coll" --blocks 5 --json "$1" &&
        run_weft 8 "$work/face-oshmem_coll" --blocks 5 --json "$1"
}

peer_coll()
{
    run_peer 2 "$work/oshmem_coll" --json "$1" &&
        run_peer 4 "$work/oshmem_coll" --blocks 5 --json "$1" &&
        run_peer 8 "$work/oshmem_coll" --blocks 5 --json "$1"
}

weft_world()
{
    for pes in 2 16; do
        for again in 1 2 3; do
            run_weft $pes "$built/bench_world" --blocks 7 --json "$1" || return 1
        done
    done
    run_weft 64 "$built/bench_world" --blocks 3 --json "$1" &&
        "$built/bench_start" --blocks 3 --json "$1" >>"$work/weft.log" 2>&1
}

# With each size, what others took of the processors meanwhile.
weft_crowd()
{
    for pes in 64 256 512 1024; do
        read_times "$work/crowd-before"
        run_weft $pes "$built/bench_world" --blocks 3 --json "$1" || return 1
        read_times "$work/crowd-after"
        printf '{"name": "others_share", "impl": "machine", "pes": %d, "bytes": 0, "unit": "%%", "value": %d, "stat": "mean", "n": 1}\n' \
            $pes "$(others_share "$work/crowd-before" "$work/crowd-after")" >>"$1"
    done
}

peer_crowd()
{
    :
}

peer_world()
{
    run_peer 2 "$work/oshmem_world" --json "$1" && run_peer 16 "$work/oshmem_world" --json "$1"
}

# $1 step, $2 round
run_weft_step()
{
    "weft_$1" "$work/weft-$2-$1.jsonl" || fail "weft's $1" "$work/weft.log"
}

# A peer that fails is left out from then on, with its output, and the rest goes on.
run_peer_step()
{
    if [ -n "$peer" ] && ! "peer_$1" "$work/peer-$2-$1.jsonl"; then
        echo "the peer's $1 failed, going on without the peer; its output:" >&2
        tail -40 "$work/peer.log" >&2
        peer=
    fi
}

# The time that all processes and that this script's own had on the processors, and the time of day, in seconds, to the
# file $1. Not in a subshell, which has other children.
read_times()
{
    times >"$work/own"
    ticks=$(getconf CLK_TCK)
    {
        awk -v ticks="$ticks" '/^cpu / { print ($2 + $3 + $4 + $7 + $8) / ticks }' /proc/stat
        tr 'ms' '  ' <"$work/own" | awk '{ sum += $1 * 60 + $2 + $3 * 60 + $4 } END { print sum }'
        cut -d' ' -f1 /proc/uptime
    } >"$1"
}

# The share of the processors, in percent, that other processes took between two readings.
others_share()
{
    paste "$1" "$2" | awk -v cores="$(nproc --all)" '
        { spent[NR] = $2 - $1 }
        END { printf "%d\n", 100 * (spent[1] - spent[2]) / (spent[3] * cores) + 0.5 }'
}

# One step of a round, weft first in odd rounds; again while others use the machine, as often as $attempts allows.
run_step()
{
    while :; do
        rm -f "$work/weft-$2-$1.jsonl" "$work/peer-$2-$1.jsonl"
        read_times "$work/before"
        if [ $((round % 2)) = 1 ]; then
            run_weft_step "$1" "$2"
            run_peer_step "$1" "$2"
        else
            run_peer_step "$1" "$2"
            run_weft_step "$1" "$2"
        fi
        read_times "$work/after"
        share=$(others_share "$work/before" "$work/after")
        if [ "$share" -le $others_most ]; then
            return
        fi
        if [ "$attempts" -le 0 ]; then
            echo "warning: other processes took $share % of the processors in $1 of round $2" >&2
            return
        fi
        attempts=$((attempts - 1))
        echo "other processes took $share % of the processors in $1 of round $2: once more"
        sleep 2
    done
}

machine=${machine:-$(describe_machine)}
date=$(date -u +%F)
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
if [ -n "$(git status --porcelain -uno -- include src bench scripts cmake CMakeLists.txt 2>/dev/null)" ]; then
    commit=$commit-changed
fi
output=${output:-bench/records/$date-$machine-$record.jsonl}

peer=
if [ $record = host ] && command -v oshcc >/dev/null && command -v oshrun >/dev/null; then
    if build_peer oshmem && build_peer oshmem_world && build_peer oshmem_coll && build_peer mpi_ep; then
        peer=ompi
    else
        echo "the peer's benchmark cannot be built: without the peer" >&2
    fi
elif [ $record = host ]; then
    echo "no oshcc: without the peer" >&2
fi

if [ $record = host ] && ! { build_face oshmem && build_face oshmem_coll; }; then
    echo "the benchmarks cannot be built on weft's OpenSHMEM" >&2
    exit 1
fi

rm -f "$work/weft.log" "$work/peer.log"
others_most=5
round=1
while [ "$round" -le "$rounds" ]; do
    echo "round $round of $rounds"
    for step in $steps; do
        run_step "$step" "$round"
    done
    round=$((round + 1))
done

mkdir -p "$(dirname "$output")"
python3 scripts/bench_record.py merge --machine "$machine" --commit "$commit" --date "$date" --output "$output" \
    "$work"/*.jsonl
python3 scripts/bench_record.py table "$output"
echo "record: $output"
