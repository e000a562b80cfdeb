/* protocol/f16.h: IEEE float16 as bits, the same on every backend.
 *
 * Rounding is to nearest, ties to even; beyond 65504 to infinity. Every NaN becomes WEFTI_F16_NAN, as GPUs round it.
 * Integer operations and exact float32 ones on normal numbers only, so that neither a compiler's contraction nor a
 * GPU's flushing of denormals changes a bit; they vectorise. */
#ifndef WEFTI_PROTOCOL_F16_H
#define WEFTI_PROTOCOL_F16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define WEFTI_F16_FN static inline __host__ __device__
#else
#define WEFTI_F16_FN static inline
#endif

#define WEFTI_F16_NAN 0x7fffu

#ifdef __cplusplus
extern "C" {
#endif

WEFTI_F16_FN float wefti_f16_widen(uint16_t value)
{
    uint32_t magnitude = value & 0x7fffu;
    uint32_t sign = (uint32_t)(value & 0x8000u) << 16;
    uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u; /* infinity and NaN */
    uint32_t normal = ((magnitude << 13) + (112u << 23)) | special;
    float small = (float)(int32_t)magnitude * 5.9604644775390625e-8f; /* of a magnitude below 2^-14, exact */
    uint32_t small_bits;
    memcpy(&small_bits, &small, sizeof small_bits);
    uint32_t bits = (magnitude < 0x0400u ? small_bits : normal) | sign;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

WEFTI_F16_FN uint16_t wefti_f16_round(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - (112u << 10);
    normal = magnitude >= 0x47800000u || normal > 0x7c00u ? 0x7c00u : normal;
    /* Below 2^-14: in [0.5, 1) floats are 2^-24 apart, as float16 is there, so the addition rounds. */
    float small;
    memcpy(&small, &magnitude, sizeof small);
    small += 0.5f;
    uint32_t small_bits;
    memcpy(&small_bits, &small, sizeof small_bits);
    uint32_t rounded = magnitude < 0x38800000u ? small_bits - 0x3f000000u : normal;
    return (uint16_t)(magnitude > 0x7f800000u ? WEFTI_F16_NAN : rounded | sign);
}

/* The nearest float16, as a float. */
WEFTI_F16_FN float wefti_f16_nearest(float value)
{
    return wefti_f16_widen(wefti_f16_round(value));
}

#ifdef __cplusplus
}
#endif
#endif
