/* Goal: a slab that is full means other memory and rows that come by way of the group's, not a failure: in one run
 * received rows are kept in pieces of the slab and then elsewhere, on some ranks sooner than on others, until their
 * combine; with WEFT_EP_NO_STAGING those elsewhere are refused. Method: support/ep_slab.h. On GPUs:
 * tests/gpu/ep_full_slab_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ep_slab.h"
#include "support/pes.h"

static void run(weft_world *world, void *context)
{
    (void)context;
    for (int layout = WEFT_EP_RANK_MAJOR; layout <= WEFT_EP_SLOTS_EXPERT; layout++) {
        ep_slab_run(world, 0, (weft_ep_layout)layout, 0);
    }
    ep_slab_run(world, 0, WEFT_EP_RANK_MAJOR, WEFT_EP_NO_STAGING);
}

static void a_full_slab_is_no_failure(void **state)
{
    (void)state;
    pes_run(EP_SLAB_PES, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(a_full_slab_is_no_failure)};
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
