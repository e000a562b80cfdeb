/* faces/shmem/extensions.c: what Sandia's OpenSHMEM has in shmemx.h, and no version of the specification. */
#include <shmemx.h>
#include <time.h>
#include <unistd.h>

#include "faces/shmem/binding.h"

double pshmemx_wtime(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
WEAK(shmemx_wtime, pshmemx_wtime)

char *pshmemx_nodename(void)
{
    static char name[256];
    (void)gethostname(name, sizeof name - 1); /* empty where that fails */
    return name;
}
WEAK(shmemx_nodename, pshmemx_nodename)

void pshmemx_register_gettid(uint64_t (*gettid)(void))
{
    (void)gettid;
}
WEAK(shmemx_register_gettid, pshmemx_register_gettid)
