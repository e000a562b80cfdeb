/* Goal: of the calls that try again, the one that stands first goes on and all others pass; one that has not tried
 * again passes never. Method: turns of three teams, which enter and leave in another order than they stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/pes.h"
#include "team/team.h"

static void retry_in_order(weft_world *world, void *context)
{
    wefti_retry first = {.place = 64};
    wefti_retry second = {.place = 128};
    wefti_retry third = {.place = 192};
    (void)context;
    wefti_retry_enter(world, &third);
    CHECK(!wefti_retry_must_pass(world, &third));
    wefti_retry_enter(world, &first);
    wefti_retry_enter(world, &first); /* as often as it tries */
    CHECK(wefti_retry_must_pass(world, &third) && !wefti_retry_must_pass(world, &first));
    CHECK(!wefti_retry_must_pass(world, &second)); /* it has not tried again */
    wefti_retry_enter(world, &second);
    CHECK(wefti_retry_must_pass(world, &third) && wefti_retry_must_pass(world, &second));
    CHECK(!wefti_retry_must_pass(world, &first));
    wefti_retry_leave(world, &first);
    CHECK(wefti_retry_must_pass(world, &third) && !wefti_retry_must_pass(world, &second));
    wefti_retry_leave(world, &second);
    CHECK(!wefti_retry_must_pass(world, &third));
    wefti_retry_leave(world, &third);
}

static void the_first_goes_on(void **state)
{
    (void)state;
    pes_run(1, retry_in_order, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(the_first_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
