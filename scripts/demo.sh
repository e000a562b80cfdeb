#!/bin/sh
# The demo: a MoE layer on real text, two modules in one process, and worlds of other sizes. Usage: demo.sh BUILD [text]
set -eu
build=$1
shift
echo "=== a mixture-of-experts layer on four PEs"
"$build/weftrun" -q -n 4 "$build/moe_text" "$@"
echo
echo "=== two modules in the same sixteen processes"
"$build/weftrun" -q -n 16 "$build/two_modules"
echo
echo "=== the same processes in worlds of other sizes"
"$build/weftrun" -q -n 4 "$build/resize"
