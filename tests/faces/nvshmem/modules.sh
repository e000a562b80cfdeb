#!/bin/sh
# Make the modules that gpus.cu loads: FOLDER/whole.cubin, and FOLDER/linked.cubin of relocatable device code of two
# units and of libnvshmem_device.a. Each must have the state of its kernels once, under the name by which
# nvshmemx_cumodule_init looks for it.
# Usage: modules.sh NVCC HOME_OF_NVSHMEM FOLDER
set -eu
nvcc=$1
home=$2
folder=$3
source=$(dirname "$0")/loaded.cu
options="-arch=sm_90 -std=c++17 -I$home/include -Werror all-warnings"
# shellcheck disable=SC2086 # words
{
    "$nvcc" $options -DPART=0 -cubin "$source" -o "$folder/whole.cubin"
    for part in 1 2; do
        "$nvcc" $options -DPART=$part -rdc=true -c "$source" -o "$folder/part$part.o"
    done
    "$nvcc" -arch=sm_90 -dlink -cubin "$folder/part1.o" "$folder/part2.o" -L"$home/lib" -lnvshmem_device \
        -o "$folder/linked.cubin"
}
for module in whole linked; do
    found=$(readelf -sW "$folder/$module.cubin" | grep -c ' OBJECT .* weft_nvshmem_state_d$' || true)
    if [ "$found" != 1 ]; then
        echo "$module.cubin: the state of its kernels is there $found times by its name, not once"
        exit 1
    fi
done
