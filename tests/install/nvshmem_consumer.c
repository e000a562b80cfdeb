/* A program on an installed NVSHMEM interface: C and C++. */
#define NVSHMEM_HOSTLIB_ONLY
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>

int main(void)
{
    nvshmem_init();
    const int me = nvshmem_my_pe();
    const int pes = nvshmem_n_pes();
    int *word = (int *)nvshmem_calloc(1, sizeof *word);
    if (word == NULL) {
        return 1;
    }
    nvshmem_int_p(word, me + 1, (me + 1) % pes);
    nvshmem_barrier_all();
    const int is_right = *word == (me + pes - 1) % pes + 1;
    nvshmem_free(word);
    nvshmem_finalize();
    printf("PE %d of %d: %s\n", me, pes, is_right ? "right" : "wrong");
    return is_right ? 0 : 1;
}
