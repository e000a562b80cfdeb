/* Goal: tokens are routed to ranks by a mask, or by positions on the ranks, without experts.
 *
 * Method: two ranks; rank 0 has three tokens, which go to rank 1 in an order given, the second to rank 0 too. What
 * arrives is worked out by hand. The random cases of tests/property/ep.c draw masks and positions of up to 16 ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

enum { PES = 2, TOKENS = 3, HIDDEN = 4, ROWS = PES * TOKENS };

typedef struct rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_choices choices;
    _Alignas(16) float in[TOKENS][HIDDEN];
    _Alignas(16) float received[ROWS][HIDDEN];
    int32_t experts[ROWS][PES];
    float weights[ROWS][PES];
    int32_t tokens[ROWS];
} rig;

static const unsigned char mask[TOKENS][PES] = {{0, 1}, {1, 7}, {0, 255}};
static const float given[TOKENS][PES] = {{1, 2}, {3, 4}, {5, 6}};

static weft_ep_rows rows_of(void *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static int open_rig(weft_world *world, rig *r)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    memset(r, 0, sizeof *r);
    r->rank = weft_world_pe(world);
    config.experts = 1; /* rank 1 has none */
    config.tokens_max = TOKENS;
    config.topk_max = PES;
    config.row_bytes_max = HIDDEN * sizeof(float);
    plan.flags = WEFT_EP_DESTINATIONS;
    r->choices = choices;
    r->choices.tokens = r->rank == 0 ? TOKENS : 0;
    r->choices.weights = &given[0][0];
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        r->in[i / HIDDEN][i % HIDDEN] = (float)(10 + i / HIDDEN);
    }
    return ep_group_open(world, &config, &plan, &r->ep, &r->route);
}

/* The step: what comes, and a weighted combine of it. Returns the route's status. */
static weft_status step(rig *r, int64_t rows)
{
    weft_ep_rows in = rows_of(r->in);
    weft_ep_rows out = rows_of(r->in);
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    weft_ep_host_counts counts = {.rows = -1};
    float sums[TOKENS][HIDDEN] __attribute__((aligned(16)));
    received.rows = rows_of(r->received);
    received.rows_capacity = ROWS;
    received.experts = &r->experts[0][0];
    received.weights = &r->weights[0][0];
    received.source_token = r->tokens;
    out.data = sums;
    CHECK_OK(weft_ep_route_choose(r->route, &r->choices));
    CHECK_OK(weft_ep_dispatch(r->route, &in, &received, NULL));
    CHECK_OK(weft_ep_route_query(r->route, NULL, &counts));
    CHECK(counts.rows == rows);
    for (int i = 0; i < rows; i++) {
        CHECK(r->received[i][0] == (float)(10 + r->tokens[i]));
        CHECK(r->experts[i][r->rank] == 0 && r->experts[i][!r->rank] == -1);
        CHECK(r->weights[i][r->rank] == given[r->tokens[i]][r->rank] && r->weights[i][!r->rank] == 0.0f);
    }
    CHECK_OK(weft_ep_combine(r->route, &received.rows, &out, WEFT_EP_WEIGHTED, NULL));
    for (int i = 0; i < r->choices.tokens; i++) {
        CHECK(sums[i][0] == (float)(10 + i) * (given[i][1] + (i == 1 ? given[i][0] : 0.0f)));
    }
    return counts.status;
}

static void expect_tokens(const rig *r, int32_t first, int32_t second, int32_t third)
{
    if (r->rank == 0) {
        CHECK(r->tokens[0] == 1);
    } else {
        CHECK(r->tokens[0] == first && r->tokens[1] == second && r->tokens[2] == third);
    }
}

static void run(weft_world *world, void *context)
{
    static const int32_t turned[TOKENS][PES] = {{-1, 2}, {0, 1}, {-1, 0}};
    static const int32_t twice[TOKENS][PES] = {{-1, 2}, {0, 1}, {-1, 1}};
    static const int32_t beyond[TOKENS][PES] = {{-1, 0}, {0, 1}, {-1, INT32_MAX}};
    static const int32_t id = 0;
    rig r;
    (void)context;
    if (!open_rig(world, &r)) {
        return;
    }
    int64_t rows = r.rank == 0 ? 1 : TOKENS;
    r.choices.destinations = &mask[0][0];
    CHECK_STATUS(step(&r, rows), WEFT_OK);
    expect_tokens(&r, 0, 1, 2);
    r.choices.positions = &turned[0][0];
    CHECK_STATUS(weft_ep_route_choose(r.route, &r.choices), WEFT_ERR_ARGUMENT); /* both */
    r.choices.destinations = NULL;
    CHECK_STATUS(step(&r, rows), WEFT_OK);
    expect_tokens(&r, 2, 1, 0);
    const weft_status status = r.rank == 0 ? WEFT_ERR_RANGE : WEFT_OK;
    r.choices.positions = &twice[0][0];
    CHECK_STATUS(step(&r, rows), status);
    expect_tokens(&r, 0, 1, 2);
    r.choices.positions = &beyond[0][0];
    CHECK_STATUS(step(&r, rows), status);
    expect_tokens(&r, 0, 1, 2);
    r.choices.ids = &id;
    CHECK_STATUS(weft_ep_route_choose(r.route, &r.choices), WEFT_ERR_ARGUMENT);
    ep_group_close(r.ep, r.route);
}

static void masks_and_positions(void **state)
{
    (void)state;
    pes_run(PES, run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(masks_and_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
