/* cuda/ep/quantise.cuh: a piece of a row, in shared memory, becomes fp8 where it lies, as protocol/fp8.h says; its scales are
 * stored to the area of each rank that the token goes to. A piece holds whole groups, at most 32; sixteen lanes take one. */
#ifndef WEFTI_CUDA_EP_QUANTISE_CUH
#define WEFTI_CUDA_EP_QUANTISE_CUH

#include "cuda/ep/arithmetic.cuh"
#include "weft/protocol/fp8.h"

#define EP_EIGHT 8 /* elements of a lane */

/* Eight elements, the first of which is number `at`. */
template <int DTYPE> EP_DEVICE void ep_widen_eight(const unsigned char *piece, int at, float *values)
{
    enum { PER_VECTOR = ep_type<DTYPE>::ELEMENTS };
    const uint4 *vectors = (const uint4 *)piece + at / PER_VECTOR;
#pragma unroll
    for (int i = 0; i < EP_EIGHT / PER_VECTOR; i++) {
        ep_type<DTYPE>::widen(vectors[i], values + i * PER_VECTOR);
    }
}

/* The largest magnitude of the sixteen lanes. */
EP_DEVICE float ep_amax(const float *values, bool is)
{
    float amax = WEFTI_FP8_AMAX_LEAST;
#pragma unroll
    for (int i = 0; i < EP_EIGHT; i++) {
        amax = is ? wefti_fp8_amax(amax, values[i]) : amax;
    }
    for (int step = 1; step < WEFTI_FP8_GROUP / EP_EIGHT; step *= 2) {
        float other = __shfl_xor_sync(~0u, amax, step);
        amax = other > amax ? other : amax;
    }
    return amax;
}

EP_DEVICE wefti_u32 ep_quantise_four(const float *values, float inverse)
{
    wefti_u32 word = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        word |= (wefti_u32)wefti_fp8_quantise(values[i], inverse) << (8 * i);
    }
    return word;
}

/* Eight elements as fp8, and the bits of their group's scale. */
typedef struct ep_eighth {
    uint2 words;
    wefti_u32 scale;
} ep_eighth;

/* The lane's eight elements, if it has any. A warp. */
EP_DEVICE ep_eighth ep_quantise_eight(const float *values, bool is, bool is_ue8m0)
{
    const float amax = ep_amax(values, is);
    const wefti_fp8_scale scale = is_ue8m0 ? wefti_fp8_scale_ue8m0(amax) : wefti_fp8_scale_f32(amax);
    ep_eighth eighth;
    eighth.words = make_uint2(ep_quantise_four(values, scale.inverse), ep_quantise_four(values + 4, scale.inverse));
    eighth.scale = scale.bits;
    return eighth;
}

/* `count` elements at `piece`. Returns, to lane i, the bits of the scale of group i. A warp. */
template <int DTYPE> EP_DEVICE wefti_u32 ep_quantise(unsigned char *piece, int count, bool is_ue8m0)
{
    wefti_u32 kept = 0;
    int group = 0;
    for (int base = 0; base < count; base += 32 * EP_EIGHT, group += 2) {
        const int at = base + ep_lane() * EP_EIGHT;
        const bool is = at < count;
        float values[EP_EIGHT] = {};
        if (is) {
            ep_widen_eight<DTYPE>(piece, at, values);
        }
        const ep_eighth eighth = ep_quantise_eight(values, is, is_ue8m0);
        __syncwarp(); /* all have been read that are written now */
        if (is) {
            *(uint2 *)(piece + at) = eighth.words;
        }
        const wefti_u32 low = __shfl_sync(~0u, eighth.scale, 0);
        const wefti_u32 high = __shfl_sync(~0u, eighth.scale, 16);
        kept = ep_lane() == group ? low : ep_lane() == group + 1 ? high : kept;
    }
    return kept;
}

EP_DEVICE wefti_u32 ep_quantise_as(int dtype, unsigned char *piece, int count, bool is_ue8m0)
{
    switch (dtype) {
    case WEFT_EP_BF16:
        return ep_quantise<WEFT_EP_BF16>(piece, count, is_ue8m0);
    case WEFT_EP_F16:
        return ep_quantise<WEFT_EP_F16>(piece, count, is_ue8m0);
    default:
        return ep_quantise<WEFT_EP_F32>(piece, count, is_ue8m0);
    }
}

/* The scales of groups `first` .. `end` - 1, of which lane i has the i-th, to the words at `to`; those of a row that ends
 * here with what fills its last word up. A warp. */
EP_DEVICE void ep_store_scales(wefti_u32 *to, wefti_u32 scale, int first, int end, bool is_ue8m0, bool ends)
{
    const int group = first + ep_lane();
    const int filled = ends && is_ue8m0 ? (end + 3) / 4 * 4 : end;
    if (group < filled && is_ue8m0) {
        ((unsigned char *)to)[group] = (unsigned char)(group < end ? scale >> 23 : 0);
    } else if (group < filled) {
        to[group] = scale;
    }
}

#endif
