/* weft/device/scope.cuh: who makes a call: one thread, a warp, or a block. Passed by value; all threads of the scope
 * make the call together, with equal arguments, and share its status. */
#ifndef WEFTI_DEVICE_SCOPE_CUH
#define WEFTI_DEVICE_SCOPE_CUH

#include "weft/device/ptx.cuh"

typedef enum wefti_scope_kind { WEFTI_SCOPE_THREAD = 0, WEFTI_SCOPE_WARP = 1, WEFTI_SCOPE_BLOCK = 2 } wefti_scope_kind;

typedef struct weft_scope {
    wefti_u32 rank; /* of the calling thread */
    wefti_u32 size; /* threads */
    wefti_scope_kind kind; /* a constant once inlined */
} weft_scope;

WEFTI_DEVICE weft_scope weft_thread()
{
    weft_scope scope = {0, 1, WEFTI_SCOPE_THREAD};
    return scope;
}

#if !defined(WEFT_DEVICE_ON_HOST) || defined(WEFT_DEVICE_ON_HOST_THREADS)

WEFTI_DEVICE wefti_u32 wefti_thread_of_block()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

/* All 32 threads of the warp take part. */
WEFTI_DEVICE weft_scope weft_warp()
{
    weft_scope scope = {wefti_thread_of_block() % 32u, 32, WEFTI_SCOPE_WARP};
    return scope;
}

WEFTI_DEVICE weft_scope weft_block()
{
    weft_scope scope = {wefti_thread_of_block(), blockDim.x * blockDim.y * blockDim.z, WEFTI_SCOPE_BLOCK};
    return scope;
}

WEFTI_DEVICE void wefti_sync_warp()
{
    __syncwarp();
}

WEFTI_DEVICE void wefti_sync_block()
{
    __syncthreads();
}

WEFTI_DEVICE int wefti_any_of_block(int value)
{
    return __syncthreads_or(value);
}

/* Every thread of the block gets the first one's value. */
WEFTI_DEVICE wefti_u32 wefti_first_of_block(wefti_u32 rank, wefti_u32 value)
{
    __shared__ wefti_u32 shared;
    __syncthreads();
    if (rank == 0) {
        shared = value;
    }
    __syncthreads();
    return shared;
}

WEFTI_DEVICE int wefti_any_of_warp(int value)
{
    return __any_sync(0xffffffffu, value != 0);
}

WEFTI_DEVICE int wefti_first_of_warp(int value)
{
    return __shfl_sync(0xffffffffu, value, 0);
}

#endif

/* Every thread of the scope gets the first one's value. Also a barrier. */
WEFTI_DEVICE wefti_u32 wefti_scope_first(weft_scope scope, wefti_u32 value)
{
    return scope.kind == WEFTI_SCOPE_BLOCK  ? wefti_first_of_block(scope.rank, value)
           : scope.kind == WEFTI_SCOPE_WARP ? (wefti_u32)wefti_first_of_warp((int)value)
                                            : value;
}

/* Whether any thread of a block says so, or the first one of a warp. Also a barrier of the scope. */
WEFTI_DEVICE int wefti_scope_first_says(weft_scope scope, int value)
{
    if (scope.kind == WEFTI_SCOPE_WARP) {
        value = wefti_first_of_warp(value);
        wefti_sync_warp();
        return value;
    }
    return scope.kind == WEFTI_SCOPE_BLOCK ? wefti_any_of_block(value) : value;
}

/* The threads of a block's first warp, which has 32 or all of the block's. For those threads. */
WEFTI_DEVICE weft_scope wefti_first_warp(weft_scope block)
{
    weft_scope scope = {block.rank, block.size < 32 ? block.size : 32, WEFTI_SCOPE_WARP};
    return scope;
}

/* The calling thread's warp of a block of whole warps; any other scope is its own. */
WEFTI_DEVICE weft_scope wefti_own_warp(weft_scope scope)
{
    weft_scope warp = {scope.rank % 32u, 32, WEFTI_SCOPE_WARP};
    return scope.kind == WEFTI_SCOPE_BLOCK ? warp : scope;
}

/* What the scope's threads did before is ordered, among them, before what they do after. */
WEFTI_DEVICE void wefti_scope_sync(weft_scope scope)
{
    if (scope.kind == WEFTI_SCOPE_WARP) {
        wefti_sync_warp();
    } else if (scope.kind == WEFTI_SCOPE_BLOCK) {
        wefti_sync_block();
    }
}

#endif
