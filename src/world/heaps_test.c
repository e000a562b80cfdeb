/* Goal: a PE's first heap must fit into what its own control group leaves to the PEs that share it, and into the machine.
 * Method: hellos made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "world/hello.h"

#define PES 4

static void fill(wefti_hello all[PES])
{
    memset(all, 0, PES * sizeof *all);
    for (int pe = 0; pe < PES; pe++) {
        all[pe].left = (wefti_os_memory_left){.machine = 1000, .group = UINT64_MAX};
    }
}

static void test_machine(void **state)
{
    (void)state;
    wefti_hello all[PES];
    fill(all);
    for (int pe = 0; pe < PES; pe++) {
        assert_int_equal(wefti_hello_expect_heaps(all, PES, pe, 250), WEFT_OK);
        assert_int_equal(wefti_hello_expect_heaps(all, PES, pe, 251), WEFT_ERR_MEMORY);
    }
    all[3].identity.node[0] = 1; /* another node: the others have more */
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 0, 333), WEFT_OK);
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 3, 1000), WEFT_OK);
}

static void test_a_group_each(void **state)
{
    (void)state;
    wefti_hello all[PES];
    fill(all);
    for (int pe = 0; pe < PES; pe++) {
        all[pe].left.group = 200;
        all[pe].left.group_mark = (uint64_t)pe;
    }
    all[2].left.group = 100;
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 0, 200), WEFT_OK); /* not a fourth of 200 */
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 2, 100), WEFT_OK);
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 2, 101), WEFT_ERR_MEMORY);
    assert_non_null(strstr(weft_last_error(), "PE 2"));
}

static void test_a_group_of_two(void **state)
{
    (void)state;
    wefti_hello all[PES];
    fill(all);
    for (int pe = 0; pe < 2; pe++) {
        all[pe].left.group = 200;
        all[pe].left.group_mark = 0; /* as those say that have none */
    }
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 1, 100), WEFT_OK);
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 1, 101), WEFT_ERR_MEMORY);
    assert_int_equal(wefti_hello_expect_heaps(all, PES, 3, 101), WEFT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_a_group_each),
        cmocka_unit_test(test_a_group_of_two),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("heaps", tests, NULL, NULL);
}
