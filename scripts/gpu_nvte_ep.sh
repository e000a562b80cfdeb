#!/bin/sh
# Build tests/gpu/nvte_ep.cpp against TransformerEngine as it is released, and run it three ways: on weft's libnccl_ep,
# which TransformerEngine's backend loads; with its calls replaced by libweft_nvte_ep; and on NVIDIA's libnccl_ep.
# Usage: scripts/gpu_nvte_ep.sh RANKS [ITERATIONS], as many GPUs as ranks.
# TE_HOME: the folder transformer_engine of the pip package transformer_engine_cu13 (2.20 or later), which has
# wheel_lib/libtransformer_engine.so, wheel_lib/libnccl_ep.so and common/include.
# NCCL_HOME: where include/nccl.h and lib/libnccl.so.2 are, of 2.30.4 or later, and of the version that NVIDIA's
# libnccl_ep was built with (2.32.3 in 2.20.2); else the pip package nvidia-nccl's.
# CUDNN_LIB: the folder of libcudnn.so.9; else the pip package nvidia-cudnn's. CUDA_HOME: else /usr/local/cuda.
set -eu
cd "$(dirname "$0")/.."
: "${TE_HOME:?is the folder transformer_engine of the pip package transformer_engine_cu13}"
cuda=${CUDA_HOME:-/usr/local/cuda}
package() # NAME
{
    python3 -c "import nvidia.$1; print(list(nvidia.$1.__path__)[0])"
}
nccl=${NCCL_HOME:-$(package nccl)}
cudnn=${CUDNN_LIB:-$(package cudnn)/lib}
weft=$(dirname "$(find build/release -name 'libweft.so' -print | head -n 1)")
program=build/release/gpu/nvte_ep
mkdir -p build/release/gpu build/release/gpu/te
cp "$TE_HOME/wheel_lib/libtransformer_engine.so" build/release/gpu/te/ # beside it no libnccl_ep.so, which it finds first
LD_LIBRARY_PATH="$PWD/build/release/gpu/te:$nccl/lib:$cudnn:$cuda/lib64:${LD_LIBRARY_PATH:-}"
export LD_LIBRARY_PATH NCCL_NVLS_ENABLE=0
g++ -std=c++17 -O2 -Wall -Wextra -isystem "$TE_HOME/common/include" -I"$nccl/include" -I"$cuda/include" tests/gpu/nvte_ep.cpp \
    -o "$program" -Lbuild/release/gpu/te -ltransformer_engine -L"$nccl/lib" -l:libnccl.so.2 -L"$cuda/lib64" -lcudart \
    -Wl,--allow-shlib-undefined -lpthread

home() # FOLDER LIBRARY: a folder whose lib has the library by the names that are loaded
{
    rm -rf "$1"
    mkdir -p "$1/lib"
    ln -s "$2" "$1/lib/libnccl_ep.so"
    ln -s "$2" "$1/lib/libnccl_ep.so.0"
    ln -s "$TE_HOME/wheel_lib/nccl_ep/include" "$1/include"
}
home "$PWD/build/release/gpu/nccl_ep_weft" "$(readlink -f "$weft/nccl_ep/libnccl_ep.so.0")"
home "$PWD/build/release/gpu/nccl_ep_nvidia" "$TE_HOME/wheel_lib/libnccl_ep.so"

failed=0
on() # WHAT ARGUMENT...
{
    echo "$1:"
    shift
    env "$@" || failed=1
}
LD_LIBRARY_PATH="$PWD/$weft:$LD_LIBRARY_PATH"
for round in 1 2 3; do
    on "TransformerEngine on weft's libnccl_ep" NCCL_EP_HOME="$PWD/build/release/gpu/nccl_ep_weft" \
        "$program" "$1" "${2:-0}"
    on "TransformerEngine's calls by libweft_nvte_ep" LD_PRELOAD="$PWD/$weft/libweft_nvte_ep.so" "$program" "$1" "${2:-0}"
    kept=$failed
    on "TransformerEngine on NVIDIA's libnccl_ep" NCCL_EP_HOME="$PWD/build/release/gpu/nccl_ep_nvidia" NCCL_HOME="$nccl" \
        CUDA_HOME="$cuda" "$program" "$1" "${2:-0}"
    failed=$kept
    [ "${2:-0}" -gt 0 ] || break
done
exit "$failed"
