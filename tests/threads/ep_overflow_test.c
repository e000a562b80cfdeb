/* Goal: rows_max rows are no overflow and one more is, padding included, on all ranks alike; nothing moves then, and
 * the next update is as good as the first. Where rows are dropped by themselves, a call that routes is two, of which a
 * rank that was refused between them makes the second only, and ranks that call something else all learn so.
 *
 * Method: three PEs as threads whose tokens all go to the experts of rank 1, in both layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 3
#define TOKENS 4
#define HIDDEN 8
#define ALIGNMENT 8

/* Experts 1 and 2 are rank 1's: 3 * 4 tokens with both are 12 rows by rank, 24 by expert, 32 with groups of 12
 * padded. */
typedef struct limit_case {
    weft_ep_layout layout;
    int alignment;
    size_t rows; /* that rank 1 receives */
} limit_case;

static const limit_case limit_cases[] = {
    {WEFT_EP_RANK_MAJOR, 0, 12},
    {WEFT_EP_EXPERT_MAJOR, 0, 24},
    {WEFT_EP_EXPERT_MAJOR, ALIGNMENT, 32},
};

typedef struct overflow_rig {
    const limit_case *limit;
    weft_ep_route *route;
    float *in;
    float *received;
    int pe;
} overflow_rig;

static weft_ep_choices choices_of(int32_t ids[TOKENS * 2], int choice, int tokens)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    for (int i = 0; i < TOKENS; i++) {
        ids[2 * i] = choice;
        ids[2 * i + 1] = choice + 1;
    }
    choices.tokens = tokens;
    choices.ids = ids;
    return choices;
}

static weft_status update(overflow_rig *rig, int choice, int tokens)
{
    int32_t ids[TOKENS * 2];
    const weft_ep_choices choices = choices_of(ids, choice, tokens);
    return weft_ep_route_update(rig->route, &choices, NULL);
}

static weft_ep_rows rows_at(float *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

/* A dispatch and a combine must both give `wanted`. */
static void move(overflow_rig *rig, weft_status wanted)
{
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_at(rig->received);
    out.rows_capacity = rig->limit->rows;
    CHECK_STATUS(weft_ep_dispatch(rig->route, &in, &out, NULL), wanted);
    CHECK_STATUS(weft_ep_combine(rig->route, &out.rows, &in, 0, NULL), wanted);
}

static void check_query(overflow_rig *rig, weft_status status, size_t rows)
{
    weft_ep_host_counts counts;
    if (CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts))) {
        CHECK_STATUS(counts.status, status);
        CHECK_SAY(counts.rows == (int64_t)(rig->pe == 1 ? rows : 0), "%lld rows", (long long)counts.rows);
    }
}

/* rows_max is what comes, or one less. */
static void route_at_limit(overflow_rig *rig, int is_over)
{
    weft_status status = is_over ? WEFT_ERR_OVERFLOW : WEFT_OK;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(update(rig, 1, TOKENS));
        check_query(rig, status, rig->limit->rows);
        move(rig, status);
        CHECK_OK(update(rig, 1, rig->pe == 2 ? TOKENS : 0)); /* fits */
        check_query(rig, WEFT_OK, rig->limit->alignment > 1 ? 2 * ALIGNMENT : rig->limit->rows / PES);
        move(rig, WEFT_OK);
    }
}

static void run_limit(weft_world *world, overflow_rig *rig, int is_over)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    static const int experts_of_rank[PES] = {1, 2, 0};
    weft_ep *ep;
    config.experts = 3;
    config.tokens_max = TOKENS;
    config.topk_max = 2;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.rows_max = rig->limit->rows - (size_t)is_over;
    config.experts_of_rank = experts_of_rank;
    plan.topk = 2;
    plan.layout = rig->limit->layout;
    plan.alignment = rig->limit->alignment;
    if (ep_group_open(world, &config, &plan, &ep, &rig->route)) {
        route_at_limit(rig, is_over);
        ep_group_close(ep, rig->route);
    }
}

static void run_limits(weft_world *world, void *context)
{
    size_t bytes = sizeof(float) * 32 * HIDDEN;
    overflow_rig rig = {.pe = weft_world_pe(world)};
    (void)context;
    rig.in = aligned_alloc(64, bytes);
    rig.received = aligned_alloc(64, bytes);
    memset(rig.in, 0, bytes);
    memset(rig.received, 0, bytes);
    for (size_t i = 0; i < sizeof limit_cases / sizeof limit_cases[0]; i++) {
        rig.limit = &limit_cases[i];
        run_limit(world, &rig, 0);
        run_limit(world, &rig, 1);
    }
    free(rig.in);
    free(rig.received);
}

static void limits(void **state)
{
    (void)state;
    pes_run(PES, run_limits, NULL);
}

/* ---- rows that are dropped by themselves ---- */

#define KEPT 8 /* of rank 1's first expert, whose rows fill what it has room for: 16 of 24 are dropped */

/* A dispatch that rank 2 is refused once, when the ranks have counted. */
static void dispatch_twice(overflow_rig *rig, const weft_ep *ep)
{
    int32_t ids[TOKENS * 2];
    uint64_t before = 0;
    uint64_t calls = 0;
    const weft_ep_choices choices = choices_of(ids, 1, TOKENS);
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_rows none = rows_at(NULL);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    weft_ep_host_counts counts;
    out.rows = rows_at(rig->received);
    out.rows_capacity = KEPT;
    CHECK_OK(weft_ep_calls(ep, &before));
    CHECK_OK(weft_ep_route_choose(rig->route, &choices));
    if (rig->pe == 2) {
        CHECK(weft_ep_dispatch(rig->route, &none, &out, NULL) != WEFT_OK);
    }
    CHECK_OK(weft_ep_dispatch(rig->route, &in, &out, NULL));
    CHECK_OK(weft_ep_combine(rig->route, &out.rows, &in, 0, NULL));
    CHECK_OK(weft_ep_calls(ep, &calls));
    CHECK_SAY(calls == before + 3, "%llu calls", (unsigned long long)(calls - before));
    if (CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts))) {
        CHECK(counts.rows == (rig->pe == 1 ? KEPT : 0) && counts.status == WEFT_OK);
        CHECK(counts.dropped_rows == (rig->pe == 1 ? 2 * PES * TOKENS - KEPT : 0));
    }
}

static void run_drops(weft_world *world, void *context)
{
    static const int experts_of_rank[PES] = {1, 2, 0};
    const size_t bytes = sizeof(float) * 32 * HIDDEN;
    overflow_rig rig = {.pe = weft_world_pe(world)};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep *ep;
    rig.in = aligned_alloc(64, bytes);
    rig.received = aligned_alloc(64, bytes);
    memset(rig.in, 0, bytes);
    config.experts = 3;
    config.flags = *(const unsigned *)context;
    config.tokens_max = TOKENS;
    config.topk_max = plan.topk = 2;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.rows_max = KEPT;
    config.experts_of_rank = experts_of_rank;
    config.overflow = WEFT_EP_OVERFLOW_DROP_ROWS;
    plan.layout = WEFT_EP_EXPERT_MAJOR;
    if (ep_group_open(world, &config, &plan, &ep, &rig.route)) {
        weft_ep_rows rows = rows_at(rig.received);
        dispatch_twice(&rig, ep);
        CHECK_STATUS(rig.pe == 0 ? weft_ep_combine(rig.route, &rows, &rows, 0, NULL) : update(&rig, 1, TOKENS),
                     WEFT_ERR_MISMATCH);
        CHECK(strstr(weft_last_error(), "counting rows to drop") != NULL);
        dispatch_twice(&rig, ep);
        ep_group_close(ep, rig.route);
    }
    free(rig.in);
    free(rig.received);
}

static void drops(void **state)
{
    unsigned flags = 0;
    (void)state;
    pes_run(PES, run_drops, &flags);
    flags = WEFT_EP_MASK_ON_TIMEOUT; /* whose sources have places of their own */
    pes_run(PES, run_drops, &flags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(limits), CHECKED_TEST(drops)};
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
