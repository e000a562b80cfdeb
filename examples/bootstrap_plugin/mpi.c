/* A bootstrap plugin for an MPI of any ABI: compile it with that MPI's mpicc. The program has initialised MPI;
 * config.bootstrap_argument is the address of an MPI_Comm, or NULL for MPI_COMM_WORLD.
 *
 *     mpicc -shared -fPIC -o mpi.so mpi.c $(pkg-config --cflags weft)
 *     WEFT_BOOTSTRAP=plugin WEFT_BOOTSTRAP_PLUGIN=$PWD/mpi.so mpiexec -n 4 ./program */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <weft/bootstrap.h>

static int mpi_open(const void *argument, uint64_t timeout_ns, void **state, int *pe, int *pes)
{
    int is_up = 0;
    MPI_Comm *comm = malloc(sizeof *comm);
    (void)timeout_ns;
    if (comm == NULL) {
        return 1;
    }
    *comm = argument == NULL ? MPI_COMM_WORLD : *(const MPI_Comm *)argument;
    if (MPI_Initialized(&is_up) != MPI_SUCCESS || !is_up || MPI_Comm_rank(*comm, pe) != MPI_SUCCESS ||
        MPI_Comm_size(*comm, pes) != MPI_SUCCESS) {
        free(comm);
        return 2;
    }
    *state = comm;
    return 0;
}

static int mpi_allgather(void *state, const void *mine, void *all, size_t bytes)
{
    const MPI_Comm *comm = state;
    return bytes > INT_MAX ||
           MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, *comm) != MPI_SUCCESS;
}

static void mpi_close(void *state)
{
    free(state);
}

__attribute__((visibility("default"))) const weft_bootstrap_plugin WEFT_BOOTSTRAP_PLUGIN_SYMBOL = {
    WEFT_BOOTSTRAP_PLUGIN_VERSION, sizeof(weft_bootstrap_plugin), mpi_open, mpi_allgather, mpi_close};
