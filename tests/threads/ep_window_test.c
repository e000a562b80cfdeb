/* Goal: a group lends receive windows, which dispatches write and combines read where they are; and with
 * WEFT_EP_NO_STAGING it takes no memory for rows on their way: calls that need none give what they give with it, and
 * the others say so before they join. Method: two ranks of one expert each; rows hold one value, which the experts give
 * back. tests/gpu/ep_lent_test.c does the same on GPUs. */
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
#include "weft.h"
#include "weft_ep.h"

enum { PES = 2, TOKENS = 6, HIDDEN = 8, ROWS = PES * PES * TOKENS };

typedef struct rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    float *window[2];
    int32_t ids[TOKENS * PES];
    _Alignas(16) float in[TOKENS * HIDDEN];
    _Alignas(16) float own[ROWS * HIDDEN];
    _Alignas(16) float out[TOKENS * HIDDEN];
} rig;

static weft_ep_config config_of(unsigned flags)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = PES;
    config.tokens_max = TOKENS;
    config.topk_max = PES;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.flags = flags;
    config.windows = 2;
    config.window_bytes = ROWS * HIDDEN * sizeof(float) - 4;
    return config;
}

static weft_ep_rows rows_of(float *data)
{
    return ep_rows(data, WEFT_EP_F32, HIDDEN);
}

static weft_ep_received received_of(float *data)
{
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(data);
    out.rows_capacity = ROWS - 1;
    return out;
}

static void open_rig(rig *r, weft_world *world, unsigned flags, weft_ep_layout layout)
{
    const weft_ep_config config = config_of(flags);
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    memset(r, 0, sizeof *r);
    r->rank = weft_world_pe(world);
    plan.topk = PES;
    plan.layout = layout;
    (void)ep_group_open(world, &config, &plan, &r->ep, &r->route);
    for (int i = 0; i < 2; i++) {
        void *window = NULL;
        CHECK_OK(weft_ep_window(r->ep, i, &window));
        CHECK((uintptr_t)window % 256 == 0);
        r->window[i] = window;
        memset(window, 0x5a, config.window_bytes);
    }
    CHECK((uintptr_t)r->window[1] - (uintptr_t)r->window[0] >= config.window_bytes);
    CHECK_STATUS(weft_ep_window(r->ep, 2, (void **)&r->window[0]), WEFT_ERR_RANGE);
    ep_choose_all(r->ids, TOKENS, PES);
    ep_tokens_fill(r->in, r->rank, TOKENS, HIDDEN);
    choices.tokens = TOKENS;
    choices.ids = r->ids;
    CHECK_OK(weft_ep_route_choose(r->route, &choices));
    CHECK_OK(weft_barrier(world));
}

static void check_refused(weft_status status, const char *what)
{
    CHECK_STATUS(status, WEFT_ERR_UNSUPPORTED);
    CHECK_SAY(strstr(weft_last_error(), what) != NULL && strstr(weft_last_error(), "WEFT_EP_NO_STAGING") != NULL,
              "\"%s\" does not name %s and the flag", weft_last_error(), what);
}

/* By source all calls have a way without. */
static void by_source(weft_world *world, void *context)
{
    rig r;
    const unsigned flags = *(const unsigned *)context;
    open_rig(&r, world, flags, WEFT_EP_RANK_MAJOR);
    const weft_ep_rows in = rows_of(r.in);
    const weft_ep_rows out = rows_of(r.out);
    const weft_ep_rows windows[2] = {rows_of(r.window[0]), rows_of(r.window[1])};
    const weft_ep_rows own = rows_of(r.own);
    const weft_ep_received plain = received_of(r.own);
    const weft_ep_received lent = received_of(r.window[0]);
    if (flags != 0) {
        check_refused(weft_ep_dispatch(r.route, &in, &plain, NULL), "out.rows");
        check_refused(weft_ep_dispatch_send(r.route, &in, &plain, NULL), "out.rows");
    }
    CHECK_OK(weft_ep_dispatch(r.route, &in, &lent, NULL)); /* of the choice that is still there */
    CHECK_OK(weft_ep_combine(r.route, &windows[0], &out, 0, NULL));
    ep_sums_check(r.out, r.in, PES, TOKENS, HIDDEN);
    if (flags != 0) {
        check_refused(weft_ep_dispatch(r.route, &in, &plain, NULL), "out.rows");
        check_refused(weft_ep_combine(r.route, &own, &out, 0, NULL), "in of the heap");
        check_refused(weft_ep_dispatch_bwd(r.route, &own, NULL, &out, NULL, NULL), "grad_received");
        check_refused(weft_ep_combine_bwd(r.route, &in, NULL, &own, NULL, 0, NULL), "grad_rows");
        check_refused(weft_ep_combine_bwd(r.route, &in, NULL, &windows[1], NULL, WEFT_EP_WEIGHTED, NULL), "grad_rows");
    }
    CHECK_OK(weft_ep_combine_bwd(r.route, &in, NULL, &windows[1], NULL, 0, NULL));
    memset(r.out, 0, sizeof r.out);
    CHECK_OK(weft_ep_dispatch_bwd(r.route, &windows[1], NULL, &out, NULL, NULL));
    ep_sums_check(r.out, r.in, PES, TOKENS, HIDDEN);
    ep_group_close(r.ep, r.route);
}

/* By expert rows are added up in the group's memory. */
static void by_expert(weft_world *world, void *context)
{
    rig r;
    (void)context;
    open_rig(&r, world, WEFT_EP_NO_STAGING, WEFT_EP_EXPERT_MAJOR);
    const weft_ep_rows in = rows_of(r.in);
    const weft_ep_rows out = rows_of(r.out);
    const weft_ep_rows window = rows_of(r.window[0]);
    const weft_ep_received lent = received_of(r.window[0]);
    CHECK_OK(weft_ep_dispatch(r.route, &in, &lent, NULL));
    int found = 0;
    for (int row = 0; row < PES * TOKENS; row++) {
        found += (int)(r.window[0][row * HIDDEN] / 100);
    }
    CHECK(found == TOKENS);
    check_refused(weft_ep_combine(r.route, &window, &out, 0, NULL), "by expert");
    CHECK_OK(weft_ep_combine_bwd(r.route, &in, NULL, &window, NULL, 0, NULL));
    ep_group_close(r.ep, r.route);
}

/* What it takes is told beforehand. */
static void bytes_follow(void **state)
{
    (void)state;
    weft_ep_config config = config_of(0);
    weft_ep_memory with = WEFT_EP_MEMORY_INIT;
    weft_ep_memory without = WEFT_EP_MEMORY_INIT;
    weft_ep_memory bare = WEFT_EP_MEMORY_INIT;
    const size_t window = (config.window_bytes + 255) / 256 * 256;
    CHECK_OK(weft_ep_bytes(&config, PES, &with));
    config.flags = WEFT_EP_NO_STAGING;
    CHECK_OK(weft_ep_bytes(&config, PES, &without));
    CHECK(with.staging_bytes > 0 && without.staging_bytes == 0);
    CHECK(with.window_bytes == 2 * window && without.window_bytes == 2 * window);
    CHECK(without.symmetric_bytes == with.symmetric_bytes - with.staging_bytes);
    config.windows = 0;
    CHECK_STATUS(weft_ep_bytes(&config, PES, &bare), WEFT_ERR_ARGUMENT);
    config.window_bytes = 0;
    bare.size = offsetof(weft_ep_memory, window_bytes); /* of a header without windows */
    bare.window_bytes = 11;
    CHECK_OK(weft_ep_bytes(&config, PES, &bare));
    CHECK(bare.symmetric_bytes == without.symmetric_bytes - 2 * window && bare.window_bytes == 11);
    config.windows = -1;
    CHECK_STATUS(weft_ep_bytes(&config, PES, &bare), WEFT_ERR_ARGUMENT);
}

static void windows_are_lent(void **state)
{
    static unsigned flags[] = {0, WEFT_EP_NO_STAGING};
    (void)state;
    pes_run(PES, by_source, &flags[0]);
    pes_run(PES, by_source, &flags[1]);
    pes_run(PES, by_expert, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(windows_are_lent), CHECKED_TEST(bytes_follow)};
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
