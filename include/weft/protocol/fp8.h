/* protocol/fp8.h: fp8 e4m3 as bits, and how rows are quantised to it, the same on every backend.
 *
 * e4m3: sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, 0x7f and 0xff are NaN, the largest is 448
 * and the smallest above zero 2^-9.
 *
 * A row is quantised in groups of 128 elements, the last perhaps shorter, each with a scale of its own. All in float32,
 * each operation rounded to nearest even, over the elements x of a group:
 *
 *     amax = min(max(1e-4, |x| ...), FLT_MAX), where a NaN is not looked at
 *     WEFT_EP_SCALE_F32     scale = amax / 448                                inverse = 448 / amax
 *     WEFT_EP_SCALE_UE8M0   scale = the least power of two >= amax / 448      inverse = 1 / scale
 *                           (likewise WEFT_EP_SCALE_F32_POW2, and WEFT_EP_SCALE_UE8M0_32, in groups of 32)
 *     q = the nearest e4m3 of x * inverse, ties to even, magnitudes beyond 448 to 448; of a NaN 0x7f
 *
 * so that x is about q * scale. A ue8m0 scale is kept as the byte b of 2^(b - 127). */
#ifndef WEFTI_PROTOCOL_FP8_H
#define WEFTI_PROTOCOL_FP8_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define WEFTI_FP8_FN static inline __host__ __device__
#else
#define WEFTI_FP8_FN static inline
#endif

#define WEFTI_FP8_GROUP 128 /* elements of a scale */
#define WEFTI_FP8_GROUP_MX 32 /* the same of MXFP8 */
#define WEFTI_FP8_NAN 0x7fu
#define WEFTI_FP8_MAX 448.0f
#define WEFTI_FP8_AMAX_LEAST 1e-4f
#define WEFTI_FP8_SCALED 5.421010862427522e-20f /* 2^-64: amax times this has a reciprocal that is not subnormal */

#ifdef __cplusplus
extern "C" {
#endif

/* q of an element. */
WEFTI_FP8_FN uint8_t wefti_fp8_quantise(float value, float inverse)
{
    float product = value * inverse;
    uint32_t bits;
    memcpy(&bits, &product, sizeof bits);
    uint32_t sign = bits >> 24 & 0x80u;
    uint32_t exact = bits & 0x7fffffffu;
    uint32_t magnitude = exact > 0x43e00000u ? 0x43e00000u : exact; /* 448 */
    uint32_t normal = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
    /* Below 2^-6: in [2^14, 2^15) floats are 2^-9 apart, as e4m3 is there, so the addition rounds. */
    float small;
    memcpy(&small, &magnitude, sizeof small);
    small += 16384.0f;
    uint32_t small_bits;
    memcpy(&small_bits, &small, sizeof small_bits);
    uint32_t rounded = magnitude < 0x3c800000u ? small_bits - 0x46800000u : normal;
    return (uint8_t)(exact > 0x7f800000u ? WEFTI_FP8_NAN : rounded | sign);
}

/* amax of a group with one element more; begin with WEFTI_FP8_AMAX_LEAST. Any order gives the same. */
WEFTI_FP8_FN float wefti_fp8_amax(float amax, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0x7fffffffu;
    uint32_t finite = bits == 0x7f800000u ? 0x7f7fffffu : bits;
    float magnitude;
    memcpy(&magnitude, &finite, sizeof magnitude);
    return magnitude > amax ? magnitude : amax;
}

/* A group's scale: its bits as a float32, and what elements are multiplied by. */
typedef struct wefti_fp8_scale {
    uint32_t bits;
    float inverse;
} wefti_fp8_scale;

WEFTI_FP8_FN wefti_fp8_scale wefti_fp8_scale_f32(float amax)
{
    wefti_fp8_scale scale;
    float value = amax / WEFTI_FP8_MAX;
    memcpy(&scale.bits, &value, sizeof scale.bits);
    scale.inverse = WEFTI_FP8_MAX / amax;
    return scale;
}

/* The same bits without a division, from the reciprocal of amax * WEFTI_FP8_SCALED, which may be wrong by two units in
 * the last place: each quotient is corrected by what it leaves, of which fmaf loses nothing. */
WEFTI_FP8_FN wefti_fp8_scale wefti_fp8_scale_by(float amax, float reciprocal)
{
    const float each = 1.0f / WEFTI_FP8_MAX;
    float scaled = amax * WEFTI_FP8_SCALED;
    float value = amax * each;
    value = fmaf(fmaf(-WEFTI_FP8_MAX, value, amax), each, value);
    reciprocal = fmaf(fmaf(-scaled, reciprocal, 1.0f), reciprocal, reciprocal);
    float inverse = WEFTI_FP8_MAX * reciprocal;
    inverse = fmaf(fmaf(-scaled, inverse, WEFTI_FP8_MAX), reciprocal, inverse);
    wefti_fp8_scale scale;
    memcpy(&scale.bits, &value, sizeof scale.bits);
    scale.inverse = inverse * WEFTI_FP8_SCALED;
    return scale;
}

/* A scale rounded up to a power of two: its byte is bits >> 23. */
WEFTI_FP8_FN wefti_fp8_scale wefti_fp8_scale_up(wefti_fp8_scale scale)
{
    scale.bits = (scale.bits + 0x7fffffu) & 0x7f800000u;
    uint32_t inverse = (254u << 23) - scale.bits;
    memcpy(&scale.inverse, &inverse, sizeof scale.inverse);
    return scale;
}

WEFTI_FP8_FN wefti_fp8_scale wefti_fp8_scale_ue8m0(float amax)
{
    return wefti_fp8_scale_up(wefti_fp8_scale_f32(amax));
}

/* The scales of a row, and the 4-byte words they take. */
WEFTI_FP8_FN size_t wefti_fp8_groups(size_t hidden)
{
    return (hidden + WEFTI_FP8_GROUP - 1) / WEFTI_FP8_GROUP;
}

WEFTI_FP8_FN size_t wefti_fp8_scale_words(size_t hidden, int is_ue8m0)
{
    size_t groups = wefti_fp8_groups(hidden);
    return is_ue8m0 ? (groups + 3) / 4 : groups;
}

#ifdef __cplusplus
}
#endif
#endif
