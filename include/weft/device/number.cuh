/* weft/device/number.cuh: element types that C++ has no arithmetic for, as bits, and what they are in float.
 *
 * weft_bf16 (bfloat16), weft_fp16 (IEEE binary16), weft_e4m3 and weft_e5m2 (the two 8-bit formats of OCP: 4 bits of
 * exponent without infinities, largest 448; 5 bits with infinities, largest finite 57344). They have the layout of
 * CUDA's own types, so that a pointer to one may be cast. Rounding is to nearest, ties to even; the 8-bit formats
 * saturate at their largest finite number; a NaN stays one. */
#ifndef WEFTI_DEVICE_NUMBER_CUH
#define WEFTI_DEVICE_NUMBER_CUH

#include "weft/device/ptx.cuh"

/* Also for the host's side of a program that nvcc compiles, with the same results but for the sign of a NaN in
 * binary16, which a GPU drops. */
#if defined(WEFT_DEVICE_ON_HOST)
#define WEFTI_NUMBER inline
#else
#define WEFTI_NUMBER __host__ __device__ __forceinline__
#endif

typedef struct weft_bf16 {
    unsigned short bits;
} weft_bf16;
typedef struct weft_fp16 {
    unsigned short bits;
} weft_fp16;
typedef struct weft_e4m3 {
    unsigned char bits;
} weft_e4m3;
typedef struct weft_e5m2 {
    unsigned char bits;
} weft_e5m2;

WEFTI_NUMBER float wefti_float_of(wefti_u32 bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

WEFTI_NUMBER wefti_u32 wefti_bits_of(float value)
{
    wefti_u32 bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A small float of EXPONENT bits of exponent and MANTISSA bits of mantissa, without its sign; finite. */
template <int EXPONENT, int MANTISSA> WEFTI_NUMBER float wefti_small_widen(wefti_u32 bits)
{
    const int bias = (1 << (EXPONENT - 1)) - 1;
    if (bits >> MANTISSA == 0) { /* subnormal: a multiple of the least */
        return (float)bits * wefti_float_of((wefti_u32)(127 + 1 - bias - MANTISSA) << 23);
    }
    return wefti_float_of((bits << (23 - MANTISSA)) + ((wefti_u32)(127 - bias) << 23));
}

/* The nearest, of a float that is not negative and not a NaN; not limited: what is too large continues the
 * exponents. */
template <int EXPONENT, int MANTISSA> WEFTI_NUMBER wefti_u32 wefti_small_round(float value)
{
    const int bias = (1 << (EXPONENT - 1)) - 1;
    const wefti_u32 least = (wefti_u32)(127 - bias + 1) << 23; /* the least normal number, as a float */
    wefti_u32 bits = wefti_bits_of(value);
    if (bits < least) {
        /* Adding a power of two whose last place is the subnormals' step rounds to a multiple of that step. */
        const wefti_u32 anchor = (wefti_u32)(127 - bias + 1 + 23 - MANTISSA) << 23;
        return wefti_bits_of(value + wefti_float_of(anchor)) - anchor;
    }
    bits += ((wefti_u32)1 << (22 - MANTISSA)) - 1 + (bits >> (23 - MANTISSA) & 1);
    return (bits >> (23 - MANTISSA)) - ((wefti_u32)(127 - bias) << MANTISSA);
}

WEFTI_NUMBER float wefti_widen(weft_bf16 value)
{
    return wefti_float_of((wefti_u32)value.bits << 16);
}

WEFTI_NUMBER void wefti_round(float value, weft_bf16 *to)
{
#if defined(__CUDA_ARCH__)
    to->bits = wefti_bf16_round(value);
#else
    wefti_u32 bits = wefti_bits_of(value);
    bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    to->bits = (unsigned short)(is_nan ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
#endif
}

WEFTI_NUMBER float wefti_widen(weft_fp16 value)
{
#if defined(__CUDA_ARCH__)
    return wefti_fp16_widen(value.bits);
#else
    wefti_u32 rest = value.bits & 0x7fffu;
    wefti_u32 sign = (wefti_u32)(value.bits & 0x8000u) << 16;
    float magnitude =
        rest >= 0x7c00u ? wefti_float_of(0x7f800000u | (rest & 0x3ffu) << 13) : wefti_small_widen<5, 10>(rest);
    return wefti_float_of(wefti_bits_of(magnitude) | sign);
#endif
}

WEFTI_NUMBER void wefti_round(float value, weft_fp16 *to)
{
#if defined(__CUDA_ARCH__)
    to->bits = wefti_fp16_round(value);
#else
    wefti_u32 bits = wefti_bits_of(value);
    wefti_u32 rest = bits & 0x7fffffffu;
    wefti_u32 rounded = rest > 0x7f800000u ? 0x7fffu : wefti_small_round<5, 10>(wefti_float_of(rest));
    rounded = rounded > 0x7c00u && rest <= 0x7f800000u ? 0x7c00u : rounded;
    to->bits = (unsigned short)(rounded | (bits >> 16 & 0x8000u));
#endif
}

WEFTI_NUMBER float wefti_widen(weft_e4m3 value)
{
    wefti_u32 rest = value.bits & 0x7fu;
    float magnitude = rest == 0x7fu ? wefti_float_of(0x7fc00000u) : wefti_small_widen<4, 3>(rest);
    return wefti_float_of(wefti_bits_of(magnitude) | (wefti_u32)(value.bits & 0x80u) << 24);
}

WEFTI_NUMBER void wefti_round(float value, weft_e4m3 *to)
{
    wefti_u32 bits = wefti_bits_of(value);
    wefti_u32 rest = bits & 0x7fffffffu;
    wefti_u32 rounded = rest >= 0x43e00000u ? 0x7eu : wefti_small_round<4, 3>(wefti_float_of(rest)); /* 448 */
    to->bits = (unsigned char)((rest > 0x7f800000u ? 0x7fu : rounded) | (bits >> 24 & 0x80u));
}

WEFTI_NUMBER float wefti_widen(weft_e5m2 value)
{
    wefti_u32 rest = value.bits & 0x7fu;
    wefti_u32 sign = (wefti_u32)(value.bits & 0x80u) << 24;
    float magnitude = rest >= 0x7cu ? wefti_float_of(0x7f800000u | (rest & 3u) << 21) : wefti_small_widen<5, 2>(rest);
    return wefti_float_of(wefti_bits_of(magnitude) | sign);
}

WEFTI_NUMBER void wefti_round(float value, weft_e5m2 *to)
{
    wefti_u32 bits = wefti_bits_of(value);
    wefti_u32 rest = bits & 0x7fffffffu;
    wefti_u32 rounded = rest >= 0x47600000u ? 0x7bu : wefti_small_round<5, 2>(wefti_float_of(rest)); /* 57344 */
    to->bits = (unsigned char)((rest > 0x7f800000u ? 0x7fu : rounded) | (bits >> 24 & 0x80u));
}

#endif
