#!/bin/sh
# Run a PE that weftrun starts as one of a node of its own and its neighbours: a host stands in for several.
# Usage: weftrun -n N nodes.sh PES_PER_NODE PROGRAM [ARGUMENT...]
set -eu
per=$1
shift
if [ "$WEFT_LOCAL_PE" = 0 ]; then
    echo "nodes.sh: $per PEs to a node by WEFT_NODE_ID, all on this host" >&2
fi
WEFT_NODE_ID=node-$((WEFT_LOCAL_PE / per))
export WEFT_NODE_ID
exec "$@"
