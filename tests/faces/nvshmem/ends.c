/* A program that one PE ends on all of them, by nvshmem_global_exit, while the others wait or are between calls.
 * Usage: ends CODE */
#include <unistd.h>

#include "faces/nvshmem/check.h"

int main(int argc, char **argv)
{
    nvshmem_init();
    const int me = nvshmem_my_pe();
    if (me == 0) {
        usleep(100000);
        printf("ends\n");
        nvshmem_global_exit(argc > 1 ? atoi(argv[1]) : 1);
    }
    if (me % 2 == 0) {
        usleep(300000); /* hears of it in its next call */
    }
    nvshmem_barrier_all();
    printf("PE %d goes on\n", me);
    return 99;
}
