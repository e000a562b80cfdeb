/* Goal: of several faults that threads of a PE find, the first counts.
 * Method: two are latched, in both orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "world/world.h"

static void the_first_counts(void **state)
{
    static weft_world worlds[3]; /* zeroed; of them only the fault is looked at */
    (void)state;
    wefti_world_latch(&worlds[0], WEFT_ERR_ABORTED, 2);
    wefti_world_latch(&worlds[1], WEFT_ERR_PEER, 1);
    const uint64_t aborted = worlds[0].fault;
    const uint64_t lost = worlds[1].fault;
    assert_true(aborted != 0 && lost != 0 && aborted != lost);
    wefti_world_latch(&worlds[0], WEFT_ERR_PEER, 1);
    wefti_world_latch(&worlds[1], WEFT_ERR_ABORTED, 2);
    assert_true(worlds[0].fault == aborted && worlds[1].fault == lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(the_first_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
