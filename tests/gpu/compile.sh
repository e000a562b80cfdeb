#!/bin/sh
# Goal: without a GPU, the kernels compile for every architecture, the PTX of the device calls has the orders promised,
# and the library's kernels, which are launched early, wait before they touch memory; in those of expert parallelism a
# warp meets between one lane's acquire and what the others read by it, and some of each kind are assembled. Method:
# nvcc; then read the PTX, kernel by kernel; that of the library's kernels as the build has left it beside the fat
# binaries. What is assembled is not optimised, which the builds of the library are.
# Usage: compile.sh NVCC calls|programs ROOT
#        compile.sh NVCC early|ep ROOT FATBIN...
# Exit 77: no nvcc, or a build without GPUs or with sanitizers, which compiles no kernels.
set -eu
nvcc=$1
what=$2
root=$3
shift 3
if ! command -v "$nvcc" >/dev/null; then
    echo "no nvcc here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
strict="-std=c++17 -Werror all-warnings -I$root/include -I$root -I$root/src -I$root/tests -I$root/tests/gpu"
quick="-Xptxas -O0" # for what is assembled and not read
if "$nvcc" --help | grep -q -e --Ofast-compile; then
    quick="--Ofast-compile max"
fi

# The PTX for sm_90 that the build kept beside each fat binary; where there are several, by its name.
kept_ptx()
{
    if [ $# = 0 ] || [ ! -s "$1" ]; then
        echo "this build has no kernels for GPUs" >&2
        exit 77
    fi
    for fatbin; do
        set -- "$fatbin".kept/*.compute_90.ptx
        [ -e "$1" ] || set -- "$fatbin".kept/*.ptx
        cat "$1"
    done
}

case $what in
calls)
    for arch in 80 90 100; do
        "$nvcc" -arch=sm_$arch $strict $quick -cubin "$root/tests/gpu/calls/calls.cu" -o "$folder/calls.cubin"
    done
    read="$strict -DONLY_CALLS_THAT_ARE_READ -ptx $root/tests/gpu/calls/calls.cu"
    "$nvcc" -arch=sm_90 $read -o "$folder/calls.ptx"
    python3 "$root/tests/gpu/ptx_orders.py" "$folder/calls.ptx"
    "$nvcc" -arch=sm_80 $read -o "$folder/whole.ptx"
    python3 "$root/tests/gpu/ptx_orders.py" "$folder/whole.ptx" whole
    "$nvcc" -arch=sm_90 -DWEFT_DEVICE_GET_VOLATILE $read -o "$folder/volatile.ptx"
    python3 "$root/tests/gpu/ptx_orders.py" "$folder/volatile.ptx" volatile
    ;;
programs)
    for source in "$root"/tests/gpu/*.cu; do
        "$nvcc" -arch=sm_90 $strict $quick -cubin "$source" -o "$folder/program.cubin"
    done
    ;;
early)
    kept_ptx "$@" >"$folder/kernels.ptx"
    python3 "$root/tests/gpu/ptx_early.py" "$folder/kernels.ptx"
    "$nvcc" -arch=compute_80 $strict $quick -ptx "$root/src/cuda/kernels.cu" -o "$folder/kernels.ptx"
    ;;
ep)
    # Between them they have all that is written in PTX, and most of what the others are made of.
    for kernels in throughput/dispatch_expert_quantised low_latency/combine many/combine; do
        "$nvcc" -arch=sm_90 $strict $quick -cubin "$root/src/cuda/ep/$kernels.cu" -o "$folder/kernels.cubin"
    done
    kept_ptx "$@" >"$folder/ep.ptx"
    python3 "$root/tests/gpu/ptx_votes.py" "$folder/ep.ptx" 50
    # And it would find one that does not.
    grep -v 'bar\.warp\.sync' "$folder/ep.ptx" >"$folder/unordered.ptx"
    if python3 "$root/tests/gpu/ptx_votes.py" "$folder/unordered.ptx" >"$folder/found"; then
        echo "without bar.warp.sync nothing was found"
        exit 1
    fi
    echo "without bar.warp.sync: $(wc -l <"$folder/found") loads found"
    ;;
*)
    echo "compile.sh: unknown part $what" >&2
    exit 1
    ;;
esac
