/* cuda/ep/device/arithmetic.cuh: how rows are added up, to the bit as src/ep's arithmetic: in float32 from +0,
 * operations rounded one by one, the sum rounded once to the rows' type. A vector is 16 bytes of a row. */
#ifndef WEFTI_CUDA_EP_DEVICE_ARITHMETIC_CUH
#define WEFTI_CUDA_EP_DEVICE_ARITHMETIC_CUH

#include "cuda/ep/device/base.cuh"
#include "weft_ep.h"

#if !defined(WEFT_DEVICE_ON_HOST) /* else as testing/fake_driver/simt.h says */
/* Two numbers at once; every NaN becomes 0x7fff. */
EP_DEVICE wefti_u32 ep_bf16_pair(float low, float high)
{
    wefti_u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

EP_DEVICE wefti_u32 ep_f16_pair(float low, float high)
{
    wefti_u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

EP_DEVICE float ep_f16_widen(wefti_u32 bits)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"((unsigned short)bits));
    return wide;
}

/* Four numbers as e4m3, to the bit as protocol/fp8.h: to nearest even, subnormals too; what is beyond 448, infinities
 * too, becomes 448; signs are kept, of zeros too. A NaN has to be without a sign, as all are that arithmetic returns
 * here (0x7fffffff), to become 0x7f in any case. */
EP_DEVICE wefti_u32 ep_fp8_four(const float *from)
{
    wefti_u32 four;
    asm("{.reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
        "mov.b32 %0, {low, high};}"
        : "=r"(four)
        : "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]));
    return four;
}

/* amax with one number more, which is not looked at if it is a NaN, of whichever kind: here all are quiet. */
EP_DEVICE float ep_amax_with(float amax, float value)
{
    return fmaxf(amax, fabsf(value));
}

/* 1 / value, perhaps wrong by a unit in the last place. Neither is subnormal. */
EP_DEVICE float ep_reciprocal(float value)
{
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(value));
    return reciprocal;
}
#endif

template <int DTYPE> struct ep_type;

template <> struct ep_type<WEFT_EP_F32> {
    enum { ELEMENTS = 4 };
    static __device__ __forceinline__ void widen(const uint4 &vector, float *to)
    {
        to[0] = __uint_as_float(vector.x);
        to[1] = __uint_as_float(vector.y);
        to[2] = __uint_as_float(vector.z);
        to[3] = __uint_as_float(vector.w);
    }
    static __device__ __forceinline__ uint4 round(const float *from)
    {
        return make_uint4(__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]),
                          __float_as_uint(from[3]));
    }
};

template <> struct ep_type<WEFT_EP_BF16> {
    enum { ELEMENTS = 8 };
    static __device__ __forceinline__ void widen(const uint4 &vector, float *to)
    {
        const wefti_u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to[2 * i] = __uint_as_float(words[i] << 16);
            to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
        }
    }
    static __device__ __forceinline__ uint4 round(const float *from)
    {
        return make_uint4(ep_bf16_pair(from[0], from[1]), ep_bf16_pair(from[2], from[3]),
                          ep_bf16_pair(from[4], from[5]), ep_bf16_pair(from[6], from[7]));
    }
};

template <> struct ep_type<WEFT_EP_F16> {
    enum { ELEMENTS = 8 };
    static __device__ __forceinline__ void widen(const uint4 &vector, float *to)
    {
        const wefti_u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to[2 * i] = ep_f16_widen(words[i] & 0xffffu);
            to[2 * i + 1] = ep_f16_widen(words[i] >> 16);
        }
    }
    static __device__ __forceinline__ uint4 round(const float *from)
    {
        return make_uint4(ep_f16_pair(from[0], from[1]), ep_f16_pair(from[2], from[3]), ep_f16_pair(from[4], from[5]),
                          ep_f16_pair(from[6], from[7]));
    }
};

/* Element `at` of a row, rounded. */
template <int DTYPE> EP_DEVICE void ep_store_element(unsigned char *row, int at, float value)
{
    const float elements[ep_type<DTYPE>::ELEMENTS] = {value};
    const wefti_u32 word = ep_type<DTYPE>::round(elements).x;
    if constexpr (ep_type<DTYPE>::ELEMENTS == 4) {
        ((wefti_u32 *)row)[at] = word;
    } else {
        ((unsigned short *)row)[at] = (unsigned short)word;
    }
}

/* sum += vector */
template <int DTYPE> EP_DEVICE void ep_add(float *sum, const uint4 &vector)
{
    float here[ep_type<DTYPE>::ELEMENTS];
    ep_type<DTYPE>::widen(vector, here);
#pragma unroll
    for (int i = 0; i < ep_type<DTYPE>::ELEMENTS; i++) {
        sum[i] = __fadd_rn(sum[i], here[i]);
    }
}

/* sum = fma(weight, vector, sum) */
template <int DTYPE> EP_DEVICE void ep_fuse(float *sum, const uint4 &vector, float weight)
{
    float here[ep_type<DTYPE>::ELEMENTS];
    ep_type<DTYPE>::widen(vector, here);
#pragma unroll
    for (int i = 0; i < ep_type<DTYPE>::ELEMENTS; i++) {
        sum[i] = __fmaf_rn(weight, here[i], sum[i]);
    }
}

/* sum += round(weight * vector) */
template <int DTYPE> EP_DEVICE void ep_add_scaled(float *sum, const uint4 &vector, float weight)
{
    float here[ep_type<DTYPE>::ELEMENTS];
    ep_type<DTYPE>::widen(vector, here);
#pragma unroll
    for (int i = 0; i < ep_type<DTYPE>::ELEMENTS; i++) {
        here[i] = __fmul_rn(here[i], weight);
    }
    ep_add<DTYPE>(sum, ep_type<DTYPE>::round(here));
}

#endif
