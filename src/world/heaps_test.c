/* Goal: a PE's first heap must fit into what its own control group leaves to the PEs that share it, and into the
 * machine. Method: directories made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "world/directory.h"

#define PES 4

typedef struct places {
    union {
        wefti_directory directory;
        unsigned char room[sizeof(wefti_directory) + PES * sizeof(wefti_directory_pe)];
    };
    wefti_os_memory_left left[PES];
} places;

/* One node, and no control groups. */
static void fill(places *all)
{
    memset(all, 0, sizeof *all);
    for (int pe = 0; pe < PES; pe++) {
        all->directory.pes[pe].group = (uint32_t)pe;
        all->left[pe] = (wefti_os_memory_left){.machine = 1000, .group = UINT64_MAX};
    }
}

static weft_status expect(const places *all, int pe, uint64_t bytes)
{
    return wefti_directory_expect_heaps(&all->directory, PES, pe, &all->left[pe], bytes);
}

static void test_machine(void **state)
{
    (void)state;
    places all;
    fill(&all);
    for (int pe = 0; pe < PES; pe++) {
        assert_int_equal(expect(&all, pe, 250), WEFT_OK);
        assert_int_equal(expect(&all, pe, 251), WEFT_ERR_MEMORY);
    }
    all.directory.pes[3].node = 3; /* another node: the others have more */
    assert_int_equal(expect(&all, 0, 333), WEFT_OK);
    assert_int_equal(expect(&all, 0, 334), WEFT_ERR_MEMORY);
    assert_int_equal(expect(&all, 3, 1000), WEFT_OK);
}

static void test_a_group_each(void **state)
{
    (void)state;
    places all;
    fill(&all);
    for (int pe = 0; pe < PES; pe++) {
        all.left[pe].group = 200;
    }
    all.left[2].group = 100;
    assert_int_equal(expect(&all, 0, 200), WEFT_OK); /* not a fourth of 200 */
    assert_int_equal(expect(&all, 2, 100), WEFT_OK);
    assert_int_equal(expect(&all, 2, 101), WEFT_ERR_MEMORY);
    assert_non_null(strstr(weft_last_error(), "PE 2"));
}

static void test_a_group_of_two(void **state)
{
    (void)state;
    places all;
    fill(&all);
    for (int pe = 0; pe < 2; pe++) {
        all.left[pe].group = 200;
        all.directory.pes[pe].group = 0;
    }
    assert_int_equal(expect(&all, 1, 100), WEFT_OK);
    assert_int_equal(expect(&all, 1, 101), WEFT_ERR_MEMORY);
    assert_int_equal(expect(&all, 3, 101), WEFT_OK);
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
