#!/bin/sh
# Goal: the NVSHMEM interface of an installed weft is found where a program names its folder, and nowhere else.
# Method: install into an empty DESTDIR, move the prefix elsewhere, build nvshmem_consumer.c by -I and -L as Makefiles
# do, by pkg-config and by find_package(NVSHMEM), and run it on two PEs; look that no default folder has it.
# Usage: nvshmem.sh BUILD_DIR SOURCE_DIR. Exit 77: a tool is not here.
set -eu
build=$1
source=$2

for tool in gcc g++ cmake pkg-config; do
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
home=$libraries/weft/nvshmem

if grep -rlF -e "$build" -e "$source" -e /opt/weft "$home/lib/pkgconfig" "$home/lib/cmake" "$home/include"; then
    echo "these name the place that they were built in or installed for" >&2
    exit 1
fi
if [ -n "$(find "$prefix" -path "$home" -prune -o -name '*nvshmem*' -print | grep -v '/share/man/')" ]; then
    echo "the interface is found outside of its folder:" >&2
    find "$prefix" -path "$home" -prune -o -name '*nvshmem*' -print >&2
    exit 1
fi

run()
{
    echo "run: $1"
    LD_LIBRARY_PATH=$home/lib "$prefix/bin/weftrun" -n 2 -t 60 "$1"
}

for language in "gcc -std=c11" "g++ -std=c++17 -x c++"; do
    # shellcheck disable=SC2086
    $language -Wall -Wextra -Werror -isystem "$home/include" "$source/tests/install/nvshmem_consumer.c" -x none \
        -o "$folder/plain" -L"$home/lib" -lnvshmem_host -lnvshmem_device
    run "$folder/plain"
done
gcc -isystem "$home/include" "$source/tests/install/nvshmem_consumer.c" -o "$folder/plain" -L"$home/lib" -lnvshmem
run "$folder/plain"
if ! readelf -d "$folder/plain" | grep -q 'libnvshmem_host\.so\.3'; then
    echo "the program should need libnvshmem_host.so.3" >&2
    exit 1
fi

PKG_CONFIG_PATH=$home/lib/pkgconfig
export PKG_CONFIG_PATH
eval "gcc -Wall $(pkg-config --cflags nvshmem) '$source/tests/install/nvshmem_consumer.c' -o '$folder/by_pkg_config' \
    $(pkg-config --libs nvshmem)"
run "$folder/by_pkg_config"

mkdir "$folder/package"
cat >"$folder/package/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C)
find_package(NVSHMEM 3.0 REQUIRED HINTS "\${HINT}")
add_executable(consumer "$source/tests/install/nvshmem_consumer.c")
target_link_libraries(consumer PRIVATE nvshmem::nvshmem_host nvshmem::nvshmem_device)
add_library(both ALIAS nvshmem::nvshmem) # programs call the targets by names of their own
add_library(host ALIAS nvshmem::nvshmem_host)
add_library(device ALIAS nvshmem::nvshmem_device)
add_library(helper INTERFACE)
target_link_libraries(helper INTERFACE host device)
add_executable(by_both "$source/tests/install/nvshmem_consumer.c")
target_link_libraries(by_both both)
add_executable(by_helper "$source/tests/install/nvshmem_consumer.c")
target_link_libraries(by_helper helper)
TEXT
cmake -S "$folder/package" -B "$folder/package/build" -DNVSHMEM_ROOT="$home" >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    exit 1
}
# As NVSHMEM's own programs look for it.
cmake -S "$folder/package" -B "$folder/package/hinted" -DHINT="$home/lib/cmake/nvshmem" >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    exit 1
}
cmake --build "$folder/package/build" >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    exit 1
}
for program in consumer by_both by_helper; do
    run "$folder/package/build/$program"
done
