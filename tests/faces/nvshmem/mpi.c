/* Goal: PEs meet by a communicator of MPI: of all, and of some.
 * Method: init with MPI_COMM_WORLD, finalize, and init again with the halves of a split, in which PEs are numbered
 * backwards; and without attributes, as NVSHMEM_BOOTSTRAP says. MPI's library is loaded here and its calls
 * declared by hand, so that no headers of it are needed: Open MPI's, whose handles are addresses. Exit 77: it is
 * not here. */
#include <dlfcn.h>

#include "faces/nvshmem/check.h"

typedef void *comm_handle;

static struct {
    int (*init)(int *argc, char ***argv);
    int (*finalize)(void);
    int (*comm_rank)(comm_handle comm, int *rank);
    int (*comm_size)(comm_handle comm, int *size);
    int (*comm_split)(comm_handle comm, int color, int key, comm_handle *part);
    int (*comm_free)(comm_handle *comm);
    comm_handle world;
} mpi;

static int load(void)
{
    void *const library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        printf("no Open MPI here\n");
        return 77;
    }
    *(void **)&mpi.init = dlsym(library, "MPI_Init");
    *(void **)&mpi.finalize = dlsym(library, "MPI_Finalize");
    *(void **)&mpi.comm_rank = dlsym(library, "MPI_Comm_rank");
    *(void **)&mpi.comm_size = dlsym(library, "MPI_Comm_size");
    *(void **)&mpi.comm_split = dlsym(library, "MPI_Comm_split");
    *(void **)&mpi.comm_free = dlsym(library, "MPI_Comm_free");
    mpi.world = dlsym(library, "ompi_mpi_comm_world");
    return 0;
}

static void check_world(int me, int pes)
{
    CHECK(nvshmem_my_pe() == me && nvshmem_n_pes() == pes);
    int *word = ZEROED(int, 1);
    nvshmem_int_p(word, 100 + me, (me + 1) % pes);
    nvshmem_barrier_all();
    CHECK(*word == 100 + (me + pes - 1) % pes);
    nvshmem_barrier_all();
    nvshmem_free(word);
    nvshmem_finalize();
}

static void check_part(int rank, int size)
{
    comm_handle part;
    const int members = rank % 2 == 0 ? (size + 1) / 2 : size / 2;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(mpi.comm_split(mpi.world, rank % 2, -rank, &part) == 0);
    CHECK(nvshmemx_set_attr_mpi_comm_args(&part, &attributes) == 0);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) == 0);
    check_world(members - 1 - rank / 2, members);
    CHECK(mpi.comm_free(&part) == 0);
}

int main(int argc, char **argv)
{
    int rank;
    int size;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_set_attr_mpi_comm_args(&mpi.world, &attributes) == 0);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) == NVSHMEMX_ERROR_NOT_SUPPORTED); /* no MPI */
    const int missing = load();
    if (missing != 0) {
        return missing;
    }
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) ==
          NVSHMEMX_ERROR_INVALID_VALUE); /* no MPI_Init */
    CHECK(mpi.init(&argc, &argv) == 0);
    (void)mpi.comm_rank(mpi.world, &rank);
    (void)mpi.comm_size(mpi.world, &size);
    (void)setenv("NVSHMEM_BOOTSTRAP_MPI_PLUGIN", "/of/mpich/nvshmem_bootstrap_torch.so", 1); /* no communicator */
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) == NVSHMEMX_ERROR_NOT_SUPPORTED);
    (void)setenv("NVSHMEM_BOOTSTRAP_MPI_PLUGIN", "/else/nvshmem_bootstrap_mpi.so.3", 1);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) == 0);
    check_world(rank, size);
    check_part(rank, size);
    (void)setenv("NVSHMEM_BOOTSTRAP", "MPI", 1);
    nvshmem_init();
    check_world(rank, size);
    (void)mpi.finalize();
    return check_failures == 0 ? 0 : 1;
}
