/* weft-ep-bench/rows.c: what rows hold. */
#include "tools/weft-ep-bench/rows.h"

#include <math.h>
#include <string.h>

typedef struct number_format {
    int bytes;
    int mantissa_bits;
    int bias;
} number_format;

static number_format format_of(weft_ep_dtype dtype)
{
    switch (dtype) {
    case WEFT_EP_F32:
        return (number_format){4, 23, 127};
    case WEFT_EP_BF16:
        return (number_format){2, 7, 127};
    case WEFT_EP_F16:
        return (number_format){2, 10, 15};
    default:
        return (number_format){1, 3, 7};
    }
}

size_t bench_element_bytes(weft_ep_dtype dtype)
{
    return (size_t)format_of(dtype).bytes;
}

/* The bits of an integer in a type. */
static uint32_t integer_bits(weft_ep_dtype dtype, int value)
{
    number_format format = format_of(dtype);
    uint32_t magnitude = value < 0 ? (uint32_t)-value : (uint32_t)value;
    uint32_t sign = value < 0 ? UINT32_C(1) << (8 * format.bytes - 1) : 0;
    int exponent = 0;
    if (magnitude == 0) {
        return 0;
    }
    while (magnitude >> (exponent + 1) != 0) {
        exponent++;
    }
    uint64_t mantissa =
        ((uint64_t)magnitude << format.mantissa_bits >> exponent) - (UINT64_C(1) << format.mantissa_bits);
    return sign | (uint32_t)(exponent + format.bias) << format.mantissa_bits | (uint32_t)mantissa;
}

/* The value that bits have in a type. */
static double bits_value(weft_ep_dtype dtype, uint32_t bits)
{
    number_format format = format_of(dtype);
    uint32_t one = UINT32_C(1) << format.mantissa_bits;
    uint32_t sign = bits >> (8 * format.bytes - 1);
    int exponent = (int)((bits & ~(sign << (8 * format.bytes - 1))) >> format.mantissa_bits);
    double mantissa = (bits & (one - 1)) + (exponent > 0 ? one : 0);
    double value = ldexp(mantissa, (exponent > 0 ? exponent : 1) - format.bias - format.mantissa_bits);
    return sign ? -value : value;
}

void bench_row_fill(weft_ep_dtype dtype, int hidden, int rank, int token, int factor, void *row)
{
    size_t bytes = bench_element_bytes(dtype);
    for (int column = 0; column < hidden; column++) {
        uint32_t bits = integer_bits(dtype, factor * bench_row_value(rank, token, column));
        memcpy((char *)row + (size_t)column * bytes, &bits, bytes);
    }
}

int bench_row_differs(weft_ep_dtype dtype, int hidden, int rank, int token, int factor, const float *scales,
                      double tolerance, const void *row)
{
    size_t bytes = bench_element_bytes(dtype);
    for (int column = 0; column < hidden; column++) {
        uint32_t bits = 0;
        memcpy(&bits, (const char *)row + (size_t)column * bytes, bytes);
        double wanted = factor * bench_row_value(rank, token, column);
        double got = bits_value(dtype, bits) * (scales != NULL ? (double)scales[column / 128] : 1.0);
        if (!(fabs(got - wanted) <= tolerance * fabs(wanted))) {
            return column;
        }
    }
    return -1;
}
