/* Goal: the heap's records hand out the lowest place that fits, never the same byte twice, and the same places for the
 * same calls.
 * Method: random takes and drops beside a map of bits, one a unit of 64 bytes, in which the answer is found by looking
 * at every unit; the walker runs after each step, and is itself shown broken records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "heap/blocks.h"
#include "support/check.h"

#define UNIT WEFTI_BLOCK_ALIGNMENT
#define UNITS 700
#define STEPS 4000

typedef struct model {
    uint64_t limit;
    uint64_t lead;
    unsigned char taken[UNITS];
    uint64_t offsets[UNITS]; /* of the blocks, in no order */
    uint64_t bytes[UNITS]; /* as asked for */
    size_t count;
} model;

static uint64_t units_of(uint64_t bytes)
{
    return (bytes + UNIT - 1) / UNIT;
}

static int is_free(const model *m, uint64_t offset, uint64_t bytes)
{
    if (offset > m->limit || bytes > m->limit - offset) {
        return 0;
    }
    for (uint64_t unit = offset / UNIT; unit < offset / UNIT + units_of(bytes); unit++) {
        if (m->taken[unit]) {
            return 0;
        }
    }
    return 1;
}

static uint64_t model_fit(const model *m, uint64_t bytes, uint64_t alignment, uint64_t floor)
{
    for (uint64_t offset = 0; offset <= m->limit; offset += UNIT) {
        if (offset >= floor && (m->lead + offset) % alignment == 0 && is_free(m, offset, bytes)) {
            return offset;
        }
    }
    return WEFTI_BLOCK_NONE;
}

static void model_take(model *m, uint64_t offset, uint64_t bytes)
{
    memset(m->taken + offset / UNIT, 1, units_of(bytes));
    m->offsets[m->count] = offset;
    m->bytes[m->count++] = bytes;
}

static void model_drop(model *m, size_t index)
{
    memset(m->taken + m->offsets[index] / UNIT, 0, units_of(m->bytes[index]));
    m->count--;
    m->offsets[index] = m->offsets[m->count];
    m->bytes[index] = m->bytes[m->count];
}

static void compare(const wefti_blocks *blocks, const model *m)
{
    uint64_t used = 0;
    uint64_t end = 0;
    assert_true(wefti_blocks_check(blocks));
    assert_int_equal(blocks->count, m->count);
    for (size_t i = 0; i < m->count; i++) {
        const wefti_block *block = wefti_blocks_find(blocks, m->offsets[i]);
        assert_non_null(block);
        assert_int_equal(block->offset, m->offsets[i]);
        assert_int_equal(block->bytes, units_of(m->bytes[i]) * UNIT);
        assert_null(wefti_blocks_find(blocks, m->offsets[i] + 1));
        if (units_of(m->bytes[i]) > 1) {
            assert_null(wefti_blocks_find(blocks, m->offsets[i] + UNIT));
        }
        used += block->bytes;
        end = block->offset + block->bytes > end ? block->offset + block->bytes : end;
    }
    assert_int_equal(blocks->bytes_used, used);
    assert_int_equal(wefti_blocks_end(blocks), end);
}

/* Mostly small, sometimes a good part of everything. */
static uint64_t random_bytes(uint64_t *random)
{
    unsigned units = random_below(random, 16) == 0 ? 200 : random_below(random, 2) == 0 ? 2 : 20;
    return 1 + random_below(random, units * UNIT);
}

static void step_take(wefti_blocks *blocks, model *m, uint64_t *random)
{
    uint64_t bytes = random_bytes(random);
    uint64_t alignment = (uint64_t)UNIT << (random_below(random, 3) == 0 ? random_below(random, 7) : 0);
    uint64_t floor = random_below(random, 4) == 0 ? random_below(random, (UNITS + 8) * UNIT) : 0;
    uint64_t offset = wefti_blocks_fit(blocks, bytes, alignment, floor);
    assert_int_equal(offset, model_fit(m, bytes, alignment, floor));
    if (offset != WEFTI_BLOCK_NONE) {
        assert_int_equal(wefti_blocks_take(blocks, offset, bytes, 0), WEFT_OK);
        model_take(m, offset, bytes);
    }
}

static void step_cut(wefti_blocks *blocks, model *m, uint64_t *random)
{
    size_t index = random_below(random, (unsigned)m->count);
    uint64_t bytes = 1 + random_below(random, (unsigned)m->bytes[index]);
    uint64_t kept = m->offsets[index] / UNIT + units_of(bytes);
    memset(m->taken + kept, 0, units_of(m->bytes[index]) - units_of(bytes));
    wefti_blocks_cut(blocks, m->offsets[index], bytes);
    m->bytes[index] = bytes;
}

static void run_random(wefti_blocks *blocks, model *m, uint64_t limit, uint64_t seed)
{
    uint64_t random = seed;
    memset(m, 0, sizeof *m);
    m->limit = limit;
    m->lead = random_below(&random, 3) * 5 * UNIT;
    wefti_blocks_init(blocks, limit);
    blocks->lead = m->lead;
    for (int step = 0; step < STEPS; step++) {
        /* Waves: mostly takes, then mostly drops, so that both a full and an empty heap are met. */
        unsigned takes = step / 500 % 2 == 0 ? 7 : 3;
        if (m->count == 0 || random_below(&random, 10) < takes) {
            step_take(blocks, m, &random);
        } else if (random_below(&random, 4) == 0) {
            step_cut(blocks, m, &random);
        } else {
            size_t index = random_below(&random, (unsigned)m->count);
            wefti_blocks_drop(blocks, m->offsets[index]);
            model_drop(m, index);
        }
        compare(blocks, m);
    }
}

static void test_random_against_bits(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    /* The last limit leaves a unit that is not whole. */
    const uint64_t limits[] = {UNITS * UNIT, 64 * UNIT, UNIT, (UNITS - 1) * UNIT + 5};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        wefti_blocks blocks;
        model m;
        run_random(&blocks, &m, limits[i], seed + i);
        while (m.count > 0) {
            wefti_blocks_drop(&blocks, m.offsets[0]);
            model_drop(&m, 0);
            compare(&blocks, &m);
        }
        assert_int_equal(wefti_blocks_fit(&blocks, limits[i], UNIT, 0), 0);
        wefti_blocks_fini(&blocks);
    }
}

static void test_same_calls_same_places(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    wefti_blocks first;
    wefti_blocks second;
    model m;
    run_random(&first, &m, UNITS * UNIT, seed);
    run_random(&second, &m, UNITS * UNIT, seed);
    assert_int_equal(first.count, second.count);
    assert_int_equal(first.first_gap, second.first_gap);
    for (size_t i = 0; i < first.count; i++) {
        assert_int_equal(first.list[i].offset, second.list[i].offset);
        assert_int_equal(first.list[i].bytes, second.list[i].bytes);
    }
    wefti_blocks_fini(&first);
    wefti_blocks_fini(&second);
}

static void test_edges(void **state)
{
    (void)state;
    wefti_blocks blocks;
    const uint64_t limit = 10 * UNIT;
    wefti_blocks_init(&blocks, limit);
    assert_int_equal(wefti_blocks_fit(&blocks, limit, UNIT, 0), 0);
    assert_int_equal(wefti_blocks_fit(&blocks, limit + 1, UNIT, 0), WEFTI_BLOCK_NONE);
    assert_int_equal(wefti_blocks_fit(&blocks, UINT64_MAX, UNIT, 0), WEFTI_BLOCK_NONE);
    assert_int_equal(wefti_blocks_fit(&blocks, 1, UNIT, limit - UNIT), limit - UNIT);
    assert_int_equal(wefti_blocks_fit(&blocks, 1, UNIT, limit), WEFTI_BLOCK_NONE);
    assert_int_equal(wefti_blocks_fit(&blocks, 1, UNIT, UINT64_MAX), WEFTI_BLOCK_NONE);
    assert_int_equal(wefti_blocks_fit(&blocks, 1, UINT64_C(1) << 30, 0), 0);
    assert_int_equal(wefti_blocks_fit(&blocks, 1, UINT64_C(1) << 30, 1), WEFTI_BLOCK_NONE);
    assert_int_equal(wefti_blocks_take(&blocks, 0, limit, 0), WEFT_OK);
    assert_int_equal(wefti_blocks_fit(&blocks, 1, UNIT, 0), WEFTI_BLOCK_NONE);
    assert_null(wefti_blocks_find(&blocks, limit));
    wefti_blocks_drop(&blocks, 0);
    assert_int_equal(blocks.bytes_used, 0);
    wefti_blocks_fini(&blocks);
    wefti_blocks_fini(&blocks);
}

/* Two blocks with a gap between and before them. */
static void two_blocks(wefti_blocks *blocks)
{
    wefti_blocks_init(blocks, 16 * UNIT);
    assert_int_equal(wefti_blocks_take(blocks, UNIT, UNIT, 0), WEFT_OK);
    assert_int_equal(wefti_blocks_take(blocks, 4 * UNIT, UNIT, 0), WEFT_OK);
    assert_true(wefti_blocks_check(blocks));
}

static void test_walker_sees_what_is_broken(void **state)
{
    (void)state;
    wefti_blocks blocks;
    two_blocks(&blocks);
    blocks.list[0].offset += 1;
    assert_false(wefti_blocks_check(&blocks));
    blocks.list[0].offset = 4 * UNIT;
    assert_false(wefti_blocks_check(&blocks));
    blocks.list[0].offset = UNIT;
    blocks.list[1].bytes = 13 * UNIT;
    blocks.bytes_used = 14 * UNIT;
    assert_false(wefti_blocks_check(&blocks));
    blocks.list[1].bytes = 0;
    blocks.bytes_used = UNIT;
    assert_false(wefti_blocks_check(&blocks));
    blocks.list[1].bytes = UNIT;
    assert_false(wefti_blocks_check(&blocks));
    blocks.bytes_used = 2 * UNIT;
    blocks.first_gap = 1;
    assert_false(wefti_blocks_check(&blocks));
    blocks.first_gap = 0;
    assert_true(wefti_blocks_check(&blocks));
    wefti_blocks_fini(&blocks);
}

static void test_no_memory_for_a_record(void **state)
{
    (void)state;
#ifdef WEFT_FAULTS
    setenv("WEFT_LOG", "none", 1);
    wefti_blocks blocks;
    wefti_blocks_init(&blocks, UNITS * UNIT);
    size_t refused = 0;
    for (uint64_t i = 0; i < 100; i++) {
        wefti_fault_arm(1, 1);
        weft_status status = wefti_blocks_take(&blocks, i * UNIT, UNIT, 0);
        wefti_fault_arm(0, 0);
        if (status != WEFT_OK) {
            refused++;
            assert_int_equal(status, WEFT_ERR_MEMORY);
            assert_true(wefti_blocks_check(&blocks));
            assert_int_equal(blocks.count, i);
            assert_int_equal(blocks.bytes_used, i * UNIT);
            assert_int_equal(wefti_blocks_take(&blocks, i * UNIT, UNIT, 0), WEFT_OK);
        }
        assert_true(wefti_blocks_check(&blocks));
    }
    assert_true(refused > 0);
    wefti_blocks_fini(&blocks);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_against_bits),
        cmocka_unit_test(test_same_calls_same_places),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_walker_sees_what_is_broken),
        cmocka_unit_test(test_no_memory_for_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
