#!/bin/sh
# The NVSHMEM face on GPUs: tests/faces/nvshmem/gpus.cu, with relocatable device code and without, then the figures of
# bench/gpu/peers/nvshmem.cu, one program compiled with weft's headers and with NVIDIA's, in turn: ratios, weft's to
# theirs.
# Usage: scripts/gpu_nvshmem.sh [PES [ROUNDS]], after scripts/build.sh release; NVSHMEM_HOME: else the Python package.
set -eu
cd "$(dirname "$0")/.."
pes=${1:-2}
rounds=${2:-3}
build=$PWD/build/release
face=$build/nvshmem
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tests/faces/nvshmem/modules.sh nvcc "$face" "$scratch"
for rdc in false true; do
    # Of two units, which with relocatable device code share what kernels know of the world.
    nvcc -rdc=$rdc -arch=sm_90 -std=c++17 -O3 -DPART=0 -I"$face/include" tests/faces/nvshmem/gpus.cu \
        tests/faces/nvshmem/loaded.cu -L"$face/lib" -lnvshmem_host -lnvshmem_device -Xlinker -rpath,"$face/lib:$build" \
        -o "$scratch/test"
    timeout 60 "$build/weftrun" -q -n "$pes" "$scratch/test" "$scratch/whole.cubin" "$scratch/linked.cubin"
done
home=${NVSHMEM_HOME:-$(python3 -c 'import nvidia.nvshmem; print(list(nvidia.nvshmem.__path__)[0])' 2>/dev/null || true)}
if [ -z "$home" ] || [ ! -d "$home/include" ]; then
    echo "skip  NVSHMEM is not installed, so there is nothing to compare with"
    exit 0
fi
cuda=$(dirname "$(dirname "$(command -v nvcc)")")
nvcc -rdc=true -arch=sm_90 -std=c++17 -O3 -I. -I"$home/include" bench/gpu/peers/nvshmem.cu -L"$home/lib" \
    -l:libnvshmem_host.so.3 -lnvshmem_device -L"$cuda/lib64/stubs" -lcuda -o "$scratch/theirs" &
nvcc -rdc=true -arch=sm_90 -std=c++17 -O3 -I. -I"$face/include" bench/gpu/peers/nvshmem.cu -L"$face/lib" -l:libnvshmem_host.so.3 \
    -L"$cuda/lib64/stubs" -lcuda -o "$scratch/ours"
wait
for round in $(seq "$rounds"); do
    for which in theirs ours; do
        library=$home/lib
        [ $which = ours ] && library=$face/lib:$build
        rm -f "$scratch/meeting"
        LD_LIBRARY_PATH="$library:${LD_LIBRARY_PATH:-}" NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo NVSHMEM_REMOTE_TRANSPORT=none \
            NVSHMEM_DISABLE_NVLS=1 WEFT_MEETING="$scratch/meeting" WEFT_UID_INTERFACE=lo timeout 120 \
            "$build/weftrun" -q -n "$pes" "$scratch/$which" >"$scratch/$which.$round"
    done
done
python3 - "$scratch" "$rounds" <<'TEXT'
import json, statistics, sys
scratch, rounds = sys.argv[1], int(sys.argv[2])
def read(which):
    rows = {}
    for i in range(1, rounds + 1):
        for line in open(f"{scratch}/{which}.{i}"):
            if line.startswith("{"):
                row = json.loads(line)
                value = row.pop("value", row.pop("median", None))
                rows.setdefault(tuple(sorted((k, str(v)) for k, v in row.items() if k != "impl")), []).append(value)
    return rows
ours, theirs = read("ours"), read("theirs")
for key, values in theirs.items():
    if key in ours:
        mine, other = statistics.median(ours[key]), statistics.median(values)
        print(f"{mine / other:5.2f}  {mine:10.3f} {other:10.3f}  " + " ".join(f"{k}={v}" for k, v in key))
TEXT
