#!/bin/sh
# Run a PE that weftrun starts as one of a node of its own and its neighbours: a host stands in for several.
# Usage: weftrun -n N nodes.sh SHAPE PROGRAM [ARGUMENT...]
# SHAPE: how many PEs a node has, or as 1+5+2 how many each of them has.
set -eu
shape=$1
shift
if [ "$WEFT_LOCAL_PE" = 0 ]; then
    echo "nodes.sh: $shape PEs to a node by WEFT_NODE_ID, all on this host" >&2
fi
node=0
end=0
for per in $(echo "$shape" | tr + ' '); do
    end=$((end + per))
    if [ "$WEFT_LOCAL_PE" -lt "$end" ]; then
        break
    fi
    node=$((node + 1))
done
if [ "$shape" = "$per" ]; then
    node=$((WEFT_LOCAL_PE / per))
fi
WEFT_NODE_ID=node-$node
export WEFT_NODE_ID
exec "$@"
