/* Goal: what a group on GPUs refuses moves nothing, writes nowhere and leaves the group usable: ranks that disagree, a
 * recv on another stream beside another pair, arrays that are missing, multiprocessors that others have; and what comes
 * after a routing that did not match, overflowed or met its deadline, or after 2^31 calls.
 *
 * Method: two PEs as threads on the fake driver (src/testing/fake_driver), whose device memory is this machine's, so
 * that arrays may lie anywhere; what is received lies in the device heap, before marked rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda/ep/host/group.h"
#include "support/check.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 2
#define TOKENS 8
#define TOPK 2
#define HIDDEN 16
#define ROWS 64 /* more than ever come */
#define MARK 0x5a

typedef float row[HIDDEN];

typedef struct ep_rig {
    weft_world *world;
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[TOKENS * TOPK];
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_received received;
    row *there; /* ROWS */
    wefti_cuda_ep_control *later;
    pthread_t thread;
    _Alignas(64) row tokens[TOKENS];
} ep_rig;

static weft_ep_rows rows_at(row *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

/* All tokens to one expert; ranks have two each. */
static void choose(ep_rig *rig, int expert)
{
    for (int i = 0; i < TOKENS * TOPK; i++) {
        rig->ids[i] = expert;
    }
}

static weft_status status_of(const ep_rig *rig)
{
    weft_ep_host_counts counts = {.status = WEFT_OK};
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
    return counts.status;
}

/* Whoever looks first learns that an earlier call did not match, and what the calls of rank 0 and of rank 1 were. */
static void expect_mismatch(const ep_rig *rig, const char *call0, const char *call1)
{
    weft_ep_host_counts counts;
    CHECK_STATUS(weft_ep_route_query(rig->route, NULL, &counts), WEFT_ERR_MISMATCH);
    const char *at0 = strstr(weft_last_error(), call0);
    const char *at1 = strstr(weft_last_error(), call1);
    CHECK(at0 != NULL && strncmp(at0 + strlen(call0), " on rank 0", 10) == 0);
    CHECK(at1 != NULL && strncmp(at1 + strlen(call1), " on rank 1", 10) == 0);
    if (at0 == NULL || at1 == NULL) {
        printf("rank %d was told: %s\n", rig->rank, weft_last_error());
    }
}

static int rows_written(const ep_rig *rig)
{
    row marked;
    int written = 0;
    memset(marked, MARK, sizeof marked);
    for (int i = 0; i < ROWS; i++) {
        written += memcmp(rig->there[i], marked, sizeof marked) != 0;
    }
    return written;
}

/* A step that goes well: each rank's tokens to the next rank. */
static void expect_step(ep_rig *rig)
{
    weft_ep_rows out = rows_at(rig->tokens);
    rig->received.rows_capacity = ROWS;
    rig->in = rows_at(rig->tokens);
    rig->received.rows = rows_at(rig->there);
    choose(rig, 2 * (1 - rig->rank));
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
    CHECK_STATUS(status_of(rig), WEFT_OK);
    CHECK_OK(weft_ep_combine(rig->route, &rig->received.rows, &out, 0, NULL));
    CHECK_STATUS(status_of(rig), WEFT_OK);
}

static wefti_cuda_ep_control *control_of(const ep_rig *rig)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    return (wefti_cuda_ep_control *)(uintptr_t)(group->area[rig->rank] + group->at.control);
}

static int attach(weft_world *world)
{
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    device.choice = WEFT_DEVICE_ORDINAL;
    device.ordinal = weft_world_pe(world);
    device.heap_max_bytes = (size_t)64 << 20;
    return CHECK_OK(weft_device_attach(world, &device));
}

static weft_ep_config config_of(void)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 2 * PES;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = sizeof(row);
    config.on_device = 1;
    return config;
}

static void open_rig(ep_rig *rig, weft_world *world, weft_ep_layout layout, int slot_tokens)
{
    weft_ep_config config = config_of();
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    const weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    void *heap = NULL;
    memset(rig, 0, sizeof *rig);
    rig->world = world;
    rig->rank = weft_world_pe(world);
    plan.topk = TOPK;
    plan.layout = layout;
    plan.slot_tokens = slot_tokens;
    if (!CHECK_OK(weft_device_malloc(world, ROWS * sizeof(row), &heap)) ||
        !CHECK_OK(weft_ep_create(weft_team_world(world), &config, &rig->ep)) ||
        !CHECK_OK(weft_ep_route_create(rig->ep, &plan, NULL, &rig->route))) {
        abort();
    }
    rig->there = heap;
    memset(rig->there, MARK, ROWS * sizeof(row));
    rig->choices = choices;
    rig->choices.tokens = TOKENS;
    rig->choices.ids = rig->ids;
    rig->in = rows_at(rig->tokens);
    rig->received = received;
    rig->received.rows = rows_at(rig->there);
    rig->received.rows_capacity = ROWS;
    CHECK_OK(weft_barrier(world));
}

static void close_rig(ep_rig *rig)
{
    CHECK_OK(weft_barrier(rig->world));
    CHECK_OK(weft_ep_route_destroy(rig->route));
    CHECK_OK(weft_ep_destroy(rig->ep));
    CHECK_OK(weft_barrier(rig->world));
}

/* ---- ranks that disagree ---- */

/* Slots by source begin where Tmax says: a rank with a larger one would write behind the other's rows. */
static void with_other_slots(weft_world *world, int which)
{
    ep_rig rig;
    const int slots = weft_world_pe(world) == 0 ? 2 : TOKENS;
    open_rig(&rig, world, WEFT_EP_SLOTS_SOURCE, slots);
    rig.choices.tokens = slots;
    rig.received.rows_capacity = (size_t)PES * (size_t)slots;
    if (which == 1) {
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    } else {
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    }
    if (which == 1) {
        expect_mismatch(&rig, "an update, topk 2, slots by source, Tmax 2",
                        "an update, topk 2, slots by source, Tmax 8");
    } else {
        expect_mismatch(&rig, "a dispatch of 16 float32, topk 2, slots by source, Tmax 2",
                        "a dispatch of 16 float32, topk 2, slots by source, Tmax 8");
    }
    CHECK_OK(weft_barrier(world));
    CHECK(rows_written(&rig) == 0);
    close_rig(&rig);
}

/* Half of the last routing is overwritten then: there is none, until the next. */
static void after_a_mismatch(weft_world *world, int which)
{
    ep_rig rig;
    const weft_ep_layout layout = (weft_ep_layout)which;
    open_rig(&rig, world, layout, 0);
    weft_ep_rows out = rows_at(rig.tokens);
    choose(&rig, 2 * rig.rank);
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    choose(&rig, 0);
    rig.in.hidden = rig.received.rows.hidden = rig.rank == 0 ? HIDDEN / 2 : HIDDEN;
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    static const char *const plans[] = {"rank-major", "expert-major, alignment 1", "slots by source, Tmax 8",
                                        "slots by expert, Tmax 8"};
    char calls[PES][96];
    for (int rank = 0; rank < PES; rank++) {
        (void)snprintf(calls[rank], sizeof calls[rank], "a dispatch of %d float32, topk 2, %s",
                       rank == 0 ? HIDDEN / 2 : HIDDEN, plans[layout]);
    }
    expect_mismatch(&rig, calls[0], calls[1]);
    rig.in.hidden = rig.received.rows.hidden = HIDDEN;
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_ERR_MISMATCH);
    CHECK_OK(weft_barrier(world));
    CHECK(rows_written(&rig) == 0);
    expect_step(&rig);
    close_rig(&rig);
}

/* Options that one rank gives and the other does not, but for biases. */
static void with_other_options(weft_world *world, int which)
{
    static const char *const said[] = {"a combine of 16 float32, weighted, own weights, topk 2, ",
                                       "a combine of 16 float32, own ids, topk 2, ",
                                       "a combine of 16 float32, values, topk 2, "};
    static const char *const layouts[] = {"rank-major", "expert-major", "slots by source", "slots by expert"};
    float values[ROWS * TOPK] = {0};
    _Alignas(64) row out[TOKENS];
    char with[128];
    char without[128];
    ep_rig rig;
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    open_rig(&rig, world, (weft_ep_layout)(which / 3), 0);
    expect_step(&rig);
    const weft_ep_rows rows = rows_at(out);
    options.flags = which % 3 == 0 ? WEFT_EP_WEIGHTED : 0;
    if (rig.rank == 0 && which % 3 == 0) {
        options.weights = values;
    } else if (rig.rank == 0 && which % 3 == 1) {
        options.ids = rig.ids;
    } else if (rig.rank == 0) {
        options.values_in = options.values_out = values;
    }
    memset(out, MARK, sizeof out);
    CHECK_OK(weft_ep_combine_with(rig.route, &rig.received.rows, &rows, &options, NULL));
    (void)snprintf(with, sizeof with, "%s%s, on the route updated in call 1", said[which % 3], layouts[which / 3]);
    (void)snprintf(without, sizeof without, "a combine of 16 float32, %stopk 2, %s, on the route updated in call 1",
                   which % 3 == 0 ? "weighted, " : "", layouts[which / 3]);
    expect_mismatch(&rig, with, without);
    CHECK(((unsigned char *)out)[0] == MARK && ((unsigned char *)out)[sizeof out - 1] == MARK);
    expect_step(&rig);
    close_rig(&rig);
}

/* The call that says that an earlier one did not match is not made: it is made again, with the choices that it had. */
static void told_by_a_dispatch(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
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
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    CHECK(rows_written(&rig) == (rig.rank == 0 ? PES * TOKENS : 0));
    close_rig(&rig);
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
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    weft_ep_rows out = rows_at(rig.tokens);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_ep_dispatch_recv(rig.route, other));
    CHECK(waits() == 1);
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    CHECK(rows_written(&rig) == (rig.rank == 0 ? PES * TOKENS : 0));
    CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &out, 0, other));
    CHECK_OK(weft_ep_combine_recv(rig.route, other));
    CHECK(waits() == 1);
    CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &out, 0, other));
    CHECK_OK(weft_ep_combine_recv(rig.route, NULL));
    CHECK(waits() == 2);
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    close_rig(&rig);
    CHECK(dlclose(library) == 0);
}

/* ---- what a rank asks in vain ---- */

/* Two pairs of a group on two streams: refused where either route may take all multiprocessors (which 0), right where
 * both say how many (which 1). */
static void pairs_on_two_streams(weft_world *world, int which)
{
    weft_stream *other = (weft_stream *)(uintptr_t)16;
    weft_ep_config config = config_of();
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    ep_rig rig;
    weft_ep *ep = NULL;
    weft_ep_route *routes[2] = {NULL, NULL};
    weft_ep_received received[2];
    open_rig(&rig, world, WEFT_EP_SLOTS_SOURCE, 0);
    config.pairs_max = 2;
    plan.topk = TOPK;
    plan.layout = WEFT_EP_SLOTS_SOURCE;
    plan.sms = which;
    CHECK_OK(weft_ep_create(weft_team_world(world), &config, &ep));
    choices.tokens = TOKENS;
    choices.ids = rig.ids;
    choose(&rig, 2 * (1 - rig.rank));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &routes[i]));
        CHECK_OK(weft_ep_route_choose(routes[i], &choices));
        received[i] = rig.received;
        received[i].rows = rows_at(rig.there + i * PES * TOKENS);
        received[i].rows_capacity = (size_t)PES * TOKENS;
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
    CHECK(rows_written(&rig) == 2 * TOKENS); /* the other rank's, twice */
    CHECK_OK(weft_barrier(world));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weft_ep_route_destroy(routes[i]));
    }
    CHECK_OK(weft_ep_destroy(ep));
    close_rig(&rig);
}

static void with_missing_arrays(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    weft_ep_rows none = rows_at(NULL);
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
    expect_step(&rig);
    close_rig(&rig);
}

/* One route serves two routings, each in memory of its own, and then one that was copied; what is there before does not
 * matter. All tokens go to this rank, or all to the other. */
static void attached(weft_world *world, int which)
{
    ep_rig rig;
    size_t bytes = 0;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    open_rig(&rig, world, (weft_ep_layout)which, 0);
    plan.topk = TOPK;
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
        choose(&rig, 2 * (routing == 0 ? rig.rank : 1 - rig.rank));
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    }
    memcpy(memory + 2 * room, memory, room);
    for (int look = 0; look < 5; look++) {
        static const int places[] = {0, 1, 0, 2, 1};
        int source = places[look] == 1 ? 1 - rig.rank : rig.rank;
        row sums[TOKENS] = {{0}};
        weft_ep_rows out = rows_at(sums);
        for (int i = 0; i < TOKENS; i++) {
            rig.tokens[i][0] = (float)(100 * look + 10 * rig.rank + i);
        }
        if (look == 3) {
            memset(memory, 0xff, room);
        }
        CHECK_OK(weft_ep_route_attach(rig.route, memory + (size_t)places[look] * room, bytes, WEFT_EP_CONTENTS_ROUTING,
                                      NULL));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(status_of(&rig), WEFT_OK);
        CHECK(rig.there[0][0] == (float)(100 * look + 10 * source));
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
        float times = which == WEFT_EP_EXPERT_MAJOR ? TOPK : 1; /* a row a choice, or a rank */
        for (int i = 0; i < TOKENS; i++) {
            CHECK(sums[i][0] == times * rig.tokens[i][0]);
        }
    }
    close_rig(&rig);
    free(memory);
}

/* What the host has and kernels have not: the error names the field, nothing is called, and the group goes on. */
static void not_in_kernels(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    expect_step(&rig);
    CHECK_STATUS(weft_ep_route_move(rig.route, rig.there, SIZE_MAX), WEFT_ERR_ARGUMENT); /* the library's memory */
    uint64_t generation = 0;
    CHECK_OK(weft_ep_route_generation(rig.route, &generation));
    CHECK_OK(weft_ep_route_expect(rig.route, generation));
    CHECK_STATUS(weft_ep_route_expect(rig.route, generation + 1), WEFT_ERR_STATE);
    weft_ep_config config = config_of();
    weft_ep *ep = NULL;
    const uint64_t *words = NULL;
    uint64_t calls = 0;
    int count = -1;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    CHECK_OK(weft_ep_bytes(&config, PES, &memory));
    CHECK(memory.low_latency_bytes >= 2 * (size_t)PES * TOKENS * sizeof(row));
    CHECK(memory.staging_bytes >= (size_t)PES * TOKENS * sizeof(row));
    CHECK(memory.symmetric_bytes > memory.low_latency_bytes + memory.staging_bytes);
    CHECK_STATUS(weft_ep_bytes(&config, 257, &memory), WEFT_ERR_UNSUPPORTED);
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
    config.flags = 0;
    config.domain_ranks = 1; /* several domains */
    CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
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
    CHECK_STATUS(weft_ep_calls(rig.ep, &calls), WEFT_ERR_UNSUPPORTED);
    CHECK_STATUS(weft_ep_rejoin(rig.ep, 0), WEFT_ERR_UNSUPPORTED);
    CHECK_OK(weft_ep_mask_query(rig.ep, NULL, &count));
    CHECK(count == 0);
    uint64_t generations[2] = {7, 7};
    weft_ep_count_arrays counts = WEFT_EP_COUNT_ARRAYS_INIT;
    counts.generation = generations;
    counts.rows_of_source = (void *)(uintptr_t)64; /* the fake driver's host memory that no GPU reaches */
    CHECK_STATUS(weft_ep_route_counts_to(rig.route, &counts), WEFT_ERR_ARGUMENT);
    CHECK(strstr(weft_last_error(), "rows_of_source") != NULL && generations[0] == 7);
    const int32_t positions[TOKENS * PES] = {0};
    weft_ep_choices numbered = rig.choices;
    numbered.ids = NULL;
    numbered.positions = positions;
    plan.flags = WEFT_EP_DESTINATIONS;
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &route));
    CHECK_STATUS(weft_ep_route_update(route, &numbered, NULL), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "positions") != NULL);
    CHECK_OK(weft_ep_route_destroy(route));
    expect_step(&rig);
    close_rig(&rig);
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
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    int taken = take_all(world);
    CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_STATE);
    give_all(world, taken);
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    CHECK(rows_written(&rig) == (rig.rank == 0 ? PES * TOKENS : 0));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    taken = take_all(world);
    CHECK_STATUS(weft_ep_dispatch_recv(rig.route, NULL), WEFT_ERR_STATE);
    give_all(world, taken);
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    close_rig(&rig);
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
    CHECK(counts.status == WEFT_ERR_RANGE && counts.dropped == TOKENS);
    CHECK(counts.tokens == (rig->rank == 0 ? PES * TOKENS : 0));
}

/* A recv adds up what its send's blocks counted, each its part: with as many as that had, or not yet. Of slots nothing
 * is counted so. */
static void with_other_multiprocessors(weft_world *world, int which)
{
    ep_rig rig;
    open_rig(&rig, world, which == 0 ? WEFT_EP_EXPERT_MAJOR : WEFT_EP_SLOTS_SOURCE, 0);
    for (int i = 0; i < TOKENS; i++) {
        rig.ids[i * TOPK] = 2 * PES; /* there is none such */
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
    close_rig(&rig);
}

/* ---- a routing that overflows ---- */

/* A combine behind it, as in a graph, has a buffer of as many rows as the dispatch had: nothing behind that is read. */
static void combine_behind(weft_world *world, int which)
{
    ep_rig rig;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    rig.received.rows_capacity = 4;
    weft_ep_rows results = rows_at((row *)(void *)(pages + page - 4 * sizeof(row)));
    weft_ep_rows out = rows_at(rig.tokens);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_ep_combine(rig.route, &results, &out, 0, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_ERR_OVERFLOW);
    expect_step(&rig);
    close_rig(&rig);
    CHECK(munmap(pages, 2 * page) == 0);
}

/* ---- a rank that does not come ---- */

static void close_alone(ep_rig *rig)
{
    CHECK_OK(weft_barrier(rig->world));
    CHECK_OK(weft_ep_route_destroy(rig->route));
    if (rig->rank == 1) {
        CHECK_OK(weft_ep_mask(rig->ep, 0, 0)); /* so that its end is local, too */
    }
    CHECK_OK(weft_ep_destroy(rig->ep));
    CHECK_OK(weft_device_deadline(rig->world, UINT64_C(30000000000)));
    CHECK_OK(weft_barrier(rig->world));
}

/* The routing that the others did not agree on is none when they go on. */
static void go_on_alone(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    const weft_ep_layout layout = (weft_ep_layout)(which % 4);
    const int asks = which < 4; /* before it masks */
    open_rig(&rig, world, layout, 0);
    choose(&rig, 0);
    CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
    CHECK_STATUS(status_of(&rig), WEFT_OK);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        choose(&rig, 2);
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        if (asks) {
            CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        }
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        CHECK_STATUS(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL), WEFT_ERR_STATE);
        choose(&rig, 0);
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(status_of(&rig), WEFT_OK);
    }
    close_alone(&rig);
}

/* A combine that the other rank does not come to: its deadline, who it was, and no row of it. */
static void combine_alone(weft_world *world, int which)
{
    ep_rig rig;
    _Alignas(64) row out[TOKENS];
    row marked[TOKENS];
    const weft_ep_layout layout = which == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT;
    open_rig(&rig, world, layout, 0);
    expect_step(&rig);
    memset(marked, MARK, sizeof marked);
    memcpy(out, marked, sizeof out);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        const weft_ep_rows rows = rows_at(out);
        weft_ep_host_counts counts;
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &rows, 0, NULL));
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK(strstr(weft_last_error(), " 1") != NULL);
        CHECK(memcmp(out, marked, sizeof out) == 0);
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
    }
    close_alone(&rig);
}

/* An earlier call, still on its stream when send was called, meets its deadline before recv: that has nothing to wait
 * for, and a rank can be masked. The fake driver's launches return when they are complete, so that the kernel's word is
 * written here. */
static void fail_between_halves(weft_world *world, int which)
{
    ep_rig rig;
    (void)which;
    open_rig(&rig, world, WEFT_EP_SLOTS_SOURCE, 0);
    if (rig.rank == 0) {
        weft_ep_host_counts counts;
        uint64_t *failed = &rig.ep->device->host_status[WEFTI_CUDA_EP_HOST_STATUS_FAILED];
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
        __atomic_store_n(failed, UINT64_C(2) << 32 | (uint32_t)-WEFT_ERR_TIMEOUT, __ATOMIC_RELEASE);
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK_STATUS(weft_ep_dispatch_recv(rig.route, NULL), WEFT_ERR_TIMEOUT);
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(status_of(&rig), WEFT_OK);
    }
    close_alone(&rig);
}

/* All blocks of the other rank's call have begun, and after a while one of its next call. */
static void *begin_later(void *argument)
{
    ep_rig *rig = argument;
    const struct timespec rest = {0, 150000000};
    __atomic_store_n(&rig->later->epoch, rig->later->epoch + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&rig->later->begun, 0, __ATOMIC_RELAXED);
    (void)nanosleep(&rest, NULL);
    __atomic_store_n(&rig->later->begun, 1, __ATOMIC_RELAXED);
    return NULL;
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A rank is masked that is seen to be in the call which failed here: the mask waits until that has ended there. It does
 * so by its own failure (which 0) or by a later call (1), or is taken to have ended (2). Its words are written here. */
static void masked_in_a_call(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    expect_step(&rig);
    CHECK_OK(weft_device_deadline(world, UINT64_C(200000000)));
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 0) {
        const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig.ep);
        wefti_cuda_ep_control *theirs = (wefti_cuda_ep_control *)(uintptr_t)(group->area[1] + group->at.control);
        const wefti_cuda_ep_control before = *theirs;
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        theirs->begun = 1;
        if (which == 0) {
            theirs->failed = (uint32_t)-WEFT_ERR_TIMEOUT;
        } else if (which == 1) {
            rig.later = theirs;
            CHECK(pthread_create(&rig.thread, NULL, begin_later, &rig) == 0);
        }
        CHECK_OK(weft_device_deadline(world, which == 2 ? UINT64_C(200000000) : UINT64_C(20000000000)));
        const double start = now_s();
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        const double took = now_s() - start;
        CHECK(which == 2 ? took >= 0.6 : took < 20);
        CHECK(which != 1 || took >= 0.1);
        CHECK(which != 1 || pthread_join(rig.thread, NULL) == 0);
        *theirs = before;
    }
    close_alone(&rig);
}

/* ---- blocks of this rank itself that do not come ---- */

#define OWN_DEADLINE_NS UINT64_C(300000000)

typedef struct own_header {
    uint64_t words[WEFTI_CUDA_EP_HEADER_WORDS + PES];
    uint64_t *there;
    pthread_t thread;
} own_header;

static void *put_back(void *argument)
{
    own_header *header = argument;
    const struct timespec rest = {0, OWN_DEADLINE_NS / 2 * 3};
    (void)nanosleep(&rest, NULL);
    for (size_t i = 0; i < sizeof header->words / sizeof header->words[0]; i++) {
        __atomic_store_n(&header->there[i], header->words[i], __ATOMIC_RELAXED);
    }
    return NULL;
}

/* As if the block that posts this rank's call header to itself had not come yet. */
static void take_own_header(const ep_rig *rig, own_header *header)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t parity = control_of(rig)->epoch & 1;
    const size_t words = sizeof header->words / sizeof header->words[0];
    header->there = (uint64_t *)(uintptr_t)(group->area[rig->rank] + group->at.headers) +
                    (parity * PES + (uint64_t)rig->rank) * words;
    memcpy(header->words, header->there, sizeof header->words);
    memset(header->there, 0, sizeof header->words);
}

/* They come between the first and the second deadline (which 0): the call is right; or never (1): it names nobody, and
 * the group goes on. */
static void own_blocks_late(weft_world *world, int which)
{
    ep_rig rig;
    own_header header;
    weft_ep_host_counts counts;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    choose(&rig, 2 * (1 - rig.rank));
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    CHECK_OK(weft_device_deadline(world, OWN_DEADLINE_NS));
    take_own_header(&rig, &header);
    CHECK_OK(weft_barrier(world));
    if (which == 0) {
        CHECK(pthread_create(&header.thread, NULL, put_back, &header) == 0);
    }
    CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
    if (which == 0) {
        CHECK(pthread_join(header.thread, NULL) == 0);
        CHECK_STATUS(status_of(&rig), WEFT_OK);
        CHECK(rows_written(&rig) == TOKENS);
    } else {
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK(strstr(weft_last_error(), "two deadlines") != NULL);
        CHECK_OK(weft_barrier(world));
        CHECK_OK(weft_ep_mask(rig.ep, 1 - rig.rank, 1));
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_device_deadline(world, UINT64_C(30000000000)));
    CHECK_OK(weft_barrier(world));
    expect_step(&rig);
    close_rig(&rig);
}

/* ---- a fault that something else has latched ---- */

/* A call fails with it on every rank that has it, also if none of its waits is long; and does not write. */
static void after_a_fault(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    open_rig(&rig, world, which == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE, 0);
    expect_step(&rig);
    CHECK_OK(weft_barrier(world));
    memset(rig.there, MARK, ROWS * sizeof(row));
    if (rig.rank == 0) {
        const uint64_t fault = WEFTI_DEV_FAULT_SET | (uint32_t)-WEFT_ERR_RANGE;
        wefti_u64 *latched = &rig.ep->device->group[0].dev.control->fault;
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0)); /* nobody to wait for */
        choose(&rig, 0);
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        __atomic_store_n(latched, fault, __ATOMIC_RELAXED);
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        __atomic_store_n(latched, 0, __ATOMIC_RELAXED);
        CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_ERR_RANGE);
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_RANGE);
        CHECK_STATUS(weft_ep_mask(rig.ep, 1, 0), WEFT_ERR_STATE);
        CHECK(rows_written(&rig) == 0);
    }
    close_alone(&rig);
}

/* ---- gradients of more rows than there is memory ---- */

/* Gradients have no capacity: those that would lie behind the heap are not written, and the route says so. */
static void behind_the_heap(weft_world *world, int which)
{
    ep_rig rig;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR, 0);
    expect_step(&rig);
    const wefti_cuda *cuda = rig.ep->device->cuda;
    row *end = (row *)(void *)((unsigned char *)cuda->base.heap + cuda->base.heap_bytes);
    weft_ep_rows gradients = rows_at(end - (which == 0 ? TOKENS : TOKENS - 1));
    CHECK_OK(weft_ep_combine_bwd(rig.route, &rig.in, NULL, &gradients, NULL, 0, NULL));
    CHECK_STATUS(status_of(&rig), which == 0 ? WEFT_OK : WEFT_ERR_OVERFLOW);
    CHECK_OK(weft_barrier(world));
    expect_step(&rig);
    close_rig(&rig);
}

/* ---- after 2^31 calls ---- */

/* The epoch of the next call: its tag is not 0, which words have before any call, and what lies twice by its parity is
 * not what the call before used. */
static void expect_next_epoch(const ep_rig *rig, uint64_t *last)
{
    const uint64_t next = control_of(rig)->epoch + 1;
    CHECK((uint32_t)(next << 1) != 0);
    CHECK((next & 1) != (*last & 1));
    *last = next;
}

/* Calls before and behind the one whose tag would be 0, each with rows of its own. */
static void across_the_wrap(weft_world *world, int which)
{
    ep_rig rig;
    uint64_t last = (UINT64_C(1) << 31) - 4;
    open_rig(&rig, world, which == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE, which == 0 ? 0 : TOKENS);
    const int other = 1 - rig.rank;
    control_of(&rig)->epoch = last;
    CHECK_OK(weft_barrier(world));
    for (int step = 0; step < 8; step++) {
        for (int i = 0; i < TOKENS * HIDDEN; i++) {
            rig.tokens[i / HIDDEN][i % HIDDEN] = (float)(1000 * rig.rank + 100 * step + i / HIDDEN);
        }
        expect_next_epoch(&rig, &last);
        choose(&rig, 2 * other);
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL));
        CHECK_STATUS(status_of(&rig), WEFT_OK);
        for (int i = 0; i < TOKENS; i++) {
            CHECK(rig.there[which == 0 ? i : other * TOKENS + i][HIDDEN - 1] == (float)(1000 * other + 100 * step + i));
        }
        expect_next_epoch(&rig, &last);
        weft_ep_rows out = rows_at(rig.tokens);
        CHECK_OK(weft_ep_combine(rig.route, &rig.received.rows, &out, 0, NULL));
        CHECK_STATUS(status_of(&rig), WEFT_OK);
        CHECK(rig.tokens[TOKENS - 1][0] == (float)(1000 * rig.rank + 100 * step + TOKENS - 1));
    }
    CHECK(last > UINT64_C(1) << 31);
    close_rig(&rig);
}

/* ---- all ---- */

typedef struct ep_refusal {
    void (*body)(weft_world *world, int which);
    int whiches; /* 0 .. */
} ep_refusal;

/* In one world, because each thread that launches has its own stacks on the fake driver. */
static void run_all(weft_world *world, void *context)
{
    static const ep_refusal all[] = {
        {with_other_slots, 2},        {after_a_mismatch, 4},
        {with_other_options, 12},     {told_by_a_dispatch, 1},
        {on_another_stream, 1},       {with_missing_arrays, 1},
        {without_multiprocessors, 1}, {with_other_multiprocessors, 2},
        {combine_behind, 1},          {go_on_alone, 8},
        {combine_alone, 2},           {fail_between_halves, 1},
        {own_blocks_late, 2},         {masked_in_a_call, 3},
        {after_a_fault, 2},           {not_in_kernels, 1},
        {pairs_on_two_streams, 2},    {attached, 2},
        {across_the_wrap, 2},         {behind_the_heap, 2},
    };
    (void)context;
    if (!attach(world)) {
        return;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int which = 0; which < all[i].whiches; which++) {
            all[i].body(world, which);
        }
    }
}

/* ---- GPUs that do not reach each other ---- */

/* A group that is refused keeps no memory. */
static void create_far(weft_world *world, void *context)
{
    weft_ep_config config = config_of();
    weft_counters before;
    weft_counters after;
    weft_ep *ep = NULL;
    void *block = NULL;
    (void)context;
    if (!attach(world)) {
        return;
    }
    config.tokens_max = 1 << 16; /* some MiB of the heap's 64 */
    config.domain_ranks = PES; /* as if they reached each other */
    for (int i = 0; i < 16; i++) {
        CHECK_OK(weft_world_counters(world, &before));
        CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNREACHABLE);
        CHECK_OK(weft_world_counters(world, &after));
        CHECK(after.heap_bytes_used == before.heap_bytes_used);
    }
    CHECK(strstr(weft_last_error(), "on_device 0") != NULL || weft_world_pe(world) != 0);
    CHECK_OK(weft_device_malloc(world, (size_t)48 << 20, &block));
}

/* What groups of several domains do not have. They work after that. */
static void refuse_hosts(weft_world *world, void *context)
{
    weft_ep_config config = config_of();
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *route = NULL;
    weft_ep *ep = NULL;
    (void)context;
    if (!attach(world)) {
        return;
    }
    weft_team *team = weft_team_world(world);
    config.rows_max = 8;
    CHECK_STATUS(weft_ep_create(team, &config, &ep), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "rows_max") != NULL || weft_world_pe(world) != 0);
    config.rows_max = 0;
    config.pairs_max = 2;
    CHECK_STATUS(weft_ep_create(team, &config, &ep), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "pairs_max") != NULL || weft_world_pe(world) != 0);
    config.pairs_max = 0;
    config.domain_ranks = 1;
    CHECK_OK(weft_ep_bytes(&config, PES, &memory));
    CHECK(memory.symmetric_bytes > memory.staging_bytes && memory.low_latency_bytes == 0);
    config.domain_ranks = 0;
    if (!CHECK_OK(weft_ep_create(team, &config, &ep))) {
        return;
    }
    plan.flags = WEFT_EP_DESTINATIONS;
    plan.topk = 0;
    CHECK_STATUS(weft_ep_route_create(ep, &plan, NULL, &route), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "WEFT_EP_DESTINATIONS") != NULL);
    plan.flags = 0;
    plan.topk = TOPK;
    plan.order = WEFT_EP_ORDER_CHOICE;
    CHECK_STATUS(weft_ep_route_create(ep, &plan, NULL, &route), WEFT_ERR_UNSUPPORTED);
    CHECK(strstr(weft_last_error(), "WEFT_EP_ORDER_CHOICE") != NULL);
    CHECK_STATUS(weft_ep_mask(ep, weft_world_pe(world) == 0, 0), WEFT_ERR_UNSUPPORTED);
    CHECK_OK(weft_ep_destroy(ep));
}

static void far_gpus(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    pes_run(PES, create_far, NULL);
    pes_run(PES, refuse_hosts, NULL);
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
}

/* ---- GPUs whose blocks have little shared memory ---- */

static void create_narrow(weft_world *world, void *context)
{
    weft_ep_config config = config_of();
    weft_ep *ep = NULL;
    (void)context;
    if (attach(world)) {
        CHECK_STATUS(weft_ep_create(weft_team_world(world), &config, &ep), WEFT_ERR_UNSUPPORTED);
        CHECK(strstr(weft_last_error(), "99 KiB of shared memory") != NULL || weft_world_pe(world) != 0);
    }
}

static void narrow_gpus(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_FAKE_SHARED", "101376", 1), 0);
    pes_run(PES, create_narrow, NULL);
    assert_int_equal(unsetenv("WEFT_FAKE_SHARED"), 0);
}

static void refusals(void **state)
{
    (void)state;
    pes_run(PES, run_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(far_gpus), CHECKED_TEST(narrow_gpus), CHECKED_TEST(refusals)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
