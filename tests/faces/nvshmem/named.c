/* Modules and kernels that a program names while it runs: a module's state is filled by the name that it has in every
 * form of compilation, again after another init; collective launches are functions of the library, which take handles
 * and what CUDA's runtime knows as kernels, and refuse other functions.
 * Method: on the fake driver, a module that is a table, and one of the library's own kernels, which stores a word. The
 * program has a runtime of CUDA: one function. */
#include "faces/nvshmem/check.h"
#include "testing/fake_driver/module.h"
#include "weft_nvshmem/state.h"

/* What the library's kernel `wefti_cuda_word` takes (src/cuda/kernels.h). */
typedef struct word_args {
    weft_dev dev;
    int what;
    int op;
    int bits;
    int kind;
    uint64_t at;
    uint64_t value;
    uint64_t cond;
    uint64_t old;
} word_args;
#define STORE 1

typedef struct dims {
    unsigned x;
    unsigned y;
    unsigned z;
} dims;

typedef struct launch_config {
    dims grid;
    dims block;
    size_t shared_bytes;
    cudaStream_t stream;
    const void *attributes;
    unsigned attribute_count;
} launch_config;

static struct {
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(const void *func, dims grid, dims block, void **args, size_t shared_bytes, cudaStream_t stream);
    int (*with)(const launch_config *config, const void *func, void **args);
    int (*query)(const void *func, dims block, void **args, size_t shared_bytes, int *gridsize);
} calls;

static void *kernel;

static void known(void)
{
}

static void unknown(void)
{
}

/* CUDA's runtime, which the library finds in the program; headers of CUDA's, where there are, declare it with its own
 * types. */
__attribute__((visibility("default"))) int runtime_knows(void **function,
                                                         const void *symbol) __asm__("cudaGetFuncBySymbol");
int runtime_knows(void **function, const void *symbol)
{
    *function = kernel;
    return symbol == (const void *)(uintptr_t)known ? 0 : 98;
}

static void find_calls(void)
{
    *(void **)&calls.function = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuModuleGetFunction");
    *(void **)&calls.launch = dlsym(RTLD_DEFAULT, "nvshmemx_collective_launch");
    *(void **)&calls.with = dlsym(RTLD_DEFAULT, "nvshmemx_collective_launch_attr");
    *(void **)&calls.query = dlsym(RTLD_DEFAULT, "nvshmemx_collective_launch_query_gridsize");
    CHECK(calls.function(&kernel, NULL, "wefti_cuda_word") == 0);
    CHECK(calls.launch != NULL && calls.with != NULL && calls.query != NULL);
}

/* A launch of the kernel stores this number. */
static void stored(uint64_t *at, uint64_t number, int (*launch)(const void *func, void **args), const void *func,
                   int status)
{
    word_args args;
    void *arguments[] = {&args};
    memset(&args, 0, sizeof args);
    args.what = STORE;
    args.bits = 64;
    args.at = (uint64_t)(uintptr_t)at;
    args.value = number;
    const uint64_t before = nvshmem_uint64_g(at, nvshmem_my_pe());
    CHECK(launch(func, arguments) == status);
    CHECK(nvshmem_uint64_g(at, nvshmem_my_pe()) == (status == 0 ? number : before));
}

static int launch_one(const void *func, void **args)
{
    return calls.launch(func, (dims){1, 1, 1}, (dims){1, 1, 1}, args, 0, NULL);
}

static int launch_as_many(const void *func, void **args)
{
    return calls.launch(func, (dims){0, 0, 0}, (dims){1024, 1, 1}, args, 0, NULL);
}

static int launch_with(const void *func, void **args)
{
    const launch_config config = {{0, 0, 0}, {1024, 1, 1}, 0, NULL, NULL, 0};
    return calls.with(&config, func, args);
}

static void launches(void)
{
    static int (*const ways[])(const void *func, void **args) = {launch_one, launch_as_many, launch_with};
    uint64_t *const at = ZEROED(uint64_t, 1);
    int most = 0;
    nvshmem_barrier_all();
    for (int i = 0; i < 3; i++) {
        stored(at, 10 + i, ways[i], kernel, 0);
        stored(at, 20 + i, ways[i], (const void *)(uintptr_t)known, 0);
        stored(at, 30 + i, ways[i], (const void *)(uintptr_t)unknown, NVSHMEMX_ERROR_INVALID_VALUE);
        stored(at, 40 + i, ways[i], NULL, NVSHMEMX_ERROR_INVALID_VALUE);
    }
    CHECK(calls.query(kernel, (dims){1024, 1, 1}, NULL, 0, &most) == 0 && most > 0);
    CHECK(calls.query((const void *)(uintptr_t)unknown, (dims){1, 1, 1}, NULL, 0, &most) != 0);
    CHECK(calls.with(NULL, kernel, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_free(at);
}

static void modules(void)
{
    weft_nvshmem_state state;
    fake_module whole = {FAKE_MODULE_MARK, "weft_nvshmem_state_d", &state, sizeof state};
    fake_module other = {FAKE_MODULE_MARK, "nvshmemi_device_state_d", &state, sizeof state};
    fake_module older = {FAKE_MODULE_MARK, "weft_nvshmem_state_d", &state, sizeof state - 8};
    memset(&state, 0, sizeof state);
    CHECK(nvshmemx_cumodule_init((CUmodule)(void *)&other) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_cumodule_init((CUmodule)(void *)&older) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(state.abi == 0);
    CHECK(nvshmemx_cumodule_init((CUmodule)(void *)&whole) == 0);
    CHECK(state.abi == WEFT_NVSHMEM_ABI && state.world.pe == nvshmem_my_pe() && state.world.pes == nvshmem_n_pes());
    CHECK(nvshmemx_cumodule_finalize((CUmodule)(void *)&whole) == 0);
    memset(&state, 0, sizeof state);
    CHECK(nvshmemx_culibrary_init((CUlibrary)(void *)&whole) == 0);
    CHECK(state.abi == WEFT_NVSHMEM_ABI && state.world.pe == nvshmem_my_pe());
    CHECK(nvshmemx_culibrary_finalize((CUlibrary)(void *)&whole) == 0);
}

int main(void)
{
    find_calls();
    for (int i = 0; i < 2; i++) {
        nvshmem_init();
        nvshmem_barrier_all();
        modules();
        launches();
        if (i == 0) {
            nvshmem_finalize();
        }
    }
    return check_end();
}
