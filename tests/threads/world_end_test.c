/* Goal: what hangs on a world ends with it, and its counters count.
 * Method: PEs as threads destroy a world that still has teams, contexts, a region, a group and routes, and compare the
 * ledger; they dispatch a known number of rows and read the counters; and a context ends after its team, where another
 * team lies by then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"
#include "weft.h"
#include "weft_ep.h"

#define PES 3
#define TOKENS 5
#define HIDDEN 8

static weft_ep *make_group(weft_world *world)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep *ep = NULL;
    config.experts = PES;
    config.tokens_max = TOKENS;
    config.topk_max = 2;
    config.row_bytes_max = HIDDEN * sizeof(float);
    CHECK_OK(weft_ep_create(weft_team_world(world), &config, &ep));
    return ep;
}

static weft_ep_route *make_route(weft_ep *ep)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *route = NULL;
    plan.topk = 2;
    CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &route));
    return route;
}

static void leave_everything(weft_world *world, void *context)
{
    (void)context;
    weft_team *team = NULL;
    weft_ep *ep = make_group(world);
    (void)make_route(ep);
    (void)make_route(ep);
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, PES, &team));
    static long words[PES][8];
    weft_ctx *contexts[3];
    weft_region *region = NULL;
    CHECK_OK(weft_ctx_create(weft_team_world(world), 0, &contexts[0]));
    CHECK_OK(weft_ctx_create(team, 0, &contexts[1]));
    CHECK_OK(weft_ctx_create(team, 0, &contexts[2]));
    CHECK_OK(weft_ctx_destroy(contexts[1])); /* between others */
    CHECK_OK(weft_register(world, words[weft_world_pe(world)], sizeof words[0], &region));
    CHECK_OK(weft_ep_route_destroy(make_route(ep)));
}

/* Every token chooses the experts of this PE and of the next. */
static void count_rows(weft_world *world, void *context)
{
    (void)context;
    int pe = weft_world_pe(world);
    int32_t ids[TOKENS][2];
    float rows[TOKENS][HIDDEN];
    float received_rows[PES * TOKENS][HIDDEN];
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    weft_counters counters;
    weft_ep_route *route = make_route(make_group(world));
    memset(rows, 0, sizeof rows);
    for (int t = 0; t < TOKENS; t++) {
        ids[t][0] = pe;
        ids[t][1] = (pe + 1) % PES;
    }
    choices.tokens = TOKENS;
    choices.ids = ids;
    CHECK_OK(weft_ep_route_update(route, &choices, NULL));
    in.data = rows;
    in.dtype = WEFT_EP_F32;
    in.hidden = HIDDEN;
    out.rows = in;
    out.rows.data = received_rows;
    out.rows_capacity = PES * TOKENS;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(weft_ep_dispatch(route, &in, &out, NULL));
    }
    CHECK_OK(weft_ep_combine(route, &out.rows, &in, 0, NULL));
    CHECK_OK(weft_world_counters(world, &counters));
    CHECK(counters.ep_dispatches == 3 && counters.ep_combines == 1);
    CHECK(counters.ep_updates == 1);
    CHECK(counters.ep_bytes_sent == counters.ep_rows_sent * sizeof rows[0]);
    CHECK(counters.ep_bytes_received == counters.ep_rows_received * sizeof rows[0]);
    CHECK(counters.ep_rows_sent == 3 * TOKENS * 2 && counters.ep_rows_received == 3 * TOKENS * 2);
}

#define TEAMS 200 /* more than are kept after their end */

/* Make teams and end them until one lies where `gone` lay; NULL when none does, as where freed memory is watched. */
static weft_team *make_at(weft_world *world, const weft_team *gone)
{
    for (int i = 0; i < TEAMS; i++) {
        weft_team *team = NULL;
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 1, &team));
        if (team == gone) {
            return team;
        }
        CHECK_OK(weft_team_destroy(team));
    }
    return NULL;
}

/* A context that outlives its team writes nothing where that was. */
static void end_in_turn(weft_world *world, void *context)
{
    (void)context;
    weft_team *team = NULL;
    weft_ctx *older = NULL;
    weft_ctx *newer = NULL;
    (void)make_at(world, NULL); /* what the C library keeps apart for each thread is full then */
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 1, &team));
    CHECK_OK(weft_ctx_create(team, 0, &older));
    CHECK_OK(weft_team_destroy(team));
    CHECK(weft_ctx_team(older) == NULL);
    team = make_at(world, team);
    if (team != NULL) {
        CHECK_OK(weft_ctx_create(team, 0, &newer));
    } else {
        print_message("no team lies where the other lay, so nothing is seen here\n");
    }
    CHECK_OK(weft_ctx_destroy(older));
    CHECK_OK(weft_team_destroy(team));
    CHECK(newer == NULL || weft_ctx_team(newer) == NULL);
    CHECK_OK(weft_ctx_destroy(newer));
}

static void test_contexts_outlive_their_team(void **state)
{
    (void)state;
    pes_run(1, end_in_turn, NULL);
}

static void test_what_is_left_ends_with_its_world(void **state)
{
    (void)state;
    ledger before = ledger_read();
    pes_run(PES, leave_everything, NULL);
    ledger_assert_same(&before);
}

static void test_rows_are_counted(void **state)
{
    (void)state;
    pes_run(PES, count_rows, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_what_is_left_ends_with_its_world),
        CHECKED_TEST(test_rows_are_counted),
        CHECKED_TEST(test_contexts_outlive_their_team),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
