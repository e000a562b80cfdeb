#!/bin/sh
# Goal: programs with kernels compile and link, without a warning, with relocatable device code and without, in one
# file and in two; among them one for each of the libraries of users, with what that calls.
# Method: nvcc on calls.cu; its kernels twice in one program, as files that share nothing but the headers; then on the
# program for GPUs, gpus.cu, and on users/*.cu, two at a time; and modules, as modules.sh makes them. Nothing of it is
# run, so nothing is optimised; what kernels of the face become when they are is what registers.py reads. What depends
# on one of the two alone is compiled once: users with relocatable code, as they have to with NVSHMEM; calls.cu for 9.0
# with, for 8.0, whose headers differ, without.
# Usage: compile.sh NVCC HOME_OF_NVSHMEM WHOLE|RDC. Exit 77: nvcc is not here.
set -eu
nvcc=$1
home=$2
way=$3
here=$(dirname "$0")
if ! command -v "$nvcc" >/dev/null; then
    echo "no nvcc here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
option=-rdc=false
architectures=-arch=sm_80
programs=$here/gpus.cu
if [ "$way" = RDC ]; then
    option=-rdc=true
    architectures=-arch=sm_90
    programs="$programs $(echo "$here"/users/*.cu)"
fi
quick="-Xptxas -O0"
if "$nvcc" --help | grep -q -e --Ofast-compile; then
    quick="--Ofast-compile max"
fi
cat >"$folder/other.cu" <<TEXT
#include <nvshmem.h>
__global__ void other(int *data)
{
    nvshmem_int_p(data, nvshmem_my_pe(), 0);
}
TEXT
# shellcheck disable=SC2086 # words
"$nvcc" $quick -std=c++17 "$option" $architectures --threads 2 -Werror all-warnings \
    -I"$home/include" "$here/calls.cu" "$folder/other.cu" -o "$folder/calls" -L"$home/lib" -lnvshmem_host -lnvshmem_device
# torch.cu as PyTorch compiles its own: half and bfloat16 without their conversions and operators. quda.cu as QUDA
# links: one library of both parts.
build()
{
    set -- "$1" "$(basename "$1" .cu)"
    bare=
    libraries="-lnvshmem_host -lnvshmem_device"
    if [ "$2" = quda ]; then
        libraries=-lnvshmem
    elif [ "$2" = torch ]; then
        bare="-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__
            -D__CUDA_NO_BFLOAT16_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_OPERATORS__"
    fi
    # shellcheck disable=SC2086
    "$nvcc" $quick $bare -std=c++17 "$option" -arch=sm_90 -Werror all-warnings -I"$home/include" "$1" -o "$folder/$2" \
        -L"$home/lib" $libraries || touch "$folder/failed"
}
previous=
for program in $programs; do
    build "$program" &
    [ -z "$previous" ] || wait "$previous"
    previous=$!
done
wait
[ ! -e "$folder/failed" ]
if [ "$way" = RDC ]; then
    "$here/modules.sh" "$nvcc" "$home" "$folder"
fi
