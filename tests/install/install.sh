#!/bin/sh
# Goal: an installed weft is found and works, for C and C++, shared and static, also after it was moved.
# Method: install into an empty DESTDIR, move the prefix elsewhere, build tests/install/consumer.c by pkg-config and by
# CMake, and run each program on three PEs with the installed weftrun; likewise simulated.c, on the simulator, and
# shmem_consumer.c, also by the installed oshcc and oshc++.
# Usage: install.sh BUILD_DIR SOURCE_DIR pkg-config|cmake. Exit 77: that tool or a compiler is not here.
set -eu
build=$1
source=$2
way=$3

for tool in gcc g++ "$way"; do
    if ! command -v "$tool" >/dev/null; then
        echo "no $tool here"
        exit 77
    fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Installed for /opt/weft, staged under DESTDIR, used from a third place.
DESTDIR=$folder/stage cmake --install "$build" --prefix /opt/weft >"$folder/log"
prefix="$folder/a place of its own"
mv "$folder/stage/opt/weft" "$prefix"
rmdir "$folder/stage/opt" "$folder/stage"
libraries=$(dirname "$(find "$prefix" -name libweft.a)")
if grep -rlF -e "$build" -e "$source" -e /opt/weft "$libraries/pkgconfig" "$libraries/cmake" "$prefix/include" "$prefix"/bin/osh*; then
    echo "these name the place that they were built in or installed for" >&2
    exit 1
fi

run()
{
    echo "run: $*"
    "$prefix/bin/weftrun" -n 3 -t 60 "$@"
}

# Each program must use the library that it is meant to.
expect_shared()
{
    if [ "$(readelf -d "$1" | grep -c 'libweft\.so\.0')" != "$2" ]; then
        echo "$1 should need libweft.so.0 $2 times:" >&2
        readelf -d "$1" >&2
        exit 1
    fi
}

build_by_pkg_config()
{
    PKG_CONFIG_PATH=$libraries/pkgconfig
    export PKG_CONFIG_PATH
    for language in "gcc -std=c11 -pedantic" "g++ -std=c++17 -x c++"; do
        program=$folder/${language%% *}
        # pkg-config quotes blanks in paths as a shell would read them, hence eval.
        eval "$language -Wall -Wextra -Werror $(pkg-config --cflags weft) '$source/tests/install/consumer.c' -x none \
            -o '$program-shared' $(pkg-config --libs weft)"
        eval "$language -Wall -Wextra -Werror $(pkg-config --cflags weft) '$source/tests/install/consumer.c' -x none \
            -o '$program-static' -Wl,-Bstatic $(pkg-config --libs weft) -Wl,-Bdynamic \
            $(pkg-config --static --libs weft | sed 's/-lweft//')"
        expect_shared "$program-shared" 1
        expect_shared "$program-static" 0
        LD_LIBRARY_PATH=$libraries run "$program-shared"
        run "$program-static"
    done
    eval "gcc -std=c11 -pedantic -Wall -Wextra -Werror $(pkg-config --cflags weft_sim) '$source/tests/install/simulated.c' \
        -o '$folder/simulated' $(pkg-config --libs weft_sim)"
    "$folder/simulated"
}

build_by_oshcc()
{
    for command in "oshcc -std=c11 -pedantic" "oshc++ -std=c++17 -x c++"; do
        # shellcheck disable=SC2086
        "$prefix/bin/"$command -Wall -Wextra -Werror "$source/tests/install/shmem_consumer.c" -o "$folder/${command%% *}"
        echo "run: ${command%% *}"
        "$prefix/bin/oshrun" -n 3 --timeout 60 "$folder/${command%% *}"
    done
}

# The flags alone, for a program that finds the library as its environment says.
build_shmem_by_pkg_config()
{
    eval "gcc -Wall -Wextra -Werror $(pkg-config --cflags weft_shmem) '$source/tests/install/shmem_consumer.c' \
        -o '$folder/shmem' $(pkg-config --libs weft_shmem)"
    LD_LIBRARY_PATH=$libraries run "$folder/shmem"
}

build_by_cmake()
{
    cmake -S "$source/tests/install/package" -B "$folder/package" -DCMAKE_PREFIX_PATH="$prefix" >"$folder/log"
    cmake --build "$folder/package" >>"$folder/log" 2>&1 || { cat "$folder/log" >&2 && exit 1; }
    for language in c cxx; do
        expect_shared "$folder/package/${language}_weft" 1
        expect_shared "$folder/package/${language}_static" 0
        run "$folder/package/${language}_weft" # finds the library by its run path
        run "$folder/package/${language}_static"
    done
    "$folder/package/simulated"
    for language in c cxx; do
        run "$folder/package/${language}_shmem"
    done
}

case $way in
pkg-config)
    build_by_pkg_config
    build_shmem_by_pkg_config
    build_by_oshcc
    ;;
cmake) build_by_cmake ;;
esac
