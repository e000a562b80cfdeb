#!/bin/sh
# Expert parallelism on this machine's GPUs: tests, then figures. Writes bench/records/<date>-<machine>-ep.jsonl. Every
# program has a time limit.
# Usage: gpu_ep.sh BUILD   BUILD: a build directory that has gpu/ and weftrun
# WEFT_MACHINE, WEFT_COMMIT, WEFT_DATE, WEFT_EP_RECORD replace what is found out.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
. scripts/gpu_part.sh
record=${WEFT_EP_RECORD:-bench/records/$WEFT_DATE-$WEFT_MACHINE-ep.jsonl}

echo "== tests of expert parallelism on $gpus GPUs"
test=$build/gpu/test_ep
for pes in 1 2 3 4; do
    if [ "$pes" -le "$gpus" ]; then
        run "$pes processes" "$build/weftrun" -n $pes "$test" -c 300
    fi
done
for pes in 6 8 12; do
    run "$pes threads" "$test" -t $pes -c 100
done
run "$gpus threads, cudaIpc" env WEFT_CUDA_VMM=0 "$test" -t "$gpus"
if command -v compute-sanitizer >/dev/null; then
    run "memcheck" "$build/weftrun" -n 2 \
        compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 "$test" -c 2
else
    echo "skip  memcheck: no compute-sanitizer here"
fi

echo "== figures of expert parallelism"
figures()
{
    name=$1
    shift
    bench "$name" "$build/weftrun" -q -n "$gpus" "$build/gpu/bench_ep" "$@"
}
figures "set-up and memory" -t 4096 -c m
figures "T 4096" -t 4096 -s 132,64,32,16,8 -c fdpcu
figures "T 1 to 8192" -t 8192,2048,1024,512,256,128,64,32,8,1 -s 132 -c fdcs
figures "skewed" -x -t 4096,512 -s 132 -c fdc
figures "fp8" -8 -t 4096,512,128 -s 132,64,16 -c fd
figures "fp8 from bf16" -q -t 4096 -s 132,64,16 -c fd
figures "slots, fp8 from bf16" -q -y slots -t 128,8 -s 132 -c fd
figures "slots" -y slots -t 128,64,32,8,1 -s 132 -c fdcs
figures "expert-major" -y expert-major -t 4096,512 -s 132,64,16 -c fdc
figures "slots by expert" -y "slots by expert" -t 128,8 -s 132 -c fdcs
keep_record "$record" bench/gpu/ep_table.py
[ $failed = 0 ]
