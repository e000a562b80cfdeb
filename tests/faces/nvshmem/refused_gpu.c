/* An init that finds a GPU and cannot use it fails and leaves nothing, and the next init is a new one.
 * Method: on the fake driver, a GPU that refuses the memory for what kernels are told of teams
 * (WEFT_FAKE_NO_MEMORY), which is asked for after the device heap is there. */
#include "faces/nvshmem/check.h"

static void use_once(void)
{
    nvshmem_init();
    CHECK(nvshmemx_init_status() != NVSHMEM_STATUS_NOT_INITIALIZED);
    int *const to = ZEROED(int, 1);
    nvshmem_int_p(to, 7, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    nvshmem_barrier_all();
    CHECK(nvshmem_int_g(to, nvshmem_my_pe()) == 7);
    nvshmem_free(to);
}

int main(void)
{
    setenv("WEFT_FAKE_NO_MEMORY", "1", 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, NULL) != 0);
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    unsetenv("WEFT_FAKE_NO_MEMORY");
    use_once();
    return check_end();
}
