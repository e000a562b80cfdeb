/* support/ep_number.h: the element types of expert parallelism, worked out on doubles from what defines each format:
 * the widths of its fields, its bias and what its largest code means. Shares nothing with the library's conversions. */
#ifndef SUPPORT_EP_NUMBER_H
#define SUPPORT_EP_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "weft_ep.h"

size_t ep_element_bytes(weft_ep_dtype dtype);
const char *ep_dtype_name(weft_ep_dtype dtype);

double ep_bits_value(weft_ep_dtype dtype, uint32_t bits);

/* The nearest value of the type, ties to the even one; NaN becomes the type's one NaN (7fff), in float32 any. */
uint32_t ep_value_bits(weft_ep_dtype dtype, float value);

/* Half of the distance between neighbours over the smaller one: what one rounding can change, 2^-8 in bf16. */
double ep_unit_roundoff(weft_ep_dtype dtype);
/* What one rounding can change next to zero. */
double ep_least_roundoff(weft_ep_dtype dtype);

/* a + b and a * b in float32, each rounded once: the double result has enough digits not to be rounded twice. */
static inline float ep_add(float a, float b)
{
    return (float)((double)a + (double)b);
}

static inline float ep_multiply(float a, float b)
{
    return (float)((double)a * (double)b);
}

#endif
