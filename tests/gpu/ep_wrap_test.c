/* Goal: calls are right where the tag of flags, which is an epoch in 31 bits, begins again. Method:
 * gpu/support/ep_rig.h, with the epoch set to shortly before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "gpu/support/ep_rig.h"

/* The epoch of the next call: its tag is not 0, which words have before any call, and what lies twice by its parity is
 * not what the call before used. */
static void expect_next_epoch(const ep_rig *rig, uint64_t *last)
{
    const uint64_t next = ep_rig_control(rig)->epoch + 1;
    CHECK((uint32_t)(next << 1) != 0);
    CHECK((next & 1) != (*last & 1));
    *last = next;
}

/* Calls before and behind the one whose tag would be 0, each with rows of its own. */
static void across_the_wrap(weft_world *world, int which)
{
    ep_rig rig;
    uint64_t last = (UINT64_C(1) << 31) - 4;
    ep_rig_open(&rig, world, which == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE, which == 0 ? 0 : EP_RIG_TOKENS);
    const int other = 1 - rig.rank;
    ep_rig_control(&rig)->epoch = last;
    CHECK_OK(weft_barrier(world));
    for (int step = 0; step < 8; step++) {
        for (int i = 0; i < EP_RIG_TOKENS * EP_RIG_HIDDEN; i++) {
            rig.tokens[i / EP_RIG_HIDDEN][i % EP_RIG_HIDDEN] =
                (float)(1000 * rig.rank + 100 * step + i / EP_RIG_HIDDEN);
        }
        expect_next_epoch(&rig, &last);
        ep_rig_choose(&rig, 2 * other);
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        for (int i = 0; i < EP_RIG_TOKENS; i++) {
            CHECK(rig.there[which == 0 ? i : other * EP_RIG_TOKENS + i][EP_RIG_HIDDEN - 1] ==
                  (float)(1000 * other + 100 * step + i));
        }
        expect_next_epoch(&rig, &last);
        weft_ep_rows out = ep_rig_rows(rig.tokens);
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        CHECK(rig.tokens[EP_RIG_TOKENS - 1][0] == (float)(1000 * rig.rank + 100 * step + EP_RIG_TOKENS - 1));
    }
    CHECK(last > UINT64_C(1) << 31);
    ep_rig_close(&rig);
}

static void wraps(void **state)
{
    static const ep_rig_case cases[] = {{across_the_wrap, 2}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(wraps)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
