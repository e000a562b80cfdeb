/* Goal: the ranks that are left go on without one that is gone: on the routings they have and on new ones, in every
 * call.
 *
 * Method: PEs as threads with a short deadline. One goes away; the others learn it in a call of each kind, mask it, and
 * make all calls, whose results are worked out by hand: experts return what they get, so that a combined row is the
 * token's times the number of ranks that received it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/load.h"
#include "support/pes.h"
#include "weft_ep.h"

#define PES 4
#define LOST 2
#define TOKENS 3
#define TOPK 2
#define HIDDEN 8
#define ROWS (PES * TOKENS * TOPK)
#define DEADLINE_NS load_patience_ns(300000000) /* of calls to which PE LOST does not come */

typedef enum call_kind { UPDATE, DISPATCH, FRESH, COMBINE, DISPATCH_BWD, COMBINE_BWD, KINDS } call_kind;

typedef struct mask_rig {
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[TOKENS * TOPK];
    _Alignas(16) float in[TOKENS * HIDDEN];
    _Alignas(16) float received[ROWS * HIDDEN];
    _Alignas(16) float out[TOKENS * HIDDEN];
    float grad_received[ROWS * TOPK];
    float grad[TOKENS * TOPK];
} mask_rig;

typedef struct mask_case {
    call_kind kind; /* of the call that the lost rank does not come to */
    weft_ep_layout layout;
    uint64_t deadline_ns; /* of the calls that it misses */
    int arrived; /* at the first of them: the others */
    int domain_ranks; /* 2: the lost rank is a forwarder */
    int is_sent; /* of a fresh dispatch the lost rank makes the first half */
    uint64_t calls; /* that the others have made, once they have gone on */
    int is_back; /* the lost rank is */
    int pairs; /* of halves, that may be outstanding */
} mask_case;

/* Two experts a rank; one choice goes to the next rank but `token`, one to the rank itself. */
static int owner_of(int rank, int token, int choice)
{
    return choice == 0 ? (rank + 1 + token) % PES : rank;
}

static weft_ep_rows rows_at(float *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static weft_ep_choices choices_of(const mask_rig *rig)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = rig->ids;
    return choices;
}

static weft_status call(mask_rig *rig, call_kind kind)
{
    weft_ep_choices choices = choices_of(rig);
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_rows received = rows_at(rig->received);
    weft_ep_rows out = rows_at(rig->out);
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    to.rows = received;
    to.rows_capacity = ROWS;
    switch (kind) {
    case UPDATE:
        return weft_ep_route_update(rig->route, &choices, NULL);
    case FRESH:
        CHECK_OK(weft_ep_route_choose(rig->route, &choices));
        return weft_ep_dispatch(rig->route, &in, &to, NULL);
    case DISPATCH:
        return weft_ep_dispatch(rig->route, &in, &to, NULL);
    case COMBINE:
        return weft_ep_combine(rig->route, &received, &out, 0, NULL);
    case DISPATCH_BWD:
        return weft_ep_dispatch_bwd(rig->route, &received, rig->grad_received, &out, rig->grad, NULL);
    default:
        return weft_ep_combine_bwd(rig->route, &in, &received, &received, rig->grad, WEFT_EP_WEIGHTED, NULL);
    }
}

static void make(weft_world *world, mask_rig *rig, const mask_case *one, unsigned flags)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    memset(rig, 0, sizeof *rig);
    rig->rank = weft_world_pe(world);
    config.experts = 2 * PES;
    config.flags = flags;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    plan.topk = TOPK;
    config.domain_ranks = one->domain_ranks;
    config.pairs_max = one->pairs;
    plan.layout = one->layout;
    for (int i = 0; i < TOKENS * TOPK; i++) {
        rig->ids[i] = 2 * owner_of(rig->rank, i / TOPK, i % TOPK) + i % TOPK;
    }
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        rig->in[i] = (float)(rig->rank + 1 + i);
    }
    CHECK_OK(weft_ep_create(weft_team_world(world), &config, &rig->ep));
    CHECK_OK(weft_ep_route_create(rig->ep, &plan, NULL, &rig->route));
    CHECK_OK(call(rig, UPDATE));
}

/* The ranks that receive a token. */
static int receivers(const mask_rig *rig, int token, int is_masked)
{
    int other = owner_of(rig->rank, token, 0);
    return 1 + (other != rig->rank && !(is_masked && other == LOST));
}

/* Choices of this token that are received count one row each, by source rows of both choices on one rank one. */
static float wanted_sum(const mask_rig *rig, weft_ep_layout layout, int token, int is_masked)
{
    int doubled = layout == WEFT_EP_EXPERT_MAJOR && owner_of(rig->rank, token, 0) == rig->rank;
    return (float)(receivers(rig, token, is_masked) + doubled);
}

static void check_step(mask_rig *rig, weft_ep_layout layout, int is_masked)
{
    CHECK_OK(call(rig, DISPATCH));
    CHECK_OK(call(rig, COMBINE));
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        float wanted = wanted_sum(rig, layout, i / HIDDEN, is_masked) * rig->in[i];
        CHECK_SAY(rig->out[i] == wanted, "element %d is %g, not %g", i, (double)rig->out[i], (double)wanted);
    }
    for (int i = 0; i < ROWS * TOPK; i++) {
        rig->grad_received[i] = 3.0f;
    }
    CHECK_OK(call(rig, DISPATCH_BWD));
    for (int i = 0; i < TOKENS * TOPK; i++) {
        float wanted = is_masked && owner_of(rig->rank, i / TOPK, i % TOPK) == LOST ? 0.0f : 3.0f;
        CHECK_SAY(rig->grad[i] == wanted, "gradient %d is %g, not %g", i, (double)rig->grad[i], (double)wanted);
    }
}

static void check_new_routing(mask_rig *rig)
{
    weft_ep_counts counts;
    if (CHECK_OK(weft_ep_route_counts(rig->route, &counts))) {
        CHECK(counts.rows_of_source[LOST] == 0 && *counts.status == WEFT_OK && *counts.dropped == 0);
    }
}

static void check_refused(mask_rig *rig)
{
    CHECK_STATUS(weft_ep_mask(NULL, LOST, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(rig->ep, rig->rank, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(rig->ep, LOST, 2), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(rig->ep, -1, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ep_mask(rig->ep, PES, 0), WEFT_ERR_RANGE);
}

static void go_on(weft_world *world, void *context)
{
    mask_case *one = context;
    mask_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    make(world, rig, one, 0);
    check_step(rig, one->layout, 0);
    uint64_t long_ns = pes_set_deadline(world, one->deadline_ns);
    if (rig->rank != LOST) {
        pes_gather(&one->arrived, PES - 1);
        CHECK_STATUS(call(rig, one->kind), WEFT_ERR_TIMEOUT);
        CHECK_SAY(text_names_pe(weft_last_error(), LOST), "\"%s\"", weft_last_error());
        check_refused(rig);
        for (call_kind kind = UPDATE; kind < KINDS; kind++) {
            if (kind != FRESH) { /* its choice would stay */
                CHECK_STATUS(call(rig, kind), WEFT_ERR_TIMEOUT);
            }
        }
        (void)pes_set_deadline(world, long_ns);
        CHECK_OK(weft_ep_mask(rig->ep, LOST, 0));
        if (one->kind != UPDATE && one->kind != FRESH) { /* the old routing is there still */
            check_step(rig, one->layout, 1);
        }
        CHECK_OK(call(rig, UPDATE));
        check_new_routing(rig);
        check_step(rig, one->layout, 1);
        CHECK_OK(call(rig, FRESH));
        check_new_routing(rig);
        CHECK_OK(call(rig, COMBINE_BWD));
        check_step(rig, one->layout, 1);
    }
    CHECK_OK(weft_ep_route_destroy(rig->route));
    if (rig->rank != LOST) {
        CHECK_OK(weft_ep_destroy(rig->ep));
    } else {
        CHECK_STATUS(weft_ep_destroy(rig->ep), WEFT_ERR_TIMEOUT); /* the others did it alone */
    }
    free(rig);
}

static void run(mask_case *one, void (*body)(weft_world *world, void *context))
{
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    weft_world *worlds[PES];
    weft_threads *threads = pes_meeting(PES);
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(threads, pe, PES);
    }
    pes_create(configs, PES, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        assert_int_equal(outcomes[pe].status, WEFT_OK);
        worlds[pe] = outcomes[pe].world;
    }
    weft_threads_destroy(threads);
    pes_run_in(PES, worlds, body, one);
    pes_destroy_world(PES, worlds);
}

static void lost(void **state)
{
    (void)state;
    static const char *const protocols[] = {"owners", "direct"};
    static const weft_ep_layout layouts[] = {WEFT_EP_RANK_MAJOR, WEFT_EP_EXPERT_MAJOR};
    for (int i = 0; i < 3; i++) {
        for (call_kind kind = UPDATE; kind < KINDS; kind++) {
            mask_case one = {.kind = kind, .layout = layouts[(i + (int)kind) % 2], .deadline_ns = DEADLINE_NS};
            (void)setenv("WEFT_EP_COUNTS", protocols[i < 2 ? i : (int)kind / 2 % 2], 1);
            if (i == 2) {
                one.domain_ranks = 2;
                one.deadline_ns /= 2;
            }
            run(&one, go_on);
        }
    }
    (void)unsetenv("WEFT_EP_COUNTS");
}

/* ---- the running call goes on ---- */

static void check_masked(const mask_rig *rig, int is_masked)
{
    unsigned char masked[PES] = {9, 9, 9, 9};
    const uint64_t *words = NULL;
    int count = -1;
    CHECK_OK(weft_ep_mask_query(rig->ep, masked, &count));
    CHECK_OK(weft_ep_mask_words(rig->ep, &words));
    CHECK_SAY(count == is_masked, "%d ranks are masked", count);
    CHECK(*words == (is_masked ? UINT64_C(1) << LOST : 0));
    for (int rank = 0; rank < PES; rank++) {
        CHECK(masked[rank] == (is_masked && rank == LOST));
    }
}

/* The others, whose call does not end for the lost rank. */
static void pass_by(weft_world *world, mask_rig *rig, mask_case *one)
{
    uint64_t long_ns = pes_set_deadline(world, one->deadline_ns);
    uint64_t calls = 0;
    pes_gather(&one->arrived, PES - 1);
    CHECK_OK(call(rig, one->kind));
    check_masked(rig, 1);
    (void)pes_set_deadline(world, long_ns);
    if (!one->is_sent && (one->kind == UPDATE || one->kind == FRESH)) {
        check_new_routing(rig);
    }
    check_step(rig, one->layout, 1);
    CHECK_OK(call(rig, UPDATE));
    check_new_routing(rig);
    check_step(rig, one->layout, 1);
    CHECK_OK(call(rig, FRESH));
    CHECK_OK(call(rig, COMBINE_BWD));
    pes_gather(&one->arrived, 2 * (PES - 1));
    CHECK_OK(weft_ep_calls(rig->ep, &calls));
    __atomic_store_n(&one->calls, calls, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&one->is_back, __ATOMIC_ACQUIRE)) {
        wefti_os_sleep_ns(1000000);
    }
    CHECK_OK(weft_ep_mask(rig->ep, LOST, 1));
}

static void stay_away(weft_world *world, mask_rig *rig, mask_case *one)
{
    weft_ep_choices choices = choices_of(rig);
    weft_ep_rows in = rows_at(rig->in);
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    uint64_t calls;
    to.rows = rows_at(rig->received);
    to.rows_capacity = ROWS;
    if (one->is_sent) {
        CHECK_OK(weft_ep_route_choose(rig->route, &choices));
        CHECK_OK(weft_ep_dispatch_send(rig->route, &in, &to, NULL));
    }
    while ((calls = __atomic_load_n(&one->calls, __ATOMIC_ACQUIRE)) == 0) {
        wefti_os_sleep_ns(1000000);
    }
    if (one->is_sent) {
        int count = 0;
        uint64_t long_ns = pes_set_deadline(world, one->deadline_ns);
        CHECK_STATUS(weft_ep_rejoin(rig->ep, calls), WEFT_ERR_STATE);
        CHECK_OK(weft_ep_dispatch_recv(rig->route, NULL)); /* the others have gone on, and so are masked here */
        (void)pes_set_deadline(world, long_ns);
        CHECK_OK(weft_ep_mask_query(rig->ep, NULL, &count));
        CHECK(count == PES - 1);
    }
    CHECK_STATUS(weft_ep_rejoin(rig->ep, 0), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_rejoin(rig->ep, calls));
    __atomic_store_n(&one->is_back, 1, __ATOMIC_RELEASE);
}

static void go_on_without(weft_world *world, void *context)
{
    mask_case *one = context;
    mask_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    make(world, rig, one, WEFT_EP_MASK_ON_TIMEOUT);
    check_step(rig, one->layout, 0);
    check_masked(rig, 0);
    if (rig->rank != LOST) {
        pass_by(world, rig, one);
    } else {
        stay_away(world, rig, one);
    }
    check_masked(rig, 0);
    CHECK_OK(call(rig, UPDATE));
    check_step(rig, one->layout, 0);
    CHECK_OK(weft_ep_route_destroy(rig->route));
    CHECK_OK(weft_ep_destroy(rig->ep));
    free(rig);
}

static void passed_by(void **state)
{
    (void)state;
    static const weft_ep_layout layouts[] = {WEFT_EP_RANK_MAJOR, WEFT_EP_EXPERT_MAJOR};
    for (call_kind kind = UPDATE; kind < KINDS; kind++) {
        mask_case one = {.kind = kind, .layout = layouts[(int)kind % 2], .deadline_ns = DEADLINE_NS / 4};
        run(&one, go_on_without);
    }
    for (int i = 0; i < 2; i++) {
        mask_case one = {.kind = FRESH, .layout = layouts[i], .deadline_ns = DEADLINE_NS / 4, .is_sent = 1};
        run(&one, go_on_without);
    }
}

/* Of two pairs that are outstanding one meets the lost rank: then none is any more, and the rank can be masked. */
static void lose_pairs(weft_world *world, void *context)
{
    mask_case *one = context;
    mask_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    make(world, rig, one, 0);
    check_step(rig, one->layout, 0);
    if (rig->rank != LOST) {
        weft_ep_rows in = rows_at(rig->in);
        weft_ep_received to = WEFT_EP_RECEIVED_INIT;
        to.rows = rows_at(rig->received);
        to.rows_capacity = ROWS;
        uint64_t long_ns = pes_set_deadline(world, one->deadline_ns);
        pes_gather(&one->arrived, PES - 1);
        CHECK_OK(weft_ep_dispatch_send(rig->route, &in, &to, NULL));
        CHECK_OK(weft_ep_dispatch_send(rig->route, &in, &to, NULL));
        CHECK_STATUS(weft_ep_dispatch_recv(rig->route, NULL), WEFT_ERR_TIMEOUT);
        (void)pes_set_deadline(world, long_ns);
        CHECK_OK(weft_ep_mask(rig->ep, LOST, 0));
        CHECK_STATUS(weft_ep_dispatch_recv(rig->route, NULL), WEFT_ERR_STATE);
        check_step(rig, one->layout, 1);
    }
    CHECK_OK(weft_ep_route_destroy(rig->route));
    (void)!weft_ep_destroy(rig->ep);
    free(rig);
}

static void lost_between_pairs(void **state)
{
    (void)state;
    mask_case one = {.layout = WEFT_EP_RANK_MAJOR, .deadline_ns = DEADLINE_NS / 4, .pairs = 2};
    run(&one, lose_pairs);
}

/* Masked by mistake: it is there, and no call was made since. */
static void take_back(weft_world *world, void *context)
{
    const mask_case *one = context;
    mask_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    make(world, rig, one, 0);
    if (rig->rank != LOST) {
        CHECK_OK(weft_ep_mask(rig->ep, LOST, 0));
        CHECK_OK(weft_ep_mask(rig->ep, LOST, 1));
    }
    check_step(rig, one->layout, 0);
    CHECK_OK(weft_ep_route_destroy(rig->route));
    CHECK_OK(weft_ep_destroy(rig->ep));
    free(rig);
}

static void taken_back(void **state)
{
    (void)state;
    mask_case one = {.kind = UPDATE, .layout = WEFT_EP_RANK_MAJOR, .deadline_ns = DEADLINE_NS};
    run(&one, take_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(lost), CHECKED_TEST(lost_between_pairs), CHECKED_TEST(taken_back),
                                       CHECKED_TEST(passed_by)};
    (void)setenv("WEFT_LOG", "none", 0); /* timeouts are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
