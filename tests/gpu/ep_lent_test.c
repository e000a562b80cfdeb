/* Goal: on GPUs, too, a group lends receive windows, which are written in place, and takes no memory for rows on their
 * way with WEFT_EP_NO_STAGING: few tokens in slots, halves whose rows leave with send, and dispatches into symmetric
 * memory, go as before, the others say so before they join. And a backward in memory that routings share is on the
 * routing that it requires. Method: gpu/support/ep_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"

static void open_rig(ep_rig *rig, weft_world *world, weft_ep_layout layout, unsigned flags)
{
    weft_ep_config config = ep_rig_config();
    void *window = NULL;
    config.flags = flags;
    config.windows = 1;
    config.window_bytes = EP_RIG_ROWS * sizeof(ep_rig_row);
    ep_rig_open_with(rig, world, layout, &config, 0);
    CHECK_OK(weft_ep_window(rig->ep, 0, &window));
    CHECK(window != NULL && (uintptr_t)window % 256 == 0);
    memset(window, EP_RIG_MARK, config.window_bytes);
    rig->there = window;
    rig->received.rows = ep_rig_rows(rig->there);
    for (int i = 0; i < EP_RIG_TOKENS; i++) { /* each to an expert of both ranks */
        rig->ids[i * EP_RIG_TOPK] = 0;
        rig->ids[i * EP_RIG_TOPK + 1] = 2;
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            rig->tokens[i][h] = (float)(100 * (rig->rank + 1) + i);
        }
    }
    CHECK_OK(weft_barrier(world));
}

static void expect_refused(weft_status status)
{
    CHECK_STATUS(status, WEFT_ERR_UNSUPPORTED);
    CHECK_SAY(strstr(weft_last_error(), "WEFT_EP_NO_STAGING") != NULL, "\"%s\" does not name the flag",
              weft_last_error());
}

static void combine(const ep_rig *rig, int is_refused)
{
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    const weft_ep_rows sums = ep_rig_rows(out);
    if (is_refused) {
        expect_refused(weft_ep_combine(rig->route, &rig->received.rows, &sums, 0, NULL));
        expect_refused(weft_ep_combine_send(rig->route, &rig->received.rows, &sums, 0, NULL));
        expect_refused(weft_ep_dispatch_bwd(rig->route, &rig->received.rows, NULL, &sums, NULL, NULL));
        return;
    }
    CHECK_OK(weft_ep_combine(rig->route, &rig->received.rows, &sums, 0, NULL));
    CHECK_STATUS(weft_ep_failure(rig->ep), WEFT_OK);
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            CHECK(out[i][h] == EP_RIG_PES * rig->tokens[i][h]);
        }
    }
}

/* which: the layout, without and with memory for rows on their way. */
static void lend(weft_world *world, int which)
{
    ep_rig rig;
    static _Alignas(64) ep_rig_row plain[EP_RIG_PES][EP_RIG_ROWS];
    const weft_ep_layout layout = (weft_ep_layout)(which % 4);
    const int has_none = which < 4;
    const int is_few = layout >= WEFT_EP_SLOTS_SOURCE;
    open_rig(&rig, world, layout, has_none ? WEFT_EP_NO_STAGING : 0);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    weft_ep_received elsewhere = rig.received;
    elsewhere.rows = ep_rig_rows(plain[rig.rank]);
    if (has_none && !is_few) {
        expect_refused(weft_ep_dispatch(rig.route, &rig.in, &elsewhere, NULL));
        expect_refused(weft_ep_dispatch_send(rig.route, &rig.in, &elsewhere, NULL));
    } else {
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &elsewhere, NULL));
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    }
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK(ep_rig_rows_written(&rig) == EP_RIG_PES * EP_RIG_TOKENS);
    combine(&rig, has_none && !is_few);
    if (layout == WEFT_EP_RANK_MAJOR || layout == WEFT_EP_EXPERT_MAJOR) {
        const weft_ep_rows gradients = ep_rig_rows(rig.there);
        CHECK_OK(weft_ep_combine_bwd(rig.route, &rig.in, NULL, &gradients, NULL, 0, NULL));
    }
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    ep_rig_close(&rig);
}

/* Halves whose rows leave with send need no memory for rows on their way. */
static void leave(weft_world *world, int which)
{
    ep_rig rig;
    static _Alignas(64) ep_rig_row plain[EP_RIG_PES][EP_RIG_ROWS];
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    const weft_ep_rows sums = ep_rig_rows(out);
    const weft_ep_layout layout = which % 2 == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_EXPERT_MAJOR;
    open_rig(&rig, world, layout, WEFT_EP_NO_STAGING | WEFT_EP_ROWS_WITH_SEND);
    rig.received.rows = ep_rig_rows(plain[rig.rank]);
    for (int call = 0; call < 3; call++) { /* a new routing, and calls on it */
        if (call == 0) {
            CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        }
        expect_refused(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        memset(plain[rig.rank], EP_RIG_MARK, sizeof plain[rig.rank]);
        CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
        CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        expect_refused(weft_ep_combine(rig.route, &rig.received.rows, &sums, 0, NULL));
        memset(out, EP_RIG_MARK, sizeof out);
        CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &sums, 0, NULL));
        CHECK_OK(weft_ep_combine_recv(rig.route, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        for (int i = 0; i < EP_RIG_TOKENS * EP_RIG_HIDDEN; i++) {
            CHECK(out[i / EP_RIG_HIDDEN][i % EP_RIG_HIDDEN] ==
                  EP_RIG_PES * rig.tokens[i / EP_RIG_HIDDEN][i % EP_RIG_HIDDEN]);
        }
    }
    ep_rig_close(&rig);
}

/* Routings of one route in two places, of which a later one overwrites the first. */
static void require(weft_world *world, int which)
{
    ep_rig rig;
    size_t bytes = 0;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *other = NULL;
    uint64_t first = 0;
    void *memory[2];
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    plan.topk = EP_RIG_TOPK;
    CHECK_OK(weft_ep_route_bytes(rig.ep, &plan, &bytes));
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &other));
    for (int i = 0; i < 2; i++) {
        memory[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
        CHECK_OK(weft_ep_route_attach(rig.route, memory[i], bytes, WEFT_EP_CONTENTS_NONE, NULL));
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
        CHECK_OK(i == 0 ? weft_ep_route_generation(rig.route, &first) : WEFT_OK);
    }
    const weft_ep_rows gradients = ep_rig_rows(rig.there);
    const weft_ep_rows out = ep_rig_rows(rig.tokens);
    CHECK_OK(weft_ep_route_require(rig.route, first)); /* which lies where the route was before */
    CHECK_STATUS(weft_ep_dispatch_bwd(rig.route, &gradients, NULL, &out, NULL, NULL), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_route_attach(rig.route, memory[0], bytes, WEFT_EP_CONTENTS_ROUTING, NULL));
    CHECK_OK(weft_ep_dispatch_bwd(rig.route, &gradients, NULL, &out, NULL, NULL));
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL)); /* over it */
    CHECK_STATUS(weft_ep_combine_bwd(rig.route, &out, NULL, &gradients, NULL, 0, NULL), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_route_attach(rig.route, memory[1], bytes, WEFT_EP_CONTENTS_ROUTING, NULL));
    CHECK_STATUS(weft_ep_combine_bwd(rig.route, &out, NULL, &gradients, NULL, 0, NULL), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_route_require(rig.route, first + 1));
    CHECK_OK(weft_ep_combine_bwd(rig.route, &out, NULL, &gradients, NULL, 0, NULL));
    CHECK_OK(weft_ep_route_attach(other, memory[1], bytes, WEFT_EP_CONTENTS_NONE, NULL));
    CHECK_OK(weft_ep_route_update(other, &rig.choices, NULL)); /* another route, over it */
    CHECK_OK(weft_ep_route_attach(rig.route, memory[1], bytes, WEFT_EP_CONTENTS_ROUTING, NULL));
    CHECK_STATUS(weft_ep_combine_bwd(rig.route, &out, NULL, &gradients, NULL, 0, NULL), WEFT_ERR_STATE);
    CHECK(strstr(weft_last_error(), "another route has routed in its memory") != NULL);
    CHECK_OK(weft_ep_route_require(rig.route, 0)); /* any will do */
    CHECK_OK(weft_ep_combine_bwd(rig.route, &out, NULL, &gradients, NULL, 0, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK_OK(weft_ep_route_destroy(other));
    ep_rig_close(&rig);
    free(memory[0]);
    free(memory[1]);
}

static void windows(void **state)
{
    static const ep_rig_case cases[] = {{lend, 8}, {leave, 2}, {require, 1}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(windows)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
