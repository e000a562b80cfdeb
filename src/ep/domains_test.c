/* Goal: a map of domains is counted by lowest ranks, whatever the labels; maps that are none are refused.
 *
 * Method: maps written out, and all equal ones of few ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ep/domains.h"

/* Domains in ascending order of their lowest ranks, members ascending, slots their places. */
static void assert_consistent(const wefti_ep_domains *domains)
{
    int lowest = -1;
    assert_int_equal(domains->first[0], 0);
    assert_int_equal(domains->first[domains->count], domains->ranks);
    for (int d = 0; d < domains->count; d++) {
        const int32_t *members = &domains->members[domains->first[d]];
        assert_true(wefti_ep_domains_size(domains, d) > 0);
        assert_true(members[0] > lowest);
        lowest = members[0];
        for (int i = 0; i < wefti_ep_domains_size(domains, d); i++) {
            assert_true(i == 0 || members[i] > members[i - 1]);
            assert_int_equal(domains->of[members[i]], d);
            assert_int_equal(domains->slot[members[i]], i);
        }
    }
}

static void labels_of_any_kind(void **state)
{
    (void)state;
    static const int labels[] = {7, 2, 2, 7, 0, 2, 1000000, 0};
    static const int32_t of[] = {0, 1, 1, 0, 2, 1, 3, 2};
    wefti_ep_domains domains;
    assert_int_equal(wefti_ep_domains_init(&domains, 8, labels, 0), WEFT_OK);
    assert_consistent(&domains);
    assert_int_equal(domains.count, 4);
    for (int rank = 0; rank < 8; rank++) {
        assert_int_equal(domains.of[rank], of[rank]);
    }
    wefti_ep_domains_fini(&domains);
    wefti_ep_domains_fini(&domains); /* and again */
}

static void equal_ones(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks++) {
        for (int each = -1; each <= 13; each++) {
            wefti_ep_domains domains;
            int is_good = each >= 0 && (each == 0 || ranks % each == 0);
            assert_int_equal(wefti_ep_domains_init(&domains, ranks, NULL, each), is_good ? WEFT_OK : WEFT_ERR_ARGUMENT);
            if (is_good) {
                assert_consistent(&domains);
                assert_int_equal(domains.count, each == 0 ? 1 : ranks / each);
            }
            wefti_ep_domains_fini(&domains);
        }
    }
}

static void wrong_ones(void **state)
{
    (void)state;
    static const int labels[] = {0, 0, -1};
    wefti_ep_domains domains;
    assert_int_equal(wefti_ep_domains_init(&domains, 3, labels, 0), WEFT_ERR_ARGUMENT);
    wefti_ep_domains_fini(&domains);
    assert_int_equal(wefti_ep_domains_init(&domains, 2, labels, 1), WEFT_ERR_ARGUMENT); /* both */
    wefti_ep_domains_fini(&domains);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_of_any_kind),
        cmocka_unit_test(equal_ones),
        cmocka_unit_test(wrong_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
