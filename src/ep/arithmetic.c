/* One body for all types and operations, inlined with both constant; a chunk of the accumulator stays in registers or the
 * first cache while the rows are read once each. On x86 each function is compiled for several machines and the loader
 * chooses; the bits are the same, because every operation is exact IEEE float32. */
#include "ep/arithmetic.h"

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

INLINE void load(weft_ep_dtype dtype, float *values, const void *row, size_t at, size_t n)
{
    if (dtype == WEFT_EP_F32) {
        memcpy(values, (const float *)row + at, n * sizeof *values);
        return;
    }
    const uint16_t *bits = (const uint16_t *)row + at;
    for (size_t i = 0; i < n; i++) {
        values[i] = wefti_bf16_widen(bits[i]);
    }
}

INLINE void store(weft_ep_dtype dtype, void *out, size_t at, const float *values, size_t n)
{
    if (dtype == WEFT_EP_F32) {
        memcpy((float *)out + at, values, n * sizeof *values);
        return;
    }
    uint16_t *bits = (uint16_t *)out + at;
    for (size_t i = 0; i < n; i++) {
        bits[i] = wefti_bf16_round(values[i]);
    }
}

INLINE void scale(weft_ep_dtype dtype, float *values, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float product = values[i] * weight;
        values[i] = dtype == WEFT_EP_F32 ? product : wefti_bf16_widen(wefti_bf16_round(product));
    }
    /* Let no compiler fuse these products into the additions that follow. */
    __asm__ volatile("" : : "r"(values) : "memory");
}

INLINE void fold_chunk(weft_ep_dtype dtype, operation op, void *out, const void *const *rows, const float *weights,
                       size_t count, size_t at, size_t n)
{
    float sum[CHUNK];
    float values[CHUNK];
    memset(sum, 0, sizeof sum);
    for (size_t j = 0; j < count; j++) {
        load(dtype, values, rows[j], at, n);
        if (op == FUSE) {
            for (size_t i = 0; i < n; i++) {
                sum[i] = fmaf(weights[j], values[i], sum[i]);
            }
            continue;
        }
        if (op == ADD_SCALED) {
            scale(dtype, values, weights[j], n);
        }
        for (size_t i = 0; i < n; i++) {
            sum[i] += values[i];
        }
    }
    store(dtype, out, at, sum, n);
}

INLINE void fold(weft_ep_dtype dtype, operation op, void *out, const void *const *rows, const float *weights,
                 size_t count, size_t elements)
{
    size_t at = 0;
    for (; at + CHUNK <= elements; at += CHUNK) {
        fold_chunk(dtype, op, out, rows, weights, count, at, CHUNK);
    }
    if (at < elements) {
        fold_chunk(dtype, op, out, rows, weights, count, at, elements - at);
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
    }
    return NULL;
}
