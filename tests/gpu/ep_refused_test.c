/* Goal: what a group on GPUs refuses moves nothing, writes nowhere and leaves the group usable: ranks that disagree, a
 * recv on another stream beside another pair, arrays that are missing, multiprocessors that others have, rows that do
 * not fit; and what comes after a routing that did not match or overflowed. Method: gpu/support/ep_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/support/ep_rig.h"

/* ---- ranks that disagree ---- */

/* Slots by source begin where Tmax says: a rank with a larger one would write behind the other's rows. */
static void with_other_slots(weft_world *world, int which)
{
    ep_rig rig;
    const int slots = weft_world_pe(world) == 0 ? 2 : EP_RIG_TOKENS;
    ep_rig_open(&rig, world, WEFT_EP_SLOTS_SOURCE, slots);
    rig.choices.tokens = slots;
    rig.received.rows_capacity = (size_t)EP_RIG_PES * (size_t)slots;
    if (which == 1) {
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    } else {
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    }
    if (which == 1) {
        ep_rig_expect_mismatch(&rig, "an update, topk 2, slots by source, Tmax 2",
                               "an update, topk 2, slots by source, Tmax 8");
    } else {
        ep_rig_expect_mismatch(&rig, "a dispatch of 16 float32, topk 2, slots by source, Tmax 2",
                               "a dispatch of 16 float32, topk 2, slots by source, Tmax 8");
    }
    CHECK_OK(weft_barrier(world));
    CHECK(ep_rig_rows_written(&rig) == 0);
    ep_rig_close(&rig);
}

/* Half of the last routing is overwritten then: there is none, until the next. */
static void after_a_mismatch(weft_world *world, int which)
{
    ep_rig rig;
    const weft_ep_layout layout = (weft_ep_layout)which;
    ep_rig_open(&rig, world, layout, 0);
    weft_ep_rows out = ep_rig_rows(rig.tokens);
    ep_rig_choose(&rig, 2 * rig.rank);
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    ep_rig_choose(&rig, 0);
    rig.in.hidden = rig.received.rows.hidden = rig.rank == 0 ? EP_RIG_HIDDEN / 2 : EP_RIG_HIDDEN;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    static const char *const plans[] = {"rank-major", "expert-major, alignment 1", "slots by source, Tmax 8",
                                        "slots by expert, Tmax 8"};
    char calls[EP_RIG_PES][96];
    for (int rank = 0; rank < EP_RIG_PES; rank++) {
        (void)snprintf(calls[rank], sizeof calls[rank], "a dispatch of %d float32, topk 2, %s",
                       rank == 0 ? EP_RIG_HIDDEN / 2 : EP_RIG_HIDDEN, plans[layout]);
    }
    ep_rig_expect_mismatch(&rig, calls[0], calls[1]);
    rig.in.hidden = rig.received.rows.hidden = EP_RIG_HIDDEN;
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_barrier(world));
    CHECK(ep_rig_rows_written(&rig) == 0);
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* Options that one rank gives and the other does not, but for biases. */
static void with_other_options(weft_world *world, int which)
{
    static const char *const said[] = {"a combine of 16 float32, weighted, own weights, topk 2, ",
                                       "a combine of 16 float32, own ids, topk 2, ",
                                       "a combine of 16 float32, values, topk 2, "};
    static const char *const layouts[] = {"rank-major", "expert-major", "slots by source", "slots by expert"};
    float values[EP_RIG_ROWS * EP_RIG_TOPK] = {0};
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    char with[128];
    char without[128];
    ep_rig rig;
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    ep_rig_open(&rig, world, (weft_ep_layout)(which / 3), 0);
    ep_rig_expect_step(&rig);
    const weft_ep_rows rows = ep_rig_rows(out);
    options.flags = which % 3 == 0 ? WEFT_EP_WEIGHTED : 0;
    if (rig.rank == 0 && which % 3 == 0) {
        options.weights = values;
    } else if (rig.rank == 0 && which % 3 == 1) {
        options.ids = rig.ids;
    } else if (rig.rank == 0) {
        options.values_in = options.values_out = values;
    }
    memset(out, EP_RIG_MARK, sizeof out);
    CHECK_OK(weft_ep_combine_with(rig.route, &rig.received.rows, &rows, &options, NULL));
    (void)snprintf(with, sizeof with, "%s%s, on the route updated in call 1", said[which % 3], layouts[which / 3]);
    (void)snprintf(without, sizeof without, "a combine of 16 float32, %stopk 2, %s, on the route updated in call 1",
                   which % 3 == 0 ? "weighted, " : "", layouts[which / 3]);
    ep_rig_expect_mismatch(&rig, with, without);
    CHECK(((unsigned char *)out)[0] == EP_RIG_MARK && ((unsigned char *)out)[sizeof out - 1] == EP_RIG_MARK);
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* A backward with gradients of weights on one rank only, whose kernels are others. */
static void with_other_gradients(weft_world *world, int which)
{
    float values[EP_RIG_ROWS * EP_RIG_TOPK] = {0};
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_expect_step(&rig);
    const weft_ep_rows rows = ep_rig_rows(out);
    float *given = rig.rank == 0 ? values : NULL;
    memset(out, EP_RIG_MARK, sizeof out);
    CHECK_OK(weft_ep_dispatch_bwd(rig.route, &rig.received.rows, given, &rows, given, NULL));
    ep_rig_expect_mismatch(
        &rig, "a dispatch backward of 16 float32, with weights, topk 2, rank-major, on the route updated in call 1",
        "a dispatch backward of 16 float32, topk 2, rank-major, on the route updated in call 1");
    CHECK(((unsigned char *)out)[0] == EP_RIG_MARK && ((unsigned char *)out)[sizeof out - 1] == EP_RIG_MARK);
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* The call that says that an earlier one did not match is not made: it is made again, with the choices that it had. */
static void told_by_a_dispatch(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    if (rig.rank == 0) {
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    } else {
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK(ep_rig_rows_written(&rig) == (rig.rank == 0 ? EP_RIG_PES * EP_RIG_TOKENS : 0));
    ep_rig_close(&rig);
}

/* A call that returns the mismatch of an earlier one is made again at once, until it is made. */
#define MAKE(call)                                                                                                     \
    do {                                                                                                               \
        weft_status status_ = (call);                                                                                  \
        for (int i_ = 0; i_ < 2 && status_ == WEFT_ERR_MISMATCH; i_++) {                                               \
            status_ = (call);                                                                                          \
        }                                                                                                              \
        CHECK_OK(status_);                                                                                             \
    } while (0)

/* Rank 0 looks behind the call that differs and is told at once, rank 1 makes its next calls and is told by them: ranks
 * that make again the call that told them, and go on, have made the same calls at the end of the step. */
static void told_at_different_calls(weft_world *world, int which)
{
    _Alignas(64) ep_rig_row sums[EP_RIG_TOKENS];
    const weft_ep_rows out = ep_rig_rows(sums);
    weft_ep_host_counts counts = {.status = WEFT_OK};
    ep_rig rig;
    ep_rig_open(&rig, world, (weft_ep_layout)which, 0);
    ep_rig_expect_step(&rig);
    if (rig.rank == 0) {
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_MISMATCH);
    } else {
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    }
    for (int i = 0; i < 3; i++) {
        MAKE(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        MAKE(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
    }
    MAKE(weft_ep_route_query(rig.route, NULL, &counts)); /* the last call, too, is told of by then */
    CHECK_STATUS(counts.status, rig.rank == 0 ? WEFT_ERR_MISMATCH : WEFT_OK);
    CHECK_OK(weft_barrier(world));
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* A recv on another stream than its send is ordered after it, once. */
static void on_another_stream(weft_world *world, int which)
{
    ep_rig rig;
    weft_stream *other = (weft_stream *)(uintptr_t)16;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned long (*waits)(void) = NULL;
    *(void **)&waits = library != NULL ? dlsym(library, "fakeStreamWaits") : NULL;
    if (!CHECK(waits != NULL)) {
        return;
    }
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    weft_ep_rows out = ep_rig_rows(rig.tokens);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_ep_dispatch_recv(rig.route, other));
    CHECK(waits() == 1);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK(ep_rig_rows_written(&rig) == (rig.rank == 0 ? EP_RIG_PES * EP_RIG_TOKENS : 0));
    CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &out, 0, other));
    CHECK_OK(weft_ep_combine_recv(rig.route, other));
    CHECK(waits() == 1);
    CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &out, 0, other));
    CHECK_OK(weft_ep_combine_recv(rig.route, NULL));
    CHECK(waits() == 2);
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    ep_rig_close(&rig);
    CHECK(dlclose(library) == 0);
}

/* ---- what a rank asks in vain ---- */

/* Two pairs of a group on two streams: refused where either route may take all multiprocessors (which 0), right where
 * both say how many (which 1). */
static void pairs_on_two_streams(weft_world *world, int which)
{
    weft_stream *other = (weft_stream *)(uintptr_t)16;
    weft_ep_config config = ep_rig_config();
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    ep_rig rig;
    weft_ep *ep = NULL;
    weft_ep_route *routes[2] = {NULL, NULL};
    weft_ep_received received[2];
    ep_rig_open(&rig, world, WEFT_EP_SLOTS_SOURCE, 0);
    config.pairs_max = 2;
    plan.topk = EP_RIG_TOPK;
    plan.layout = WEFT_EP_SLOTS_SOURCE;
    plan.sms = which;
    CHECK_OK(weft_ep_create(weft_team_world(world), &config, &ep));
    choices.tokens = EP_RIG_TOKENS;
    choices.ids = rig.ids;
    ep_rig_choose(&rig, 2 * (1 - rig.rank));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &routes[i]));
        CHECK_OK(weft_ep_route_choose(routes[i], &choices));
        received[i] = rig.received;
        received[i].rows = ep_rig_rows(rig.there + i * EP_RIG_PES * EP_RIG_TOKENS);
        received[i].rows_capacity = (size_t)EP_RIG_PES * EP_RIG_TOKENS;
    }
    CHECK_OK(weft_ep_dispatch_send(routes[0], &rig.in, &received[0], NULL));
    if (which == 0) {
        CHECK_STATUS(weft_ep_dispatch_send(routes[1], &rig.in, &received[1], other), WEFT_ERR_UNSUPPORTED);
        CHECK(strstr(weft_last_error(), "plan.sms") != NULL);
        CHECK_OK(weft_ep_dispatch_send(routes[1], &rig.in, &received[1], NULL));
    } else {
        CHECK_OK(weft_ep_dispatch_send(routes[1], &rig.in, &received[1], other));
    }
    if (which == 0) {
        CHECK_STATUS(weft_ep_dispatch_recv(routes[0], other), WEFT_ERR_UNSUPPORTED);
    }
    CHECK_OK(weft_ep_dispatch_recv(routes[0], NULL));
    CHECK_OK(weft_ep_dispatch_recv(routes[1], which == 0 ? NULL : other));
    CHECK(ep_rig_rows_written(&rig) == 2 * EP_RIG_TOKENS); /* the other rank's, twice */
    CHECK_OK(weft_barrier(world));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_route_destroy(routes[i]));
    }
    CHECK_OK(weft_ep_destroy(ep));
    ep_rig_close(&rig);
}

static void with_missing_arrays(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    weft_ep_rows none = ep_rig_rows(NULL);
    weft_ep_received received = rig.received;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_STATUS(weft_ep_dispatch(rig.route, &none, &rig.received, NULL), WEFT_ERR_ARGUMENT);
    received.rows = none;
    CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &received, NULL), WEFT_ERR_ARGUMENT);
    received = rig.received;
    received.rows.dtype = WEFT_EP_FP8_E4M3;
    received.rows.scale_type = WEFT_EP_SCALE_F32;
    CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_send(rig.route, &none, &rig.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(weft_ep_dispatch(rig.route, &none, &rig.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(rig.route, &rig.received.rows, &none, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(rig.route, &rig.received.rows, NULL, &none, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(rig.route, &none, NULL, &rig.received.rows, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* One route serves two routings, each in memory of its own, and then one that was copied; what is there before does not
 * matter. All tokens go to this rank, or all to the other. */
static void attached(weft_world *world, int which)
{
    ep_rig rig;
    size_t bytes = 0;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    ep_rig_open(&rig, world, (weft_ep_layout)which, 0);
    plan.topk = EP_RIG_TOPK;
    plan.layout = (weft_ep_layout)which;
    CHECK_OK(weft_ep_route_bytes(rig.ep, &plan, &bytes));
    size_t room = (bytes + 63) / 64 * 64;
    char *memory = aligned_alloc(64, 3 * room);
    assert_non_null(memory);
    memset(memory, 0xff, 3 * room);
    CHECK_STATUS(weft_ep_route_attach(rig.route, memory, bytes - 1, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_attach(rig.route, memory, bytes, (weft_ep_contents)2, NULL), WEFT_ERR_ARGUMENT);
    for (int routing = 0; routing < 2; routing++) {
        CHECK_OK(weft_ep_route_attach(rig.route, memory + (size_t)routing * room, bytes, WEFT_EP_CONTENTS_NONE, NULL));
        CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_STATE);
        ep_rig_choose(&rig, 2 * (routing == 0 ? rig.rank : 1 - rig.rank));
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    }
    memcpy(memory + 2 * room, memory, room);
    for (int look = 0; look < 5; look++) {
        static const int places[] = {0, 1, 0, 2, 1};
        int source = places[look] == 1 ? 1 - rig.rank : rig.rank;
        ep_rig_row sums[EP_RIG_TOKENS] = {{0}};
        weft_ep_rows out = ep_rig_rows(sums);
        for (int i = 0; i < EP_RIG_TOKENS; i++) {
            rig.tokens[i][0] = (float)(100 * look + 10 * rig.rank + i);
        }
        if (look == 3) {
            memset(memory, 0xff, room);
        }
        CHECK_OK(weft_ep_route_attach(rig.route, memory + (size_t)places[look] * room, bytes, WEFT_EP_CONTENTS_ROUTING,
                                      NULL));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        CHECK(rig.there[0][0] == (float)(100 * look + 10 * source));
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
        float times = which == WEFT_EP_EXPERT_MAJOR ? EP_RIG_TOPK : 1; /* a row a choice, or a rank */
        for (int i = 0; i < EP_RIG_TOKENS; i++) {
            CHECK(sums[i][0] == times * rig.tokens[i][0]);
        }
    }
    ep_rig_close(&rig);
    free(memory);
}

/* How much memory a group on GPUs takes, with and without what its flags ask for. */
static void memory_told(void)
{
    weft_ep_config config = ep_rig_config();
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    CHECK_OK(weft_ep_bytes(&config, EP_RIG_PES, &memory));
    CHECK(memory.low_latency_bytes >= 2 * (size_t)EP_RIG_PES * EP_RIG_TOKENS * sizeof(ep_rig_row));
    CHECK(memory.staging_bytes >= (size_t)EP_RIG_PES * EP_RIG_TOKENS * sizeof(ep_rig_row));
    CHECK(memory.symmetric_bytes > memory.low_latency_bytes + memory.staging_bytes);
    CHECK_STATUS(weft_ep_bytes(&config, 257, &memory), WEFT_ERR_UNSUPPORTED);
    config.flags = WEFT_EP_NO_LOW_LATENCY;
    CHECK_OK(weft_ep_bytes(&config, EP_RIG_PES, &memory));
    CHECK(memory.low_latency_bytes == 0);
    const size_t without = memory.symmetric_bytes;
    config.flags |= WEFT_EP_ROWS_WITH_SEND;
    CHECK_OK(weft_ep_bytes(&config, EP_RIG_PES, &memory));
    const size_t leaving = memory.low_latency_bytes;
    CHECK(leaving >= 2 * (size_t)EP_RIG_PES * EP_RIG_TOKENS * sizeof(ep_rig_row));
    CHECK(memory.symmetric_bytes == without + leaving);
    config.pairs_max = 2;
    CHECK_OK(weft_ep_bytes(&config, EP_RIG_PES, &memory));
    CHECK(memory.low_latency_bytes == 2 * leaving && memory.symmetric_bytes == 2 * (without + leaving));
    config.pairs_max = 0;
    CHECK_STATUS(weft_ep_bytes(&config, 33, &memory), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "WEFT_EP_ROWS_WITH_SEND") != NULL);
}

/* What the host has and kernels have not: the error names the field, nothing is called, and the group goes on. */
static void not_in_kernels(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_expect_step(&rig);
    memory_told();
    CHECK_STATUS(weft_ep_route_move(rig.route, rig.there, SIZE_MAX), WEFT_ERR_ARGUMENT); /* the library's memory */
    uint64_t generation = 0;
    CHECK_OK(weft_ep_route_generation(rig.route, &generation));
    CHECK_OK(weft_ep_route_expect(rig.route, generation));
    CHECK_STATUS(weft_ep_route_expect(rig.route, generation + 1), WEFT_ERR_STATE);
    weft_ep_config config = ep_rig_config();
    weft_ep *ep = NULL;
    const uint64_t *words = NULL;
    uint64_t calls = 0;
    int count = -1;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT | WEFT_EP_NO_LOW_LATENCY;
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
    CHECK(rig.rank != 0 || strstr(weft_last_error(), "memory for low latency") != NULL);
    CHECK_STATUS(weft_ep_bytes(&config, EP_RIG_PES, &memory), WEFT_ERR_UNSUPPORTED);
    config.flags = 0;
    config.domain_ranks = 1; /* several domains */
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
    config.bytes_max = SIZE_MAX;
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
    CHECK(rig.rank != 0 || strstr(weft_last_error(), "bytes_max is ") != NULL);
    config.bytes_max = 0;
    config.domain_ranks = 0;
    weft_ep *on_host = NULL;
    config.on_device = 0;
    CHECK_OK(weft_ep_create(weft_team_world(world), &config, &on_host));
    config.on_device = 1;
    config.claim_with = on_host;
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_ARGUMENT);
    CHECK(rig.rank != 0 || strstr(weft_last_error(), "claim_with") != NULL);
    CHECK_OK(weft_ep_destroy(on_host));
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_ARGUMENT);
    config.claim_with = NULL;
    CHECK_OK(weft_ep_mask_words(rig.ep, &words));
    CHECK(words != NULL && words[0] == 0);
    CHECK_OK(weft_ep_calls(rig.ep, &calls));
    CHECK(calls == 2); /* a step */
    CHECK_STATUS(weft_ep_rejoin(rig.ep, 1), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_mask_query(rig.ep, NULL, &count));
    CHECK(count == 0);
    uint64_t generations[2] = {7, 7};
    weft_ep_count_arrays counts = WEFT_EP_COUNT_ARRAYS_INIT;
    counts.generation = generations;
    counts.rows_of_source = (void *)(uintptr_t)64; /* the fake driver's host memory that no GPU reaches */
    CHECK_STATUS(weft_ep_route_counts_to(rig.route, &counts), WEFT_ERR_ARGUMENT);
    CHECK(strstr(weft_last_error(), "rows_of_source") != NULL && generations[0] == 7);
    const int32_t positions[EP_RIG_TOKENS * EP_RIG_PES] = {0};
    weft_ep_choices numbered = rig.choices;
    numbered.ids = NULL;
    numbered.positions = positions;
    plan.flags = WEFT_EP_DESTINATIONS;
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &route));
    CHECK_OK(weft_ep_route_update(route, &numbered, NULL)); /* all have the number 0 */
    weft_ep_host_counts counted;
    CHECK_OK(weft_ep_route_query(route, NULL, &counted));
    CHECK(counted.status == WEFT_ERR_RANGE && counted.tokens == EP_RIG_TOKENS * EP_RIG_PES);
    CHECK_OK(weft_ep_route_destroy(route));
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

/* All multiprocessors of the GPU, of which each PE has one for itself. */
static int take_all(weft_world *world)
{
    int taken = 0;
    while (weft_device_sms_take(world, 1) == WEFT_OK) {
        taken++;
    }
    CHECK_OK(weft_barrier(world));
    return taken;
}

static void give_all(weft_world *world, int taken)
{
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_device_sms_give(world, taken));
    CHECK_OK(weft_barrier(world));
}

/* A fresh dispatch that finds none is made again, with the choices that it had. */
static void without_multiprocessors(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    int taken = take_all(world);
    CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_STATE);
    give_all(world, taken);
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    CHECK(ep_rig_rows_written(&rig) == (rig.rank == 0 ? EP_RIG_PES * EP_RIG_TOKENS : 0));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    taken = take_all(world);
    CHECK_STATUS(weft_ep_dispatch_recv(rig.route, NULL), WEFT_ERR_STATE);
    give_all(world, taken);
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
    ep_rig_close(&rig);
}

/* A send that finds `free` of four. */
static void send_with(ep_rig *rig, int free)
{
    CHECK_OK(weft_device_sms_take(rig->world, 4 - free));
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(weft_ep_dispatch_send(rig->route, &rig->in, &rig->received, NULL));
    CHECK_OK(weft_device_sms_give(rig->world, 4 - free));
}

static void expect_counts(const ep_rig *rig)
{
    weft_ep_host_counts counts = {.dropped = -1};
    CHECK_OK(weft_ep_dispatch_recv(rig->route, NULL));
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
    CHECK(counts.status == WEFT_ERR_RANGE && counts.dropped == EP_RIG_TOKENS);
    CHECK(counts.tokens == (rig->rank == 0 ? EP_RIG_PES * EP_RIG_TOKENS : 0));
}

/* A recv adds up what its send's blocks counted, each its part: with as many as that had, or not yet. Of slots nothing
 * is counted so. */
static void with_other_multiprocessors(weft_world *world, int which)
{
    ep_rig rig;
    ep_rig_open(&rig, world, which == 0 ? WEFT_EP_EXPERT_MAJOR : WEFT_EP_SLOTS_SOURCE, 0);
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        rig.ids[i * EP_RIG_TOPK] = 2 * EP_RIG_PES; /* there is none such */
    }
    send_with(&rig, 2);
    expect_counts(&rig);
    send_with(&rig, 3);
    CHECK_OK(weft_device_sms_take(world, 2));
    if (which == 0) {
        CHECK_STATUS(weft_ep_dispatch_recv(rig.route, NULL), WEFT_ERR_STATE);
        CHECK_OK(weft_device_sms_give(world, 2));
        expect_counts(&rig);
    } else {
        expect_counts(&rig);
        CHECK_OK(weft_device_sms_give(world, 2));
    }
    ep_rig_close(&rig);
}

/* ---- a routing that overflows ---- */

/* A combine behind it, as in a graph, has a buffer of as many rows as the dispatch had: nothing behind that is read. */
static void combine_behind(weft_world *world, int which)
{
    ep_rig rig;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)which;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    rig.received.rows_capacity = 4;
    weft_ep_rows results = ep_rig_rows((ep_rig_row *)(void *)(pages + page - 4 * sizeof(ep_rig_row)));
    weft_ep_rows out = ep_rig_rows(rig.tokens);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_ep_combine(rig.route, &results, &out, 0, NULL));
    CHECK_STATUS(ep_rig_status(&rig), WEFT_ERR_OVERFLOW);
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
    CHECK(munmap(pages, 2 * page) == 0);
}

/* ---- gradients of more rows than there is memory ---- */

/* Gradients have no capacity: those that would lie behind the heap are not written, and the route says so. */
static void behind_the_heap(weft_world *world, int which)
{
    ep_rig rig;
    ep_rig_open(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    ep_rig_expect_step(&rig);
    const wefti_cuda *cuda = rig.ep->device->cuda;
    ep_rig_row *end = (ep_rig_row *)(void *)((unsigned char *)cuda->base.heap + cuda->base.heap_bytes);
    weft_ep_rows gradients = ep_rig_rows(end - (which == 0 ? EP_RIG_TOKENS : EP_RIG_TOKENS - 1));
    CHECK_OK(weft_ep_combine_bwd(rig.route, &rig.in, NULL, &gradients, NULL, 0, NULL));
    CHECK_STATUS(ep_rig_status(&rig), which == 0 ? WEFT_OK : WEFT_ERR_OVERFLOW);
    CHECK_OK(weft_barrier(world));
    ep_rig_expect_step(&rig);
    ep_rig_close(&rig);
}

static void refusals(void **state)
{
    static const ep_rig_case cases[] = {{with_other_slots, 2},        {after_a_mismatch, 4},
                                        {with_other_options, 12},     {with_other_gradients, 1},
                                        {told_by_a_dispatch, 1},      {told_at_different_calls, 4},
                                        {on_another_stream, 1},       {with_missing_arrays, 1},
                                        {without_multiprocessors, 1}, {with_other_multiprocessors, 2},
                                        {combine_behind, 1},          {not_in_kernels, 1},
                                        {pairs_on_two_streams, 2},    {attached, 2},
                                        {behind_the_heap, 2}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(refusals)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
