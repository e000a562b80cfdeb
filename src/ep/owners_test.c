/* Goal: every expert has one owner, by the rule or by a table.
 *
 * Method: all small numbers of ranks and experts, and the tables that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ep/owners.h"

/* The ranges follow one another, cover all experts and agree with rank_of. */
static void assert_consistent(const wefti_ep_owners *owners)
{
    int most = 0;
    assert_int_equal(owners->first[0], 0);
    assert_int_equal(owners->first[owners->ranks], owners->experts);
    for (int rank = 0; rank < owners->ranks; rank++) {
        int count = wefti_ep_owners_count(owners, rank);
        assert_true(count >= 0);
        most = count > most ? count : most;
        for (int expert = owners->first[rank]; expert < owners->first[rank + 1]; expert++) {
            assert_int_equal(owners->rank_of[expert], rank);
            assert_int_equal(wefti_ep_owners_word(owners, expert),
                             wefti_ep_owners_message(owners, rank) + 1 + (size_t)(expert - owners->first[rank]));
        }
    }
    assert_int_equal(owners->local_max, most);
}

static void even_split(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++) {
        for (int experts = 1; experts <= 30; experts++) {
            wefti_ep_owners owners;
            assert_int_equal(wefti_ep_owners_init(&owners, ranks, experts, NULL), WEFT_OK);
            assert_consistent(&owners);
            for (int rank = 0; rank < ranks; rank++) {
                assert_int_equal(wefti_ep_owners_count(&owners, rank), experts / ranks + (rank < experts % ranks));
            }
            wefti_ep_owners_fini(&owners);
        }
    }
}

static void table(void **state)
{
    (void)state;
    static const int counts[] = {0, 5, 0, 0, 2, 0};
    wefti_ep_owners owners;
    assert_int_equal(wefti_ep_owners_init(&owners, 6, 7, counts), WEFT_OK);
    assert_consistent(&owners);
    for (int rank = 0; rank < 6; rank++) {
        assert_int_equal(wefti_ep_owners_count(&owners, rank), counts[rank]);
    }
    wefti_ep_owners_fini(&owners);
    wefti_ep_owners_fini(&owners); /* and again */
}

static void wrong_tables(void **state)
{
    (void)state;
    static const int negative[] = {3, -1, 2};
    static const int small[] = {1, 1, 1};
    static const int huge[] = {INT32_MAX, INT32_MAX, 6};
    wefti_ep_owners owners;
    assert_int_equal(wefti_ep_owners_init(&owners, 3, 4, negative), WEFT_ERR_ARGUMENT);
    wefti_ep_owners_fini(&owners);
    assert_int_equal(wefti_ep_owners_init(&owners, 3, 4, small), WEFT_ERR_ARGUMENT);
    wefti_ep_owners_fini(&owners);
    assert_int_equal(wefti_ep_owners_init(&owners, 3, 4, huge), WEFT_ERR_ARGUMENT);
    wefti_ep_owners_fini(&owners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_split),
        cmocka_unit_test(table),
        cmocka_unit_test(wrong_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
