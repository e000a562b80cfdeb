/* Goal: what programs compile in of a world stays where it is: who changes it is reminded of the version.
 * Method: a table of every version's fields and their places; the last has all that the struct has. Of what inline code
 * passes to the library, the sizes; of a context what it reads. */
#include "weft/inline/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weft.h"

typedef struct place {
    unsigned abi; /* since which it is there */
    size_t offset;
    size_t now;
} place;

#define PLACE(abi, offset, field)                                                                                      \
    {                                                                                                                  \
        abi, offset, offsetof(wefti_view, field)                                                                       \
    }

/* Lines are added, with a new WEFTI_VIEW_ABI, and never changed. */
static const place places[] = {
    PLACE(1, 0, abi),         PLACE(1, 4, pe),      PLACE(1, 8, pes),    PLACE(1, 12, near_first),
    PLACE(1, 16, near_count), PLACE(1, 20, remote), PLACE(1, 24, heap),  PLACE(1, 32, heap_bytes),
    PLACE(1, 40, stride),     PLACE(1, 48, delta),  PLACE(1, 56, spins), PLACE(2, 60, device),
};

/* The newest one that brought no field, but entries that inline code calls: 3, those of contexts and of fetching
 * atomics without an answer on return (src/rma/entries_test.c). */
#define NEWEST_ENTRIES 3

#define LAST_BYTES 64 /* to the end of the last field */

static void test_fields_stay(void **state)
{
    (void)state;
    unsigned newest = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(places[i].now, places[i].offset);
        newest = places[i].abi > newest ? places[i].abi : newest;
    }
    assert_int_equal(newest > NEWEST_ENTRIES ? newest : NEWEST_ENTRIES, WEFTI_VIEW_ABI);
    assert_int_equal(sizeof(wefti_view), LAST_BYTES);
}

static void test_arguments_stay(void **state)
{
    (void)state;
    assert_int_equal(sizeof(wefti_headers), 12);
    assert_int_equal(sizeof(wefti_words), 48);
    assert_int_equal(offsetof(weft_ctx, world), 0);
    assert_int_equal(offsetof(weft_ctx, pes), 8);
    assert_int_equal(offsetof(weft_ctx, start), 12);
    assert_int_equal(offsetof(weft_ctx, stride), 16);
    assert_int_equal(offsetof(weft_ctx, list), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields_stay), cmocka_unit_test(test_arguments_stay)};
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
