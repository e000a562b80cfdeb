/* sim/ep_pairs.c: calls of one or two pairs of halves in any order that is allowed, on one route or two, in one domain
 * or several. What a recv has ended is there as soon as it returns, and stays; what is not allowed is refused, on any
 * rank by itself, and moves nothing. */
#include "sim/ep_flow.h"

#define ROUNDS 14

typedef struct pairs {
    flow f;
    int most; /* pairs that may be outstanding */
    flow_call *open[2]; /* those that are, the older first */
    int count;
    const flow_call *last; /* what was ended last, until its memory is used again */
} pairs;

static int brings(flow_kind kind)
{
    return flow_routes_anew(kind) || kind == FLOW_WEIGHED;
}

/* Whether the group takes no call: of two pairs that were sent before the last call none may be outstanding. */
static int is_full(const pairs *p)
{
    return p->count > 0 && (p->most == 1 || p->open[0]->number + 1 == flow_made(&p->f));
}

static const flow_call *open_on(const pairs *p, const flow_route *on)
{
    return p->count > 0 && p->open[0]->on == on ? p->open[0] : p->count > 1 && p->open[1]->on == on ? p->open[1] : NULL;
}

static int is_allowed(const pairs *p, flow_kind kind, const flow_route *on)
{
    const flow_call *open = open_on(p, on);
    return !is_full(p) && (open == NULL || (!brings(kind) && !brings(open->kind)));
}

/* ---- what is refused ---- */

static void refused(const pairs *p, weft_status status, const char *what)
{
    if (status != WEFT_ERR_STATE) {
        weft_sim_fail("rank %d, after call %d, %d pairs outstanding: %s gave %s", p->f.rank, (int)flow_made(&p->f),
                      p->count, what, weft_status_name(status));
    }
}
#define REFUSED(call) refused(p, (call), #call)

/* On the route of a pair that is outstanding: what would change the routing or the memory that it has. */
static void change_route(const pairs *p, weft_ep_route *route)
{
    static const int32_t ids[FLOW_TOPK] = {0, -1, -1};
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = 1;
    choices.ids = ids;
    switch (weft_sim_random(5)) {
    case 0:
        REFUSED(weft_ep_route_choose(route, &choices));
        break;
    case 1:
        REFUSED(weft_ep_route_update(route, &choices, NULL));
        break;
    case 2:
        REFUSED(weft_ep_route_weigh(route, NULL));
        break;
    case 3:
        REFUSED(weft_ep_route_counts_to(route, NULL));
        break;
    default:
        REFUSED(weft_ep_route_destroy(route));
    }
}

/* A collective call, or the first half of one, or a recv for which nothing was sent. */
static void call_one(const pairs *p, weft_ep_route *route)
{
    _Alignas(16) float rows[2][FLOW_ROWS * FLOW_HIDDEN];
    const weft_ep_rows in = flow_rows_at(rows[0]);
    const weft_ep_rows out = flow_rows_at(rows[1]);
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    to.rows = out;
    to.rows_capacity = FLOW_ROWS;
    switch (weft_sim_random(6)) {
    case 0:
        REFUSED(weft_ep_dispatch(route, &in, &to, NULL));
        break;
    case 1:
        REFUSED(weft_ep_dispatch_send(route, &in, &to, NULL));
        break;
    case 2:
        REFUSED(weft_ep_combine(route, &in, &out, 0, NULL));
        break;
    case 3:
        REFUSED(weft_ep_combine_send(route, &in, &out, 0, NULL));
        break;
    case 4:
        REFUSED(weft_ep_dispatch_bwd(route, &in, NULL, &out, NULL, NULL));
        break;
    default:
        REFUSED(weft_ep_combine_bwd(route, &in, NULL, &out, NULL, 0, NULL));
    }
}

static void end_nothing(const pairs *p, const flow_route *on)
{
    int combines = 0;
    int dispatches = 0;
    for (int i = 0; i < p->count; i++) {
        combines |= p->open[i]->on == on && p->open[i]->kind == FLOW_COMBINE;
        dispatches |= p->open[i]->on == on && p->open[i]->kind != FLOW_COMBINE;
    }
    if (!combines) {
        REFUSED(weft_ep_combine_recv(on->route, NULL));
    }
    if (!dispatches) {
        REFUSED(weft_ep_dispatch_recv(on->route, NULL));
    }
}

/* A rank tries by itself what may not be done now. */
static void try_one(pairs *p)
{
    flow_route *on = &p->f.routes[weft_sim_random(2)];
    const flow_call *open = open_on(p, on);
    const uint64_t made = flow_made(&p->f);
    weft_ep_counts counts;
    weft_ep_host_counts by_value;
    const int has_none = open != NULL ? open->kind == FLOW_FRESH : on->routing == 0;
    if (open != NULL) {
        change_route(p, on->route);
    }
    if (has_none) {
        REFUSED(weft_ep_route_counts(on->route, &counts));
        REFUSED(weft_ep_route_query(on->route, NULL, &by_value));
        REFUSED(weft_ep_route_weigh(on->route, NULL));
    }
    if (has_none || is_full(p) || (open != NULL && brings(open->kind))) {
        call_one(p, on->route);
    }
    if (p->count > 0 && p->f.ranks > 1) {
        REFUSED(weft_ep_mask(p->f.ep, (p->f.rank + 1) % p->f.ranks, (int)weft_sim_random(2)));
        REFUSED(weft_ep_rejoin(p->f.ep, made));
    }
    end_nothing(p, on);
    if (flow_made(&p->f) != made) {
        weft_sim_fail("rank %d: a call that was refused is counted: %d, and there were %d", p->f.rank,
                      (int)flow_made(&p->f), (int)made);
    }
}

/* ---- calls ---- */

static flow_call *free_call(pairs *p)
{
    int i = 0;
    while ((p->count > 0 && p->open[0] == &p->f.calls[i]) || (p->count > 1 && p->open[1] == &p->f.calls[i]) ||
           (p->last == &p->f.calls[i] && p->count < 2)) {
        i++;
    }
    return &p->f.calls[i];
}

/* What was ended before is as it was. */
static void ended(pairs *p, const flow_call *call)
{
    flow_done(&p->f, call);
    const flow_call *open = p->last != NULL ? open_on(p, p->last->on) : NULL;
    if (p->last != NULL && p->last != call && p->last->routing == p->last->on->routing &&
        (open == NULL || open->kind != FLOW_FRESH)) {
        flow_check(&p->f, p->last);
    }
    p->last = call;
}

/* Of two of one kind on one route the older. */
static void end_one(pairs *p, uint64_t *common)
{
    int which = common_below(common, p->count);
    const flow_call *call = p->open[which];
    const flow_call *older = p->open[0];
    if (call->on == older->on && (call->kind == FLOW_COMBINE) == (older->kind == FLOW_COMBINE)) {
        which = 0;
        call = older;
    }
    MUST(flow_recv(call));
    p->open[0] = p->open[1 - which];
    p->count--;
    ended(p, call);
}

static void begin_one(pairs *p, flow_kind kind, flow_route *on, uint64_t *common)
{
    flow_call *call = free_call(p);
    flow_prepare(&p->f, call, kind, on);
    if (flow_has_halves(kind) && common_below(common, 3) > 0) {
        MUST(flow_send(call));
        p->open[p->count++] = call;
    } else if (flow_has_halves(kind) && open_on(p, on) == NULL && weft_sim_random(2) == 0) { /* as each rank likes */
        MUST(flow_send(call));
        dawdle(4, 3000);
        MUST(flow_recv(call));
        ended(p, call);
    } else {
        MUST(flow_whole(call));
        ended(p, call);
    }
}

/* Between domains mostly calls whose results come back, which others ask for when they are told that they are ready. */
static flow_kind draw_kind(const pairs *p, const flow_route *on, uint64_t *common)
{
    const int returns = p->f.domains > 1 && on->routing != 0 && common_below(common, 2) == 0;
    return !returns ? flow_draw(on, common) : common_below(common, 2) == 0 ? FLOW_COMBINE : FLOW_DISPATCH_BWD;
}

/* Ranks rest before a call; or one stands still wherever it is in the next one, while the others do what needs none. */
static void be_slow(const pairs *p, uint64_t *common)
{
    const int one = common_below(common, p->f.ranks);
    if (common_below(common, 2) == 0) {
        dawdle(4, 3000);
    } else if ((one + 1) % p->f.ranks == p->f.rank && p->f.ranks > 1) {
        weft_sim_sleep_ns(weft_sim_random(UINT64_C(40) << weft_sim_random(3)) + 1);
        weft_sim_stall(flow_pe(&p->f, one), 4000);
    }
}

void case_ep_pairs(void *argument)
{
    pairs p = {.most = 1};
    case_run *run = argument;
    uint64_t common = run->seed;
    p.most += common_below(&common, 4) > 0;
    const flow_plan plan = {.pairs_max = p.most, .crosses = common_below(&common, 3) > 0};
    flow_open(&p.f, run, &common, &plan);
    for (int i = 0; i < ROUNDS; i++) {
        flow_route *on = &p.f.routes[common_below(&common, 3) == 0];
        const flow_kind kind = draw_kind(&p, on, &common);
        if (is_allowed(&p, kind, on) && (p.count == 0 || common_below(&common, 3) > 0)) {
            begin_one(&p, kind, on, &common);
        } else if (p.count > 0) {
            end_one(&p, &common);
        }
        be_slow(&p, &common);
        if (weft_sim_random(2) == 0) {
            try_one(&p);
        }
    }
    while (p.count > 0) {
        end_one(&p, &common);
    }
    flow_close(&p.f);
}
