/* Goal: in a group with WEFT_EP_MASK_ON_TIMEOUT a call into slots, or from them, that waits for a rank in vain masks it
 * and goes on; the mask word says so at once; what the others have is right, and the next call does not wait. A rank
 * that has missed calls comes back. Method: gpu/support/ep_rig.h; one rank makes no call, or the test takes back the
 * words that say that its rows have come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"
#include "os/os.h"
#include "support/ep_group.h"
#include "support/pes.h"

#define SHORT_NS UINT64_C(200000000)
#define LONG_NS UINT64_C(30000000000)

static uint64_t calls_of_others; /* told by rank 0 between barriers */

static void open_rig_with(ep_rig *rig, weft_world *world, weft_ep_layout layout, const weft_ep_config *config)
{
    ep_rig_open_with(rig, world, layout, config, 0);
    for (int i = 0; i < EP_RIG_TOKENS; i++) { /* each to an expert of both ranks */
        rig->ids[i * EP_RIG_TOPK] = 0;
        rig->ids[i * EP_RIG_TOPK + 1] = 2;
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            rig->tokens[i][h] = (float)(100 * (rig->rank + 1) + i);
        }
    }
}

static void open_rig(ep_rig *rig, weft_world *world, weft_ep_layout layout)
{
    weft_ep_config config = ep_rig_config();
    config.flags = WEFT_EP_MASK_ON_TIMEOUT | WEFT_EP_STATISTICS;
    open_rig_with(rig, world, layout, &config);
}

static void set_deadline(const ep_rig *rig, uint64_t ns)
{
    CHECK_OK(weft_device_deadline(rig->world, ns));
    CHECK_OK(weft_barrier(rig->world));
}

static void expect_masked(const ep_rig *rig, int is_masked)
{
    unsigned char masked[EP_RIG_PES];
    const uint64_t *words = NULL;
    int count = -1;
    CHECK_STATUS(weft_ep_failure(rig->ep), WEFT_OK);
    CHECK_OK(weft_ep_mask_query(rig->ep, masked, &count));
    CHECK(count == is_masked && masked[0] == 0 && masked[1] == is_masked);
    CHECK_OK(weft_ep_mask_words(rig->ep, &words));
    CHECK(rig->ep->config.pairs_max == 2 || words[0] == (is_masked ? 2u : 0u)); /* with two, as of the last call */
}

/* A combine gives each token `times` over: once for each rank that has it. */
static void expect_sums(const ep_rig *rig, const ep_rig_row *out, float times)
{
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            CHECK(out[i][h] == times * rig->tokens[i][h]);
        }
    }
}

static void combine(ep_rig *rig, int with_weights, float times)
{
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    float weights[EP_RIG_TOKENS * EP_RIG_TOPK];
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    const weft_ep_rows rows = ep_rig_rows(out);
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        weights[i] = 2;
    }
    memset(out, EP_RIG_MARK, sizeof out);
    options.flags = with_weights ? WEFT_EP_WEIGHTED : 0;
    options.weights = with_weights ? weights : NULL;
    CHECK_OK(weft_ep_combine_with(rig->route, &rig->received.rows, &rows, &options, NULL));
    CHECK_STATUS(weft_ep_failure(rig->ep), WEFT_OK);
    expect_sums(rig, out, with_weights ? 2 * times : times);
}

static void dispatch(ep_rig *rig, int from_other)
{
    weft_ep_counts counts;
    memset(rig->there, EP_RIG_MARK, EP_RIG_ROWS * sizeof(ep_rig_row));
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
    CHECK_STATUS(ep_rig_status(rig), WEFT_OK);
    CHECK_OK(weft_ep_route_counts(rig->route, &counts));
    CHECK(counts.rows_of_source[rig->rank] == EP_RIG_TOKENS);
    CHECK(counts.rows_of_source[1 - rig->rank] == from_other);
    CHECK(counts.rows_of_expert[0] == EP_RIG_TOKENS + from_other && counts.rows_of_expert[1] == 0);
    CHECK(ep_rig_rows_written(rig) == EP_RIG_TOKENS + from_other);
}

/* The other rank has missed calls, and comes back; its own numbers may be told alive by a mask or by joining. */
static void come_back(ep_rig *rig, int by_mask)
{
    CHECK_OK(weft_barrier(rig->world));
    if (rig->rank == 0) {
        CHECK_OK(weft_ep_calls(rig->ep, &calls_of_others));
    }
    set_deadline(rig, LONG_NS);
    if (rig->rank == 0 && by_mask) {
        CHECK_OK(weft_ep_mask(rig->ep, 1, 1));
    } else {
        CHECK_OK(weft_ep_rejoin(rig->ep, calls_of_others));
        CHECK_STATUS(weft_ep_combine(rig->route, &rig->received.rows, &rig->in, 0, NULL), WEFT_ERR_STATE);
    }
    CHECK_OK(weft_barrier(rig->world));
    expect_masked(rig, 0);
    dispatch(rig, EP_RIG_TOKENS);
    combine(rig, 0, 2);
    expect_masked(rig, 0);
    ep_rig_close(rig);
}

/* A dispatch, and what follows it, without the other rank. which: by source, by expert, and how it comes back. */
static void dispatch_alone(weft_world *world, int which)
{
    ep_rig rig;
    open_rig(&rig, world, which % 2 == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT);
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0) {
        expect_masked(&rig, 0);
        dispatch(&rig, 0);
        expect_masked(&rig, 1);
        CHECK_OK(weft_device_deadline(world, LONG_NS)); /* from here on nobody is waited for */
        combine(&rig, 0, 1);
        combine(&rig, 1, 1);
        dispatch(&rig, 0);
        CHECK_OK(weft_ep_dispatch(rig.route, &rig.in, &rig.received, NULL)); /* on the routing that there is */
        combine(&rig, 0, 1);
        expect_masked(&rig, 1);
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0)); /* as it is */
        expect_masked(&rig, 1);
    }
    come_back(&rig, which / 2);
}

/* A combine without the other rank, which was in the dispatch. */
static void combine_alone(weft_world *world, int which)
{
    ep_rig rig;
    open_rig(&rig, world, which % 2 == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT);
    dispatch(&rig, EP_RIG_TOKENS);
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0) {
        combine(&rig, which / 2, 1);
        expect_masked(&rig, 1);
    }
    come_back(&rig, 0);
}

static void forget_words(const ep_rig *rig, int first, int count)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t parity = ep_rig_control(rig)->epoch & 1;
    uint64_t *words = (uint64_t *)(uintptr_t)(group->area[rig->rank] + group->at.low_latency[parity].words);
    memset(&words[group->at.low_latency_words + (uint64_t)first], 0, (size_t)count * sizeof *words);
}

/* As if the other rank had not sent how many rows it has for this rank's expert. */
static void forget_count(const ep_rig *rig)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t parity = ep_rig_control(rig)->epoch & 1;
    const uint64_t experts = 2 * EP_RIG_PES;
    uint64_t *counts = (uint64_t *)(uintptr_t)(group->area[rig->rank] + group->at.counts);
    counts[(2 * parity * EP_RIG_PES + 1) * experts] = 0;
}

/* The other rank's call header has come, and not all of its rows: those that have are there. Or (which / 2) not all of
 * its counts: then it has no rows in this call. */
static void rows_lost(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_counts counts;
    const int by_expert = which % 2;
    const int lost = which / 2 == 0 ? 2 : EP_RIG_TOKENS; /* rows */
    open_rig(&rig, world, by_expert ? WEFT_EP_SLOTS_EXPERT : WEFT_EP_SLOTS_SOURCE);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0) {
        const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of(
            EP_RIG_TOKENS, sizeof(ep_rig_row), wefti_cuda_ep_group_of(rig.ep)->at.low_latency_words);
        const int words = 1 + slices.count;
        if (which / 2 == 0) {
            forget_words(&rig, (EP_RIG_TOKENS - lost) * words, lost * words);
        } else {
            forget_count(&rig);
        }
        CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        expect_masked(&rig, 1);
        CHECK(ep_rig_rows_written(&rig) == 2 * EP_RIG_TOKENS - lost);
        CHECK_OK(weft_ep_route_counts(rig.route, &counts));
        CHECK(counts.rows_of_source[1] == (which / 2 == 0 ? EP_RIG_TOKENS : 0));
        CHECK(counts.rows_of_expert[0] == EP_RIG_TOKENS + counts.rows_of_source[1]);
        combine(&rig, 0, 1);
    }
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 1) {
        CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL)); /* all of rank 0's had come */
        CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_OK);
        CHECK(ep_rig_rows_written(&rig) == 2 * EP_RIG_TOKENS);
    }
    come_back(&rig, 0);
}

/* ---- many ranks ---- */

/* The word of the other rank's call header that says how many tokens it has for this rank. */
static uint64_t *header_word_of_other(const ep_rig *rig)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t parity = ep_rig_control(rig)->epoch & 1;
    uint64_t *headers = (uint64_t *)(uintptr_t)(group->area[0] + group->at.headers);
    return &headers[(2 * parity + 1) * (WEFTI_CUDA_EP_HEADER_WORDS + 1 + EP_RIG_LOCAL_EXPERTS) +
                    WEFTI_CUDA_EP_HEADER_WORDS];
}

/* As if the other rank had answered this one's call header: its rows begin there behind this rank's, which is before
 * it. By expert both send to the first expert of each alone. */
static void forge_answer(const ep_rig *rig)
{
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(rig->ep);
    const uint64_t tag = 2 * ep_rig_control(rig)->epoch << 32;
    uint64_t *answers = (uint64_t *)(uintptr_t)(group->area[0] + group->at.counts);
    for (int i = 0; i < WEFTI_CUDA_EP_REPLY_WORDS + EP_RIG_LOCAL_EXPERTS; i++) {
        answers[WEFTI_CUDA_EP_REPLY_WORDS + EP_RIG_LOCAL_EXPERTS + i] = tag;
    }
}

/* The other rank has begun the dispatch, and does not go on: which / 2: not all of its counts are here; its answer does
 * not come; its rows do not. */
static void stopped_in_dispatch(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_counts counts;
    open_rig(&rig, world, which % 2 == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT);
    CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
    CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0) {
        const int announced = which / 2 == 0 ? 0 : EP_RIG_TOKENS;
        *header_word_of_other(&rig) = which / 2 == 0 ? 0 : *header_word_of_other(&rig);
        if (which / 2 == 2) {
            forge_answer(&rig);
        }
        CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
        CHECK_STATUS(ep_rig_status(&rig), WEFT_OK);
        expect_masked(&rig, 1);
        CHECK(ep_rig_rows_written(&rig) == EP_RIG_TOKENS);
        CHECK_OK(weft_ep_route_counts(rig.route, &counts));
        CHECK(counts.rows_of_source[0] == EP_RIG_TOKENS && counts.rows_of_source[1] == announced);
        CHECK(counts.rows_of_expert[0] == EP_RIG_TOKENS + announced);
        CHECK_OK(weft_device_deadline(world, LONG_NS)); /* from here on nobody is waited for */
        combine(&rig, 0, 1);
        combine(&rig, 1, 1);
        dispatch(&rig, 0);
        combine(&rig, 0, 1);
    }
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 1) { /* its own half is to end: the other does not answer, but where it has */
        CHECK_OK(weft_device_deadline(world, SHORT_NS));
        CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL));
        CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_OK);
    }
    come_back(&rig, 0);
}

/* The other rank has begun the combine, and its results do not come. */
static void stopped_in_combine(weft_world *world, int which)
{
    ep_rig rig;
    _Alignas(64) ep_rig_row out[EP_RIG_TOKENS];
    const weft_ep_rows rows = ep_rig_rows(out);
    open_rig(&rig, world, which % 2 == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT);
    dispatch(&rig, EP_RIG_TOKENS);
    CHECK_OK(weft_ep_combine_send(rig.route, &rig.received.rows, &rows, 0, NULL));
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0) {
        CHECK_OK(weft_ep_combine_recv(rig.route, NULL));
        expect_masked(&rig, 1);
        expect_sums(&rig, out, 1);
    }
    CHECK_OK(weft_barrier(world));
    if (rig.rank == 1) {
        CHECK_OK(weft_ep_combine_recv(rig.route, NULL)); /* rank 0 has told and stored all that it has */
        CHECK_STATUS(weft_ep_failure(rig.ep), WEFT_OK);
        expect_sums(&rig, out, 2);
    }
    come_back(&rig, 0);
}

/* Calls that are not of slots fail at their deadline as those of other groups, and go on after a mask. */
static void others_fail(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_host_counts counts;
    (void)which;
    open_rig(&rig, world, WEFT_EP_RANK_MAJOR);
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0) {
        CHECK_OK(weft_ep_route_update(rig.route, &rig.choices, NULL));
        CHECK_STATUS(weft_ep_route_query(rig.route, NULL, &counts), WEFT_ERR_TIMEOUT);
        CHECK_OK(weft_ep_mask(rig.ep, 1, 0));
        expect_masked(&rig, 1);
        dispatch(&rig, 0);
    }
    come_back(&rig, 0);
}

/* With two banks: who is masked on one is not waited for on the other, in no call and no half. which: by source, by
 * expert; with another pair outstanding when the rank is masked. */
static void two_banks(weft_world *world, int which)
{
    ep_rig rig;
    weft_ep_config config = ep_rig_config();
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_route *other = NULL;
    const uint64_t *words = NULL;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    config.pairs_max = 2;
    open_rig_with(&rig, world, which % 2 == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT, &config);
    plan.topk = EP_RIG_TOPK;
    plan.layout = which % 2 == 0 ? WEFT_EP_SLOTS_SOURCE : WEFT_EP_SLOTS_EXPERT;
    CHECK_OK(weft_ep_route_create(rig.ep, &plan, NULL, &other));
    set_deadline(&rig, SHORT_NS);
    if (rig.rank == 0 && which / 2 == 0) {
        dispatch(&rig, 0);
        expect_masked(&rig, 1);
        CHECK_OK(weft_device_deadline(world, LONG_NS)); /* from here on nobody is waited for */
        const uint64_t start_ns = wefti_os_now_ns();
        for (int i = 0; i < 3; i++) {
            combine(&rig, i % 2, 1);
        }
        dispatch(&rig, 0);
        combine(&rig, 0, 1);
        CHECK(wefti_os_now_ns() - start_ns < LONG_NS);
    } else if (rig.rank == 0) {
        CHECK_OK(weft_ep_route_choose(rig.route, &rig.choices));
        CHECK_OK(weft_ep_route_choose(other, &rig.choices));
        CHECK_OK(weft_ep_dispatch_send(rig.route, &rig.in, &rig.received, NULL));
        CHECK_OK(weft_ep_dispatch_send(other, &rig.in, &rig.received, NULL));
        CHECK_OK(weft_ep_dispatch_recv(rig.route, NULL)); /* its deadline, and that of the other pair */
        CHECK_OK(weft_ep_dispatch_recv(other, NULL));
        CHECK_OK(weft_device_deadline(world, LONG_NS));
        expect_masked(&rig, 1);
        combine(&rig, 0, 1);
        CHECK_OK(weft_ep_mask_words(rig.ep, &words));
        CHECK(words[0] == 2);
        dispatch(&rig, 0);
    }
    CHECK_OK(weft_ep_route_destroy(other));
    ep_rig_close_alone(&rig);
}

static void passing(void **state)
{
    static const ep_rig_case cases[] = {
        {dispatch_alone, 4}, {combine_alone, 4}, {rows_lost, 4}, {others_fail, 1}, {two_banks, 4}};
    (void)state;
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
}

/* ---- more ranks than a warp has lanes ---- */

enum { RANKS_MAX = 66, TOKENS_OF_MANY = 2, TOPK_OF_MANY = 2, WIDTH_OF_MANY = 4 };
#define AWAY_NS UINT64_C(4000000000) /* in which so many ranks come */

/* The last rank is the one that will be away. */
typedef struct many_case {
    weft_ep_layout layout;
    int ranks;
} many_case;

typedef struct many_rig {
    weft_world *world;
    int rank;
    int away;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[TOKENS_OF_MANY * TOPK_OF_MANY];
    _Alignas(64) float in[TOKENS_OF_MANY * WIDTH_OF_MANY];
    _Alignas(64) float there[RANKS_MAX * TOKENS_OF_MANY * WIDTH_OF_MANY];
    _Alignas(64) float out[TOKENS_OF_MANY * WIDTH_OF_MANY];
} many_rig;

static int attach_many(weft_world *world)
{
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    device.choice = WEFT_DEVICE_ORDINAL;
    device.ordinal = weft_world_pe(world) % 2;
    device.heap_max_bytes = (size_t)8 << 20;
    return CHECK_OK(weft_device_attach(world, &device));
}

/* A token goes to another rank's expert and to that of the rank that will be away. */
static int open_many(many_rig *rig, weft_world *world, const many_case *one)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    memset(rig, 0, sizeof *rig);
    rig->world = world;
    rig->rank = weft_world_pe(world);
    rig->away = one->ranks - 1;
    config.experts = one->ranks;
    config.tokens_max = TOKENS_OF_MANY;
    config.topk_max = TOPK_OF_MANY;
    config.row_bytes_max = WIDTH_OF_MANY * sizeof(float);
    config.on_device = 1;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    plan.topk = TOPK_OF_MANY;
    plan.layout = one->layout;
    plan.sms = 1;
    for (int i = 0; i < TOKENS_OF_MANY; i++) {
        rig->ids[TOPK_OF_MANY * i] = (rig->rank + 1) % rig->away;
        rig->ids[TOPK_OF_MANY * i + 1] = rig->away;
    }
    ep_tokens_fill(rig->in, rig->rank, TOKENS_OF_MANY, WIDTH_OF_MANY);
    return attach_many(world) && ep_group_open(world, &config, &plan, &rig->ep, &rig->route);
}

/* A dispatch and a combine. is_complete: with the rank that will be away. */
static void step_of_many(many_rig *rig, int is_complete)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    weft_ep_host_counts counts;
    const weft_ep_rows in = ep_rows(rig->in, WEFT_EP_F32, WIDTH_OF_MANY);
    const weft_ep_rows out = ep_rows(rig->out, WEFT_EP_F32, WIDTH_OF_MANY);
    choices.tokens = TOKENS_OF_MANY;
    choices.ids = rig->ids;
    received.rows = ep_rows(rig->there, WEFT_EP_F32, WIDTH_OF_MANY);
    received.rows_capacity = sizeof rig->there / sizeof(float) / WIDTH_OF_MANY;
    CHECK_OK(weft_ep_route_choose(rig->route, &choices));
    CHECK_OK(weft_ep_dispatch(rig->route, &in, &received, NULL));
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
    CHECK_STATUS(counts.status, WEFT_OK);
    CHECK_OK(weft_ep_combine(rig->route, &received.rows, &out, 0, NULL));
    CHECK_STATUS(weft_ep_failure(rig->ep), WEFT_OK);
    ep_sums_check(rig->out, rig->in, is_complete ? 2 : 1, TOKENS_OF_MANY, WIDTH_OF_MANY);
}

static void expect_masked_of_many(const many_rig *rig, int is_masked)
{
    unsigned char masked[RANKS_MAX];
    const uint64_t *words = NULL;
    int count = -1;
    CHECK_OK(weft_ep_mask_query(rig->ep, masked, &count));
    CHECK(count == is_masked && masked[rig->away] == is_masked);
    CHECK_OK(weft_ep_mask_words(rig->ep, &words));
    for (int word = 0; word <= rig->away / 64; word++) {
        CHECK(words[word] == (is_masked && word == rig->away / 64 ? UINT64_C(1) << rig->away % 64 : 0));
    }
}

static void away_of_many(weft_world *world, void *context)
{
    many_rig *rig = aligned_alloc(64, sizeof *rig);
    if (!open_many(rig, world, context)) {
        abort();
    }
    CHECK_OK(weft_device_deadline(world, LONG_NS));
    CHECK_OK(weft_barrier(world));
    step_of_many(rig, 1);
    CHECK_OK(weft_device_deadline(world, AWAY_NS));
    CHECK_OK(weft_barrier(world));
    if (rig->rank != rig->away) {
        step_of_many(rig, 0);
        expect_masked_of_many(rig, 1);
        CHECK_OK(weft_device_deadline(world, LONG_NS)); /* from here on nobody is waited for */
        step_of_many(rig, 0);
        expect_masked_of_many(rig, 1);
    }
    CHECK_OK(weft_barrier(world));
    if (rig->rank == 0) {
        CHECK_OK(weft_ep_calls(rig->ep, &calls_of_others));
    }
    CHECK_OK(weft_device_deadline(world, LONG_NS));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(rig->rank == rig->away ? weft_ep_rejoin(rig->ep, calls_of_others) : weft_ep_mask(rig->ep, rig->away, 1));
    CHECK_OK(weft_barrier(world));
    step_of_many(rig, 1);
    expect_masked_of_many(rig, 0);
    CHECK_OK(weft_barrier(world));
    ep_group_close(rig->ep, rig->route);
    free(rig);
}

/* Rank 33 is in the second word of 32 bits that kernels have for sets of ranks, 65 in the third, and in the second of
 * 64 bits that the host has. */
static void passing_of_more_ranks(void **state)
{
    static many_case cases[] = {{WEFT_EP_SLOTS_SOURCE, 34}, {WEFT_EP_SLOTS_EXPERT, 34}, {WEFT_EP_SLOTS_EXPERT, 66}};
    const char *sms = getenv("WEFT_FAKE_SMS");
    char before[16];
    (void)state;
    (void)snprintf(before, sizeof before, "%s", sms);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char of_gpu[16];
        (void)snprintf(of_gpu, sizeof of_gpu, "%d", cases[i].ranks); /* of each of two GPUs, for half of the ranks */
        assert_int_equal(setenv("WEFT_FAKE_SMS", of_gpu, 1), 0);
        pes_run(cases[i].ranks, away_of_many, &cases[i]);
    }
    assert_int_equal(setenv("WEFT_FAKE_SMS", before, 1), 0);
}

/* Kernels for many ranks (src/cuda/ep/many.h), of two. */
static void passing_of_many(void **state)
{
    static const ep_rig_case cases[] = {{dispatch_alone, 4},     {combine_alone, 4}, {stopped_in_dispatch, 6},
                                        {stopped_in_combine, 2}, {others_fail, 1},   {two_banks, 4}};
    (void)state;
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    ep_rig_run(&(ep_rig_cases){cases, sizeof cases / sizeof cases[0]});
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(passing), CHECKED_TEST(passing_of_many),
                                       CHECKED_TEST(passing_of_more_ranks)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
