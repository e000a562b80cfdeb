/* faces/nvshmem/every/memory.h: a GPU's memory, for the host: CUDA's, or, without nvcc, that of the fake driver, which
 * the host reaches. */
#ifndef FACES_NVSHMEM_EVERY_MEMORY_H
#define FACES_NVSHMEM_EVERY_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__CUDACC__)
static inline void memory_check(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

static inline void memory_to_device(void *to, const void *from, size_t bytes)
{
    memory_check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    memory_check(cudaDeviceSynchronize());
}

static inline void memory_to_host(void *to, const void *from, size_t bytes)
{
    memory_check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

/* A GPU of its own for each PE, if there are so many. */
static inline void memory_choose(int pe_of_node)
{
    int gpus = 0;
    memory_check(cudaGetDeviceCount(&gpus));
    memory_check(cudaSetDevice(pe_of_node % gpus));
}
#else
#include <dlfcn.h>

static inline void memory_to_device(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void memory_to_host(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

/* The only one is current, as a program's cudaSetDevice makes it. */
static inline void memory_choose(int pe_of_node)
{
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    void *context = NULL;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        printf("no driver: %s\n", dlerror());
        exit(1);
    }
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
    if (init(0) != 0 || retain(&context, 0) != 0 || push(context) != 0) {
        printf("no GPU of the fake driver\n");
        exit(1);
    }
    (void)pe_of_node;
}
#endif

#endif
