#!/bin/sh
# Build tests/gpu/nccl_ep.c against NVIDIA's NCCL and the libraries in build/release, and run it; then, on two GPUs or
# more, the examples of NCCL EP's interface and of TransformerEngine's calls.
# Usage: scripts/gpu_nccl_ep.sh RANKS [ITERATIONS], as many GPUs as ranks.
# NCCL_HOME: where include/nccl.h and lib/libnccl.so.2 are; else the pip package nvidia-nccl's.
# CUDA_HOME: else /usr/local/cuda.
set -eu
cd "$(dirname "$0")/.."
cuda=${CUDA_HOME:-/usr/local/cuda}
nccl=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}
face=$(dirname "$(find build/release -name 'libnccl_ep.so.0' -print | head -n 1)")
weft=$(dirname "$(find build/release -name 'libweft.so' -print | head -n 1)")
program=build/release/gpu/nccl_ep
mkdir -p build/release/gpu
cc -std=gnu17 -O2 -Wall -Wextra -I"$nccl/include" -I"$cuda/include" -Isrc/faces/nccl_ep/include -Iinclude \
    tests/gpu/nccl_ep.c -o "$program" "$face/libnccl_ep.so.0" -L"$weft" -lweft -L"$nccl/lib" -l:libnccl.so.2 \
    -L"$cuda/lib64" -lcudart -lpthread
LD_LIBRARY_PATH="$face:$weft:$nccl/lib:$cuda/lib64:${LD_LIBRARY_PATH:-}"
export LD_LIBRARY_PATH
NCCL_NVLS_ENABLE=0 "$program" "$@"

if [ "$1" -ge 2 ]; then
    for example in nccl_ep nvte_ep; do
        cc -std=gnu17 -O2 -Wall -Wextra -I"$nccl/include" -I"$cuda/include" -Isrc/faces/nccl_ep/include \
            -Isrc/faces/nvte/include -Iinclude "examples/$example/step.c" -o "build/release/gpu/example_$example" \
            "$weft/libweft_$example.so" -L"$weft" -lweft -L"$nccl/lib" -l:libnccl.so.2 -L"$cuda/lib64/stubs" -lcuda -lpthread
        NCCL_NVLS_ENABLE=0 "build/release/gpu/example_$example"
    done
fi
