#!/bin/sh
# The NVSHMEM face on GPUs: tests/faces/nvshmem/gpus.cu, with relocatable device code and without; every routine of
# kernels against a model (tests/faces/nvshmem/every), compiled by all processors; then the figures of
# bench/gpu/peers/nvshmem.cu, one program compiled with weft's headers and with NVIDIA's, in turn: ratios, weft's to
# theirs.
# Usage: scripts/gpu_nvshmem.sh [PES [ROUNDS]], after scripts/build.sh release; NVSHMEM_HOME: else the Python package.
# With ROUNDS 0 no figures. EVERY: which thirds of the reductions are compiled and run, "0" if unset (a type and an
# operation in one scope), "0 1 2" for all, "none" for no part of that program; EVERY_SEEDS: its seeds, "1 2 3".
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

# Compile and run every routine of kernels: the rest optimised, the reductions, which take the longest by far, quickly.
every()
{
    parts=32
    made=$scratch/every$1
    python3 tests/faces/nvshmem/every/generate.py "$made" $parts "$1"
    sources=$(cd "$made" && ls ./*.cu)
    if [ -d "$scratch/every" ]; then # what is no reduction has been compiled for another third
        sources=$(cd "$made" && ls ./reduce*.cu)
    fi
    mkdir -p "$scratch/every"
    cp "$made"/* "$scratch/every"
    started=$(date +%s)
    # shellcheck disable=SC2016 # expanded by the shell that xargs starts
    echo "$sources" | xargs -P"$(nproc)" -I{} sh -c '
        quick=
        case {} in ./reduce*) quick="--Ofast-compile max" ;; esac
        nvcc -arch=sm_90 -std=c++17 -O3 $quick -Werror all-warnings -I"$1/include" -Itests -c "$2/{}" -o "$2/{}.o"' \
        sh "$face" "$scratch/every"
    nvcc -x cu -arch=sm_90 -std=c++17 -O2 -I"$face/include" -Itests -I"$scratch/every" -c tests/faces/nvshmem/every/model.cc \
        -o "$scratch/every/model.o"
    nvcc -arch=sm_90 "$scratch"/every/*.o -L"$face/lib" -lnvshmem_host -lnvshmem_device \
        -Xlinker -rpath,"$face/lib:$build" -o "$scratch/every/test"
    echo "every routine of kernels, third $1 of the reductions: compiled in $(($(date +%s) - started)) s"
    for seed in ${EVERY_SEEDS:-1 2 3}; do
        WEFT_DEADLINE=20 timeout 120 "$build/weftrun" -q -n "$pes" "$scratch/every/test" "$seed"
    done
}
for third in ${EVERY:-0}; do
    [ "$third" = none ] || every "$third"
done
[ "$rounds" -gt 0 ] || exit 0

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
