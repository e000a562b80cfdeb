/* cuda/ep/device/quantise.cuh: a piece of a row, in shared memory, becomes fp8 where it lies, as protocol/fp8.h says;
 * its scales are stored to the area of each rank that the token goes to. GROUP: elements of a scale, WEFTI_FP8_GROUP or
 * WEFTI_FP8_GROUP_MX. A piece holds whole groups of 128, at most 32; sixteen lanes take one, or four a group of 32. */
#ifndef WEFTI_CUDA_EP_DEVICE_QUANTISE_CUH
#define WEFTI_CUDA_EP_DEVICE_QUANTISE_CUH

#include <float.h>

#include "cuda/ep/device/arithmetic.cuh"
#include "weft/protocol/fp8.h"

#define EP_EIGHT 8 /* elements of a lane */
#define EP_STEPS 4 /* of a warp at a time, each of 32 times as many */
#define EP_STEP (32 * EP_EIGHT)

/* A lane's elements of so many steps, as they lie. */
template <int DTYPE> struct ep_raw {
    enum { PER_VECTOR = ep_type<DTYPE>::ELEMENTS, VECTORS = EP_EIGHT / PER_VECTOR };
    uint4 vectors[EP_STEPS][VECTORS];
};

/* Those from number `at` on, of `end`. Loads have no condition, as in ep_include: from `end` on they repeat the last
 * eight, which changes the amax of no group. */
template <int DTYPE> EP_DEVICE void ep_load_steps(const unsigned char *elements, int at, int end, ep_raw<DTYPE> *raw)
{
#pragma unroll
    for (int i = 0; i < EP_STEPS; i++) {
        const int here = at + i * EP_STEP < end ? at + i * EP_STEP : end - EP_EIGHT;
#pragma unroll
        for (int v = 0; v < ep_raw<DTYPE>::VECTORS; v++) {
            raw->vectors[i][v] = ((const uint4 *)elements)[(unsigned)here / ep_raw<DTYPE>::PER_VECTOR + v];
        }
    }
}

template <int DTYPE> EP_DEVICE void ep_widen_steps(const ep_raw<DTYPE> &raw, float (*values)[EP_EIGHT])
{
#pragma unroll
    for (int i = 0; i < EP_STEPS; i++) {
#pragma unroll
        for (int v = 0; v < ep_raw<DTYPE>::VECTORS; v++) {
            ep_type<DTYPE>::widen(raw.vectors[i][v], values[i] + v * ep_raw<DTYPE>::PER_VECTOR);
        }
    }
}

/* GROUP / EP_EIGHT lanes have a group a step, and lane i of them, in what follows, that of step i % EP_STEPS, so that
 * the groups of all steps have their scales computed at once. */

/* The number of that group, where lane 0 has number 0 in the first step. */
template <int GROUP> EP_DEVICE int ep_group_of_lane()
{
    return ep_lane() % EP_STEPS * (EP_STEP / GROUP) + ep_lane() * EP_EIGHT / GROUP;
}

/* Whether this lane is the first that has it. */
template <int GROUP> EP_DEVICE bool ep_has_group_first()
{
    return ep_lane() * EP_EIGHT % GROUP < EP_STEPS * EP_EIGHT;
}

/* The first lane that has a group. */
template <int GROUP> EP_DEVICE int ep_lane_of_group(int group)
{
    enum { GROUPS = EP_STEP / GROUP };
    return group % GROUPS * (32 / GROUPS) + group / GROUPS;
}

/* The largest magnitude (amax) of a group. Called by a warp. */
template <int GROUP> EP_DEVICE float ep_amax(const float (*values)[EP_EIGHT])
{
    float amax[EP_STEPS];
#pragma unroll
    for (int i = 0; i < EP_STEPS; i++) {
        amax[i] = WEFTI_FP8_AMAX_LEAST;
#pragma unroll
        for (int j = 0; j < EP_EIGHT; j++) {
            amax[i] = ep_amax_with(amax[i], values[i][j]);
        }
    }
#pragma unroll
    for (int half = EP_STEPS / 2; half > 0; half /= 2) { /* of the steps left this lane keeps one half */
        const bool upper = (ep_lane() & half) != 0;
#pragma unroll
        for (int i = 0; i < half; i++) {
            const float held = upper ? amax[i + half] : amax[i];
            const float given = upper ? amax[i] : amax[i + half];
            amax[i] = fmaxf(held, __shfl_xor_sync(~0u, given, half));
        }
    }
#pragma unroll
    for (int step = EP_STEPS; step < GROUP / EP_EIGHT; step *= 2) {
        amax[0] = fmaxf(amax[0], __shfl_xor_sync(~0u, amax[0], step));
    }
    return fminf(amax[0], FLT_MAX);
}

/* The eight elements of each step as fp8, and the bits of the scale of the lane's group. */
typedef struct ep_quantised {
    uint2 words[EP_STEPS];
    wefti_u32 scale;
} ep_quantised;

/* Quantise the groups of a step. Called by a warp. */
template <int GROUP> EP_DEVICE ep_quantised ep_quantise_steps(const float (*values)[EP_EIGHT], bool rounds_up)
{
    const float amax = ep_amax<GROUP>(values);
    wefti_fp8_scale scale = wefti_fp8_scale_by(amax, ep_reciprocal(amax * WEFTI_FP8_SCALED));
    scale = rounds_up ? wefti_fp8_scale_up(scale) : scale;
    ep_quantised made;
    made.scale = scale.bits;
#pragma unroll
    for (int i = 0; i < EP_STEPS; i++) {
        const float inverse = __shfl_sync(~0u, scale.inverse, (ep_lane() & ~(EP_STEPS - 1)) + i);
        float products[EP_EIGHT];
#pragma unroll
        for (int j = 0; j < EP_EIGHT; j++) {
            products[j] = __fmul_rn(values[i][j], inverse);
        }
        made.words[i] = make_uint2(ep_fp8_four(products), ep_fp8_four(products + 4));
    }
    return made;
}

/* The word of lane i's scales, MXFP8, of those that were made of the elements from `base` on, of `count`; the lanes of
 * one of the EP_STEPS * EP_STEP / 128 words have it. A warp. */
EP_DEVICE wefti_u32 ep_mx_word(wefti_u32 scale, int base, int count)
{
    enum { WORDS = EP_STEPS * EP_STEP / WEFTI_FP8_GROUP };
    wefti_u32 word = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int group = ep_lane() % WORDS * 4 + i;
        const wefti_u32 bits = __shfl_sync(~0u, scale, ep_lane_of_group<WEFTI_FP8_GROUP_MX>(group));
        word |= base + group * WEFTI_FP8_GROUP_MX < count ? bits >> 23 << 8 * i : 0u;
    }
    return word;
}

/* `count` elements at `piece`. Returns, to lane i, the bits of the scale of group i; of groups of 32, the i-th word of
 * four scales. A warp. */
template <int DTYPE, int GROUP> EP_DEVICE wefti_u32 ep_quantise(unsigned char *piece, int count, bool rounds_up)
{
    enum { GROUPS = EP_STEPS * EP_STEP / WEFTI_FP8_GROUP };
    wefti_u32 held = 0;
    for (int base = 0; base < count; base += EP_STEPS * EP_STEP) {
        const int at = base + ep_lane() * EP_EIGHT;
        ep_raw<DTYPE> raw;
        float values[EP_STEPS][EP_EIGHT];
        ep_load_steps<DTYPE>(piece, at, count, &raw);
        ep_widen_steps<DTYPE>(raw, values);
        const ep_quantised made = ep_quantise_steps<GROUP>(values, rounds_up);
        __syncwarp(); /* all have been read that are written now */
#pragma unroll
        for (int i = 0; i < EP_STEPS; i++) {
            if (at + i * EP_STEP < count) {
                *(uint2 *)(piece + at + i * EP_STEP) = made.words[i];
            }
        }
        wefti_u32 scale;
        if constexpr (GROUP == WEFTI_FP8_GROUP) {
            scale = __shfl_sync(~0u, made.scale, ep_lane_of_group<GROUP>(ep_lane() % GROUPS));
        } else {
            scale = ep_mx_word(made.scale, base, count);
        }
        held = ep_lane() / GROUPS == base / WEFTI_FP8_GROUP / GROUPS ? scale : held;
    }
    return held;
}

template <int GROUP> EP_DEVICE wefti_u32 ep_quantise_as(int dtype, unsigned char *piece, int count, bool rounds_up)
{
    switch (dtype) {
    case WEFT_EP_BF16:
        return ep_quantise<WEFT_EP_BF16, GROUP>(piece, count, rounds_up);
    case WEFT_EP_F16:
        return ep_quantise<WEFT_EP_F16, GROUP>(piece, count, rounds_up);
    default:
        return ep_quantise<WEFT_EP_F32, GROUP>(piece, count, rounds_up);
    }
}

/* The scales of groups `first` .. `end` - 1 of 128 elements, of which lane i has the i-th, to the words at `to`; those
 * of a row that ends here with what fills its last word up. Of groups of 32 a lane has a word, and that is full. A
 * warp. */
template <int GROUP>
EP_DEVICE void ep_store_scales(wefti_u32 *to, wefti_u32 scale, int first, int end, bool is_ue8m0, bool ends)
{
    const bool is_byte = GROUP == WEFTI_FP8_GROUP && is_ue8m0;
    const int group = first + ep_lane();
    const int filled = ends && is_byte ? (end + 3) / 4 * 4 : end;
    if (group < filled && is_byte) {
        ((unsigned char *)to)[group] = (unsigned char)(group < end ? scale >> 23 : 0);
    } else if (group < filled) {
        to[group] = scale;
    }
}

#endif
