/* Goal: allocations hold what they promise; in builds with WEFT_FAULTS they are counted and fail when told to.
 * Method: allocate in every way, at sizes 0 and beyond memory, and with armed fault points. */
#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void assert_zeroed(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(memory[i], 0);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    char *text = wefti_alloc_text("warp");
    unsigned char *zeroed = wefti_alloc_zeroed(10, 10);
    assert_string_equal(text, "warp");
    assert_zeroed(zeroed, 100);
    zeroed[99] = 7;
    zeroed = wefti_realloc(zeroed, 200);
    assert_int_equal(zeroed[99], 7);
    wefti_free(zeroed);
    wefti_free(text);
    wefti_free(NULL);
}

static void test_alignment(void **state)
{
    (void)state;
    for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
        unsigned char *memory = wefti_alloc_aligned(alignment, 100);
        assert_int_equal((uintptr_t)memory % alignment, 0);
        assert_zeroed(memory, 100);
        wefti_free(memory);
    }
}

static void test_nothing_is_something(void **state)
{
    (void)state;
    void *blocks[] = {wefti_alloc(0), wefti_alloc_zeroed(0, 8), wefti_alloc_zeroed(8, 0), wefti_alloc_aligned(8, 0),
                      wefti_realloc(NULL, 0)};
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        assert_non_null(blocks[i]);
        wefti_free(blocks[i]);
    }
}

#ifndef WEFT_FAULTS

static void test_overflow_is_no_memory(void **state)
{
    (void)state;
    volatile size_t huge = SIZE_MAX / 2 + 2; /* times 2 is 2 */
    assert_null(wefti_alloc_zeroed(huge, 2));
}

#else

static void test_live_allocations_are_counted(void **state)
{
    (void)state;
    int64_t before = wefti_alloc_live();
    void *blocks[] = {wefti_alloc(1), wefti_alloc_zeroed(1, 1), wefti_alloc_aligned(64, 1), wefti_alloc_text("a"),
                      wefti_realloc(NULL, 1)};
    assert_int_equal(wefti_alloc_live(), before + (int64_t)COUNT_OF(blocks));
    blocks[0] = wefti_realloc(blocks[0], 1000);
    assert_int_equal(wefti_alloc_live(), before + (int64_t)COUNT_OF(blocks));
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        wefti_free(blocks[i]);
    }
    wefti_free(NULL);
    assert_int_equal(wefti_alloc_live(), before);
}

static void test_armed_points_fail(void **state)
{
    (void)state;
    wefti_fault_arm(2, 3);
    for (uint64_t number = 1; number <= 6; number++) {
        errno = 0;
        int failed = wefti_fault("here", EIO);
        assert_int_equal(failed, number >= 2 && number < 5);
        assert_int_equal(errno, failed ? EIO : 0);
        assert_int_equal(wefti_fault_passed(), number);
    }
    wefti_fault_arm(0, 0);
    assert_int_equal(wefti_fault_passed(), 0);
    assert_int_equal(wefti_fault("here", EIO), 0);
}

static void test_every_allocation_is_a_point(void **state)
{
    (void)state;
    void *kept = wefti_alloc(1);
    int64_t before = wefti_alloc_live();
    wefti_fault_arm(1, UINT64_MAX);
    void *blocks[] = {wefti_alloc(1), wefti_alloc_zeroed(1, 1), wefti_alloc_aligned(64, 1), wefti_alloc_text("a"),
                      wefti_realloc(kept, 100)};
    assert_int_equal(wefti_fault_passed(), COUNT_OF(blocks));
    wefti_fault_arm(0, 0);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        assert_null(blocks[i]);
    }
    assert_int_equal(wefti_alloc_live(), before);
    wefti_free(kept);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_nothing_is_something),
#ifndef WEFT_FAULTS /* sanitizers report the overflow as an error of the program */
        cmocka_unit_test(test_overflow_is_no_memory),
#else
        cmocka_unit_test(test_live_allocations_are_counted),
        cmocka_unit_test(test_armed_points_fail),
        cmocka_unit_test(test_every_allocation_is_a_point),
#endif
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
