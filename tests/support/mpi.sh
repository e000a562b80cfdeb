#!/bin/sh
# Run a program of N PEs by Open MPI's mpirun. Usage: mpi.sh N PROGRAM [ARGUMENT...]. Exit 77: mpirun is not here.
set -eu
if ! command -v mpirun >/dev/null; then
    echo "no mpirun here"
    exit 77
fi
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
exec mpirun --oversubscribe -n "$@"
