/* Goal: whatever allocation or system call fails, a group, a route and a step either work or say why, and nothing is
 * left.
 *
 * Method: support/torture.h on a world of one PE. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/torture.h"
#include "weft.h"
#include "weft_ep.h"

#define TOKENS 5
#define TOPK 2
#define HIDDEN 8
#define EXPERTS 3

static weft_status step(weft_ep_route *route)
{
    static const int32_t ids[TOKENS * TOPK] = {0, 1, 2, 0, 1, 1, -1, 2, 0, 2};
    static _Alignas(16) float values[TOKENS * HIDDEN];
    static _Alignas(16) float received[TOKENS * TOPK * HIDDEN];
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    choices.tokens = TOKENS;
    choices.ids = ids;
    in.data = values;
    in.dtype = WEFT_EP_F32;
    in.hidden = HIDDEN;
    out.rows = in;
    out.rows.data = received;
    out.rows_capacity = TOKENS * TOPK;
    WEFT_TRY(weft_ep_route_update(route, &choices, NULL));
    WEFT_TRY(weft_ep_dispatch(route, &in, &out, NULL));
    return weft_ep_combine(route, &out.rows, &in, WEFT_EP_WEIGHTED, NULL);
}

static weft_status use_route(weft_ep *ep)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *route;
    plan.topk = TOPK;
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    WEFT_TRY(weft_ep_route_create(ep, &plan, NULL, &route));
    weft_status status = step(route);
    weft_status ended = weft_ep_route_destroy(route);
    return status != WEFT_OK ? status : ended;
}

static weft_status use_group(weft_world *world)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep *ep;
    config.experts = EXPERTS;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    WEFT_TRY(weft_ep_create(weft_team_world(world), &config, &ep));
    weft_status status = use_route(ep);
    weft_status ended = weft_ep_destroy(ep);
    return status != WEFT_OK ? status : ended;
}

static weft_status use_world(void *context)
{
    weft_world *world;
    (void)context;
    WEFT_TRY(weft_world_create(NULL, &world));
    weft_status status = use_group(world);
    weft_status ended = weft_world_destroy(world);
    return status != WEFT_OK ? status : ended;
}

static void everything_fails_once(void **state)
{
    (void)state;
    assert_true(torture(use_world, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(everything_fails_once)};
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
