/* Goal: OpenSHMEM and MPI in one program, in every order of init and finalize, started by Open MPI's mpirun: PEs have
 * the numbers of their ranks, and both move the same global variables and memory of the heap.
 * Method: exchange a word with the right neighbour by each. MPI's library is loaded here and its calls declared by
 * hand, so that no headers of it are needed: Open MPI's, whose handles are addresses. Exit 77: it is not here.
 * Usage: mpirun -n N mpi ORDER (mpi-first, shmem-first, crossed) */
#include <dlfcn.h>

#include "faces/shmem/check.h"

typedef void *handle;

static struct {
    int (*init)(int *argc, char ***argv);
    int (*finalize)(void);
    int (*comm_rank)(handle comm, int *rank);
    int (*comm_size)(handle comm, int *size);
    int (*sendrecv)(const void *out, int sent, handle sent_type, int to, int sent_tag, void *in, int received,
                    handle received_type, int from, int received_tag, handle comm, void *status);
    int (*barrier)(handle comm);
    handle world;
    handle byte;
} mpi;

static int me;
static int pes;
static long global_in = -1;
static long global_out;

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
    *(void **)&mpi.sendrecv = dlsym(library, "MPI_Sendrecv");
    *(void **)&mpi.barrier = dlsym(library, "MPI_Barrier");
    mpi.world = dlsym(library, "ompi_mpi_comm_world");
    mpi.byte = dlsym(library, "ompi_mpi_byte");
    return 0;
}

static void exchange(long *in, long *out)
{
    const int right = (me + 1) % pes;
    const int left = (me + pes - 1) % pes;
    *out = 100 + me;
    *in = -1;
    CHECK(mpi.barrier(mpi.world) == 0);
    shmem_long_put(in, out, 1, right);
    shmem_barrier_all();
    CHECK(*in == 100 + left);
    *out = 200 + me;
    CHECK(mpi.sendrecv(out, sizeof *out, mpi.byte, right, 1, in, sizeof *in, mpi.byte, left, 1, mpi.world, NULL) == 0);
    CHECK(*in == 200 + left);
    shmem_barrier_all();
    CHECK(shmem_long_g(in, right) == 200 + me);
    CHECK(mpi.barrier(mpi.world) == 0);
}

int main(int argc, char **argv)
{
    const char *const order = argc > 1 ? argv[1] : "mpi-first";
    const int mpi_first = strcmp(order, "shmem-first") != 0;
    const int missing = load();
    if (missing != 0) {
        return missing;
    }
    if (mpi_first) {
        CHECK(mpi.init(NULL, NULL) == 0);
    }
    shmem_init();
    if (!mpi_first) {
        CHECK(mpi.init(NULL, NULL) == 0);
    }
    me = shmem_my_pe();
    pes = shmem_n_pes();
    int rank = -1;
    int size = -1;
    CHECK(mpi.comm_rank(mpi.world, &rank) == 0 && rank == me);
    CHECK(mpi.comm_size(mpi.world, &size) == 0 && size == pes);
    exchange(&global_in, &global_out);
    long *const words = shmem_calloc(2, sizeof *words);
    CHECK(words != NULL);
    exchange(words, words + 1);
    shmem_free(words);
    if (strcmp(order, "crossed") == 0) {
        CHECK(mpi.finalize() == 0);
        shmem_barrier_all();
        shmem_finalize();
    } else {
        shmem_finalize();
        CHECK(mpi.barrier(mpi.world) == 0 && mpi.finalize() == 0);
    }
    return check_failures == 0 ? 0 : 1;
}
