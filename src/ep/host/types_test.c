/* Goal: float16 and fp8 round as their headers say, rows are quantised and multiplied to the bit, whichever machine's
 * version of the loops runs.
 *
 * Method: every value there and back; rounding at and beside every tie, against the compiler's _Float16 and against the
 * nearest e4m3 found by distance; quantised rows and dot products against the same operations done one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "ep/host/arithmetic.h"
#include "support/check.h"
#include "weft/protocol/bf16.h"
#include "weft/protocol/dot.h"
#include "weft/protocol/f16.h"
#include "weft/protocol/fp8.h"

#define ELEMENTS_MAX 700

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- float16 ---- */

#ifdef __FLT16_MAX__
static uint16_t half_bits(float value)
{
    _Float16 half = (_Float16)value;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return isnan(value) ? WEFTI_F16_NAN : bits;
}

static float half_value(uint16_t bits)
{
    _Float16 half;
    memcpy(&half, &bits, sizeof half);
    return (float)half;
}

static void every_f16(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        float wide = wefti_f16_widen((uint16_t)bits);
        assert_true(isnan(wide) ? isnan(half_value((uint16_t)bits)) : wide == half_value((uint16_t)bits));
        assert_int_equal(wefti_f16_round(wide), isnan(wide) ? WEFTI_F16_NAN : bits);
    }
}

static void every_f16_tie(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        float over = bits == 0x7bff ? 65536.0f : wefti_f16_widen((uint16_t)(bits + 1));
        uint32_t tie = bits_of((float)(((double)wefti_f16_widen((uint16_t)bits) + (double)over) / 2));
        for (uint32_t near = tie - 2; near <= tie + 2; near++) {
            assert_int_equal(wefti_f16_round(float_of(near)), half_bits(float_of(near)));
            assert_int_equal(wefti_f16_round(-float_of(near)), half_bits(-float_of(near)));
        }
    }
    assert_int_equal(wefti_f16_round(INFINITY), 0x7c00);
    assert_int_equal(wefti_f16_round(-INFINITY), 0xfc00);
    assert_int_equal(wefti_f16_round(-FLT_MAX), 0xfc00);
    assert_int_equal(wefti_f16_round(FLT_MIN), 0);
    assert_int_equal(wefti_f16_round(float_of(0x80000001)), 0x8000);
}
#else
static void every_f16(void **state)
{
    (void)state;
    skip();
}

static void every_f16_tie(void **state)
{
    (void)state;
    skip();
}
#endif

/* ---- fp8 ---- */

static double e4m3_value(uint32_t bits)
{
    uint32_t exponent = bits >> 3 & 15;
    uint32_t mantissa = bits & 7;
    double magnitude = exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, (int)exponent - 10);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

static uint8_t nearest_e4m3(float value)
{
    if (isnan(value)) {
        return 0x7f;
    }
    double magnitude = fmin(fabs((double)value), 448.0);
    uint32_t best = 0;
    for (uint32_t bits = 1; bits < 0x7f; bits++) {
        double better = fabs(e4m3_value(best) - magnitude) - fabs(e4m3_value(bits) - magnitude);
        best = better > 0 || (better == 0 && bits % 2 == 0) ? bits : best;
    }
    return (uint8_t)(best | (signbit(value) ? 0x80u : 0));
}

static void every_fp8(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xff; bits++) {
        const int is_nan = (bits & 0x7f) == 0x7f;
        float wide = is_nan ? NAN : (float)e4m3_value(bits);
        assert_int_equal(wefti_fp8_quantise(wide, 1.0f), is_nan ? 0x7f : bits);
    }
}

static void every_fp8_tie(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7e; bits++) {
        uint32_t tie = bits_of((float)((e4m3_value(bits) + e4m3_value(bits + 1)) / 2));
        for (uint32_t near = tie - 2; near <= tie + 2; near++) {
            assert_int_equal(wefti_fp8_quantise(float_of(near), 1.0f), nearest_e4m3(float_of(near)));
            assert_int_equal(wefti_fp8_quantise(float_of(near), -1.0f), nearest_e4m3(-float_of(near)));
        }
    }
    assert_int_equal(wefti_fp8_quantise(1e9f, 1.0f), 0x7e);
    assert_int_equal(wefti_fp8_quantise(-INFINITY, 1.0f), 0xfe);
    assert_int_equal(wefti_fp8_quantise(FLT_MIN, 1.0f), 0);
}

static void same_scale(float amax, int off)
{
    wefti_fp8_scale divided = wefti_fp8_scale_f32(amax);
    wefti_fp8_scale scale =
        wefti_fp8_scale_by(amax, float_of(bits_of(1.0f / (amax * WEFTI_FP8_SCALED)) + (uint32_t)off));
    assert_int_equal(scale.bits, divided.bits);
    assert_int_equal(bits_of(scale.inverse), bits_of(divided.inverse));
}

/* One amax of a thousand: all of them take long. */
static void scales_without_division(void **state)
{
    const uint32_t most = bits_of(FLT_MAX);
    (void)state;
    for (int off = -2; off <= 2; off++) {
        for (uint32_t bits = bits_of(WEFTI_FP8_AMAX_LEAST); bits < most; bits += 1009) {
            same_scale(float_of(bits), off);
        }
        same_scale(FLT_MAX, off);
    }
}

/* ---- rows ---- */

typedef struct rows {
    weft_ep_dtype dtype;
    size_t elements;
    float x[ELEMENTS_MAX]; /* as the type has them */
    float y[ELEMENTS_MAX];
    _Alignas(16) unsigned char x_row[ELEMENTS_MAX * 4];
    _Alignas(16) unsigned char y_row[ELEMENTS_MAX * 4];
} rows;

static float put(weft_ep_dtype dtype, unsigned char *row, size_t at, float value)
{
    if (dtype == WEFT_EP_F32) {
        memcpy(row + 4 * at, &value, 4);
        return value;
    }
    uint16_t bits = dtype == WEFT_EP_BF16 ? wefti_bf16_round(value) : wefti_f16_round(value);
    memcpy(row + 2 * at, &bits, 2);
    return dtype == WEFT_EP_BF16 ? wefti_bf16_widen(bits) : wefti_f16_widen(bits);
}

/* From all of float32's range to a narrow one; some groups of zeros, some elements that are not finite. */
static float draw_value(uint64_t *state, int spread)
{
    uint64_t kind = random_below(state, 200);
    if (spread == 3) {
        return 0.0f;
    }
    if (kind < 3 && spread == 2) {
        return kind == 0 ? INFINITY : kind == 1 ? -INFINITY : NAN;
    }
    float value = (float)((int)random_below(state, 2000001) - 1000000) / 1e6f;
    return spread == 0 ? value
                       : ldexpf(value, (int)random_below(state, spread == 1 ? 12 : 250) - (spread == 1 ? 6 : 125));
}

static void draw_rows(rows *in, uint64_t *state, int spread)
{
    static const weft_ep_dtype dtypes[] = {WEFT_EP_F32, WEFT_EP_BF16, WEFT_EP_F16};
    in->dtype = dtypes[random_below(state, 3)];
    in->elements = 1 + random_below(state, ELEMENTS_MAX);
    for (size_t i = 0; i < in->elements; i++) {
        in->x[i] = put(in->dtype, in->x_row, i, draw_value(state, spread));
        in->y[i] = put(in->dtype, in->y_row, i, draw_value(state, spread));
    }
}

static void check_quantised(const rows *in, int is_ue8m0)
{
    uint8_t out[ELEMENTS_MAX];
    uint32_t scales[ELEMENTS_MAX];
    size_t groups = (in->elements + 127) / 128;
    memset(scales, 0xa5, sizeof scales);
    wefti_ep_arithmetic_of(in->dtype)->quantise(out, scales, in->x_row, in->elements,
                                                is_ue8m0 ? WEFT_EP_SCALE_UE8M0 : WEFT_EP_SCALE_F32);
    for (size_t group = 0; group < groups; group++) {
        size_t end = 128 * (group + 1) < in->elements ? 128 * (group + 1) : in->elements;
        float amax = 1e-4f;
        for (size_t i = 128 * group; i < end; i++) {
            amax = fabsf(in->x[i]) > amax ? fabsf(in->x[i]) : amax;
        }
        amax = amax > FLT_MAX ? FLT_MAX : amax;
        float scale = amax / 448.0f;
        float inverse = 448.0f / amax;
        if (is_ue8m0) {
            int exponent;
            scale = ldexpf(1.0f, frexpf(scale, &exponent) == 0.5f ? exponent - 1 : exponent);
            inverse = 1.0f / scale;
            assert_true(ldexpf(1.0f, (int)(scales[group / 4] >> (8 * (group % 4)) & 0xff) - 127) == scale);
        } else {
            assert_int_equal(scales[group], bits_of(scale));
        }
        for (size_t i = 128 * group; i < end; i++) {
            volatile float product = in->x[i] * inverse;
            assert_int_equal(out[i], nearest_e4m3(product));
        }
    }
    size_t words = is_ue8m0 ? (groups + 3) / 4 : groups;
    if (is_ue8m0 && groups % 4 != 0) {
        assert_int_equal(scales[words - 1] >> (8 * (groups % 4)), 0);
    }
    assert_int_equal(scales[words], 0xa5a5a5a5);
    assert_int_equal(wefti_fp8_scale_words(in->elements, is_ue8m0), words);
}

static void quantised_rows(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    static rows in;
    for (int i = 0; i < 400; i++) {
        draw_rows(&in, &random, i % 4);
        check_quantised(&in, i / 4 % 2);
    }
}

/* The order stated, with another program. */
static float dot_of(const rows *in)
{
    float lane[256] = {0};
    for (size_t i = 0; i < in->elements; i++) {
        lane[i % 256] = fmaf(in->x[i], in->y[i], lane[i % 256]);
    }
    for (int width = 1; width < 8; width *= 2) {
        for (int i = 0; i < 256; i += 2 * width) {
            lane[i] += lane[i + width];
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        for (int j = 0; j < step; j++) {
            lane[8 * j] += lane[8 * (j + step)];
        }
    }
    return lane[0];
}

static void dot_products(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    static rows in;
    for (int i = 0; i < 1000; i++) {
        draw_rows(&in, &random, i % 2);
        float dot = wefti_ep_arithmetic_of(in.dtype)->dot(in.x_row, in.y_row, in.elements);
        assert_int_equal(bits_of(dot), bits_of(dot_of(&in)));
        double exact = 0;
        double terms = 0;
        for (size_t j = 0; j < in.elements; j++) {
            exact += (double)in.x[j] * (double)in.y[j];
            terms += fabs((double)in.x[j] * (double)in.y[j]);
        }
        assert_true(fabs((double)dot - exact) <= 12 * 0x1p-24 * terms);
    }
}

static void scaled_rows(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    static rows in;
    for (int i = 0; i < 300; i++) {
        _Alignas(16) unsigned char out[ELEMENTS_MAX * 4];
        _Alignas(16) unsigned char wanted[ELEMENTS_MAX * 4];
        draw_rows(&in, &random, i % 2);
        float weight = draw_value(&random, 0);
        for (size_t j = 0; j < in.elements; j++) {
            volatile float product = weight * in.x[j];
            (void)put(in.dtype, wanted, j, product);
        }
        wefti_ep_arithmetic_of(in.dtype)->scale(out, in.x_row, weight, in.elements);
        assert_memory_equal(out, wanted, in.elements * (in.dtype == WEFT_EP_F32 ? 4 : 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16),     cmocka_unit_test(every_f16_tie),           cmocka_unit_test(every_fp8),
        cmocka_unit_test(every_fp8_tie), cmocka_unit_test(quantised_rows),          cmocka_unit_test(dot_products),
        cmocka_unit_test(scaled_rows),   cmocka_unit_test(scales_without_division),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
