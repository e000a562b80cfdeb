/* faces/nvshmem/mpi.c: PEs that meet by MPI: the one that the process has loaded and initialised.
 *
 * Nothing is linked, since the handles of the implementations differ: Open MPI's are addresses of objects that it
 * exports, those of MPICH and its kin are numbers of its ABI. */
#include <dlfcn.h>
#include <stdint.h>

#include "faces/nvshmem/setup.h"

/* MPICH's ABI. */
#define MPICH_COMM_WORLD 0x44000000
#define MPICH_BYTE 0x4c00010d

typedef struct mpi_of_addresses { /* Open MPI: handles are pointers */
    int (*comm_rank)(void *comm, int *rank);
    int (*comm_size)(void *comm, int *size);
    int (*allgather)(const void *mine, int count, void *type, void *all, int each, void *all_type, void *comm);
} mpi_of_addresses;

typedef struct mpi_of_numbers { /* MPICH: handles are numbers */
    int (*comm_rank)(int comm, int *rank);
    int (*comm_size)(int comm, int *size);
    int (*allgather)(const void *mine, int count, int type, void *all, int each, int all_type, int comm);
} mpi_of_numbers;

/* Of the init under way, which the lock of init guards. */
static struct {
    mpi_of_addresses addresses;
    mpi_of_numbers numbers;
    void *comm;
    void *byte; /* NULL: numbers */
    int number;
} mpi;

/* A symbol of what the program has loaded, as a function. */
static int find(const char *name, void *function)
{
    void *const symbol = dlsym(RTLD_DEFAULT, name);
    *(void **)function = symbol;
    return symbol != NULL;
}

static int find_all(const char *call)
{
    int (*initialized)(int *flag);
    int is_initialized = 0;
    mpi.byte = dlsym(RTLD_DEFAULT, "ompi_mpi_byte");
    const int is_there = find("MPI_Initialized", &initialized) && find("MPI_Comm_rank", &mpi.addresses.comm_rank) &&
                         find("MPI_Comm_size", &mpi.addresses.comm_size) &&
                         find("MPI_Allgather", &mpi.addresses.allgather) &&
                         find("MPI_Comm_rank", &mpi.numbers.comm_rank) &&
                         find("MPI_Comm_size", &mpi.numbers.comm_size) && find("MPI_Allgather", &mpi.numbers.allgather);
    if (!is_there) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_NOT_SUPPORTED,
                               "no MPI is loaded in this process; link the program with one");
    }
    if (initialized(&is_initialized) != 0 || !is_initialized) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, "MPI is not initialised; call MPI_Init before");
    }
    return NVSHMEMX_SUCCESS;
}

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    (void)context;
    if (bytes > INT32_MAX) {
        return -1;
    }
    return mpi.byte != NULL
               ? mpi.addresses.allgather(mine, (int)bytes, mpi.byte, all, (int)bytes, mpi.byte, mpi.comm)
               : mpi.numbers.allgather(mine, (int)bytes, MPICH_BYTE, all, (int)bytes, MPICH_BYTE, mpi.number);
}

int wefti_nv_mpi_open(const char *call, const void *comm, wefti_nv_meeting *meeting)
{
    int result = find_all(call);
    if (result != NVSHMEMX_SUCCESS) {
        return result;
    }
    int error;
    if (mpi.byte != NULL) {
        mpi.comm = comm != NULL ? *(void *const *)comm : dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
        error = mpi.addresses.comm_rank(mpi.comm, &meeting->pe) | mpi.addresses.comm_size(mpi.comm, &meeting->pes);
    } else {
        mpi.number = comm != NULL ? *(const int *)comm : MPICH_COMM_WORLD;
        error = mpi.numbers.comm_rank(mpi.number, &meeting->pe) | mpi.numbers.comm_size(mpi.number, &meeting->pes);
    }
    if (error != 0) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE, "MPI does not know the communicator");
    }
    meeting->bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    meeting->callback.size = sizeof meeting->callback;
    meeting->callback.allgather = allgather;
    return NVSHMEMX_SUCCESS;
}
