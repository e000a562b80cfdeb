/* Goal: a dispatch that brings new weights for the routing that is there (weft_ep_route_weigh) gives what one gives
 * that agrees on the same choices with these weights, and so do the calls after it; a choice, an update and what is not
 * allowed drop or refuse them; ranks of which one brings none learn so, and go on.
 *
 * Method: two PEs as threads on the fake driver, whose device memory is this machine's, as few ranks and as many, and
 * on the host, in one domain and in two. In each layout, with tokens of a unit each and with several in a unit, whole
 * and in halves, beside a second route that chooses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/ep/memory.h"
#include "gpu/support/ep_rig.h"
#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "testing/sim/sanitizer.h"
#include "weft_ep.h"

enum { PES = 2, TOPK = 3, LOCAL = 2, HIDDEN = 4, FEW = 11, MANY = WEFTI_CUDA_EP_UNITS_MAX + 37, LAYOUTS = 4 };
enum { PLACES = PES * MANY * TOPK + PES * LOCAL }; /* of any layout, in [N] or [N][K] elements */

/* What a dispatch gives. */
typedef struct received {
    _Alignas(64) float rows[PLACES][HIDDEN];
    float weights[PLACES];
    int32_t experts[PLACES];
    int32_t source_rank[PLACES];
    int32_t source_token[PLACES];
    float sums[MANY][HIDDEN];
} received;

/* Where groups are. */
typedef struct place {
    int on_device;
    int domain_ranks;
} place;

typedef struct rig {
    weft_world *world;
    int on_device;
    int rank;
    int tokens;
    weft_ep *ep;
    weft_ep_route *weighed;
    weft_ep_route *chosen;
    weft_ep_choices choices;
    _Alignas(64) float in[MANY][HIDDEN];
    int32_t ids[MANY * TOPK];
    float weights[2][MANY * TOPK]; /* of an update, and new ones */
    received got;
    received wanted;
} rig;

static weft_ep_rows rows_at(void *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static void fill(rig *r)
{
    for (int i = 0; i < MANY * TOPK; i++) {
        r->ids[i] = (i * 7 + i / 5 + r->rank) % (PES * LOCAL + 1) - 1; /* some are none, some come twice */
        r->weights[0][i] = (float)(i % 97) - 40;
        r->weights[1][i] = (float)(1000 * (r->rank + 1) + i);
    }
    for (int i = 0; i < MANY; i++) {
        for (int h = 0; h < HIDDEN; h++) {
            r->in[i][h] = (float)((r->rank + 1) * (i % 64 + h));
        }
    }
}

static rig *open_rig(weft_world *world, const place *where, weft_ep_layout layout, int tokens)
{
    rig *r = aligned_alloc(64, (sizeof *r + 63) / 64 * 64);
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    if (r == NULL) {
        abort();
    }
    memset(r, 0, sizeof *r);
    r->world = world;
    r->rank = weft_world_pe(world);
    r->tokens = tokens - r->rank; /* ranks differ */
    config.experts = PES * LOCAL;
    config.tokens_max = tokens;
    config.topk_max = TOPK;
    config.row_bytes_max = sizeof r->in[0];
    config.on_device = r->on_device = where->on_device;
    config.domain_ranks = where->domain_ranks;
    plan.topk = TOPK;
    plan.layout = layout;
    plan.flags = layout == WEFT_EP_SLOTS_SOURCE ? WEFT_EP_ALL_WEIGHTS : 0;
    plan.alignment = layout == WEFT_EP_EXPERT_MAJOR ? 2 : 0;
    (void)ep_group_open(world, &config, &plan, &r->ep, &r->weighed);
    CHECK_OK(weft_ep_route_create(r->ep, &plan, NULL, &r->chosen));
    fill(r);
    r->choices = choices;
    r->choices.tokens = r->tokens;
    r->choices.ids = r->ids;
    r->choices.weights = r->weights[0];
    return r;
}

static void close_rig(rig *r)
{
    CHECK_OK(weft_ep_route_destroy(r->chosen));
    ep_group_close(r->ep, r->weighed);
    free(r);
}

static weft_status dispatch(rig *r, weft_ep_route *route, received *to, int in_halves)
{
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    const weft_ep_rows in = rows_at(r->in);
    memset(to, 0x5a, sizeof *to);
    out.rows = rows_at(to->rows);
    out.rows_capacity = PLACES;
    out.weights = to->weights;
    out.experts = to->experts;
    out.source_rank = to->source_rank;
    out.source_token = to->source_token;
    if (!in_halves) {
        return weft_ep_dispatch(route, &in, &out, NULL);
    }
    weft_status status = weft_ep_dispatch_send(route, &in, &out, NULL);
    CHECK_STATUS(weft_ep_route_weigh(route, NULL), WEFT_ERR_STATE);
    return status != WEFT_OK ? status : weft_ep_dispatch_recv(route, NULL);
}

static void expect_same(rig *r)
{
    weft_ep_host_counts counts;
    const weft_ep_rows got = rows_at(r->got.rows);
    const weft_ep_rows wanted = rows_at(r->wanted.rows);
    const weft_ep_rows got_sums = rows_at(r->got.sums);
    const weft_ep_rows wanted_sums = rows_at(r->wanted.sums);
    CHECK_OK(weft_ep_route_query(r->weighed, NULL, &counts));
    CHECK_STATUS(counts.status, WEFT_OK);
    CHECK_OK(weft_ep_combine(r->weighed, &got, &got_sums, WEFT_EP_WEIGHTED, NULL));
    CHECK_OK(weft_ep_combine(r->chosen, &wanted, &wanted_sums, WEFT_EP_WEIGHTED, NULL));
    CHECK_OK(weft_ep_route_query(r->chosen, NULL, &counts));
    CHECK(memcmp(&r->got, &r->wanted, sizeof r->got) == 0);
}

/* What the second route gives with these weights. */
static void want(rig *r, const float *weights)
{
    weft_ep_choices choices = r->choices;
    choices.weights = weights;
    CHECK_OK(weft_ep_route_choose(r->chosen, &choices));
    CHECK_OK(dispatch(r, r->chosen, &r->wanted, 0));
}

/* As the face of NCCL EP does: an update, whose weights do not matter; then dispatches, each with its own. */
static void as_chosen(weft_world *world, const place *where, weft_ep_layout layout, int tokens)
{
    rig *r = open_rig(world, where, layout, tokens);
    CHECK_STATUS(weft_ep_route_weigh(r->weighed, NULL), WEFT_ERR_STATE); /* no routing */
    CHECK_OK(weft_ep_route_update(r->weighed, &r->choices, NULL));
    want(r, r->weights[1]);
    for (int times = 0; times < 3; times++) {
        if (times != 1) { /* the second has those of the first */
            CHECK_OK(weft_ep_route_weigh(r->weighed, NULL));
            CHECK_OK(weft_ep_route_weigh(r->weighed, r->weights[1]));
        }
        CHECK_OK(dispatch(r, r->weighed, &r->got, times == 2));
        expect_same(r);
        want(r, r->weights[1]);
    }
    want(r, NULL);
    CHECK_OK(weft_ep_route_weigh(r->weighed, NULL));
    CHECK_OK(dispatch(r, r->weighed, &r->got, 0));
    expect_same(r);
    want(r, r->weights[0]);
    CHECK_OK(weft_ep_route_weigh(r->weighed, r->weights[1])); /* dropped by what comes next */
    CHECK_OK(weft_ep_route_choose(r->weighed, &r->choices));
    CHECK_STATUS(weft_ep_route_weigh(r->weighed, NULL), WEFT_ERR_STATE); /* the choice has weights */
    CHECK_OK(dispatch(r, r->weighed, &r->got, 0));
    expect_same(r);
    close_rig(r);
}

static void one_brings_none(weft_world *world, const place *where, weft_ep_layout layout)
{
    weft_ep_host_counts counts;
    rig *r = open_rig(world, where, layout, FEW);
    CHECK_OK(weft_ep_route_update(r->weighed, &r->choices, NULL));
    if (r->rank == 0) {
        CHECK_OK(weft_ep_route_weigh(r->weighed, r->weights[1]));
    }
    weft_status status = dispatch(r, r->weighed, &r->got, 0);
    if (r->on_device) {
        CHECK_OK(status);
        status = weft_ep_route_query(r->weighed, NULL, &counts);
    }
    CHECK_STATUS(status, WEFT_ERR_MISMATCH);
    CHECK(strstr(weft_last_error(), "new weights") != NULL);
    want(r, r->weights[0]); /* nothing came of it */
    CHECK_OK(dispatch(r, r->weighed, &r->got, 0));
    expect_same(r);
    close_rig(r);
}

static void run(weft_world *world, void *context)
{
    const place *where = context;
    const int layouts = !where->on_device || ep_rig_attach(world) ? LAYOUTS : 0;
    for (int layout = 0; layout < layouts; layout++) {
        as_chosen(world, where, (weft_ep_layout)layout, FEW);
        if (!WEFTI_ASAN || layout % 2 == 0) { /* with it most of the time, so a layout of rows and one of slots */
            as_chosen(world, where, (weft_ep_layout)layout, MANY);
        }
        one_brings_none(world, where, (weft_ep_layout)layout);
    }
}

static void of_few_ranks(void **state)
{
    place where = {.on_device = 1};
    (void)state;
    pes_run(PES, run, &where);
}

static void of_many_ranks(void **state)
{
    place where = {.on_device = 1};
    (void)state;
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    pes_run(PES, run, &where);
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

static void on_the_host(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= PES; ranks++) { /* of a domain */
        place where = {.domain_ranks = ranks};
        pes_run(PES, run, &where);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(of_few_ranks), CHECKED_TEST(of_many_ranks),
                                       CHECKED_TEST(on_the_host)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
