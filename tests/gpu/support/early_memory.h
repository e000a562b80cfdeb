/* support/early_memory.h: memory that a PE takes before it runs anything, since taking some may wait for what other PEs
 * of the GPU run: pinned, for counts that are told, and of the device, for a route and where it moves to. */
#ifndef TEST_GPU_EARLY_MEMORY_H
#define TEST_GPU_EARLY_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "support/launch.h"

extern "C" {
#include "support/ep_tensor.h"
}

#if ON_GPU
static void check_gpu(cudaError_t error, const char *what)
{
    check_that(error == cudaSuccess, __FILE__, __LINE__, "%s: %s", what, cudaGetErrorString(error));
}
#endif

#define PINNED_BYTES ((size_t)4 << 20)
#define ROUTE_BYTES ((size_t)64 << 20)
static __thread unsigned char *pinned;
static __thread size_t pinned_taken;
static __thread int pinned_held; /* arrays */
static __thread unsigned char *routes; /* two of ROUTE_BYTES */

static void take_memory(void)
{
#if ON_GPU
    check_gpu(cudaHostAlloc((void **)&pinned, PINNED_BYTES, cudaHostAllocDefault), "cudaHostAlloc");
    check_gpu(cudaMalloc((void **)&routes, 2 * ROUTE_BYTES), "cudaMalloc");
#else
    pinned = (unsigned char *)aligned_alloc(64, PINNED_BYTES);
    routes = (unsigned char *)aligned_alloc(64, 2 * ROUTE_BYTES);
#endif
}

static void give_memory(void)
{
#if ON_GPU
    check_gpu(cudaFreeHost(pinned), "cudaFreeHost");
    check_gpu(cudaFree(routes), "cudaFree");
#else
    free(pinned);
    free(routes);
#endif
}

static void *take_pinned(size_t bytes)
{
    unsigned char *taken = pinned + pinned_taken;
    pinned_taken += (bytes + 63) / 64 * 64;
    pinned_held++;
    if (pinned_taken > PINNED_BYTES) {
        abort();
    }
    memset(taken, 0, bytes);
    return taken;
}

static void give_pinned(void *memory)
{
    (void)memory;
    pinned_held--;
    pinned_taken = pinned_held == 0 ? 0 : pinned_taken;
}

/* The number `which` of the two, poisoned. */
static void *route_memory(test_pe *pe, int which, size_t bytes)
{
    unsigned char *memory = routes + (size_t)which * ROUTE_BYTES;
#if ON_GPU
    check_gpu(cudaMemsetAsync(memory, EP_POISON, bytes, pe->stream), "cudaMemsetAsync");
    check_gpu(cudaStreamSynchronize(pe->stream), "route_memory");
#else
    (void)pe;
    memset(memory, EP_POISON, bytes);
#endif
    return memory;
}

#endif
