/* Goal: rows are added with the stated operations, to the bit, whichever machine's version of the loops runs.
 *
 * Method: every bf16 there and back; rounding at and beside every tie against the nearest value found by distance; sums
 * of random rows of all lengths against the same operations done one by one in double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ep/host/arithmetic.h"
#include "support/check.h"
#include "support/ep_reference.h"
#include "weft/protocol/bf16.h"

#define ELEMENTS_MAX 200
#define ROWS_MAX 9

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void every_bf16(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        float wide = wefti_bf16_widen((uint16_t)bits);
        assert_int_equal(wefti_bf16_round(wide), isnan(wide) ? WEFTI_BF16_NAN : bits);
    }
}

static void every_tie(void **state)
{
    (void)state;
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t high = 0; high <= 0xffff; high++) {
        for (size_t i = 0; i < sizeof low / sizeof low[0]; i++) {
            float value = float_of(high << 16 | low[i]);
            assert_int_equal(wefti_bf16_round(value), ep_value_bits(WEFT_EP_BF16, value));
        }
    }
}

/* ---- sums ---- */

typedef struct operands {
    weft_ep_dtype dtype;
    size_t count;
    size_t elements;
    uint32_t bits[ROWS_MAX][ELEMENTS_MAX];
    _Alignas(16) unsigned char rows[ROWS_MAX][ELEMENTS_MAX * 4];
    const void *row_at[ROWS_MAX];
    float weights[ROWS_MAX];
} operands;

static void draw(operands *in, uint64_t *state)
{
    size_t bytes = ep_element_bytes(in->dtype);
    const ep_payload any = {.dtype = in->dtype, .fill = EP_FILL_REAL};
    for (size_t j = 0; j < in->count; j++) {
        in->weights[j] = (float)((double)random_below(state, 2000001) / 1e6 - 1.0);
        in->row_at[j] = in->rows[j];
        for (size_t i = 0; i < in->elements; i++) {
            in->bits[j][i] = ep_row_element(&any, 0, (int)(random_next(state) >> 33), 0);
            memcpy(&in->rows[j][i * bytes], &in->bits[j][i], bytes); /* little-endian */
        }
    }
}

static float add(float a, float b)
{
    return (float)((double)a + (double)b);
}

static uint32_t sum_of(const operands *in, size_t i, int scaled, int fused)
{
    float sum = 0.0f;
    for (size_t j = 0; j < in->count; j++) {
        float value = (float)ep_bits_value(in->dtype, in->bits[j][i]);
        if (fused) {
            sum = fmaf(in->weights[j], value, sum);
            continue;
        }
        if (scaled) {
            float product = (float)((double)in->weights[j] * (double)value);
            value = (float)ep_bits_value(in->dtype, ep_value_bits(in->dtype, product));
        }
        sum = add(sum, value);
    }
    return ep_value_bits(in->dtype, sum);
}

static void assert_sums(const operands *in, const unsigned char *out, int scaled, int fused)
{
    size_t bytes = ep_element_bytes(in->dtype);
    for (size_t i = 0; i < in->elements; i++) {
        uint32_t got = 0;
        memcpy(&got, out + i * bytes, bytes);
        assert_int_equal(got, sum_of(in, i, scaled, fused));
    }
    for (size_t i = in->elements * bytes; i < ELEMENTS_MAX * 4; i++) {
        assert_int_equal(out[i], 0xa5);
    }
}

static void check_sums(operands *in)
{
    const wefti_ep_arithmetic *arithmetic = wefti_ep_arithmetic_of(in->dtype);
    _Alignas(16) unsigned char out[ELEMENTS_MAX * 4];
    memset(out, 0xa5, sizeof out);
    arithmetic->add(out, in->row_at, in->count, in->elements);
    assert_sums(in, out, 0, 0);
    memset(out, 0xa5, sizeof out);
    arithmetic->add_scaled(out, in->row_at, in->weights, in->count, in->elements);
    assert_sums(in, out, 1, 0);
    memset(out, 0xa5, sizeof out);
    arithmetic->fuse(out, in->row_at, in->weights, in->count, in->elements);
    assert_sums(in, out, 0, 1);
}

static void random_sums(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    static operands in;
    for (int i = 0; i < 3000; i++) {
        in.dtype = i % 2 == 0 ? WEFT_EP_BF16 : WEFT_EP_F32;
        in.count = random_below(&random, ROWS_MAX + 1);
        size_t grain = 16 / ep_element_bytes(in.dtype);
        in.elements = grain * (1 + random_below(&random, ELEMENTS_MAX / (unsigned)grain));
        draw(&in, &random);
        check_sums(&in);
    }
}

/* What is not finite: sums of infinities, products that overflow, NaNs of any payload become the one NaN in bf16. */
static void not_finite(void **state)
{
    (void)state;
    static const uint16_t rows[4][8] = {{0x7f80, 0x7f80, 0x7f81, 0xffff, 0x7f7f, 0x8000, 0xff80, 0x0001},
                                        {0x7f80, 0xff80, 0x3f80, 0x3f80, 0x7f7f, 0x8000, 0x3f80, 0x0001}};
    static const uint16_t sums[8] = {0x7f80, 0x7fff, 0x7fff, 0x7fff, 0x7f80, 0x0000, 0xff80, 0x0002};
    const void *row_at[2] = {rows[0], rows[1]};
    uint16_t out[8];
    wefti_ep_arithmetic_of(WEFT_EP_BF16)->add(out, row_at, 2, 8);
    assert_memory_equal(out, sums, sizeof out);
}

static void no_such_type(void **state)
{
    (void)state;
    assert_null(wefti_ep_arithmetic_of((weft_ep_dtype)0));
    assert_null(wefti_ep_arithmetic_of((weft_ep_dtype)77));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16), cmocka_unit_test(every_tie),    cmocka_unit_test(random_sums),
        cmocka_unit_test(not_finite), cmocka_unit_test(no_such_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
