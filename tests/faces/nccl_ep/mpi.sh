#!/bin/sh
# Compile mpi.c by Open MPI's mpicc, link libnccl_ep by that name, and run it by mpirun on the fake driver.
# Usage: mpi.sh BUILD_DIR SOURCE_DIR RANKS. Exit 77: mpicc, mpi.h or mpirun is not here, or not Open MPI's.
set -eu
build=$1
source=$2
ranks=$3

if ! command -v mpicc >/dev/null || ! mpirun --version 2>/dev/null | grep -q 'Open MPI' ||
    ! mpicc --showme:version >/dev/null 2>&1; then
    echo "no Open MPI here"
    exit 77
fi
if ! echo '#include <mpi.h>' | mpicc -E -x c - >/dev/null 2>&1; then
    echo "no mpi.h here (Debian: libopenmpi-dev)"
    exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
faces=$source/src/faces/nccl_ep
mpicc -std=c11 -Wall -Wextra -Werror -rdynamic -I"$faces/include" -I"$source/include" -I"$source/tests" \
    -isystem "$faces/abi" "$source/tests/faces/nccl_ep/mpi.c" -o "$folder/mpi" -L"$build/nccl_ep" -L"$build" -lnccl_ep -lweft -ldl
LD_LIBRARY_PATH=$build/nccl_ep:$build:$LD_LIBRARY_PATH "$source/tests/support/mpi.sh" "$ranks" "$folder/mpi" "$ranks"
