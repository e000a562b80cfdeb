/* cuda/kernel.cuh: how a kernel of the library is written: a body that is told its scope and its place in the grid. On
 * a GPU it is a kernel; compiled for the CPU (WEFT_DEVICE_ON_HOST) a function that the fake driver calls, block by
 * block. */
#ifndef WEFTI_CUDA_KERNEL_CUH
#define WEFTI_CUDA_KERNEL_CUH

#include "cuda/kernels.h"
#include "weft_device.cuh"

#if !defined(WEFT_DEVICE_ON_HOST)
/* Launched early, the blocks are here before the stream has come to them. Once it has, those of the next kernel may
 * come: at most two kernels of a stream are on the GPU at the same time. */
static WEFTI_DEVICE void wefti_wait_for_kernel_before(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

/* wefti_cuda_NAME's body: DEFINE_KERNEL(NAME, threads) { ... args, scope, slice ... } */
#if defined(WEFT_DEVICE_ON_HOST)
#define DEFINE_KERNEL(NAME, threads)                                                                                   \
    static void body_##NAME(const wefti_cuda_##NAME##_args &args, weft_scope scope, wefti_slice slice);                \
    extern "C" void wefti_cuda_##NAME(const void *args, unsigned block, unsigned blocks);                              \
    extern "C" void wefti_cuda_##NAME(const void *args, unsigned block, unsigned blocks)                               \
    {                                                                                                                  \
        body_##NAME(*(const wefti_cuda_##NAME##_args *)args, weft_thread(), wefti_slice{block, blocks, false, false}); \
    }                                                                                                                  \
    static void body_##NAME(const wefti_cuda_##NAME##_args &args, weft_scope scope, wefti_slice slice)
#else
#define DEFINE_KERNEL(NAME, threads)                                                                                   \
    static WEFTI_DEVICE void body_##NAME(const wefti_cuda_##NAME##_args &args, weft_scope scope, wefti_slice slice);   \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                                           \
        wefti_cuda_##NAME(const __grid_constant__ wefti_cuda_##NAME##_args args)                                       \
    {                                                                                                                  \
        wefti_wait_for_kernel_before();                                                                                \
        body_##NAME(args, weft_block(), wefti_slice{blockIdx.x, gridDim.x, false, false});                             \
    }                                                                                                                  \
    static WEFTI_DEVICE void body_##NAME(const wefti_cuda_##NAME##_args &args, weft_scope scope, wefti_slice slice)
#endif

#endif
