/* cuda/ep/device/base.cuh: how kernels of expert parallelism are spelled, and what a thread knows of itself. */
#ifndef WEFTI_CUDA_EP_DEVICE_BASE_CUH
#define WEFTI_CUDA_EP_DEVICE_BASE_CUH

#include "cuda/ep/abi.h"
#include "weft_device.cuh"

#define EP_DEVICE static __device__ __forceinline__
#define EP_DEVICE_SLOW [[maybe_unused]] static __device__ __noinline__

#if !defined(WEFT_DEVICE_ON_HOST) /* else as testing/fake_driver/simt.h says */
#define EP_SHARED(type, name) __shared__ type name
#define EP_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#define EP_PAUSE() ((void)0)
#endif

/* Whether tokens have the numbers that were given for them at each rank (tables.target), in place of their order:
 * kernels of ..._positions.cu do, so that those of other routes have nothing of it. */
#if defined(WEFTI_CUDA_EP_POSITIONS)
#define EP_BY_POSITION true
#else
#define EP_BY_POSITION false
#endif

typedef wefti_cuda_ep_group ep_group;
typedef wefti_cuda_ep_tables ep_tables;
typedef wefti_cuda_ep_choices ep_choices;
typedef wefti_cuda_ep_dispatch_args ep_dispatch;
typedef wefti_cuda_ep_combine_args ep_combine;
typedef wefti_cuda_ep_stats_args ep_stats;

/* Kernel NAME of this VARIANT (abi.h), which has the arguments ARGS and does what the rest says. */
#define EP_KERNEL(NAME, VARIANT, ARGS, ...)                                                                            \
    extern "C" __global__ void __launch_bounds__(WEFTI_CUDA_EP_THREADS, 1)                                             \
        EP_KERNEL_NAME(NAME, VARIANT)(const __grid_constant__ ARGS args)                                               \
    {                                                                                                                  \
        __VA_ARGS__(args);                                                                                             \
    }

/* What of a call a kernel does: the whole, its send or its recv; or what the arguments say, all or two of these. */
enum ep_phase {
    EP_FUSED = WEFTI_CUDA_EP_FUSED,
    EP_SEND = WEFTI_CUDA_EP_SEND,
    EP_RECV = WEFTI_CUDA_EP_RECV,
    EP_ANY_PHASE,
    EP_FUSED_OR_RECV
};

/* Whether this launch of a kernel of PHASE does WHICH: known when it is compiled, or the same for all threads. */
template <ep_phase PHASE, ep_phase WHICH, class ARGS> EP_DEVICE bool ep_does(const ARGS &args)
{
    if constexpr (PHASE == EP_ANY_PHASE || (PHASE == EP_FUSED_OR_RECV && WHICH != EP_SEND)) {
        return args.blocks.phase == (wefti_i32)WHICH;
    } else {
        return PHASE == WHICH;
    }
}

EP_DEVICE bool ep_is(const ep_dispatch &args, wefti_u32 flag)
{
    return (args.flags & flag) != 0;
}

EP_DEVICE int ep_lane()
{
    return (int)(threadIdx.x & 31u);
}

EP_DEVICE int ep_warp()
{
    return (int)(threadIdx.x >> 5);
}

EP_DEVICE int ep_warps()
{
    return (int)(blockDim.x >> 5);
}

/* The sum of the lanes up to this one. A warp. */
template <class T> EP_DEVICE T ep_scan(T value)
{
    for (int step = 1; step < 32; step *= 2) {
        T below = __shfl_up_sync(~0u, value, (unsigned)step);
        value += ep_lane() >= step ? below : 0;
    }
    return value;
}

#endif
