#!/bin/sh
# Goal: C++ programs compile without a warning, as C++11 and C++17, and run.
# Method: build cxx.cc against the headers and libraries of the build, and run it with so many PEs.
# Usage: cxx.sh INCLUDE BUILD PES. Exit 77: no C++ compiler.
set -eu
include=$1
build=$2
pes=$3

if ! command -v g++ >/dev/null; then
    echo "no g++ here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for standard in c++11 c++17; do
    g++ -std=$standard -Wall -Wextra -Werror "$(dirname "$0")/cxx.cc" -I"$include" -L"$build" -lweft_shmem -lweft -pthread \
        -Wl,-rpath,"$build" -o "$folder/cxx"
    "$build/weftrun" -n "$pes" "$folder/cxx"
done
