/* Goal: for every number of PEs, each PE but 0 is a child of exactly its parent, subtrees are the runs of numbers they
 * are said to be, and depth and height are bounded.
 * Method: all sizes up to 300, and some large ones, against the definition by parents alone. */
#include "bootstrap/tree/positions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>

static void check_children(int pe, int pes, unsigned char *seen)
{
    int children[WEFTI_TREE_CHILDREN_MAX];
    int count = wefti_tree_children(pe, pes, children);
    int span = 1;
    for (int i = 0; i < count; i++) {
        assert_in_range(children[i], pe + 1, pes - 1);
        assert_int_equal(wefti_tree_parent(children[i], pes), pe);
        assert_true(wefti_tree_height(children[i], pes) < wefti_tree_height(pe, pes));
        assert_int_equal(wefti_tree_depth(children[i]), wefti_tree_depth(pe) + 1);
        assert_int_equal(seen[children[i]]++, 0);
        span += wefti_tree_span(children[i], pes);
    }
    assert_int_equal(wefti_tree_span(pe, pes), span);
    assert_true(wefti_tree_depth(pe) <= wefti_tree_levels(pes));
}

static void is_a_tree_of_runs(void **state)
{
    (void)state;
    for (int pes = 1; pes <= 300; pes++) {
        unsigned char seen[300] = {1};
        for (int pe = 0; pe < pes; pe++) {
            check_children(pe, pes, seen);
        }
        for (int pe = 0; pe < pes; pe++) {
            assert_int_equal(seen[pe], 1);
        }
        assert_int_equal(wefti_tree_span(0, pes), pes);
    }
}

static void has_few_levels(void **state)
{
    (void)state;
    assert_int_equal(wefti_tree_levels(1), 0);
    assert_int_equal(wefti_tree_levels(4), 1);
    assert_int_equal(wefti_tree_levels(5), 2);
    assert_int_equal(wefti_tree_levels(1024), 5);
    assert_int_equal(wefti_tree_levels(1025), 6);
}

static void reaches_the_largest_world(void **state)
{
    (void)state;
    int children[WEFTI_TREE_CHILDREN_MAX];
    assert_int_equal(wefti_tree_levels(INT_MAX), 16);
    assert_true(wefti_tree_children(0, INT_MAX, children) <= WEFTI_TREE_CHILDREN_MAX);
    assert_int_equal(children[0], 1 << 30);
    assert_int_equal(wefti_tree_parent(INT_MAX - 1, INT_MAX), INT_MAX - 3);
    assert_int_equal(wefti_tree_span(1 << 30, INT_MAX), (1 << 30) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_a_tree_of_runs),
        cmocka_unit_test(has_few_levels),
        cmocka_unit_test(reaches_the_largest_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
