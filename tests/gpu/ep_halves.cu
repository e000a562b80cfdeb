/* Goal: between the halves of a dispatch or combine on GPUs nothing of it runs; a send waits for no other rank, and of
 * slot layouts, and of all with WEFT_EP_ROWS_WITH_SEND but new routings by rank where rows may be dropped, a recv waits
 * for other ranks' sends and not for their recvs, where ranks are few; calls of two groups, or two pairs of one, may
 * lie in each other; and two calls in a row of one route make routings.
 *
 * Method: random cases against the serial reference. In turns: a rank sends when those before it have sent and their
 * streams have ended, so that a send that waited for a rank after it would meet its deadline; where a recv waits for
 * sends only they also receive in turns. Ahead: where it does, ranks send the next call before others have received.
 * Nested: one group's call between the halves of another's, with one stream, and, where a recv waits for sends only,
 * odd ranks the other way round; and one route's call between the halves of another's, of one group. Of one route:
 * both pairs are of the routing that it has, and the recvs come in either order, of one kind in that of the sends; a
 * combine may have options. On GPUs also with each recv on another stream than its send. Usage: as support/launch.h
 * says; -c: how many cases; WEFT_SEED. */
#include "support/arena.h"

extern "C" {
#include "support/ep_combining.h"
#include "support/ep_coverage.h"
#include "support/ep_step.h"
}

#define CASES 12
#define DEADLINE_NS UINT64_C(3000000000)

typedef struct scene {
    test_pe *pe;
    weft_world *world;
    ep_memory memory;
    uint64_t own;
    unsigned salt;
    char what[160];
} scene;

/* A group, a route, its routing. */
typedef struct actor {
    scene *of;
    ep_setup setup;
    weft_ep *ep;
    weft_ep_plan plan;
    weft_ep_route *route;
    ep_case one;
    ep_routing *routing;
    ep_payload payload;
    ep_payload received;
    struct actor *inner; /* of a nested call */
    struct actor *outer; /* whose recv this one makes between its own halves; NULL: none's */
    uint64_t *options; /* NULL, or combines have some that are drawn from it */
    int ends_apart; /* end_outer makes its recv */
    weft_stream *beside; /* the stream of its recv; NULL: that of its send */
    int adds; /* it is a combine */
    int fresh;
    int is_second; /* of two calls in a row */
} actor;

/* Whether a recv waits for the others' sends, and not for their recvs: of slots always. */
static int is_of_slots(const test_pe *pe, const weft_ep_plan *plan)
{
    return !ep_is_many(pe->pes) && (plan->layout == WEFT_EP_SLOTS_SOURCE || plan->layout == WEFT_EP_SLOTS_EXPERT);
}

/* And where rows leave with send, but for counts of what is accepted. */
static int waits_for_sends(const actor *who)
{
    const int leaves = (who->setup.config.flags & WEFT_EP_ROWS_WITH_SEND) != 0;
    const int is_counted_late = !who->adds && who->fresh && who->plan.layout == WEFT_EP_RANK_MAJOR &&
                                who->setup.config.overflow == WEFT_EP_OVERFLOW_DROP;
    return is_of_slots(who->of->pe, &who->plan) || (leaves && !is_counted_late);
}

static void open_route(actor *who, uint64_t *common, unsigned layout)
{
    who->plan = ep_plan_draw(random_next(common), &who->setup);
    if (layout != (unsigned)who->plan.layout) {
        who->plan.layout = (weft_ep_layout)layout;
        who->plan.slot_tokens = 0;
        who->plan.alignment = 0;
        who->plan.flags = 0;
    }
    CHECK_OK(weft_ep_route_create(who->ep, &who->plan, NULL, &who->route));
}

/* With a group of its own, or `shared`'s. */
static void open_actor(actor *who, scene *of, uint64_t *common, unsigned layout, const actor *shared)
{
    memset(who, 0, sizeof *who);
    who->of = of;
    if (shared != NULL) {
        who->setup = shared->setup;
        who->ep = shared->ep;
        open_route(who, common, layout);
        return;
    }
    do {
        who->setup = ep_setup_draw(random_next(common), of->pe->pes, &ep_size_small);
    } while (who->setup.config.tokens_max == 0);
    who->setup.config.on_device = 1;
    who->setup.config.rows_max = 0;
    who->setup.config.overflow = random_below(common, 2) == 0 ? WEFT_EP_OVERFLOW_DROP : WEFT_EP_OVERFLOW_ERROR;
    who->setup.config.slot_tokens_max = 0;
    who->setup.config.pairs_max = 2;
    if (random_below(common, 2) == 0 && !ep_is_many(of->pe->pes)) {
        who->setup.config.flags = WEFT_EP_ROWS_WITH_SEND;
    }
    weft_ep_config config = who->setup.config;
    config.experts_of_rank = who->setup.uneven ? who->setup.table : NULL;
    CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &who->ep));
    open_route(who, common, layout);
}

static void close_actor(actor *who, const actor *shared)
{
    ep_routing_destroy(who->routing);
    ep_case_free(&who->one);
    CHECK_OK(weft_ep_route_destroy(who->route));
    if (shared == NULL) {
        CHECK_OK(weft_ep_destroy(who->ep));
    }
}
/* What the actor does next; the same on all ranks. */
static void draw_call(actor *who, uint64_t *common, int fresh, int adds)
{
    scene *of = who->of;
    of->salt++;
    who->fresh = fresh;
    who->adds = adds;
    who->payload =
        ep_payload_draw(random_next(common), &who->setup, &ep_size_small, &who->plan, adds, of->salt, &who->received);
    if (fresh) {
        ep_routing_destroy(who->routing);
        ep_case_free(&who->one);
        who->one = ep_case_draw(random_next(common), &who->setup, &who->plan);
        who->routing = ep_routing_create(&who->one, NULL);
    }
}

static void act(actor *who, void (*meanwhile)(void *context, ep_moment moment))
{
    scene *of = who->of;
    ep_step step = {};
    int64_t capacity[EP_RANKS_MAX];
    snprintf(of->what, sizeof of->what, "%s%s %u (layout %d)", who->fresh ? "fresh " : "",
             who->adds ? "combine" : "dispatch", of->salt, who->plan.layout);
    step.route = who->route;
    step.routing = who->routing;
    step.rank = of->pe->pe;
    step.arrays.what = of->what;
    step.arrays.memory = &of->memory;
    step.arrays.random = &of->own;
    step.is_late = 1;
    step.halves = 1;
    step.recv_is_made = who->ends_apart;
    step.meanwhile = meanwhile;
    step.context = who;
    step.stream = gpu_stream_of(of->pe);
    ep_step_vary_sms(&step, of->salt);
    for (int rank = 0; rank < of->pe->pes; rank++) {
        capacity[rank] = who->routing->side[rank].rows;
    }
    if (who->adds && who->options != NULL) {
        ep_combining_step(&step, &who->payload, of->salt / 4 % 2 == 0 ? WEFT_EP_WEIGHTED : 0, who->options);
    } else if (who->adds) {
        ep_step_combine(&step, &who->payload, of->salt / 4 % 2 == 0 ? WEFT_EP_WEIGHTED : 0, NULL);
    } else {
        ep_step_dispatch(&step, &who->payload, &who->received, who->fresh ? capacity : NULL);
    }
}

/* ---- in turns ---- */

static void wait_rounds(actor *who, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        CHECK_OK(weft_barrier(who->of->world));
    }
}

static void in_turn(void *context, ep_moment moment)
{
    actor *who = (actor *)context;
    test_pe *pe = who->of->pe;
    const int receives = waits_for_sends(who); /* in turns as well */
    if (moment != EP_BEFORE_SEND) {
        finish(pe);
    }
    if (moment != EP_BEFORE_SEND && (moment == EP_BETWEEN_HALVES || receives)) {
        wait_rounds(who, pe->pes - pe->pe);
    }
    if (moment == EP_BEFORE_SEND || (moment == EP_BETWEEN_HALVES && receives)) {
        wait_rounds(who, pe->pe);
    }
}

static void test_rounds(scene *of, uint64_t *common, unsigned layout)
{
    actor who;
    open_actor(&who, of, common, layout, NULL);
    for (int call = 0; call < 8; call++) {
        draw_call(&who, common, call % 4 < 2, call % 4 == 3);
        act(&who, in_turn);
    }
    close_actor(&who, NULL);
}

/* ---- ahead ---- */

/* Of two calls in a row: ranks of even numbers receive the first and send the second before the others receive the
 * first. */
static void go_ahead(void *context, ep_moment moment)
{
    actor *who = (actor *)context;
    if (moment == EP_BETWEEN_HALVES) {
        const int leads = who->of->pe->pe % 2 == 0;
        finish(who->of->pe);
        wait_rounds(who, leads == who->is_second ? 2 : 1);
    }
}

static void test_ahead(scene *of, uint64_t *common, unsigned layout)
{
    actor who;
    open_actor(&who, of, common, layout, NULL);
    draw_call(&who, common, 1, 0);
    act(&who, NULL);
    for (int pair = 0; pair < 3; pair++) {
        draw_call(&who, common, 0, pair % 2);
        if (waits_for_sends(&who)) {
            who.is_second = 0;
            act(&who, go_ahead);
            draw_call(&who, common, pair == 2, pair < 2 && random_below(common, 2) == 0);
            who.is_second = 1;
            act(&who, go_ahead);
        }
    }
    close_actor(&who, NULL);
}

/* ---- nested ---- */

static void nest(void *context, ep_moment moment)
{
    if (moment == EP_BETWEEN_HALVES) {
        act(((actor *)context)->inner, NULL);
    }
}

/* Of two groups, of slots, one of which each rank calls first where it may; or of one, whose calls all ranks make in
 * the same order. */
static void test_nested(scene *of, uint64_t *common, unsigned layout, unsigned other, int is_one)
{
    actor pair[2];
    open_actor(&pair[0], of, common, layout, NULL);
    open_actor(&pair[1], of, common, other, is_one ? &pair[0] : NULL);
    const int may_swap = is_of_slots(of->pe, &pair[0].plan) && is_of_slots(of->pe, &pair[1].plan);
    const int odd = !is_one && may_swap ? of->pe->pe % 2 : 0;
    pair[odd].inner = &pair[1 - odd];
    for (int call = 0; call < 6; call++) {
        draw_call(&pair[0], common, call % 3 == 0, call % 3 == 2);
        draw_call(&pair[1], common, call % 2 == 0, call % 2 == 1);
        act(&pair[odd], nest);
    }
    close_actor(&pair[1], is_one ? &pair[0] : NULL);
    close_actor(&pair[0], NULL);
}

/* ---- two pairs of one route ---- */

static void end_outer(void *context, ep_moment moment)
{
    const actor *outer = ((actor *)context)->outer;
    if (moment != EP_BETWEEN_HALVES || outer == NULL) {
        return;
    }
    weft_stream *stream = outer->beside != NULL ? outer->beside : gpu_stream_of(outer->of->pe);
    CHECK_OK(outer->adds ? weft_ep_combine_recv(outer->route, stream) : weft_ep_dispatch_recv(outer->route, stream));
#if ON_GPU
    if (outer->beside != NULL) { /* what looks at the results does so on the PE's stream */
        gpu_check(cudaStreamSynchronize((cudaStream_t)outer->beside), "cudaStreamSynchronize");
    }
#endif
}

static void nest_of_one(void *context, ep_moment moment)
{
    if (moment == EP_BETWEEN_HALVES) {
        act(((actor *)context)->inner, end_outer);
    }
}

/* Each kind beside each, the recv of the first before that of the second or, of two kinds, after it. */
static void test_one_route(scene *of, uint64_t *common, unsigned layout)
{
    actor first;
    open_actor(&first, of, common, layout, NULL);
    draw_call(&first, common, 1, 0);
    act(&first, NULL);
    first.options = common;
    for (int call = 0; call < 6; call++) {
        actor second = first;
        const int adds = call % 2;
        const int other = call / 2 % 2;
        draw_call(&first, common, 0, adds);
        draw_call(&second, common, 0, other);
        first.ends_apart = adds == other || call >= 4;
        first.inner = &second;
        second.ends_apart = 0;
        second.outer = first.ends_apart ? &first : NULL;
        act(&first, nest_of_one);
    }
    first.ends_apart = 0;
    close_actor(&first, NULL);
}

/* ---- recv on another stream ---- */

#if ON_GPU
static void test_beside(scene *of, uint64_t *common, unsigned layout)
{
    actor who;
    cudaStream_t beside;
    gpu_check(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    open_actor(&who, of, common, layout, NULL);
    who.beside = (weft_stream *)beside;
    who.outer = &who;
    who.ends_apart = 1;
    for (int call = 0; call < 8; call++) {
        draw_call(&who, common, call % 4 < 2, call % 4 == 3);
        act(&who, end_outer);
    }
    close_actor(&who, NULL);
    gpu_check(cudaStreamDestroy(beside), "cudaStreamDestroy");
}
#endif

static void test_body(test_pe *pe)
{
    arena all = {};
    scene of = {};
    int cases = pe->cases > 0 ? pe->cases : CASES;
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "halves", (size_t)4 << 30, ON_GPU ? (size_t)512 << 20 : (size_t)128 << 20);
    CHECK_OK(weft_device_deadline(of.world, DEADLINE_NS));
    arena_open(&all, pe, of.world, &of.memory);
    uint64_t common = pe->seed * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < cases && check_failures() == 0; i++) {
        of.own = common ^ (uint64_t)(pe->pe + 1) * UINT64_C(0xbf58476d1ce4e5b9);
        test_rounds(&of, &common, (unsigned)i % 4);
        test_ahead(&of, &common, (unsigned)i % 4);
        test_nested(&of, &common, WEFT_EP_SLOTS_SOURCE + (unsigned)i % 2, WEFT_EP_SLOTS_EXPERT - (unsigned)i % 2, 0);
        test_nested(&of, &common, (unsigned)i % 4, (unsigned)i / 4 % 4, 1);
        test_one_route(&of, &common, (unsigned)i % 4);
#if ON_GPU
        test_beside(&of, &common, (unsigned)i % 4);
#endif
    }
    CHECK_OK(weft_barrier(of.world));
    arena_deregister(&all, of.world);
    CHECK_OK(weft_world_destroy(of.world));
    arena_close(&all);
    if (pe->pe == 0) {
        pe->failures += check_failures() != 0;
        printf("%d cases, %u calls\n", cases, of.salt);
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
