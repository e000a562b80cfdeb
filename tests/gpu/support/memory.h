/* support/memory.h: device memory that is not weft's, and copies in stream order: of the CUDA runtime, or of the fake
 * driver. */
#ifndef GPU_SUPPORT_MEMORY_H
#define GPU_SUPPORT_MEMORY_H

#include <cuda.h>

#include "support/launch.h"

#if ON_GPU

static inline void gpu_check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

/* A function of the driver. */
static inline void *gpu_driver(const char *name)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
    gpu_check(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found), name);
    return function;
}

static inline unsigned char *gpu_alloc(size_t bytes)
{
    void *memory = NULL;
    gpu_check(cudaMalloc(&memory, bytes), "cudaMalloc");
    return (unsigned char *)memory;
}

static inline void gpu_free(void *memory)
{
    gpu_check(cudaFree(memory), "cudaFree");
}

/* Host memory for copies: those of pageable memory may wait for the kernels of other PEs. */
static inline unsigned char *gpu_alloc_pinned(size_t bytes)
{
    void *memory = NULL;
    gpu_check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    return (unsigned char *)memory;
}

static inline void gpu_free_pinned(void *memory)
{
    gpu_check(cudaFreeHost(memory), "cudaFreeHost");
}

static inline void gpu_wait(test_pe *pe)
{
    gpu_check(cudaStreamSynchronize(pe->stream), "cudaStreamSynchronize");
}

/* On the PE's stream, which may not have come so far when they return. */
static inline void gpu_copy_later(test_pe *pe, void *to, const void *from, size_t bytes)
{
    gpu_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, pe->stream), "cudaMemcpyAsync");
}

static inline void gpu_set_later(test_pe *pe, void *at, int value, size_t bytes)
{
    gpu_check(cudaMemsetAsync(at, value, bytes, pe->stream), "cudaMemsetAsync");
}

#else

#include <dlfcn.h>

static inline void *gpu_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = driver == NULL ? NULL : dlsym(driver, name);
    if (function == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    dlclose(driver);
    return function;
}

static inline unsigned char *gpu_alloc(size_t bytes)
{
    unsigned long long memory = 0;
    if (((int (*)(unsigned long long *, size_t))gpu_driver("cuMemAlloc_v2"))(&memory, bytes) != 0) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return (unsigned char *)(uintptr_t)memory;
}

static inline void gpu_free(void *memory)
{
    ((int (*)(unsigned long long))gpu_driver("cuMemFree_v2"))((uintptr_t)memory);
}

static inline unsigned char *gpu_alloc_pinned(size_t bytes)
{
    return (unsigned char *)malloc(bytes);
}

static inline void gpu_free_pinned(void *memory)
{
    free(memory);
}

static inline void gpu_wait(test_pe *pe)
{
    (void)pe;
}

static inline void gpu_copy_later(test_pe *pe, void *to, const void *from, size_t bytes)
{
    (void)pe;
    memcpy(to, from, bytes);
}

static inline void gpu_set_later(test_pe *pe, void *at, int value, size_t bytes)
{
    (void)pe;
    memset(at, value, bytes);
}

#endif

static inline void gpu_copy(test_pe *pe, void *to, const void *from, size_t bytes)
{
    gpu_copy_later(pe, to, from, bytes);
    gpu_wait(pe);
}

static inline void gpu_set(test_pe *pe, void *at, int value, size_t bytes)
{
    gpu_set_later(pe, at, value, bytes);
    gpu_wait(pe);
}

/* The stream as the library takes it. */
static inline weft_stream *gpu_stream_of(test_pe *pe)
{
    return (weft_stream *)(uintptr_t)pe->stream;
}

#endif
