/* One body for all types and operations, inlined with both constant; a chunk of the accumulator stays in registers or
 * the first cache while the rows are read once each. On x86 each function is compiled for several machines and the
 * loader chooses; the bits are the same, because every operation is exact IEEE float32. */
#include "ep/host/arithmetic.h"

/* No value depends on it; without it, the selects of float16 and fp8 are not vectorised. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

#include <math.h>
#include <string.h>

#include "ep/check.h"
#include "weft/protocol/bf16.h"
#include "weft/protocol/dot.h"
#include "weft/protocol/f16.h"
#include "weft/protocol/fp8.h"

#define CHUNK 64 /* elements */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define FOR_MACHINES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_MACHINES
#endif
#define INLINE static inline __attribute__((always_inline))

typedef enum operation { ADD, ADD_SCALED, FUSE } operation;

INLINE float element(weft_ep_dtype dtype, const void *row, size_t at)
{
    switch (dtype) {
    case WEFT_EP_F32:
        return ((const float *)row)[at];
    case WEFT_EP_BF16:
        return wefti_bf16_widen(((const uint16_t *)row)[at]);
    default:
        return wefti_f16_widen(((const uint16_t *)row)[at]);
    }
}

INLINE void store(weft_ep_dtype dtype, void *out, size_t at, float value)
{
    switch (dtype) {
    case WEFT_EP_F32:
        ((float *)out)[at] = value;
        break;
    case WEFT_EP_BF16:
        ((uint16_t *)out)[at] = wefti_bf16_round(value);
        break;
    default:
        ((uint16_t *)out)[at] = wefti_f16_round(value);
    }
}

/* Round to the nearest value of bf16 or fp16. */
INLINE float nearest(weft_ep_dtype dtype, float value)
{
    return dtype == WEFT_EP_BF16 ? wefti_bf16_nearest(value) : wefti_f16_nearest(value);
}

/* One row's part in one element of the sum. */
INLINE float include(weft_ep_dtype dtype, operation op, float sum, const void *row, float weight, size_t at)
{
    float value = element(dtype, row, at);
    switch (op) {
    case ADD:
        return sum + value;
    case ADD_SCALED:
        return sum + nearest(dtype, value * weight);
    default:
        return fmaf(weight, value, sum);
    }
}

/* `count`, a constant of 1, 2 or 4, rows at once, so that each element of the sum is loaded and stored once for
 * them. */
INLINE void include_rows(weft_ep_dtype dtype, operation op, float *sum, const void *const *rows, const float *weights,
                         size_t count, size_t at, size_t n)
{
    float weight[4] = {0};
    for (size_t j = 0; j < count && op != ADD; j++) {
        weight[j] = weights[j];
    }
    for (size_t i = 0; i < n; i++) {
        float here = include(dtype, op, sum[i], rows[0], weight[0], at + i);
        here = count > 1 ? include(dtype, op, here, rows[1], weight[1], at + i) : here;
        here = count > 2 ? include(dtype, op, here, rows[2], weight[2], at + i) : here;
        sum[i] = count > 2 ? include(dtype, op, here, rows[3], weight[3], at + i) : here;
    }
}

/* ADD_SCALED in float32, by way of memory, lest a compiler fuse products and additions. */
INLINE void include_products(float *sum, const float *row, float weight, size_t n)
{
    _Alignas(64) float products[CHUNK];
    for (size_t i = 0; i < n; i++) {
        products[i] = row[i] * weight;
    }
    __asm__ volatile("" : : "r"(products) : "memory");
    for (size_t i = 0; i < n; i++) {
        sum[i] += products[i];
    }
}

/* The weights from row j on; there are none where rows are added as they are. */
INLINE const float *weights_from(operation op, const float *weights, size_t j)
{
    return op != ADD ? weights + j : NULL;
}

INLINE void fold_chunk(weft_ep_dtype dtype, weft_ep_dtype to, operation op, void *out, const void *const *rows,
                       const float *weights, size_t count, size_t at, size_t n)
{
    _Alignas(64) float sum[CHUNK];
    size_t j = 0;
    memset(sum, 0, sizeof sum);
    if (dtype == WEFT_EP_F32 && op == ADD_SCALED) {
        for (; j < count; j++) {
            include_products(sum, (const float *)rows[j] + at, weights[j], n);
        }
    } else {
        for (; j + 4 <= count; j += 4) {
            include_rows(dtype, op, sum, rows + j, weights_from(op, weights, j), 4, at, n);
        }
        if ((count & 2) != 0) {
            include_rows(dtype, op, sum, rows + j, weights_from(op, weights, j), 2, at, n);
            j += 2;
        }
        if ((count & 1) != 0) {
            include_rows(dtype, op, sum, rows + j, weights_from(op, weights, j), 1, at, n);
        }
    }
    for (size_t i = 0; i < n; i++) {
        store(to, out, at + i, sum[i]);
    }
}

/* Rows are multiples of 16 bytes. */
INLINE void fold(weft_ep_dtype dtype, weft_ep_dtype to, operation op, void *out, const void *const *rows,
                 const float *weights, size_t count, size_t elements)
{
    size_t grain = dtype == WEFT_EP_F32 ? 4 : 8;
    size_t at = 0;
    for (; at + CHUNK <= elements; at += CHUNK) {
        fold_chunk(dtype, to, op, out, rows, weights, count, at, CHUNK);
    }
    for (; at + grain <= elements; at += grain) {
        fold_chunk(dtype, to, op, out, rows, weights, count, at, grain);
    }
}

INLINE void scale_row(weft_ep_dtype dtype, void *out, const void *row, float weight, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        store(dtype, out, i, weight * element(dtype, row, i));
    }
}

INLINE void round_row(weft_ep_dtype dtype, void *out, const float *row, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        store(dtype, out, i, row[i]);
    }
}

INLINE float dot_rows(weft_ep_dtype dtype, const void *x, const void *y, size_t elements)
{
    _Alignas(64) float sum[WEFTI_DOT_LANES];
    size_t at = 0;
    memset(sum, 0, sizeof sum);
    for (; at + WEFTI_DOT_LANES <= elements; at += WEFTI_DOT_LANES) {
        for (size_t i = 0; i < WEFTI_DOT_LANES; i++) {
            sum[i] = fmaf(element(dtype, x, at + i), element(dtype, y, at + i), sum[i]);
        }
    }
    for (size_t i = 0; at + i < elements; i++) {
        sum[i] = fmaf(element(dtype, x, at + i), element(dtype, y, at + i), sum[i]);
    }
    return wefti_dot_sum(sum);
}

INLINE wefti_fp8_scale quantise_group(weft_ep_dtype dtype, uint8_t *out, const void *row, size_t at, size_t n,
                                      int rounds_up)
{
    float amax = WEFTI_FP8_AMAX_LEAST;
    for (size_t i = 0; i < n; i++) {
        amax = wefti_fp8_amax(amax, element(dtype, row, at + i));
    }
    wefti_fp8_scale scale = rounds_up ? wefti_fp8_scale_ue8m0(amax) : wefti_fp8_scale_f32(amax);
    for (size_t i = 0; i < n; i++) {
        out[at + i] = wefti_fp8_quantise(element(dtype, row, at + i), scale.inverse);
    }
    return scale;
}

INLINE void quantise_row(weft_ep_dtype dtype, uint8_t *out, uint32_t *scales, const void *row, size_t elements,
                         weft_ep_scale_type type)
{
    int rounds_up = wefti_ep_rounds_scales_up(type);
    size_t each = type == WEFT_EP_SCALE_UE8M0_32 ? WEFTI_FP8_GROUP_MX : WEFTI_FP8_GROUP;
    size_t groups = (elements + each - 1) / each;
    memset(scales, 0, wefti_fp8_scale_words(elements, type == WEFT_EP_SCALE_UE8M0) * sizeof *scales);
    for (size_t group = 0; group < groups; group++) {
        size_t at = group * each;
        size_t n = elements - at < each ? elements - at : each;
        wefti_fp8_scale scale = n == WEFTI_FP8_GROUP ? quantise_group(dtype, out, row, at, WEFTI_FP8_GROUP, rounds_up)
                                : n == WEFTI_FP8_GROUP_MX
                                    ? quantise_group(dtype, out, row, at, WEFTI_FP8_GROUP_MX, rounds_up)
                                    : quantise_group(dtype, out, row, at, n, rounds_up);
        if (wefti_ep_has_byte_scales(type)) {
            scales[group / 4] |= scale.bits >> 23 << (8 * (group % 4));
        } else {
            scales[group] = scale.bits;
        }
    }
}

#define DEFINE_ARITHMETIC(name, dtype)                                                                                 \
    FOR_MACHINES static void name##_add(void *out, const void *const *rows, size_t count, size_t elements)             \
    {                                                                                                                  \
        fold(dtype, dtype, ADD, out, rows, NULL, count, elements);                                                     \
    }                                                                                                                  \
    FOR_MACHINES static void name##_add_scaled(void *out, const void *const *rows, const float *weights, size_t count, \
                                               size_t elements)                                                        \
    {                                                                                                                  \
        fold(dtype, dtype, ADD_SCALED, out, rows, weights, count, elements);                                           \
    }                                                                                                                  \
    FOR_MACHINES static void name##_fuse(void *out, const void *const *rows, const float *weights, size_t count,       \
                                         size_t elements)                                                              \
    {                                                                                                                  \
        fold(dtype, dtype, FUSE, out, rows, weights, count, elements);                                                 \
    }                                                                                                                  \
    FOR_MACHINES static void name##_add_to_f32(float *out, const void *const *rows, size_t count, size_t elements)     \
    {                                                                                                                  \
        fold(dtype, WEFT_EP_F32, ADD, out, rows, NULL, count, elements);                                               \
    }                                                                                                                  \
    FOR_MACHINES static void name##_add_scaled_to_f32(float *out, const void *const *rows, const float *weights,       \
                                                      size_t count, size_t elements)                                   \
    {                                                                                                                  \
        fold(dtype, WEFT_EP_F32, ADD_SCALED, out, rows, weights, count, elements);                                     \
    }                                                                                                                  \
    FOR_MACHINES static void name##_round(void *out, const float *row, size_t elements)                                \
    {                                                                                                                  \
        round_row(dtype, out, row, elements);                                                                          \
    }                                                                                                                  \
    FOR_MACHINES static void name##_scale(void *out, const void *row, float weight, size_t elements)                   \
    {                                                                                                                  \
        scale_row(dtype, out, row, weight, elements);                                                                  \
    }                                                                                                                  \
    FOR_MACHINES static float name##_dot(const void *x, const void *y, size_t elements)                                \
    {                                                                                                                  \
        return dot_rows(dtype, x, y, elements);                                                                        \
    }                                                                                                                  \
    FOR_MACHINES static void name##_quantise(uint8_t *out, uint32_t *scales, const void *row, size_t elements,         \
                                             weft_ep_scale_type type)                                                  \
    {                                                                                                                  \
        quantise_row(dtype, out, scales, row, elements, type);                                                         \
    }                                                                                                                  \
    static const wefti_ep_arithmetic name##_arithmetic = {                                                             \
        .add = name##_add,                                                                                             \
        .add_scaled = name##_add_scaled,                                                                               \
        .fuse = name##_fuse,                                                                                           \
        .add_to_f32 = name##_add_to_f32,                                                                               \
        .add_scaled_to_f32 = name##_add_scaled_to_f32,                                                                 \
        .round = name##_round,                                                                                         \
        .scale = name##_scale,                                                                                         \
        .dot = name##_dot,                                                                                             \
        .quantise = name##_quantise,                                                                                   \
    };

DEFINE_ARITHMETIC(f32, WEFT_EP_F32)
DEFINE_ARITHMETIC(bf16, WEFT_EP_BF16)
DEFINE_ARITHMETIC(f16, WEFT_EP_F16)
#undef DEFINE_ARITHMETIC

const wefti_ep_arithmetic *wefti_ep_arithmetic_of(weft_ep_dtype dtype)
{
    switch (dtype) {
    case WEFT_EP_F32:
        return &f32_arithmetic;
    case WEFT_EP_BF16:
        return &bf16_arithmetic;
    case WEFT_EP_F16:
        return &f16_arithmetic;
    default:
        return NULL;
    }
}
