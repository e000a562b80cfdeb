/* One body for all types and operations, inlined with both constant; a chunk of the accumulator stays in registers or the
 * first cache while the rows are read once each. On x86 each function is compiled for several machines and the loader
 * chooses; the bits are the same, because every operation is exact IEEE float32. */
#include "ep/host/arithmetic.h"

#include <math.h>
#include <string.h>

#include "weft/protocol/bf16.h"

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
    return dtype == WEFT_EP_F32 ? ((const float *)row)[at] : wefti_bf16_widen(((const uint16_t *)row)[at]);
}

INLINE void store(weft_ep_dtype dtype, void *out, size_t at, float value)
{
    if (dtype == WEFT_EP_F32) {
        ((float *)out)[at] = value;
    } else {
        ((uint16_t *)out)[at] = wefti_bf16_round(value);
    }
}

/* One row's part in one element of the sum. */
INLINE float include(weft_ep_dtype dtype, operation op, float sum, const void *row, float weight, size_t at)
{
    float value = element(dtype, row, at);
    switch (op) {
    case ADD:
        return sum + value;
    case ADD_SCALED:
        return sum + wefti_bf16_nearest(value * weight);
    default:
        return fmaf(weight, value, sum);
    }
}

/* `count`, a constant of 1, 2 or 4, rows at once, so that each element of the sum is loaded and stored once for them. */
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

INLINE void fold_chunk(weft_ep_dtype dtype, operation op, void *out, const void *const *rows, const float *weights,
                       size_t count, size_t at, size_t n)
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
            include_rows(dtype, op, sum, rows + j, weights + j, 4, at, n);
        }
        if ((count & 2) != 0) {
            include_rows(dtype, op, sum, rows + j, weights + j, 2, at, n);
            j += 2;
        }
        if ((count & 1) != 0) {
            include_rows(dtype, op, sum, rows + j, weights + j, 1, at, n);
        }
    }
    for (size_t i = 0; i < n; i++) {
        store(dtype, out, at + i, sum[i]);
    }
}

/* Rows are multiples of 16 bytes. */
INLINE void fold(weft_ep_dtype dtype, operation op, void *out, const void *const *rows, const float *weights,
                 size_t count, size_t elements)
{
    size_t grain = dtype == WEFT_EP_F32 ? 4 : 8;
    size_t at = 0;
    for (; at + CHUNK <= elements; at += CHUNK) {
        fold_chunk(dtype, op, out, rows, weights, count, at, CHUNK);
    }
    for (; at + grain <= elements; at += grain) {
        fold_chunk(dtype, op, out, rows, weights, count, at, grain);
    }
}

#define DEFINE_ARITHMETIC(name, dtype)                                                                                 \
    FOR_MACHINES static void name##_add(void *out, const void *const *rows, size_t count, size_t elements)             \
    {                                                                                                                  \
        fold(dtype, ADD, out, rows, NULL, count, elements);                                                            \
    }                                                                                                                  \
    FOR_MACHINES static void name##_add_scaled(void *out, const void *const *rows, const float *weights, size_t count, \
                                               size_t elements)                                                        \
    {                                                                                                                  \
        fold(dtype, ADD_SCALED, out, rows, weights, count, elements);                                                  \
    }                                                                                                                  \
    FOR_MACHINES static void name##_fuse(void *out, const void *const *rows, const float *weights, size_t count,       \
                                         size_t elements)                                                              \
    {                                                                                                                  \
        fold(dtype, FUSE, out, rows, weights, count, elements);                                                        \
    }                                                                                                                  \
    static const wefti_ep_arithmetic name##_arithmetic = {                                                             \
        .element_bytes = dtype == WEFT_EP_F32 ? 4 : 2,                                                                 \
        .add = name##_add,                                                                                             \
        .add_scaled = name##_add_scaled,                                                                               \
        .fuse = name##_fuse,                                                                                           \
    };

DEFINE_ARITHMETIC(f32, WEFT_EP_F32)
DEFINE_ARITHMETIC(bf16, WEFT_EP_BF16)
#undef DEFINE_ARITHMETIC

const wefti_ep_arithmetic *wefti_ep_arithmetic_of(weft_ep_dtype dtype)
{
    switch (dtype) {
    case WEFT_EP_F32:
        return &f32_arithmetic;
    case WEFT_EP_BF16:
        return &bf16_arithmetic;
    default:
        return NULL;
    }
}
