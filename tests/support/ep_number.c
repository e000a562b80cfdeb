/* support/ep_number.c: the element types of expert parallelism, worked out on doubles. */
#include "support/ep_number.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

typedef struct number_format {
    weft_ep_dtype dtype;
    const char *name;
    size_t bytes;
    int exponent_bits;
    int mantissa_bits;
    int has_infinity; /* else codes beyond the largest value saturate, and only the last code is NaN */
} number_format;

static const number_format formats[] = {
    {WEFT_EP_F32, "f32", 4, 8, 23, 1},     {WEFT_EP_BF16, "bf16", 2, 8, 7, 1},   {WEFT_EP_F16, "f16", 2, 5, 10, 1},
    {WEFT_EP_FP8_E4M3, "fp8", 1, 4, 3, 0}, {WEFT_EP_BYTES, "bytes", 1, 0, 0, 0}, /* no numbers */
};

static const number_format *format_of(weft_ep_dtype dtype)
{
    const number_format *format = formats;
    while (format->dtype != dtype) {
        format++;
    }
    return format;
}

static int bias_of(const number_format *format)
{
    return (1 << (format->exponent_bits - 1)) - 1;
}

/* The code of the largest finite magnitude. */
static uint32_t largest_of(const number_format *format)
{
    uint32_t codes = UINT32_C(1) << (format->exponent_bits + format->mantissa_bits);
    return format->has_infinity ? codes - 1 - (UINT32_C(1) << format->mantissa_bits) : codes - 2;
}

size_t ep_element_bytes(weft_ep_dtype dtype)
{
    return format_of(dtype)->bytes;
}

const char *ep_dtype_name(weft_ep_dtype dtype)
{
    return format_of(dtype)->name;
}

/* What a code stands for, worked out from its fields. */
static double value_of(const number_format *format, uint32_t bits)
{
    uint32_t ones = (UINT32_C(1) << format->mantissa_bits) - 1;
    uint32_t magnitude = bits & ((UINT32_C(1) << (format->exponent_bits + format->mantissa_bits)) - 1);
    int exponent = (int)(magnitude >> format->mantissa_bits);
    double mantissa = magnitude & ones;
    double sign = bits >> (8 * format->bytes - 1) & 1 ? -1.0 : 1.0;
    if (magnitude > largest_of(format)) {
        return format->has_infinity && mantissa == 0.0 ? sign * INFINITY : NAN;
    }
    if (exponent == 0) {
        exponent = 1;
    } else {
        mantissa += (double)ones + 1.0;
    }
    return sign * ldexp(mantissa, exponent - bias_of(format) - format->mantissa_bits);
}

/* All codes of a type of one or two bytes: these are asked for millions of times. */
static double values_fp8[1 << 8];
static double values_bf16[1 << 16];
static double values_f16[1 << 16];
static pthread_once_t values_made = PTHREAD_ONCE_INIT;

static void make_values(void)
{
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        values_fp8[bits & 0xff] = value_of(format_of(WEFT_EP_FP8_E4M3), bits & 0xff);
        values_bf16[bits] = value_of(format_of(WEFT_EP_BF16), bits);
        values_f16[bits] = value_of(format_of(WEFT_EP_F16), bits);
    }
}

double ep_bits_value(weft_ep_dtype dtype, uint32_t bits)
{
    if (dtype != WEFT_EP_BF16 && dtype != WEFT_EP_F16 && dtype != WEFT_EP_FP8_E4M3) {
        return value_of(format_of(dtype), bits);
    }
    (void)pthread_once(&values_made, make_values);
    return dtype == WEFT_EP_BF16  ? values_bf16[bits & 0xffff]
           : dtype == WEFT_EP_F16 ? values_f16[bits & 0xffff]
                                  : values_fp8[bits & 0xff];
}

static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* That of the leading digit; below all others: of zero. */
static int exponent_of(double magnitude)
{
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* The code of a finite magnitude, perhaps one beyond the largest. */
static uint32_t nearest_code(const number_format *format, double magnitude)
{
    uint32_t one = UINT32_C(1) << format->mantissa_bits;
    int least = 1 - bias_of(format);
    const int leading = exponent_of(magnitude); /* of a double from a float, which is never denormal */
    const int exponent = leading < least ? least : leading;
    const double exact = magnitude * power_of_two(format->mantissa_bits - exponent);
    const uint32_t steps = (uint32_t)((exact + 0x1p52) - 0x1p52); /* to the nearest, ties to even */
    return steps < one ? steps : ((uint32_t)(exponent - least) << format->mantissa_bits) + steps;
}

uint32_t ep_value_bits(weft_ep_dtype dtype, float value)
{
    const number_format *format = format_of(dtype);
    uint32_t sign = signbit(value) ? UINT32_C(1) << (8 * format->bytes - 1) : 0;
    uint32_t largest = largest_of(format);
    if (isnan(value)) {
        return (UINT32_C(1) << (8 * format->bytes - 1)) - 1;
    }
    uint32_t code = isinf(value) ? largest + 1 : nearest_code(format, fabs((double)value));
    if (code > largest) {
        code = format->has_infinity ? largest + 1 : largest;
    }
    return sign | code;
}

double ep_unit_roundoff(weft_ep_dtype dtype)
{
    return ldexp(1.0, -format_of(dtype)->mantissa_bits - 1);
}

double ep_least_roundoff(weft_ep_dtype dtype)
{
    const number_format *format = format_of(dtype);
    return ldexp(1.0, -bias_of(format) - format->mantissa_bits);
}
