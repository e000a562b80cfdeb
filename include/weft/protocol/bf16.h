/* protocol/bf16.h: bfloat16 as bits, the same on every backend.
 *
 * Rounding is to nearest, ties to even. Every NaN becomes WEFTI_BF16_NAN, as GPUs round it, so that results do not
 * depend on who computes them. Written with integer operations that vectorise. */
#ifndef WEFTI_PROTOCOL_BF16_H
#define WEFTI_PROTOCOL_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define WEFTI_BF16_FN static inline __host__ __device__
#else
#define WEFTI_BF16_FN static inline
#endif

#define WEFTI_BF16_NAN 0x7fffu

#ifdef __cplusplus
extern "C" {
#endif

WEFTI_BF16_FN float wefti_bf16_widen(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* The nearest bfloat16, as a float. */
WEFTI_BF16_FN float wefti_bf16_nearest(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    rounded = is_nan ? WEFTI_BF16_NAN << 16 : rounded;
    memcpy(&value, &rounded, sizeof value);
    return value;
}

/* The same, as bits. */
WEFTI_BF16_FN uint16_t wefti_bf16_round(float value)
{
    float nearest = wefti_bf16_nearest(value);
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    return (uint16_t)(bits >> 16);
}

#ifdef __cplusplus
}
#endif
#endif
