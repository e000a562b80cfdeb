#!/bin/sh
# Goal: NCCL EP's interface and TransformerEngine's calls of expert parallelism of an installed weft are found and work,
# for C and C++, shared and static, also after it was moved.
# Method: install into an empty DESTDIR, move the prefix elsewhere, build the programs nccl_ep_consumer.c and
# nvte_ep_consumer.c by pkg-config, by the name libnccl_ep, and by CMake, and run them; look at what the libraries
# export.
# Usage: ep_faces.sh BUILD_DIR SOURCE_DIR. Exit 77: a tool is not here.
set -eu
build=$1
source=$2

for tool in gcc g++ cmake pkg-config nm; do
    if ! command -v "$tool" >/dev/null; then
        echo "no $tool here"
        exit 77
    fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
DESTDIR=$folder/stage cmake --install "$build" --prefix /opt/weft >"$folder/log"
prefix="$folder/a place of its own"
mv "$folder/stage/opt/weft" "$prefix"
libraries=$(dirname "$(find "$prefix" -name libweft.a)")
nccl=$source/src/faces/nccl_ep/abi # nccl.h, which need not be here

# Where a library is missing it says so; CUDA's header need not be here.
compile()
{
    eval "gcc -std=c11 -DWEFT_NVTE_WITHOUT_CUDA -Wall -Wextra -Werror -isystem '$nccl' $3 '$source/tests/install/$1_consumer.c' \
        -o '$folder/$2' $4"
    eval "g++ -std=c++17 -x c++ -DWEFT_NVTE_WITHOUT_CUDA -Wall -Wextra -Werror -isystem '$nccl' $3 \
        '$source/tests/install/$1_consumer.c' -x none -o '$folder/$2_cxx' $4"
}

run()
{
    for program in "$@"; do
        echo "run: $program"
        WEFT_LOG=none LD_LIBRARY_PATH=$libraries:$libraries/nccl_ep "$program"
    done
}

PKG_CONFIG_PATH=$libraries/pkgconfig
export PKG_CONFIG_PATH
for face in nccl_ep nvte_ep; do
    compile $face $face "$(pkg-config --cflags weft_$face)" "$(pkg-config --libs weft_$face weft)"
    run "$folder/$face" "$folder/${face}_cxx"
    if ! readelf -d "$folder/$face" | grep -q "libweft_$face\.so\.0"; then
        echo "$face does not need libweft_$face.so.0" >&2
        exit 1
    fi
done
compile nccl_ep by_name "$(pkg-config --cflags weft_nccl_ep)" "-L'$libraries/nccl_ep' -lnccl_ep $(pkg-config --libs weft)"
run "$folder/by_name" "$folder/by_name_cxx"
readelf -d "$folder/by_name" | grep -q 'libnccl_ep\.so\.0'

# TransformerEngine links the archive whole.
compile nccl_ep whole "$(pkg-config --cflags weft_nccl_ep)" \
    "-Wl,--whole-archive '$libraries/nccl_ep/libnccl_ep.a' -Wl,--no-whole-archive -Wl,-Bstatic $(pkg-config --libs weft) \
    -Wl,-Bdynamic $(pkg-config --static --libs weft | sed 's/-lweft//')"
run "$folder/whole" "$folder/whole_cxx"

cmake -S "$source/tests/install/ep_faces_package" -B "$folder/package" -DCMAKE_PREFIX_PATH="$prefix" \
    -DNCCL_INCLUDE="$nccl" >"$folder/log"
cmake --build "$folder/package" >>"$folder/log" 2>&1 || { cat "$folder/log" >&2 && exit 1; }
for face in nccl_ep nvte_ep; do
    run "$folder/package/c_$face" "$folder/package/cxx_$face" "$folder/package/c_${face}_static" \
        "$folder/package/cxx_${face}_static"
done

# Nothing but the interfaces' names.
for library in libweft_nccl_ep.so nccl_ep/libnccl_ep.so.0 libweft_nvte_ep.so; do
    if nm -D --defined-only "$libraries/$library" | grep -v -E ' (ncclEp[A-Z]|weft_nccl_ep_|nvte_ep_|weft_nvte_)'; then
        echo "$library exports these, too" >&2
        exit 1
    fi
done
test "$(nm -D --defined-only "$libraries/libweft_nccl_ep.so" | grep -c ' ncclEp')" -eq 18
test "$(nm -D --defined-only "$libraries/libweft_nvte_ep.so" | grep -c ' nvte_ep_')" -eq 9
