/* An init that finds a GPU and cannot use it fails and leaves nothing, and the next init is a new one.
 * Method: on the fake driver, a GPU that refuses the memory for what kernels are told of teams
 * (WEFT_FAKE_NO_MEMORY), which is asked for after the device heap is there; and numbers that no GPU has, or one has. */
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

/* PE 0's id reaches the others through the environment of no launcher: each PE is alone here. */
static int init_on(int device)
{
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_get_uniqueid(&id) == 0);
    CHECK(nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attributes) == 0);
    attributes.args.cuda_device_id = device;
    return nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
}

static void name_gpus_that_are_not_there(void)
{
    const int numbers[] = {4321, -7};
    for (int i = 0; i < 2; i++) {
        CHECK(init_on(numbers[i]) != 0);
        CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    }
}

/* The GPU that an init names is the current one of its thread afterwards, whichever was before. */
static void name_gpus_that_are(void)
{
    int (*current)(int *device);
    *(void **)&current = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxGetDevice");
    for (int i = 1; i >= 0; i--) {
        int device = -1;
        CHECK(init_on(i) == 0);
        CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
        CHECK(current(&device) == 0 && device == i);
        nvshmem_finalize();
        CHECK(current(&device) == 0 && device == i);
    }
}

int main(void)
{
    name_gpus_that_are_not_there();
    name_gpus_that_are();
    setenv("WEFT_FAKE_NO_MEMORY", "1", 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, NULL) != 0);
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    unsetenv("WEFT_FAKE_NO_MEMORY");
    use_once();
    return check_end();
}
