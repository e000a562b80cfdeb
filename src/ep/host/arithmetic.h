/* ep/host/arithmetic.h: how rows are added up, in float32, with one rounding at the end.
 *
 * Per element, over `count` rows in their order, from an accumulator of +0:
 *
 *     add       a = a + row                                    what combine adds, over ranks and, unweighted, over choices
 *     add_scaled  a = a + round(weight * row)                  rank-major, weighted, over ranks
 *     fuse      a = fma(weight, row, a)                        expert-major, weighted, over the choices on a rank
 *
 * and out = round(a). Round is to the rows' type, to nearest even; float32 is not rounded. The product of add_scaled is
 * rounded to float32 before that and never fused into the addition. NaNs in bf16: see protocol/bf16.h. The bits depend on
 * the operands only. */
#ifndef WEFTI_EP_HOST_ARITHMETIC_H
#define WEFTI_EP_HOST_ARITHMETIC_H

#include <stddef.h>

#include "weft_ep.h"

/* `rows`: count rows of `elements`; `weights`: one each. `out` is none of them. count 0 gives zeros. */
typedef struct wefti_ep_arithmetic {
    size_t element_bytes;
    void (*add)(void *out, const void *const *rows, size_t count, size_t elements);
    void (*add_scaled)(void *out, const void *const *rows, const float *weights, size_t count, size_t elements);
    void (*fuse)(void *out, const void *const *rows, const float *weights, size_t count, size_t elements);
} wefti_ep_arithmetic;

/* NULL when `dtype` is none. */
const wefti_ep_arithmetic *wefti_ep_arithmetic_of(weft_ep_dtype dtype);

#endif
