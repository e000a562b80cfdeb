#!/bin/sh
# Expert parallelism on this machine's GPUs: tests, then figures. Writes bench/records/<date>-<machine>-ep.jsonl. Every
# program has a time limit.
# Usage: gpu_ep.sh BUILD   BUILD: a build directory that has gpu/, weftrun and weft-ep-bench
# WEFT_MACHINE, WEFT_COMMIT, WEFT_DATE, WEFT_EP_RECORD replace what is found out.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
. scripts/gpu_lib.sh
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
if [ "$gpus" -ge 4 ]; then # six a GPU
    run "24 threads" "$test" -t 24 -c 16
fi
run "halves, $gpus processes" "$build/weftrun" -n "$gpus" "${test}_halves" -c 100
run "halves, 4 threads" "${test}_halves" -t 4 -c 100
run "ranks late, masked and apart, $gpus processes" "$build/weftrun" -n "$gpus" "${test}_apart"
run "two modules, $gpus processes" "$build/weftrun" -n "$gpus" "${test}_modules" -c 1
run "two modules, 4 threads" "${test}_modules" -t 4 -c 1
run "calls across the wrap, $gpus processes" env WEFT_EP_FIRST_CALL=2147473648 \
    "$build/weftrun" -n "$gpus" "${test}_soak" -c 20000
run "$gpus threads, cudaIpc" env WEFT_CUDA_VMM=0 "$test" -t "$gpus"
if command -v compute-sanitizer >/dev/null; then
    run "memcheck" "$build/weftrun" -n 2 \
        compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 "$test" -c 2
else
    echo "skip  memcheck: no compute-sanitizer here"
fi

if PYTHONPATH="$build/python" python3 -c 'import weft.torch, torch.distributed as d; assert d.is_nccl_available()' 2>/dev/null; then
    for dtype in float32 bfloat16; do
        run "a layer trained beside PyTorch's all_to_all_single, $dtype" env PYTHONPATH="$build/python" \
            python3 -m torch.distributed.run --nproc-per-node "$gpus" examples/pytorch/moe_check.py --device cuda --dtype $dtype
    done
else
    echo "skip  PyTorch's all_to_all_single: no PyTorch with NCCL, or no $build/python, here"
fi

run "beside NCCL's all_reduce and a matrix product" env $(nccl_environment) \
    "$build/weftrun" -n "$gpus" "${test}_beside"

echo "== weft-ep-bench, every row checked"
ep="$build/weftrun -q -n $gpus $build/weft-ep-bench --gpu --experts 256 --hidden 7168 --worst-case"
layouts=rank-major,expert-major,slots-source,slots-expert
run "every layout" $ep --check --tokens 1,7,128 --layout $layouts --buffers symmetric,plain --repeats 3
run "fp8 and skewed" $ep --check --tokens 33 --layout $layouts --dtype fp8,bf16-fp8 --skew uniform,zipf,one-rank --repeats 3

echo "== figures of expert parallelism"
figures()
{
    name=$1
    shift
    bench "$name" $ep --routing fresh,cached --repeats 50 --warmup 5 --json "$json" "$@"
}
figures "T 4096" --tokens 4096 --sms 132,64,32,16,8 --buffers symmetric,plain
figures "T 1 to 8192" --tokens 1,8,32,64,128,256,512,1024,2048,8192 --sms 132
figures "expert-major" --tokens 4096,512 --layout expert-major --sms 132,16
figures "skewed" --skew zipf --tokens 4096,512 --sms 132
figures "fp8" --dtype fp8,bf16-fp8 --tokens 4096,512,128 --sms 132,64,16
figures "slots" --layout slots-source,slots-expert --tokens 1,8,32,64,128 --sms 132
figures "slots, fp8" --layout slots-source,slots-expert --dtype bf16-fp8 --tokens 128 --sms 132
figures "slots, halves" --layout slots-source --mode ll --tokens 8,128 --sms 132
figures "halves, rows with send" --mode ht,ll,eager --layout rank-major,expert-major --tokens 512,4096 --sms 132
figures "halves, rows with send, fp8" --mode ll,eager --dtype fp8,bf16-fp8 --tokens 512,4096 --sms 132
figures "two pairs of halves" --mode ll,two --layout slots-source,slots-expert,rank-major --tokens 128 --sms 64
figures "counts" --counts --layout $layouts --tokens 128,512 --sms 132
keep_record "$record" bench/gpu/ep_table.py
[ $failed = 0 ]
