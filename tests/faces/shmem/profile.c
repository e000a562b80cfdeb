/* Goal: a profiling library stands between a program and the routines (10): it has a shmem_ function of its own, and
 * calls the pshmem_ one. Method: this program has its own shmem_long_p, shmem_barrier_all and shmem_malloc; its calls
 * reach those, and those that it does not have the library's. */
#include "faces/shmem/check.h"
#include <pshmem.h>

static int puts_seen;
static int barriers_seen;
static int mallocs_seen;

void shmem_long_p(long *dest, long value, int pe)
{
    puts_seen++;
    pshmem_long_p(dest, value, pe);
}

void shmem_barrier_all(void)
{
    barriers_seen++;
    pshmem_barrier_all();
}

void *shmem_malloc(size_t size)
{
    mallocs_seen++;
    return pshmem_malloc(size);
}

int main(void)
{
    shmem_init();
    long *word = shmem_malloc(sizeof *word);
    *word = 0;
    shmem_barrier_all();
    shmem_long_p(word, 4, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_p(word, 4L, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    CHECK(*word == 4);
    CHECK(puts_seen == 2 && barriers_seen == 2 && mallocs_seen == 1);
    shmem_free(word);
    return check_end();
}
