/* Goal: a group with WEFT_EP_STATISTICS adds up what its dispatches received for each expert, and whom it waited for.
 *
 * Method: two ranks as threads; rank 1 comes to each call late, so that rank 0 has waited for it at least so long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

enum { PES = 2, TOKENS = 3, HIDDEN = 4, STEPS = 3 };
#define LATE_NS UINT64_C(50000000)

static void meet_late(weft_world *world)
{
    CHECK_OK(weft_barrier(world));
    if (weft_world_pe(world) == 1) {
        wefti_os_sleep_ns(LATE_NS);
    }
}

static void run(weft_world *world, void *context)
{
    static const int32_t ids[TOKENS] = {0, 1, 3}; /* of ranks 0, 0 and 1 */
    _Alignas(16) float in[TOKENS][HIDDEN] = {{0}};
    _Alignas(16) float received[PES * TOKENS][HIDDEN];
    _Alignas(16) float sums[TOKENS][HIDDEN];
    uint64_t rows[2] = {7, 7};
    uint64_t waits[2][PES] = {{7, 7}, {7, 7}};
    int rank = weft_world_pe(world);
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows tokens = WEFT_EP_ROWS_INIT;
    weft_ep_stats stats = WEFT_EP_STATS_INIT;
    (void)context;
    config.experts = 2 * PES;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = sizeof in[0];
    config.flags = WEFT_EP_STATISTICS;
    plan.topk = 1;
    choices.tokens = TOKENS;
    choices.ids = ids;
    tokens.data = in;
    tokens.dtype = WEFT_EP_F32;
    tokens.hidden = HIDDEN;
    out.rows = tokens;
    out.rows.data = received;
    out.rows_capacity = PES * TOKENS;
    if (!ep_group_open(world, &config, &plan, &ep, &route)) {
        return;
    }
    weft_ep_rows back = tokens;
    back.data = sums;
    CHECK_OK(weft_ep_route_update(route, &choices, NULL));
    for (int i = 0; i < STEPS; i++) {
        meet_late(world);
        CHECK_OK(weft_ep_dispatch(route, &tokens, &out, NULL));
        meet_late(world);
        CHECK_OK(weft_ep_combine(route, &out.rows, &back, 0, NULL));
    }
    CHECK_OK(weft_ep_stats_query(ep, &stats)); /* no arrays */
    CHECK(stats.dispatches == STEPS && stats.combines == STEPS);
    stats.rows_of_expert = rows;
    stats.dispatch_wait_ns = waits[0];
    stats.combine_wait_ns = waits[1];
    CHECK_OK(weft_ep_stats_query(ep, &stats));
    CHECK(rows[0] == (rank == 0 ? PES * STEPS : 0) && rows[1] == PES * STEPS);
    CHECK(rank == 1 || waits[1][1] >= STEPS * LATE_NS / 2);
    CHECK(waits[0][0] < UINT64_C(30000000000) && waits[1][0] < UINT64_C(30000000000));
    CHECK_OK(weft_ep_stats_clear(ep));
    CHECK_OK(weft_ep_stats_query(ep, &stats));
    CHECK(stats.dispatches == 0 && stats.combines == 0 && rows[0] + rows[1] == 0);
    CHECK(waits[0][0] + waits[0][1] + waits[1][0] + waits[1][1] == 0);
    stats.size = 8;
    CHECK_STATUS(weft_ep_stats_query(ep, &stats), WEFT_ERR_ARGUMENT);
    ep_group_close(ep, route);
}

static void rows_and_waits_are_added_up(void **state)
{
    (void)state;
    pes_run(PES, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(rows_and_waits_are_added_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
