#!/bin/sh
# Goal: a public name that the library itself has no use for any more still compiles, and warns whoever uses it.
# Method: compile a program that uses each such name; it must compile, and the compiler must name each in a warning.
# Usage: deprecated.sh gcc|clang INCLUDE_DIR. Exit 77: this compiler is not here.
set -eu
compiler=$1
include=$2
names="WEFT_BITWISE_OPS WEFT_ORDER_OPS WEFT_ARITHMETIC_OPS"

if ! command -v "$compiler" >/dev/null; then
    echo "no $compiler here"
    exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
    printf '#include <weft.h>\n#define NAME_OF(OP, CODE) [CODE] = #OP,\nstatic const char *const names[WEFTI_OPS] = {'
    printf '%s(NAME_OF)\n' $names
    printf '};\nint main(void) { for (int i = 0; i < WEFTI_OPS; i++) if (!names[i]) return 1; return 0; }\n'
} >"$folder/uses.c"
"$compiler" -std=c11 -Wall -Wextra -I"$include" "$folder/uses.c" -fsyntax-only 2>"$folder/warnings"
for name in $names; do
    if ! grep -q "warning: $name is deprecated" "$folder/warnings"; then
        echo "$compiler does not warn of $name" >&2
        exit 1
    fi
done
