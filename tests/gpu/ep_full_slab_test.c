/* Goal: on GPUs, too, a slab that is full means other memory and rows that come by way of the group's, not a failure:
 * tests/threads/ep_slab_test.c. Method: support/ep_slab.h on the fake driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "gpu/support/ep_rig.h"
#include "support/ep_slab.h"

static void run(weft_world *world, int which)
{
    ep_slab_run(world, 1, which < 4 ? (weft_ep_layout)which : WEFT_EP_RANK_MAJOR, which < 4 ? 0 : WEFT_EP_NO_STAGING);
}

static void slabs(void **state)
{
    static const ep_rig_case cases[] = {{run, 5}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(slabs)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
