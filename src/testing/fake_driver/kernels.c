/* testing/fake_driver/kernels.c: modules, functions and launches: a launch returns when the kernel is complete. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "cuda/kernels.h"
#include "testing/fake_driver/grid.h"
#include "testing/fake_driver/kernels_ep.h"
#include "testing/fake_driver/libcuda.h"
#include "testing/fake_driver/module.h"

FAKE CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)(uintptr_t)image;
    return CUDA_SUCCESS;
}

/* Of a fake_module; those of the library have no variables that are asked for. */
static CUresult find_variable(CUdeviceptr *address, size_t *bytes, const fake_module *module, const char *name)
{
    if (memcmp(module->mark, FAKE_MODULE_MARK, sizeof FAKE_MODULE_MARK) != 0 || strcmp(module->name, name) != 0) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *address = (CUdeviceptr)(uintptr_t)module->variable;
    *bytes = module->bytes;
    return CUDA_SUCCESS;
}

FAKE CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    return find_variable(address, bytes, (const fake_module *)(const void *)module, name);
}

FAKE CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    return find_variable(address, bytes, (const fake_module *)(const void *)library, name);
}

FAKE CUresult cuModuleUnload(CUmodule module) /* the tools do */
{
    (void)module;
    return CUDA_SUCCESS;
}

/* Kernels: kernels.cu compiled for the CPU, called block by block, and those of kernels_ep.h, a grid each. */
typedef void (*kernel)(const void *args, unsigned block, unsigned blocks);
#define DECLARE(NAME, threads, when) void wefti_cuda_##NAME(const void *args, unsigned block, unsigned blocks);
WEFTI_CUDA_KERNELS(DECLARE)
#undef DECLARE
static const struct {
    const char *name;
    kernel run;
} kernels[] = {
#define KERNEL(NAME, threads, when) {"wefti_cuda_" #NAME, wefti_cuda_##NAME},
    WEFTI_CUDA_KERNELS(KERNEL)
#undef KERNEL
};

/* Set in the handles of kernels that this library exports for tools; no address has this bit. They too are called block
 * by block. */
#define EXPORTED ((uintptr_t)1 << 63)
static uintptr_t find_exported(const char *name)
{
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = self != NULL ? dlsym(self, name) : NULL;
    if (self != NULL) {
        dlclose(self);
    }
    return found != NULL ? (uintptr_t)found | EXPORTED : 0;
}

FAKE CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(name, kernels[i].name) == 0) {
            *function = (CUfunction)(uintptr_t)&kernels[i];
            return CUDA_SUCCESS;
        }
    }
    for (const fake_ep_kernel *found = fake_ep_kernels; found->name != NULL; found++) {
        if (strcmp(name, found->name) == 0) {
            *function = (CUfunction)(uintptr_t)found;
            return CUDA_SUCCESS;
        }
    }
    *function = (CUfunction)find_exported(name);
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

FAKE CUresult cuFuncLoad(CUfunction function)
{
    (void)function;
    return CUDA_SUCCESS;
}

FAKE CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)attribute, (void)function;
    *value = 0;
    return CUDA_SUCCESS;
}

FAKE CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

/* A launch of a graph's, of a kernel of expert parallelism. */
typedef struct grid_launch {
    const fake_ep_kernel *kernel;
    unsigned blocks;
    unsigned threads;
    unsigned shared;
    _Alignas(16) unsigned char args[];
} grid_launch;

static void launch_again(const void *args)
{
    const grid_launch *of = args;
    fake_grid_run(of->kernel->body, of->args, of->blocks, of->threads, of->shared);
}

static void record(const grid_launch *launch, const void *args)
{
    const size_t bytes = launch->kernel->args_bytes;
    grid_launch *made = fake_record(launch_again, sizeof *made + bytes);
    *made = *launch;
    memcpy(made->args, args, bytes);
}

/* Blocks of the calling thread's last launch. */
static __thread unsigned blocks_of_last;
FAKE unsigned fakeBlocks(void);
FAKE unsigned fakeBlocks(void)
{
    return blocks_of_last;
}

FAKE CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                             void **extra)
{
    (void)block_y, (void)block_z, (void)extra;
    fake_catch_up(stream);
    if (grid_x == 0 || grid_y * grid_z != 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake_be_slow();
    blocks_of_last = grid_x;
    int is_exported = ((uintptr_t)function & EXPORTED) != 0;
    if (!is_exported && (uintptr_t)function - (uintptr_t)kernels >= sizeof kernels) {
        const grid_launch launch = {(const fake_ep_kernel *)(const void *)function, grid_x, block_x, shared};
        if (fake_is_recorded()) {
            record(&launch, arguments[0]);
        }
        fake_grid_run(launch.kernel->body, arguments[0], grid_x, block_x, shared);
        return CUDA_SUCCESS;
    }
    if (fake_is_recorded()) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* graphs of these are not needed */
    }
    kernel run = is_exported ? (kernel)((uintptr_t)function & ~EXPORTED)
                             : ((const __typeof__(*kernels) *)(const void *)function)->run;
    for (unsigned block = 0; block < grid_x; block++) {
        run(arguments[0], block, grid_x);
    }
    return CUDA_SUCCESS;
}

FAKE CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                          config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, arguments,
                          extra);
}

/* A multiprocessor has 2048 threads and 227 KiB of shared memory. */
FAKE CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                          size_t shared_bytes)
{
    (void)function;
    int by_memory = shared_bytes > 0 ? (int)(((size_t)227 << 10) / shared_bytes) : 32;
    int by_threads = threads > 1024 ? 0 : 2048 / ((threads + 31) / 32 * 32);
    *blocks = by_threads < by_memory ? by_threads : by_memory;
    *blocks = *blocks < 32 ? *blocks : 32;
    return CUDA_SUCCESS;
}

FAKE CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                        CUstream stream, void **arguments)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, NULL);
}
