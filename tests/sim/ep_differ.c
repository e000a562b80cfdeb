/* sim/ep_differ.c: one rank makes another call than the others: of another kind, with other flags, on another routing,
 * as halves or whole. All are told of it, a routing that was to be made is none, any other stays with the weights that
 * it had, and the next calls go well. The same of what is left of a route when more rows come than there is room for.
 */
#include <stdio.h>
#include <string.h>

#include "sim/ep_flow.h"

#define ROUNDS 8

/* What is wrong with the call of the odd rank. */
typedef enum oddness { ANOTHER_KIND, OTHER_FLAGS, ANOTHER_ROUTING, ODDNESSES } oddness;

typedef struct differing {
    flow f;
    int rows_max; /* 0: all rows have room */
    int odd;
    int is_odd;
    int drops_rows; /* ranks count before they route */
    uint64_t made_in; /* the number of the call that differs, behind a count that does not */
} differing;

static flow_kind draw_other(flow_kind kind, const flow_route *on, uint64_t *common)
{
    flow_kind other = kind;
    while (other == kind) {
        other = flow_draw(on, common);
    }
    return other;
}

static int has_flags(flow_kind kind)
{
    return kind == FLOW_COMBINE || kind == FLOW_COMBINE_BWD;
}

static weft_status make(const flow_call *call)
{
    if (flow_has_halves(call->kind) && weft_sim_random(2) == 0) {
        const weft_status status = flow_send(call); /* which may have counted */
        dawdle(4, 3000);
        return status == WEFT_OK ? flow_recv(call) : status;
    }
    return flow_whole(call);
}

/* The lowest rank whose call differs is named with its PE, and this call by its number. */
static void check_text(const differing *d, const flow_call *call)
{
    char other[48];
    char number[48];
    const int rank = d->is_odd ? d->odd == 0 : d->odd;
    (void)snprintf(other, sizeof other, " on rank %d (PE %d)", rank, flow_pe(&d->f, rank));
    (void)snprintf(number, sizeof number, ": call %d of the group is ", (int)d->made_in);
    if (strstr(weft_last_error(), other) == NULL || strstr(weft_last_error(), number) == NULL) {
        weft_sim_fail("rank %d: of call %d, which is another one on rank %d, is told: %s", d->f.rank, (int)call->number,
                      d->odd, weft_last_error());
    }
}

/* The routing that the call was to make is none; a choice, or weights, are used up. */
static void check_left(const differing *d, const flow_call *call, uint64_t generation)
{
    uint64_t now;
    const int routes = flow_routes_anew(call->kind);
    flow_route *on = call->on;
    MUST(weft_ep_route_generation(on->route, &now));
    if (now != generation + (uint64_t)routes || flow_made(&d->f) != d->made_in) {
        weft_sim_fail("rank %d: after call %d there are %d calls, and the route has routing %d, and had %d", d->f.rank,
                      (int)call->number, (int)flow_made(&d->f), (int)now, (int)generation);
    }
    flow_expect(&d->f, weft_ep_failure(d->f.ep), WEFT_OK, "weft_ep_failure");
    on->routing = routes ? 0 : on->routing;
    if (routes) {
        flow_told(&d->f, on, 0);
        flow_refused(&d->f, on, WEFT_ERR_STATE);
    }
}

static void differ(differing *d, uint64_t *common)
{
    const int which = common_below(common, 2);
    flow_route *on = &d->f.routes[which];
    flow_route *other = &d->f.routes[!which];
    const flow_kind kind = flow_draw(on, common);
    const oddness how = (oddness)common_below(common, ODDNESSES);
    const flow_kind other_kind = draw_other(kind, on, common);
    const int is_elsewhere = how == ANOTHER_ROUTING && other->routing != 0 && !flow_routes_anew(kind);
    const int has_other_flags = how == OTHER_FLAGS && has_flags(kind);
    const int is_other_kind = !is_elsewhere && !has_other_flags;
    flow_call *call = &d->f.calls[0];
    uint64_t generation;
    d->odd = common_below(common, d->f.ranks);
    d->is_odd = d->f.rank == d->odd;
    flow_route *mine = d->is_odd && is_elsewhere ? other : on;
    MUST(weft_ep_route_generation(mine->route, &generation));
    flow_prepare(&d->f, call, d->is_odd && is_other_kind ? other_kind : kind, mine);
    call->weighted ^= d->is_odd && has_other_flags;
    const int all_count =
        d->drops_rows && d->f.by_expert && is_other_kind && flow_routes_anew(kind) && flow_routes_anew(other_kind);
    d->made_in = call->number + (uint64_t)all_count;
    dawdle(3, 3000);
    flow_expect(&d->f, make(call), WEFT_ERR_MISMATCH, "a call that differs");
    check_text(d, call);
    check_left(d, call, generation);
    if (flow_routes_anew(kind) || (is_other_kind && flow_routes_anew(other_kind))) { /* on some rank it has none */
        on->routing = 0;
    }
}

static int overflows(const differing *d, uint64_t routing)
{
    int does = 0;
    for (int rank = 0; rank < d->f.ranks; rank++) {
        does |= d->rows_max > 0 && flow_rows(&d->f, routing, rank) > d->rows_max;
    }
    return does;
}

/* Nothing moves, and the route tells what would have come, until it has another routing. */
static void overflow(const differing *d, const flow_call *call, weft_status status)
{
    weft_ep_host_counts counts;
    flow_route *on = call->on;
    flow_expect(&d->f, status, call->kind == FLOW_UPDATE ? WEFT_OK : WEFT_ERR_OVERFLOW, "a call with too many rows");
    flow_told(&d->f, on, 1);
    MUST(weft_ep_route_query(on->route, NULL, &counts));
    if (counts.status != WEFT_ERR_OVERFLOW || counts.rows != flow_rows(&d->f, call->routing, d->f.rank)) {
        weft_sim_fail("rank %d: of a routing of %d rows of at most %d is told status %d, %d rows", d->f.rank,
                      flow_rows(&d->f, call->routing, d->f.rank), d->rows_max, (int)counts.status, (int)counts.rows);
    }
    flow_refused(&d->f, on, WEFT_ERR_OVERFLOW);
    on->routing = 0;
}

/* All refuse a dispatch of a choice, where rows may be dropped after they have counted it. Then they dispatch that
 * choice, or choose others or update, for which what they have counted tells nothing. */
static void refuse(differing *d, flow_call *call, uint64_t *common)
{
    const int times = call->kind == FLOW_FRESH ? common_below(common, 3) : 0;
    for (int i = 0; i < times; i++) {
        flow_expect(&d->f, flow_without_room(call), WEFT_ERR_ARGUMENT, "a dispatch without memory for rows");
        if (common_below(common, 3) > 0) {
            flow_prepare(&d->f, call, (flow_kind)common_below(common, 2), call->on);
        }
        if (call->kind != FLOW_FRESH) {
            return;
        }
    }
}

static void agree(differing *d, uint64_t *common)
{
    flow_route *on = &d->f.routes[common_below(common, 2)];
    flow_call *call = &d->f.calls[1];
    flow_prepare(&d->f, call, flow_draw(on, common), on);
    refuse(d, call, common);
    dawdle(4, 3000);
    const weft_status status = make(call);
    if (flow_routes_anew(call->kind) && overflows(d, call->routing)) {
        overflow(d, call, status);
        return;
    }
    must(status, "a call that is the same everywhere");
    flow_done(&d->f, call);
}

void case_ep_differ(void *argument)
{
    differing d = {.odd = 0};
    case_run *run = argument;
    uint64_t common = run->seed;
    d.rows_max = common_below(&common, 3) == 0 ? 1 + common_below(&common, 6) : 0;
    d.drops_rows = d.rows_max == 0 && common_below(&common, 2);
    const flow_plan plan = {.pairs_max = d.drops_rows ? 1 : 1 + common_below(&common, 2),
                            .crosses = common_below(&common, 2),
                            .rows_max = d.rows_max,
                            .drops_rows = d.drops_rows};
    flow_open(&d.f, run, &common, &plan);
    for (int i = 0; i < ROUNDS; i++) {
        if (common_below(&common, 2) == 0) {
            differ(&d, &common);
        }
        agree(&d, &common);
    }
    flow_close(&d.f);
}
