#!/bin/sh
# The whole GPU set on this machine: tests, then benchmarks with NVSHMEM's beside ours where its package is installed,
# then gpu_ep.sh. Writes bench/records/<date>-<machine>-device.jsonl. Every program has a time limit.
# Usage: gpu.sh [BUILD]   BUILD: a build directory that has gpu/ and the tools; default: build/release, built here
# WEFT_MACHINE, WEFT_COMMIT, WEFT_DATE, WEFT_RECORD replace what is found out.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
. scripts/gpu_lib.sh
if [ $# = 0 ]; then
    scripts/build.sh release weft weftrun weft-perf weft-ep-bench gpu_programs || exit 1
fi
record=${WEFT_RECORD:-bench/records/$WEFT_DATE-$WEFT_MACHINE-device.jsonl}

echo "== tests on $gpus GPUs"
test=$build/gpu/test_device
for pes in 1 2 3 4; do
    if [ "$pes" -le "$gpus" ]; then
        run "$pes processes, $pes GPUs" "$build/weftrun" -n $pes "$test"
    fi
done
for pes in 1 2 4; do
    run "$pes processes, 1 GPU" "$build/weftrun" -n $pes "$test" -g 1
done
for pes in 2 4 8 12; do
    run "$pes threads, $gpus GPUs" "$test" -t $pes
done
run "4 threads, 1 GPU" "$test" -t 4 -g 1
run "$gpus processes, cudaIpc" env WEFT_CUDA_VMM=0 "$build/weftrun" -n "$gpus" "$test"
run "$gpus threads, cudaIpc" env WEFT_CUDA_VMM=0 "$test" -t "$gpus"
run "$gpus processes, no peer access" env WEFT_CUDA_DOMAIN=1 "$build/weftrun" -n "$gpus" "$test"
run "$gpus processes, peer access between two" env WEFT_CUDA_DOMAIN=2 "$build/weftrun" -n "$gpus" "$test"
run "4 threads, no peer access" env WEFT_CUDA_DOMAIN=1 "$test" -t 4
run "4 threads, peer access between two" env WEFT_CUDA_DOMAIN=2 "$test" -t 4
for seed in 2 3 4; do
    run "$gpus processes, seed $seed" env WEFT_SEED=$seed "$build/weftrun" -n "$gpus" "$test"
done
test=$build/gpu/test_far
for domain in 1 2; do
    run "$gpus processes, many bytes, domains of $domain" env WEFT_CUDA_DOMAIN=$domain "$build/weftrun" -n "$gpus" "$test"
    run "4 threads, many bytes, domains of $domain" env WEFT_CUDA_DOMAIN=$domain "$test" -t 4
done
test=$build/gpu/test_device
if command -v compute-sanitizer >/dev/null; then
    check="compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9"
    run "2 threads, memcheck" $check "$test" -t 2
    run "2 processes, memcheck" "$build/weftrun" -n 2 $check "$test"
else
    echo "skip  memcheck: no compute-sanitizer here"
fi

if [ -x "$build/gpu/nvrtc_ring" ]; then
    run "a kernel compiled at run time" "$build/weftrun" -n "$gpus" "$build/gpu/nvrtc_ring" include examples/gpu/nvrtc_ring.cu
else
    echo "skip  a kernel compiled at run time: no NVRTC where this was built"
fi

echo "== streams and collectives"
test=$build/gpu/test_collective
for pes in 1 2 3 4; do
    if [ "$pes" -le "$gpus" ]; then
        run "$pes processes, $pes GPUs" "$build/weftrun" -n $pes "$test"
    fi
done
for pes in 2 3 8 12; do
    run "$pes threads, $gpus GPUs" "$test" -t $pes
done
run "3 threads, 1 GPU" "$test" -t 3 -g 1
run "$gpus processes, cudaIpc" env WEFT_CUDA_VMM=0 "$build/weftrun" -n "$gpus" "$test"
run "$gpus processes, no peer access" env WEFT_CUDA_DOMAIN=1 "$build/weftrun" -n "$gpus" "$test"
run "$gpus processes, peer access between two" env WEFT_CUDA_DOMAIN=2 "$build/weftrun" -n "$gpus" "$test"
run "3 threads, no peer access" env WEFT_CUDA_DOMAIN=1 "$test" -t 3
run "$gpus processes, copy engines" env WEFT_CUDA_COPY=1 "$build/weftrun" -n "$gpus" "$test"
run "3 threads, copy engines" env WEFT_CUDA_COPY=1 "$test" -t 3

echo "== benchmarks"
perf()
{
    name=$1
    shift
    bench "weft, $name" "$build/weftrun" -q -n "$gpus" "$build/weft-perf" "$@" --json "$json"
}
perf "worlds, allocation" --memory device --op world,malloc
perf "from the host" --memory device --op put,fetch_add --bytes 8
perf "words and barriers in kernels" --scope thread --op p_pingpong,signal,fetch_add,g,barrier,sync
perf "barriers of blocks" --scope block --op barrier,sync
perf "signals with data" --scope block --op put_signal --block-threads 1024,256
perf "the hardware's" --scope thread,block --op raw_put_signal --bytes 8,1K --block-threads 1024,256
perf "rates" --scope block --op put_bw,get_bw,raw_put_bw,raw_get_bw --blocks 1,2,4,8,16,32,64,132 --pattern one,all \
    --rounds 5
perf "rates of bulk copies" --scope warp --op put_bulk_bw,raw_get_bulk_bw --blocks 1,2,4,8,16,32,64,132 \
    --pattern one,all --rounds 5
perf "barriers on streams" --scope stream,graph --op barrier
perf "collectives on streams" --scope stream,graph --op alltoall,fcollect,broadcast,reduce
# The same by copy engines, as another implementation: where it wins, WEFT_CUDA_COPY should say so by itself.
bench "weft, collectives by copy engines" env WEFT_CUDA_COPY=1 sh -c \
    '"$@" && sed -i "s/\"impl\": \"weft\"/\"impl\": \"weft-copy\"/" "$0"' "$json" "$build/weftrun" -q -n "$gpus" \
    "$build/weft-perf" --scope stream,graph --op alltoall,fcollect,broadcast --json "$json"
perf "a sum in a kernel" --scope block --op reduce --bytes 1K --block-threads 256,512

# NVSHMEM: from NVSHMEM_HOME, else its Python package.
home=${NVSHMEM_HOME:-$(python3 -c 'import nvidia.nvshmem; print(list(nvidia.nvshmem.__path__)[0])' 2>/dev/null)}
peer=$build/gpu/bench_nvshmem
if [ -z "$home" ] || [ ! -d "$home/include" ]; then
    echo "skip  nvshmem: not installed"
else
    if [ ! -x "$peer" ] || [ bench/gpu/peers/nvshmem.cu -nt "$peer" ]; then
        peer=$scratch/bench_nvshmem
        cuda=$(dirname "$(dirname "$(command -v nvcc)")")
        nvcc -rdc=true -arch=sm_90 -std=c++17 -O3 -I. -I"$home/include" bench/gpu/peers/nvshmem.cu -L"$home/lib" \
            -l:libnvshmem_host.so.3 -lnvshmem_device -L"$cuda/lib64/stubs" -lcuda -o "$peer" >"$scratch/log" 2>&1 ||
            cat "$scratch/log"
    fi
    # One host, over its loopback; NVLink multicast off.
    bench nvshmem env LD_LIBRARY_PATH="$home/lib:${LD_LIBRARY_PATH:-}" NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo \
        NVSHMEM_REMOTE_TRANSPORT=none NVSHMEM_DISABLE_NVLS=1 WEFT_MEETING="$scratch/meeting" \
        "$build/weftrun" -q -n "$gpus" "$peer"
fi
scripts/gpu_ep.sh "$build" || failed=$((failed + 1))
keep_record "$record" bench/gpu/table.py
[ $failed = 0 ]
