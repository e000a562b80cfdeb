/* A program that knows of OpenSHMEM only, in C and in C++. Exits with 0 if PEs reach each other's variables and
 * heaps. */
#include <stdio.h>

#include <shmem.h>

static long variable;

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    long *block = (long *)shmem_malloc(sizeof(long));
    *block = -1;
    shmem_barrier_all();
    shmem_long_p(&variable, me, (me + 1) % pes);
    shmem_long_p(block, me, (me + 1) % pes);
    shmem_barrier_all();
    const long wanted = (me + pes - 1) % pes;
    const int is_right = variable == wanted && *block == wanted;
    shmem_free(block);
    if (me == 0) {
        printf("consumer: %d PEs\n", pes);
    }
    shmem_finalize();
    return is_right ? 0 : 1;
}
