#!/bin/sh
# Goal: each public header compiles alone, without a warning, for every kind of user.
# Method: compile a file that holds nothing but the include, twice, so that a missing guard shows as well, and one use
# of each initialiser that the header defines.
# Usage: header.sh gcc|g++|clang|nvcc INCLUDE_DIR HEADER. Exit 77: this compiler is not here.
set -eu
compiler=$1
include=$2
header=$3
strict="-Wall -Wextra -Werror"

case $compiler in
gcc) suffix=c command="gcc -std=c11 -pedantic -Wcast-qual $strict" ;;
g++) suffix=cc command="g++ -std=c++11 -pedantic-errors -Wcast-qual $strict" ;;
clang) suffix=c command="clang -std=c11 $strict" ;;
nvcc) suffix=cu command="${NVCC:-nvcc} -arch=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror" ;;
*)
    echo "header.sh: unknown compiler $compiler" >&2
    exit 1
    ;;
esac

if ! command -v "${command%% *}" >/dev/null; then
    echo "no $compiler here"
    exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$folder/alone.$suffix"
# WEFT_EP_ROWS_INIT initialises a weft_ep_rows.
for macro in $(sed -n 's/^#define \(WEFT_[A-Z_]*_INIT\) .*/\1/p' "$include/$header" | sort -u); do
    name=$(echo "${macro%_INIT}" | tr 'A-Z' 'a-z')
    echo "size_t use_$name(void); size_t use_$name(void) { $name object = $macro; return object.size; }" >>"$folder/alone.$suffix"
done
if [ $suffix = c ]; then
    echo 'int main(void) { return 0; }' >>"$folder/alone.c"
fi
$command -I"$include" -c "$folder/alone.$suffix" -o "$folder/alone.o"
