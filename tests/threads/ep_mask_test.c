/* Goal: a group that missed a rank lives again when that rank is masked, and not when another is; who was late once is
 * not what a later call misses.
 *
 * Method: PEs as threads. A rank stays away from a call with a short deadline; then the deadline is long, so that a
 * call of a group that is dead, which returns at once, is told from one that waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/load.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 4
#define TOKENS 2
#define SHORT_NS load_patience_ns(200000000)
#define LONG_NS UINT64_C(20000000000)
#define AT_ONCE_NS UINT64_C(10000000000)

typedef struct stages {
    int come; /* PEs that have come to a stage, over all stages */
    uint64_t short_ns;
} stages;

/* All PEs, whatever their groups are in. */
static void meet(stages *all, int *stage)
{
    int wanted = PES * ++*stage;
    (void)__atomic_add_fetch(&all->come, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&all->come, __ATOMIC_ACQUIRE) < wanted) {
        wefti_os_sleep_ns(1000000);
    }
}

static weft_status update(weft_ep_route *route)
{
    static const int32_t ids[TOKENS] = {0, 1};
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = ids;
    return weft_ep_route_update(route, &choices, NULL);
}

/* A call to which `lost` does not come. */
static void miss(weft_world *world, const stages *all, weft_ep_route *route, int lost)
{
    uint64_t before_ns = pes_set_deadline(world, all->short_ns);
    CHECK_STATUS(update(route), WEFT_ERR_TIMEOUT);
    CHECK_SAY(text_names_pe(weft_last_error(), lost), "\"%s\" does not name PE %d", weft_last_error(), lost);
    (void)pes_set_deadline(world, before_ns);
}

static void expect_dead(weft_world *world, weft_ep_route *route)
{
    uint64_t start_ns = wefti_os_now_ns();
    uint64_t before_ns = pes_set_deadline(world, LONG_NS);
    CHECK_STATUS(update(route), WEFT_ERR_TIMEOUT);
    CHECK_SAY(wefti_os_now_ns() - start_ns < AT_ONCE_NS, "the group waits for a rank again");
    (void)pes_set_deadline(world, before_ns);
}

/* Rank 3 is missed and masked, then rank 2. */
static void lose_two(weft_world *world, void *context)
{
    stages *all = context;
    int stage = 0;
    int pe = weft_world_pe(world);
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = PES;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = 16;
    plan.topk = 1;
    (void)ep_group_open(world, &config, &plan, &ep, &route);
    CHECK_OK(update(route));
    meet(all, &stage);
    if (pe != 3) {
        miss(world, all, route, 3);
        CHECK_OK(weft_ep_mask(ep, pe == 2 ? 1 : 2, 0)); /* one that was not missed */
        expect_dead(world, route);
        CHECK_OK(weft_ep_mask(ep, pe == 2 ? 1 : 2, 1));
        CHECK_OK(weft_ep_mask(ep, 3, 0));
    }
    meet(all, &stage);
    if (pe != 3) {
        CHECK_OK(update(route));
    }
    meet(all, &stage);
    if (pe < 2) {
        miss(world, all, route, 2);
        CHECK_OK(weft_ep_mask(ep, 3, 0)); /* it is masked, and not what this call missed */
        expect_dead(world, route);
        CHECK_OK(weft_ep_mask(ep, 2, 0));
    }
    meet(all, &stage);
    if (pe < 2) {
        CHECK_OK(update(route));
    }
    meet(all, &stage);
    (void)pes_set_deadline(world, all->short_ns); /* the groups are destroyed apart */
    (void)!weft_ep_route_destroy(route);
    (void)!weft_ep_destroy(ep);
}

static void test_two_lost(void **state)
{
    (void)state;
    stages all = {.short_ns = SHORT_NS};
    pes_run(PES, lose_two, &all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_two_lost)};
    (void)setenv("WEFT_LOG", "none", 0); /* timeouts are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
