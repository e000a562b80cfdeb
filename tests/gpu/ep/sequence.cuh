/* ep/sequence.cuh: a route of a random case, and the calls on it one after the other. */
#ifndef EP_SEQUENCE_CUH
#define EP_SEQUENCE_CUH

#include "ep/job.cuh"

#define CALLS_OF_ROUTE 5

typedef struct sequence {
    job *of;
    const ep_setup *setup;
    const ep_size *size;
    weft_ep_plan plan;
    const int *masked; /* [R] ranks that the group goes on without, or NULL */
    weft_ep_route *route;
    int held; /* which memory of the caller's the route has; -1: the library's own */
    void *memory; /* that */
    size_t bytes; /* of a route */
    ep_told *told;
    ep_case one;
    ep_routing *routing; /* NULL before the first call */
} sequence;

/* One call: an update, a dispatch, fresh or cached, a combine, or a backward. */
typedef struct drawn_call {
    bool updates;
    bool is_fresh;
    bool is_backward;
    bool adds; /* rows come back, with `flags` */
    unsigned flags;
    int64_t capacity[EP_RANKS_MAX]; /* of a fresh dispatch */
    ep_payload payload;
    ep_payload received;
    ep_step step;
} drawn_call;

/* Returns whether there is a route; of a group that grows in memory of the library's own. */
static bool sequence_open(sequence *s, job *of, weft_ep *ep, const ep_setup *setup, const ep_size *size,
                          const weft_ep_plan *plan, bool grows)
{
    *s = {};
    s->of = of;
    s->setup = setup;
    s->size = size;
    s->plan = *plan;
    CHECK_OK(weft_ep_route_bytes(ep, plan, &s->bytes));
    s->held = !grows && random_below(&of->own, 3) == 0 && s->bytes <= ROUTE_BYTES ? 0 : -1;
    s->memory = s->held == 0 ? route_memory(of->pe, s->held, s->bytes) : NULL;
    const double begun_s = now_s();
    if (!CHECK_OK(weft_ep_route_create(ep, plan, s->memory, &s->route))) {
        return false;
    }
    of->made_s += now_s() - begun_s;
    s->told = random_below(&of->own, 2) == 0 ? ep_told_create(s->route, setup, of->pe->pe, &of->own) : NULL;
    return true;
}

static void sequence_close(sequence *s)
{
    ep_routing_destroy(s->routing);
    ep_case_free(&s->one);
    const double begun_s = now_s();
    CHECK_OK(weft_ep_route_destroy(s->route));
    s->of->made_s += now_s() - begun_s;
    ep_told_destroy(s->told);
}

/* Let the route have the other memory of the caller's, by a move, or as a copy that is attached. */
static void sequence_move(sequence *s)
{
    test_pe *pe = s->of->pe;
    const void *before = s->memory;
    s->held = 1 - s->held;
    s->memory = route_memory(pe, s->held, s->bytes);
    if (s->routing == NULL || random_below(&s->of->own, 2) == 0) {
        CHECK_OK(weft_ep_route_move(s->route, s->memory, s->bytes));
    } else {
        gpu_copy(pe, s->memory, before, s->bytes);
        CHECK_OK(weft_ep_route_attach(s->route, s->memory, s->bytes, WEFT_EP_CONTENTS_ROUTING, gpu_stream_of(pe)));
    }
    ep_cover(EP_COVER_MOVED, pe->pe == 0);
}

/* The same before a call that routes, with whatever lies there. */
static void sequence_attach_anew(sequence *s)
{
    test_pe *pe = s->of->pe;
    s->held = 1 - s->held;
    s->memory = route_memory(pe, s->held, s->bytes);
    CHECK_OK(weft_ep_route_attach(s->route, s->memory, s->bytes, WEFT_EP_CONTENTS_NONE, gpu_stream_of(pe)));
    ep_cover(EP_COVER_MOVED, pe->pe == 0);
}

/* What the receive buffer of each rank holds: enough, or, of a group that may overflow, now and then too little. */
static void draw_capacities(const sequence *s, bool may_overflow, uint64_t *common, int64_t *capacity)
{
    const bool is_tight = may_overflow && !ep_is_slots(s->plan.layout) && random_below(common, 4) == 0;
    for (int rank = 0; rank < s->of->pe->pes; rank++) {
        const int64_t rows = s->routing->side[rank].rows;
        const int64_t spare = random_below(common, 3);
        const bool is_short = is_tight && random_below(common, 4) == 0;
        capacity[rank] = is_short ? (int64_t)random_below(common, (unsigned)rows + 1) : rows + spare;
    }
}

static void draw_routing(sequence *s, drawn_call *call, bool may_overflow, uint64_t *common)
{
    ep_routing_destroy(s->routing);
    ep_case_free(&s->one);
    s->one = ep_case_draw(random_next(common), s->setup, &s->plan);
    if (s->masked != NULL) {
        ep_case_mask(&s->one, s->masked);
    }
    s->routing = ep_routing_create(&s->one, NULL);
    if (call->is_fresh) {
        draw_capacities(s, may_overflow, common, call->capacity);
        ep_routing_destroy(s->routing);
        s->routing = ep_routing_create(&s->one, call->capacity);
    }
}

static ep_step sequence_step(const sequence *s)
{
    job *of = s->of;
    ep_step step = {};
    step.route = s->route;
    step.routing = s->routing;
    step.told = s->told;
    step.rank = of->pe->pe;
    step.is_absent = s->masked != NULL && s->masked[of->pe->pe] != 0;
    step.arrays.what = of->what;
    step.arrays.memory = &of->memory;
    step.arrays.random = &of->own;
    step.is_late = 1;
    step.halves = of->salt % 2 == 0;
    step.stream = gpu_stream_of(of->pe);
    step.slow_us = of->salt % 7 == 0 ? 300 : 0;
    return step;
}

/* The next call; the same on all ranks. */
static void sequence_draw(sequence *s, bool may_overflow, uint64_t *common, drawn_call *call)
{
    job *of = s->of;
    *call = {};
    of->salt++;
    call->updates = s->routing == NULL || random_below(common, 4) == 0;
    call->is_fresh = call->updates && random_below(common, 2) == 0;
    call->is_backward = !call->updates && random_below(common, 2) == 0;
    call->adds = call->is_backward || (!call->updates && random_below(common, 2) == 0);
    call->flags = random_below(common, 2) == 0 ? WEFT_EP_WEIGHTED : 0;
    call->payload = ep_payload_draw(random_next(common), s->setup, s->size, &s->plan,
                                    call->adds || (call->updates && !call->is_fresh), of->salt, &call->received);
    if (call->updates) {
        draw_routing(s, call, may_overflow, common);
    }
    snprintf(of->what, sizeof of->what, "%s %u (layout %d, T %d, E %d, K %d, H %d, type %d)",
             call->is_fresh      ? "fresh dispatch"
             : call->updates     ? "update"
             : call->is_backward ? "backward"
             : call->adds        ? "combine"
                                 : "dispatch",
             of->salt, s->plan.layout, s->one.tokens[of->pe->pe], s->setup->config.experts, s->plan.topk,
             call->payload.hidden, call->payload.dtype);
    call->step = sequence_step(s);
    ep_step_vary_sms(&call->step, of->salt);
}

/* Now and then a dispatch on the routing that is there brings new weights. */
static void sequence_weigh(sequence *s, drawn_call *call)
{
    static const int none[EP_RANKS_MAX] = {0};
    call->step.weighs = !call->updates && !call->adds && s->of->salt % 3 == 0;
    if (call->step.weighs) {
        ep_case_weigh(&s->one, s->of->salt, s->masked != NULL ? s->masked : none);
    }
}

/* One that does not add: an update or a dispatch. */
static void sequence_send(const drawn_call *call)
{
    if (call->updates && !call->is_fresh) {
        ep_step_update(&call->step);
    } else {
        ep_step_dispatch(&call->step, &call->payload, &call->received, call->is_fresh ? call->capacity : NULL);
    }
}

static void run_backward(const ep_step *step, const ep_payload *payload, unsigned flags, uint64_t *common)
{
    int of_dispatch = random_below(common, 2) == 0;
    int with_weights = random_below(common, 2) == 0;
    ep_payload rows = *payload;
    rows.salt += 500;
    if (of_dispatch) {
        ep_step_dispatch_bwd(step, payload, with_weights);
    } else {
        ep_step_combine_bwd(step, payload, with_weights && flags != 0 ? &rows : NULL, flags);
    }
}

#endif
