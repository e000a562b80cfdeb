/* faces/nvshmem/bitcode/cuda.h: what the headers of kernels need of CUDA, declared for clang alone: the bitcode
 * library is made without CUDA's headers. */
#ifndef WEFTI_NVSHMEM_BITCODE_CUDA_H
#define WEFTI_NVSHMEM_BITCODE_CUDA_H

/* As for NVRTC: kernels alone, no header of the host. */
#define __CUDACC_RTC__ 1

#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

typedef __SIZE_TYPE__ size_t;

struct uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};

/* ---- who calls: the special registers, by the names that CUDA has for them ---- */

#define WEFTI_DEFINE_AXIS(AXIS, REGISTER)                                                                              \
    struct wefti_##REGISTER##_##AXIS {                                                                                 \
        __device__ __forceinline__ operator unsigned() const                                                           \
        {                                                                                                              \
            return (unsigned)__nvvm_read_ptx_sreg_##REGISTER##_##AXIS();                                               \
        }                                                                                                              \
    };
#define WEFTI_DEFINE_AXES(REGISTER)                                                                                    \
    WEFTI_DEFINE_AXIS(x, REGISTER)                                                                                     \
    WEFTI_DEFINE_AXIS(y, REGISTER)                                                                                     \
    WEFTI_DEFINE_AXIS(z, REGISTER)                                                                                     \
    struct wefti_##REGISTER {                                                                                          \
        wefti_##REGISTER##_x x;                                                                                        \
        wefti_##REGISTER##_y y;                                                                                        \
        wefti_##REGISTER##_z z;                                                                                        \
    };
WEFTI_DEFINE_AXES(tid)
WEFTI_DEFINE_AXES(ntid)
WEFTI_DEFINE_AXES(ctaid)
WEFTI_DEFINE_AXES(nctaid)
#undef WEFTI_DEFINE_AXES
#undef WEFTI_DEFINE_AXIS
#define threadIdx (wefti_tid())
#define blockDim (wefti_ntid())
#define blockIdx (wefti_ctaid())
#define gridDim (wefti_nctaid())

/* ---- meetings ---- */

__device__ __forceinline__ int __syncthreads_or(int value)
{
    return __nvvm_bar0_or(value);
}

__device__ __forceinline__ void __syncwarp(unsigned mask = 0xffffffffu)
{
    __nvvm_bar_warp_sync(mask);
}

__device__ __forceinline__ int __any_sync(unsigned mask, int value)
{
    return __nvvm_vote_any_sync(mask, value);
}

__device__ __forceinline__ int __shfl_sync(unsigned mask, int value, int lane)
{
    return __nvvm_shfl_sync_idx_i32(mask, value, lane, 31);
}

__device__ __forceinline__ void __nanosleep(unsigned ns)
{
    __nvvm_nanosleep(ns);
}

/* ---- addresses and bits ---- */

__device__ __forceinline__ size_t __cvta_generic_to_global(const void *address)
{
    return (size_t)(__attribute__((address_space(1))) const void *)address;
}

__device__ __forceinline__ size_t __cvta_generic_to_shared(const void *address)
{
    return (size_t)(__attribute__((address_space(3))) const void *)address;
}

__device__ __forceinline__ double __longlong_as_double(long long bits)
{
    return __builtin_bit_cast(double, bits);
}

__device__ __forceinline__ int __float_as_int(float value)
{
    return __builtin_bit_cast(int, value);
}

__device__ __forceinline__ float __int_as_float(int bits)
{
    return __builtin_bit_cast(float, bits);
}

__device__ __forceinline__ unsigned __float_as_uint(float value)
{
    return __builtin_bit_cast(unsigned, value);
}

__device__ __forceinline__ float __uint_as_float(unsigned bits)
{
    return __builtin_bit_cast(float, bits);
}

#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)

#endif
