/* ep/host/arithmetic.h: how rows are added up, scaled, multiplied and quantised, in float32, with one rounding at the
 * end.
 *
 * Per element, over `count` rows in their order, from an accumulator of +0:
 *
 *     add       a = a + row what combine adds, over ranks and, unweighted, over choices
 *     add_scaled  a = a + round(weight * row)                  rank-major, weighted, over ranks
 *     fuse      a = fma(weight, row, a)                        expert-major, weighted, over the choices on a rank
 *
 * and out = round(a). Round is to the rows' type, to nearest even; float32 is not rounded. The product of add_scaled is
 * rounded to float32 before that and never fused into the addition. `scale` is out = round(weight * row), its product
 * rounded likewise; `dot` is protocol/dot.h, `quantise` protocol/fp8.h. NaNs in bf16 and float16: see protocol/bf16.h
 * and f16.h. The bits depend on the operands only. */
#ifndef WEFTI_EP_HOST_ARITHMETIC_H
#define WEFTI_EP_HOST_ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>

#include "weft_ep.h"

/* `rows`: count rows of `elements`; `weights`: one each. `out` is none of them. count 0 gives zeros. */
typedef struct wefti_ep_arithmetic {
    void (*add)(void *out, const void *const *rows, size_t count, size_t elements);
    void (*add_scaled)(void *out, const void *const *rows, const float *weights, size_t count, size_t elements);
    void (*fuse)(void *out, const void *const *rows, const float *weights, size_t count, size_t elements);
    /* The accumulators of add and add_scaled; and a = round(row), which makes the same of them. */
    void (*add_to_f32)(float *out, const void *const *rows, size_t count, size_t elements);
    void (*add_scaled_to_f32)(float *out, const void *const *rows, const float *weights, size_t count, size_t elements);
    void (*round)(void *out, const float *row, size_t elements);
    void (*scale)(void *out, const void *row, float weight, size_t elements);
    float (*dot)(const void *x, const void *y, size_t elements);
    /* `scales`: wefti_fp8_scale_words words, packed. */
    void (*quantise)(uint8_t *out, uint32_t *scales, const void *row, size_t elements, weft_ep_scale_type type);
} wefti_ep_arithmetic;

/* NULL when `dtype` is none that can be computed with: fp8 rows are only moved. */
const wefti_ep_arithmetic *wefti_ep_arithmetic_of(weft_ep_dtype dtype);

#endif
