/* Goal: on GPUs, too, a group has the limits that its calls need: what one rank needs grows on all, in the call that
 * needs it, and what was counted, routed and captured before stays right. Method: gpu/support/ep_rig.h, with the limits
 * taken back. What a combine returns is each token once for each rank that has it. The random cases of tests/gpu/ep
 * have groups that grow in all kinds of calls. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"
#include "support/pes.h"

static void set_capture(int on)
{
    static void (*capture)(int);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&capture = library != NULL ? dlsym(library, "fakeCapture") : NULL;
    if (CHECK(capture != NULL)) {
        capture(on);
    }
}

static void open_rig(ep_rig *rig, weft_world *world, weft_ep_layout layout, int pairs, unsigned flags)
{
    weft_ep_config config = ep_rig_config();
    config.tokens_max = 0;
    config.topk_max = 0;
    config.row_bytes_max = 0;
    config.bytes_max = (size_t)8 << 20;
    config.pairs_max = pairs;
    config.flags = flags;
    if ((flags & WEFT_EP_MASK_ON_TIMEOUT) != 0) { /* which needs memory for slots from the first call on */
        config.tokens_max = config.slot_tokens_max = 1;
    }
    ep_rig_open_with(rig, world, layout, &config, layout >= WEFT_EP_SLOTS_SOURCE ? EP_RIG_TOKENS : 0);
    for (int i = 0; i < EP_RIG_TOKENS; i++) { /* each to an expert of both ranks */
        rig->ids[i * EP_RIG_TOPK] = 0;
        rig->ids[i * EP_RIG_TOPK + 1] = 2;
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            rig->tokens[i][h] = (float)(100 * (rig->rank + 1) + i);
        }
    }
}

static void expect_limits(const ep_rig *rig, int tokens, int topk, size_t row_bytes)
{
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    CHECK_OK(weft_ep_limits(rig->ep, &limits));
    CHECK_SAY(limits.tokens_max == tokens && limits.topk_max == topk && limits.row_bytes_max == row_bytes,
              "limits are %d, %d, %zu", limits.tokens_max, limits.topk_max, limits.row_bytes_max);
}

static void expect_reason(const char *why)
{
    CHECK_SAY(strstr(weft_last_error(), why) != NULL, "\"%s\" does not say \"%s\"", weft_last_error(), why);
}

static weft_ep_rows rows_of(ep_rig_row *data, int hidden)
{
    weft_ep_rows rows = ep_rig_rows(data);
    rows.hidden = hidden;
    rows.stride_bytes = sizeof(ep_rig_row);
    return rows;
}

static weft_status dispatch(ep_rig *rig, weft_ep_route *route, int hidden)
{
    rig->in = rows_of(rig->tokens, hidden);
    rig->received.rows = rows_of(rig->there, hidden);
    return weft_ep_dispatch(route, &rig->in, &rig->received, NULL);
}

static void combine(ep_rig *rig, weft_ep_route *route, int tokens, int hidden)
{
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    const weft_ep_rows in = rows_of(rig->there, hidden);
    const weft_ep_rows sums = rows_of(out, hidden);
    CHECK_OK(weft_ep_combine(route, &in, &sums, 0, NULL));
    CHECK_STATUS(weft_ep_failure(rig->ep), WEFT_OK);
    for (int i = 0; i < tokens; i++) {
        for (int h = 0; h < hidden; h++) {
            CHECK(out[i][h] == EP_RIG_PES * rig->tokens[i][h]);
        }
    }
}

static void fresh(ep_rig *rig, weft_ep_route *route, int tokens, int hidden)
{
    rig->choices.tokens = tokens;
    CHECK_OK(weft_ep_route_choose(route, &rig->choices));
    CHECK_OK(dispatch(rig, route, hidden));
}

/* T of one rank, then wider rows on a routing that is known, then both by halves. */
static void grow(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_stats stats = WEFT_EP_STATS_INIT;
    uint64_t rows[EP_RIG_LOCAL_EXPERTS] = {0};
    const int is_slots = which >= WEFT_EP_SLOTS_SOURCE;
    open_rig(&rig, world, (weft_ep_layout)which, 0, WEFT_EP_STATISTICS);
    expect_limits(&rig, 0, 1, 16);
    rig.choices.tokens = rig.rank == 1 ? 5 : 2;
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    expect_limits(&rig, is_slots ? EP_RIG_TOKENS : 5, EP_RIG_TOPK, 16);
    CHECK_OK(dispatch(&rig, rig.route, 8));
    expect_limits(&rig, is_slots ? EP_RIG_TOKENS : 5, EP_RIG_TOPK, 32);
    combine(&rig, rig.route, rig.choices.tokens, 8);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);

    rig.choices.tokens = rig.rank == 0 ? EP_RIG_TOKENS : 1;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    rig.in = ep_rig_rows(rig.tokens);
    rig.received.rows = rows_of(rig.there, EP_RIG_HIDDEN);
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_barrier(world)); /* rows that leave with send are there, and nobody is waited for */
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    CHECK_OK(weft_barrier(world));
    expect_limits(&rig, EP_RIG_TOKENS, EP_RIG_TOPK, sizeof(ep_rig_row));
    combine(&rig, rig.route, rig.choices.tokens, EP_RIG_HIDDEN);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    stats.rows_of_expert = rows;
    CHECK_OK(weft_ep_stats_query(rig.ep, &stats));
    CHECK_SAY(stats.dispatches == 2 && stats.combines == 2 && rows[0] == 7 + EP_RIG_TOKENS + 1,
              "%d dispatches, %d combines, %d rows", (int)stats.dispatches, (int)stats.combines, (int)rows[0]);
    ep_rig_close(&rig);
}

/* Bytes bound it, and calls that differ do not grow. */
static void refuse(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_config few = ep_rig_config();
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    (void)which;
    few.tokens_max = 2;
    few.flags = WEFT_EP_NO_LOW_LATENCY;
    CHECK_OK(weft_ep_bytes(&few, EP_RIG_PES, &memory));
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0, 0);
    CHECK_OK(weft_ep_route_destroy(rig.route));
    CHECK_OK(weft_ep_destroy(rig.ep));
    few.topk_max = 0;
    few.tokens_max = 0;
    few.bytes_max = memory.symmetric_bytes;
    CHECK_OK(weft_ep_create(weft_team_world(world), &few, &rig.ep));
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = EP_RIG_TOPK;
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &rig.route));
    fresh(&rig, rig.route, 2, EP_RIG_HIDDEN);
    combine(&rig, rig.route, 2, EP_RIG_HIDDEN);
    rig.choices.tokens = rig.rank == 0 ? EP_RIG_TOKENS : 1;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_STATUS(dispatch(&rig, rig.route, EP_RIG_HIDDEN), WEFT_ERR_RANGE);
    expect_reason("tokens_max would grow from 2 to 8");
    expect_reason("bytes_max is ");
    combine(&rig, rig.route, 2, EP_RIG_HIDDEN); /* on the routing of before */
    if (rig.rank == 0) {
        CHECK_STATUS(weft_ep_route_update(rig.route, &rig.choices, NULL), WEFT_ERR_MISMATCH);
    } else {
        const weft_ep_rows in = rows_of(rig.there, EP_RIG_HIDDEN);
        const weft_ep_rows out = rows_of(rig.tokens, EP_RIG_HIDDEN);
        CHECK_STATUS(weft_ep_combine(rig.route, &in, &out, 0, NULL), WEFT_ERR_MISMATCH);
    }
    expect_reason("an update, topk 2");
    expect_reason("a combine of 16 float32");
    fresh(&rig, rig.route, 2, EP_RIG_HIDDEN);
    combine(&rig, rig.route, 2, EP_RIG_HIDDEN);
    ep_rig_close(&rig);
}

/* What would grow on one rank only is two calls, and nothing grows. which: the width, the type, K. */
static void differ(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *more = NULL;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0, 0);
    plan.topk = 2 * EP_RIG_TOPK;
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &more));
    fresh(&rig, rig.route, 2, 4);
    expect_limits(&rig, 2, EP_RIG_TOPK, 16);
    if (which == 2) {
        CHECK_STATUS(weft_ep_route_update(rig.rank == 0 ? more : rig.route, &rig.choices, NULL), WEFT_ERR_MISMATCH);
    } else {
        const int hidden = which == 0 && rig.rank == 0 ? EP_RIG_HIDDEN : 8;
        rig.in = rows_of(rig.tokens, hidden);
        rig.received.rows = rows_of(rig.there, hidden);
        if (which == 1 && rig.rank == 1) {
            rig.in.dtype = rig.received.rows.dtype = WEFT_EP_BF16;
        }
        CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_MISMATCH);
    }
    expect_limits(&rig, 2, EP_RIG_TOPK, 16);
    CHECK_OK(weft_ep_route_destroy(more));
    fresh(&rig, rig.route, 2, 8);
    combine(&rig, rig.route, 2, 8);
    ep_rig_close(&rig);
}

/* Two pairs: nothing grows while one is outstanding. */
static void grow_pairs(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *other = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    (void)which;
    plan.topk = EP_RIG_TOPK;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 2, 0);
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &other));
    for (int tokens = 1; tokens < 4; tokens++) { /* on either bank */
        fresh(&rig, rig.route, tokens, 4 * tokens);
        combine(&rig, rig.route, tokens, 4 * tokens);
        expect_limits(&rig, tokens, EP_RIG_TOPK, 16 * (size_t)tokens);
    }
    rig.choices.tokens = 3;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    rig.in = rows_of(rig.tokens, 12);
    rig.received.rows = rows_of(rig.there, 12);
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    rig.choices.tokens = EP_RIG_TOKENS;
    CHECK_OK(weft_ep_route_choose(other, &rig.choices));
    CHECK_STATUS(dispatch(&rig, other, 12), WEFT_ERR_RANGE);
    expect_reason("another pair of halves is outstanding");
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    combine(&rig, rig.route, 3, 12);
    CHECK_OK(dispatch(&rig, other, 12)); /* of the choice that it still has */
    combine(&rig, other, EP_RIG_TOKENS, 12);
    CHECK_OK(weft_ep_route_destroy(other));
    ep_rig_close(&rig);
}

/* A graph holds the memory; under capture nobody is waited for. */
static void capture(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0, 0);
    fresh(&rig, rig.route, 3, 8);
    set_capture(1);
    rig.choices.tokens = rig.rank == 0 ? EP_RIG_TOKENS : 4;
    CHECK_STATUS(weft_ep_route_update(rig.route, &rig.choices, NULL), WEFT_ERR_RANGE);
    expect_reason("nothing grows under capture");
    fresh(&rig, rig.route, 2, 8);
    set_capture(0);
    combine(&rig, rig.route, 2, 8);
    rig.choices.tokens = rig.rank == 0 ? EP_RIG_TOKENS : 2;
    CHECK_STATUS(weft_ep_route_update(rig.route, &rig.choices, NULL), WEFT_ERR_RANGE);
    expect_reason("a graph has calls of the group");
    fresh(&rig, rig.route, 3, 8);
    combine(&rig, rig.route, 3, 8);
    ep_rig_close(&rig);
}

/* A route in the caller's memory. */
static void grow_memory(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *held = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    size_t bytes = 0;
    size_t more = 0;
    plan.topk = EP_RIG_TOPK;
    plan.layout = (weft_ep_layout)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0, 0);
    fresh(&rig, rig.route, 1, 4);
    CHECK_OK(weft_ep_route_bytes(rig.ep, &plan, &bytes));
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, memory, &held));
    fresh(&rig, held, 1, 4);
    rig.choices.tokens = EP_RIG_TOKENS;
    CHECK_STATUS(weft_ep_route_update(held, &rig.choices, NULL), WEFT_ERR_RANGE);
    expect_reason(rig.rank == 0 ? "weft_ep_route_move" : "rank 0 failed with WEFT_ERR_RANGE");
    expect_limits(&rig, EP_RIG_TOKENS, EP_RIG_TOPK, 16);
    combine(&rig, held, 1, 4); /* on the routing that is there */
    CHECK_OK(weft_ep_route_bytes(rig.ep, &plan, &more));
    CHECK(more > bytes);
    void *larger = aligned_alloc(64, (more + 63) / 64 * 64);
    memset(larger, EP_RIG_MARK, more);
    CHECK_OK(weft_ep_route_move(held, larger, more));
    memset(memory, EP_RIG_MARK, bytes);
    free(memory);
    combine(&rig, held, 1, 4); /* it has moved along */
    fresh(&rig, held, EP_RIG_TOKENS, 4);
    combine(&rig, held, EP_RIG_TOKENS, 4);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK_OK(weft_ep_route_destroy(held));
    free(larger);
    ep_rig_close(&rig);
}

static void *marked(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (CHECK(memory != NULL)) {
        memset(memory, EP_RIG_MARK, bytes);
    }
    return memory;
}

/* One route whose routings lie where it is attached, each as the limits of its time wanted. which / 4: with two pairs;
 * which / 8: only rank 0 attaches. */
static void grow_attached(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    size_t bytes[3];
    void *memory[3];
    size_t more = 0;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, which / 4 % 2 * 2, 0);
    const int attaches = which < 8 || rig.rank == 0;
    plan.topk = EP_RIG_TOPK;
    plan.layout = (weft_ep_layout)(which % 4);
    plan.slot_tokens = plan.layout >= WEFT_EP_SLOTS_SOURCE ? EP_RIG_TOKENS : 0;
    fresh(&rig, rig.route, 1, 4);
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &route));
    fresh(&rig, route, 1, 4); /* where the library has put it */
    for (int i = 0; i < 3; i++) {
        const int tokens = 1 + 3 * i;
        CHECK_OK(weft_ep_route_bytes(rig.ep, &plan, &bytes[i]));
        memory[i] = marked(bytes[i]);
        if (attaches) {
            CHECK_OK(weft_ep_route_attach(route, memory[i], bytes[i], WEFT_EP_CONTENTS_NONE, NULL));
        }
        rig.choices.tokens = tokens;
        CHECK_OK(weft_ep_route_choose(route, &rig.choices));
        weft_status status = dispatch(&rig, route, 4);
        CHECK_OK(weft_ep_route_bytes(rig.ep, &plan, &more));
        const int fits = more == bytes[i];
        CHECK_STATUS(status, fits ? WEFT_OK : WEFT_ERR_RANGE);
        if (!fits) {
            expect_reason(rig.rank == 0 ? "weft_ep_route_attach" : "rank 0 failed with WEFT_ERR_RANGE");
            CHECK_OK(weft_ep_route_choose(route, &rig.choices));
            CHECK_STATUS(dispatch(&rig, route, 4), attaches ? WEFT_ERR_RANGE : WEFT_ERR_STATE);
            expect_reason(attaches ? "weft_ep_route_attach" : "rank 0 cannot make the call");
            free(memory[i]);
            bytes[i] = more;
            memory[i] = marked(bytes[i]);
            if (attaches) {
                CHECK_OK(weft_ep_route_attach(route, memory[i], bytes[i], WEFT_EP_CONTENTS_NONE, NULL));
            }
        }
        CHECK_OK(weft_ep_route_choose(route, &rig.choices));
        CHECK_OK(dispatch(&rig, route, 4));
        combine(&rig, route, tokens, 4);
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    }
    for (int look = 0; look < 5 && which < 8; look++) { /* those of before, too, and one that has moved */
        static const int places[] = {0, 2, 1, 0, 1};
        const int place = places[look];
        if (look == 3) {
            void *copy = marked(bytes[0]);
            memcpy(copy, memory[0], bytes[0]);
            memset(memory[0], EP_RIG_MARK, bytes[0]);
            free(memory[0]);
            memory[0] = copy;
        }
        CHECK_STATUS(weft_ep_route_attach(route, memory[place], bytes[place] + 64, WEFT_EP_CONTENTS_ROUTING, NULL),
                     WEFT_ERR_ARGUMENT);
        CHECK_OK(weft_ep_route_attach(route, memory[place], bytes[place], WEFT_EP_CONTENTS_ROUTING, NULL));
        CHECK_OK(dispatch(&rig, route, 4));
        combine(&rig, route, 1 + 3 * place, 4);
    }
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK(bytes[2] > bytes[0] || plan.slot_tokens > 0);
    CHECK_OK(weft_ep_route_destroy(route));
    for (int i = 0; i < 3; i++) {
        free(memory[i]);
    }
    ep_rig_close(&rig);
}

/* A rank that does not come to a call: by the deadline it is masked, by the call or the caller, and limits stay. */
static void lose(weft_world *world, int which)
{
    ep_rig rig;
    static uint64_t calls; /* of rank 0 */
    const int masks = which % 2;
    const int pairs = which < 4 ? 0 : 2;
    open_rig(&rig, world, WEFT_EP_SLOTS_EXPERT, pairs, masks ? WEFT_EP_MASK_ON_TIMEOUT : 0);
    rig.choices.tokens = EP_RIG_TOKENS;
    fresh(&rig, rig.route, 4, EP_RIG_HIDDEN);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        unsigned char masked[EP_RIG_PES];
        const uint64_t long_ns = pes_set_deadline(world, UINT64_C(200000000));
        rig.choices.tokens = 3;
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        if (!masks) {
            CHECK_STATUS(dispatch(&rig, rig.route, EP_RIG_HIDDEN), WEFT_ERR_TIMEOUT);
            CHECK_STATUS(dispatch(&rig, rig.route, EP_RIG_HIDDEN), WEFT_ERR_TIMEOUT);
            CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
            CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        }
        CHECK_OK(dispatch(&rig, rig.route, EP_RIG_HIDDEN));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        for (int i = 0; i < which; i++) { /* so that banks have calls of their own */
            fresh(&rig, rig.route, 1, EP_RIG_HIDDEN);
            CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        }
        CHECK_OK(weft_ep_mask_query(rig.ep, masked, NULL));
        CHECK(masked[1] == 1);
        rig.received.rows = rig.in = ep_rig_rows(rig.there);
        rig.in.hidden = rig.received.rows.hidden = 2 * EP_RIG_HIDDEN;
        CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_RANGE);
        expect_reason("a rank is masked");
        (void)pes_set_deadline(world, long_ns);
        CHECK_OK(weft_ep_calls(rig.ep, &calls));
    }
    if (which < 2) {
        ep_rig_close_alone(&rig);
        return;
    }
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 1) { /* it comes back, and limits grow again */
        uint64_t own = 0;
        CHECK_OK(weft_ep_calls(rig.ep, &own));
        CHECK_STATUS(weft_ep_rejoin(rig.ep, pairs == 2 ? own - 2 : own - 1), WEFT_ERR_ARGUMENT); /* of one bank */
        CHECK_OK(weft_ep_rejoin(rig.ep, calls));
    } else {
        CHECK_OK(weft_ep_mask(rig.ep, 1, 1));
    }
    CHECK_OK(weft_barrier(world));
    for (int tokens = 1; tokens <= EP_RIG_TOKENS; tokens += 7) {
        fresh(&rig, rig.route, tokens, EP_RIG_HIDDEN);
        combine(&rig, rig.route, tokens, EP_RIG_HIDDEN);
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    }
    ep_rig_close(&rig);
}

/* A rank that cannot make a call, since others have all multiprocessors (which 0), or since its rows would need memory
 * that the group has not, before limits grow (1) or as they do (2): all learn so at once, and the choice stays. */
static void refused_by_one(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_config config = ep_rig_config();
    const weft_status why = which == 0 ? WEFT_ERR_STATE : WEFT_ERR_UNSUPPORTED;
    const size_t rows_bytes = EP_RIG_ROWS * sizeof(ep_rig_row);
    ep_rig_row *elsewhere = aligned_alloc(64, rows_bytes);
    int taken = 0;
    config.tokens_max = 1;
    config.bytes_max = (size_t)8 << 20;
    config.flags = which == 0 ? 0 : WEFT_EP_NO_STAGING;
    ep_rig_open_with(&rig, world, WEFT_EP_RANK_MAJOR, &config, 0);
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        rig.ids[i * EP_RIG_TOPK] = 0;
        rig.ids[i * EP_RIG_TOPK + 1] = 2;
    }
    fresh(&rig, rig.route, 1, EP_RIG_HIDDEN);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    rig.choices.tokens = which == 2 ? EP_RIG_TOKENS : 1;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_barrier(world));
    while (rig.rank == 1 && which == 0 && weft_device_sms_take(world, 1) == WEFT_OK) {
        taken++;
    }
    rig.in = rows_of(rig.tokens, EP_RIG_HIDDEN);
    rig.received.rows = rows_of(rig.rank == 1 && which != 0 ? elsewhere : rig.there, EP_RIG_HIDDEN);
    CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL),
                 rig.rank == 1 || which == 2 ? why : WEFT_ERR_STATE);
    if (rig.rank == 0) {
        expect_reason(which == 2 ? "rank 1 failed with WEFT_ERR_UNSUPPORTED" : "rank 1 cannot make the call");
    }
    CHECK_OK(weft_barrier(world));
    if (taken > 0) {
        CHECK_OK(weft_device_sms_give(world, taken));
    }
    CHECK_OK(dispatch(&rig, rig.route, EP_RIG_HIDDEN));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    expect_limits(&rig, which == 2 ? EP_RIG_TOKENS : 1, EP_RIG_TOPK, sizeof(ep_rig_row));
    free(elsewhere);
    ep_rig_close(&rig);
}

/* The first routing of positions, whose plan needs more choices a token than the group was made for. */
static void grow_positions(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    int32_t positions[EP_RIG_TOKENS * EP_RIG_PES];
    const int tokens = 3;
    plan.topk = EP_RIG_PES;
    plan.layout = WEFT_EP_RANK_MAJOR;
    plan.flags = WEFT_EP_DESTINATIONS;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0, 0);
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &route));
    for (int i = 0; i < EP_RIG_TOKENS * EP_RIG_PES; i++) { /* each token to both, the last one first */
        positions[i] = tokens - 1 - i / EP_RIG_PES;
    }
    rig.choices.ids = NULL;
    rig.choices.positions = positions;
    rig.choices.tokens = tokens;
    if (which == 0) {
        CHECK_OK(weft_ep_route_update(route, &rig.choices, NULL));
        CHECK_OK(dispatch(&rig, route, EP_RIG_HIDDEN));
    } else {
        fresh(&rig, route, tokens, EP_RIG_HIDDEN);
    }
    expect_limits(&rig, tokens, EP_RIG_PES, sizeof(ep_rig_row));
    for (int i = 0; i < tokens; i++) {
        CHECK_SAY(rig.there[i][0] == (float)(100 + tokens - 1 - i), "row %d begins with %g", i, rig.there[i][0]);
    }
    combine(&rig, route, tokens, EP_RIG_HIDDEN);
    CHECK_OK(weft_ep_route_destroy(route));
    ep_rig_close(&rig);
}

/* Positions that are none: tokens keep their order, and all ranks go on. Then others, on the same route. */
static void odd_positions(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_host_counts counts;
    int32_t positions[EP_RIG_TOKENS * EP_RIG_PES] = {0}; /* each has the number 0 */
    const int tokens = 3;
    (void)which;
    plan.topk = EP_RIG_PES;
    plan.flags = WEFT_EP_DESTINATIONS;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0, 0);
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &route));
    rig.choices.ids = NULL;
    rig.choices.positions = positions;
    for (int well = 0; well < 2; well++) {
        for (int i = 0; i < tokens * EP_RIG_PES && well; i++) {
            positions[i] = (i / EP_RIG_PES + 1) % tokens;
        }
        fresh(&rig, route, tokens, EP_RIG_HIDDEN);
        CHECK_OK(weft_ep_route_query(route, NULL, &counts));
        CHECK_SAY(counts.status == (well ? WEFT_OK : WEFT_ERR_RANGE) && counts.tokens == EP_RIG_PES * tokens,
                  "status %s, %d tokens", weft_status_name(counts.status), (int)counts.tokens);
        for (int i = 0; i < tokens; i++) {
            const int row = well ? (i + 1) % tokens : i;
            CHECK_SAY(rig.there[row][0] == (float)(100 + i), "row %d begins with %g", row, rig.there[row][0]);
        }
        combine(&rig, route, tokens, EP_RIG_HIDDEN);
    }
    CHECK_OK(weft_ep_route_destroy(route));
    ep_rig_close(&rig);
}

/* Where rows are dropped those of the lowest positions stay: of rank 1 its last token alone. */
static void dropped_positions(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_config config = ep_rig_config();
    int32_t positions[EP_RIG_TOKENS * EP_RIG_PES];
    ep_rig_row out[EP_RIG_TOKENS];
    const int tokens = 3;
    (void)which;
    config.rows_max = 4;
    config.overflow = WEFT_EP_OVERFLOW_DROP;
    plan.topk = EP_RIG_PES;
    plan.flags = WEFT_EP_DESTINATIONS;
    ep_rig_open_with(&rig, world, WEFT_EP_RANK_MAJOR, &config, 0);
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &route));
    for (int i = 0; i < EP_RIG_TOKENS * EP_RIG_PES; i++) {
        positions[i] = tokens - 1 - i / EP_RIG_PES;
        rig.tokens[i / EP_RIG_PES][0] = (float)(100 * (rig.rank + 1) + i / EP_RIG_PES);
    }
    rig.choices.ids = NULL;
    rig.choices.positions = positions;
    fresh(&rig, route, tokens, EP_RIG_HIDDEN);
    CHECK(rig.there[0][0] == 102 && rig.there[2][0] == 100 && rig.there[3][0] == 202);
    const weft_ep_rows in = rows_of(rig.there, EP_RIG_HIDDEN);
    const weft_ep_rows sums = rows_of(out, EP_RIG_HIDDEN);
    CHECK_OK(weft_ep_combine(route, &in, &sums, 0, NULL));
    CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_OK);
    for (int i = 0; i < tokens; i++) {
        CHECK(out[i][0] == (rig.rank == 0 || i == 2 ? EP_RIG_PES * rig.tokens[i][0] : 0));
    }
    CHECK_OK(weft_ep_route_destroy(route));
    ep_rig_close(&rig);
}

static void growth(void **state)
{
    static const ep_rig_case cases[] = {{grow, 4},           {refuse, 1},         {grow_pairs, 1},
                                        {capture, 1},        {differ, 3},         {grow_memory, 2},
                                        {lose, 8},           {refused_by_one, 3}, {grow_positions, 2},
                                        {grow_attached, 10}, {odd_positions, 1},  {dropped_positions, 1}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

/* The same where kernels are those for many ranks. */
static void growth_of_many(void **state)
{
    static const ep_rig_case cases[] = {{grow, 4},           {grow_memory, 2},   {lose, 8},
                                        {grow_positions, 2}, {odd_positions, 1}, {dropped_positions, 1},
                                        {grow_attached, 10}};
    (void)state;
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(growth), CHECKED_TEST(growth_of_many)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
