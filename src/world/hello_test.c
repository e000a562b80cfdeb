/* Goal: PEs that disagree on a configuration all find the same offender.
 * Method: lists of equal hellos in which one or two PEs differ in one field, for every field, PE and several sizes; and
 * fields that may differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "world/hello.h"

#define PES_MAX 16

static const int sizes[] = {1, 2, 3, 5, 16};

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static void fill(wefti_hello *all, int pes)
{
    memset(all, 0, PES_MAX * sizeof *all);
    for (int pe = 0; pe < pes; pe++) {
        all[pe].magic = 7;
        all[pe].version = 1;
        all[pe].view_abi = 2;
        all[pe].build = 9;
        all[pe].pe = (uint32_t)pe;
        all[pe].pes = (uint32_t)pes;
        all[pe].name_hash = 3;
        all[pe].heap_max_bytes = 1 << 20;
        all[pe].heap_bytes = 1 << 16;
        /* These may differ. */
        all[pe].heap_auto_bytes = (uint64_t)pe << 30;
        memset(&all[pe].identity, pe, sizeof all[pe].identity);
        memset(all[pe].secret, pe, sizeof all[pe].secret);
    }
}

typedef void (*spoil)(wefti_hello *hello);

static void spoil_magic(wefti_hello *hello)
{
    hello->magic++;
}

static void spoil_version(wefti_hello *hello)
{
    hello->version++;
}

static void spoil_view(wefti_hello *hello)
{
    hello->view_abi++;
}

static void spoil_build(wefti_hello *hello)
{
    hello->build++;
}

static void spoil_program(wefti_hello *hello)
{
    hello->program[WEFT_PROGRAM_BYTES - 1]++;
}

#define SPOIL_EQUAL(type, field, ...)                                                                                  \
    static void spoil_##field(wefti_hello *hello)                                                                      \
    {                                                                                                                  \
        hello->field++;                                                                                                \
    }
WEFTI_HELLO_EQUAL_TABLE(SPOIL_EQUAL)
#define SPOIL_NAME(type, field, ...) spoil_##field,
static const spoil spoils[] = {spoil_magic, spoil_version, spoil_view,
                               spoil_build, spoil_program, WEFTI_HELLO_EQUAL_TABLE(SPOIL_NAME)};
#define SPOILS (sizeof spoils / sizeof *spoils)

static weft_status check(const wefti_hello *all, int pes)
{
    WEFT_TRY(wefti_hello_check_builds(all, pes));
    return wefti_hello_check(all, pes);
}

static void test_equal_is_right(void **state)
{
    (void)state;
    wefti_hello all[PES_MAX];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(all, sizes[i]);
        assert_int_equal(check(all, sizes[i]), WEFT_OK);
    }
}

static void test_one_differs(void **state)
{
    (void)state;
    wefti_hello all[PES_MAX];
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
        for (int offender = 0; offender < sizes[i]; offender++) {
            for (size_t kind = 0; kind < SPOILS; kind++) {
                fill(all, sizes[i]);
                spoils[kind](&all[offender]);
                assert_int_equal(check(all, sizes[i]), WEFT_ERR_MISMATCH);
                CHECK_NAMES(offender);
                /* Of more than two it is clear who it is: nobody else stands first in the text. */
                char first[24];
                (void)snprintf(first, sizeof first, ": PE %d ", offender);
                CHECK_SAY(sizes[i] == 2 || strstr(weft_last_error(), first) != NULL, "%d PEs, offender %d: \"%s\"",
                          sizes[i], offender, weft_last_error());
            }
        }
    }
}

static void test_the_lowest_of_two(void **state)
{
    (void)state;
    wefti_hello all[PES_MAX];
    for (size_t kind = 0; kind < SPOILS; kind++) {
        fill(all, 5);
        spoils[kind](&all[4]);
        spoils[kind](&all[1]);
        assert_int_equal(check(all, 5), WEFT_ERR_MISMATCH);
        assert_non_null(strstr(weft_last_error(), ": PE 1 "));
    }
}

/* Without a majority PE 0 is right. */
static void test_all_differ(void **state)
{
    (void)state;
    wefti_hello all[PES_MAX];
    fill(all, 5);
    for (int pe = 0; pe < 5; pe++) {
        all[pe].heap_bytes = (uint64_t)pe;
    }
    assert_int_equal(check(all, 5), WEFT_ERR_MISMATCH);
    assert_non_null(strstr(weft_last_error(), ": PE 1 "));
    assert_non_null(strstr(weft_last_error(), "PE 0 has"));
}

static void test_wrong_number(void **state)
{
    (void)state;
    wefti_hello all[PES_MAX];
    fill(all, 5);
    all[3].pe = 2;
    assert_int_equal(check(all, 5), WEFT_ERR_MISMATCH);
    CHECK_NAMES(3);
    CHECK_NAMES(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_equal_is_right), CHECKED_TEST(test_one_differs),  CHECKED_TEST(test_the_lowest_of_two),
        CHECKED_TEST(test_all_differ),     CHECKED_TEST(test_wrong_number),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}
