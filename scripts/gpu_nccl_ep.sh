#!/bin/sh
# Build tests/gpu/nccl_ep.c against NVIDIA's NCCL and the libraries in build/release, and run it; then, on two GPUs or
# more, the examples of NCCL EP's interface and of TransformerEngine's calls.
# Usage: scripts/gpu_nccl_ep.sh RANKS [ITERATIONS], as many GPUs as ranks.
# NCCL_HOME: where include/nccl.h and lib/libnccl.so.2 are; else the pip package nvidia-nccl's.
# CUDA_HOME: else /usr/local/cuda.
# NCCL_EP_HOME: a folder with NVIDIA's include/nccl_ep and lib/libnccl_ep.so.0, as nccl/ep of the pip package
# nccl-extensions, where lib/cu13 (or another CUDA version's) has the library: copy or link it to lib. Then the same
# program runs with theirs, too, and the two are timed in turn.
set -eu
cd "$(dirname "$0")/.."
cuda=${CUDA_HOME:-/usr/local/cuda}
nccl=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}
face=$(dirname "$(find build/release -name 'libnccl_ep.so.0' -print | head -n 1)")
weft=$(dirname "$(find build/release -name 'libweft.so' -print | head -n 1)")
program=build/release/gpu/nccl_ep
mkdir -p build/release/gpu
cc -std=gnu17 -O2 -Wall -Wextra -I"$nccl/include" -I"$cuda/include" -Isrc/faces/nccl_ep/include -Iinclude \
    tests/gpu/nccl_ep.c -o "$program" "$face/libnccl_ep.so.0" -Wl,-rpath-link,"$weft" -L"$nccl/lib" -l:libnccl.so.2 \
    -L"$cuda/lib64" -lcudart -lpthread
LD_LIBRARY_PATH="$face:$weft:$nccl/lib:$cuda/lib64:${LD_LIBRARY_PATH:-}"
export LD_LIBRARY_PATH
export NCCL_NVLS_ENABLE=0
"$program" "$@"

if [ -n "${NCCL_EP_HOME:-}" ]; then
    [ -e "$NCCL_EP_HOME/lib/libnccl_ep.so.0" ] || { echo "no $NCCL_EP_HOME/lib/libnccl_ep.so.0" >&2; exit 2; }
    export NCCL_EP_HOME NCCL_HOME="$nccl"
    theirs() # ARGUMENT...
    {
        LD_LIBRARY_PATH="$NCCL_EP_HOME/lib:$LD_LIBRARY_PATH" "$program" "$@"
    }
    echo "NVIDIA's libnccl_ep.so.0:"
    theirs "$1" || echo "NVIDIA's library does not do all that is proved"
    for round in 1 2 3; do
        echo "round $round, weft:"
        "$program" "$1" "${2:-50}" times
        echo "round $round, NVIDIA's:"
        theirs "$1" "${2:-50}" times
    done
fi

if [ "$1" -ge 2 ]; then
    for example in nccl_ep nvte_ep; do
        cc -std=gnu17 -O2 -Wall -Wextra -I"$nccl/include" -I"$cuda/include" -Isrc/faces/nccl_ep/include \
            -Isrc/faces/nvte/include -Iinclude "examples/$example/step.c" -o "build/release/gpu/example_$example" \
            "$weft/libweft_$example.so" -L"$weft" -lweft -L"$nccl/lib" -l:libnccl.so.2 -L"$cuda/lib64/stubs" -lcuda -lpthread
        "build/release/gpu/example_$example"
    done
fi
