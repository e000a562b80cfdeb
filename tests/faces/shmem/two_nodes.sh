#!/bin/sh
# Goal: what a program does over a network, without another machine.
# Method: every two PEs of weftrun count as a node of their own (WEFT_NODE_ID), so that only a network connects the
# pairs.
# Usage: weftrun -n N two_nodes.sh PROGRAM...
set -eu
WEFT_NODE_ID=node-$((WEFT_LOCAL_PE / 2))
export WEFT_NODE_ID
exec "$@"
