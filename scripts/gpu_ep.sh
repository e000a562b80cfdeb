#!/bin/sh
# Expert parallelism on this machine's GPUs: tests, then figures. Writes bench/records/<date>-<machine>-ep.jsonl. Every
# program has a time limit.
# Usage: gpu_ep.sh BUILD   BUILD: a build directory that has gpu/ and weftrun
# WEFT_MACHINE, WEFT_COMMIT, WEFT_DATE, WEFT_EP_RECORD replace what is found out.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
limit="timeout -k 5 120"
failed=0

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L | grep -q GPU; then
    echo "no GPU here"
    exit 77
fi
gpus=$(nvidia-smi -L | grep -c GPU)
model=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z' 'a-z' | awk '{print $NF}')
WEFT_MACHINE=${WEFT_MACHINE:-${model}x$gpus}
WEFT_COMMIT=${WEFT_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
WEFT_DATE=${WEFT_DATE:-$(date +%F)}
WEFT_LOG=${WEFT_LOG:-none} # the tests provoke errors
export WEFT_MACHINE WEFT_COMMIT WEFT_DATE WEFT_LOG
record=${WEFT_EP_RECORD:-bench/records/$WEFT_DATE-$WEFT_MACHINE-ep.jsonl}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run()
{
    name=$1
    shift
    if $limit "$@" >"$scratch/log" 2>&1; then
        echo "ok    $name: $(tail -1 "$scratch/log")"
    else
        echo "FAIL  $name ($?)"
        tail -15 "$scratch/log"
        failed=$((failed + 1))
    fi
}

echo "== tests of expert parallelism on $gpus GPUs"
test=$build/gpu/test_ep
for pes in 1 2 3 4; do
    if [ "$pes" -le "$gpus" ]; then
        run "$pes processes" env WEFT_EP_CASES=300 "$build/weftrun" -n $pes "$test"
    fi
done
for pes in 6 8 12; do
    run "$pes threads" env WEFT_EP_CASES=100 "$test" -t $pes
done
run "$gpus threads, cudaIpc" env WEFT_CUDA_VMM=0 "$test" -t "$gpus"
if command -v compute-sanitizer >/dev/null; then
    run "memcheck" env WEFT_EP_CASES=2 "$build/weftrun" -n 2 \
        compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 "$test"
else
    echo "skip  memcheck: no compute-sanitizer here"
fi

echo "== figures of expert parallelism"
bench()
{
    name=$1
    shift
    if $limit "$build/weftrun" -q -n "$gpus" "$build/gpu/bench_ep" "$@" >"$scratch/figures" 2>"$scratch/log"; then
        sed -n 's/^\(\[0\] \)*{/{/p' "$scratch/figures" >>"$scratch/record"
        echo "ok    $name: $(wc -l <"$scratch/figures") figures"
    else
        echo "FAIL  $name ($?)"
        tail -15 "$scratch/log"
        failed=$((failed + 1))
    fi
}
: >"$scratch/record"
bench "set-up and memory" -t 4096 -c m
bench "T 4096" -t 4096 -s 132,64,32,16,8 -c fdpcu
bench "T 1 to 8192" -t 8192,2048,1024,512,256,128,64,32,8,1 -s 132 -c fdcs
bench "skewed" -x -t 4096,512 -s 132 -c fdc
bench "fp8" -8 -t 4096,512,128 -s 132,64,16 -c fd
bench "slots" -l -t 128,64,32,8,1 -s 132 -c fdcs
mkdir -p "$(dirname "$record")"
cp "$scratch/record" "$record"
python3 bench/gpu/ep_table.py "$record"
echo "== $failed failed; record: $record"
[ $failed = 0 ]
