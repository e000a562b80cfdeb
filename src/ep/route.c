#include "ep/route.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "weft/world.h"

static weft_status check_plan(const weft_ep *ep, const weft_ep_plan *plan, const char *call)
{
    if (ep == NULL || plan == NULL || plan->size != sizeof *plan) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           ep == NULL     ? "the group is NULL"
                           : plan == NULL ? "the plan is NULL"
                                          : "the plan has a wrong size; start from WEFT_EP_PLAN_INIT");
    }
    if (plan->topk < 1 || plan->topk > ep->config.topk_max) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: topk is %d; give 1 .. %d, the group's topk_max", call, plan->topk,
                           ep->config.topk_max);
    }
    if (plan->layout != WEFT_EP_RANK_MAJOR && plan->layout != WEFT_EP_EXPERT_MAJOR) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: layout is %d; give a weft_ep_layout", call, (int)plan->layout);
    }
    if (plan->alignment < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: alignment is %d; give 0 or more rows", call, plan->alignment);
    }
    return WEFT_OK;
}

/* Set the pointers of a route whose memory begins at `memory`, and return the bytes it takes. `memory` is not touched
 * and may be 0. */
static size_t lay_out(weft_ep_route *route, const weft_ep *ep, const weft_ep_plan *plan, uintptr_t memory)
{
    size_t end = 0;
    size_t ranks = ep->limits.ranks;
    size_t local = (size_t)wefti_ep_local_experts(ep);
    size_t tokens = (size_t)ep->config.tokens_max;
    size_t topk = (size_t)plan->topk;
    size_t pairs = tokens * (topk < ranks ? topk : ranks);
    size_t received = ep->limits.received_max;
    int expert_major = plan->layout == WEFT_EP_EXPERT_MAJOR;
    (void)wefti_ep_take(&end, sizeof *route);
#define LAY(field, count) route->field = (void *)(memory + wefti_ep_take(&end, (count) * sizeof *route->field))
    LAY(rows, 1);
    LAY(rows_of_expert, local);
    LAY(offset_of_expert, local + 1);
    LAY(rows_of_source, ranks);
    LAY(offset_of_source, ranks + 1);
    LAY(dropped, 1);
    LAY(status, 1);
    LAY(token_pairs, tokens + 1);
    LAY(pair_rank, pairs);
    LAY(pair_index, pairs);
    LAY(pair_weight, pairs);
    LAY(rank_sends, ranks + 1);
    LAY(send_token, pairs);
    LAY(send_row, expert_major ? pairs : 0);
    LAY(first_place, ranks);
    LAY(records, received * wefti_ep_record_bytes(topk));
    LAY(record_rows, expert_major ? received * topk : 0);
#undef LAY
    return end;
}

weft_status weft_ep_route_bytes(const weft_ep *ep, const weft_ep_plan *plan, size_t *bytes)
{
    WEFT_TRY(check_plan(ep, plan, "weft_ep_route_bytes"));
    if (bytes == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_bytes: the result is NULL");
    }
    weft_ep_route route;
    *bytes = lay_out(&route, ep, plan, 0);
    return WEFT_OK;
}

weft_status weft_ep_route_create(weft_ep *ep, const weft_ep_plan *plan, void *memory, weft_ep_route **out)
{
    WEFT_TRY(check_plan(ep, plan, "weft_ep_route_create"));
    if (out == NULL || (uintptr_t)memory % WEFTI_EP_LINE_BYTES != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_create: %s",
                           out == NULL ? "the result is NULL" : "the memory is not aligned to 64 bytes");
    }
    weft_ep_route route;
    memset(&route, 0, sizeof route);
    size_t bytes = lay_out(&route, ep, plan, 0);
    route.owned = memory == NULL ? wefti_alloc_aligned(WEFTI_EP_LINE_BYTES, bytes) : NULL;
    if (memory == NULL && route.owned == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_create: no memory for a route of %zu bytes", bytes);
    }
    weft_ep_route *placed = memory != NULL ? memory : route.owned;
    (void)lay_out(&route, ep, plan, (uintptr_t)placed);
    route.ep = ep;
    route.plan = *plan;
    *placed = route;
    placed->next = ep->routes;
    placed->link = &ep->routes;
    if (placed->next != NULL) {
        placed->next->link = &placed->next;
    }
    ep->routes = placed;
    *out = placed;
    return WEFT_OK;
}

void wefti_ep_route_end(weft_ep_route *route)
{
    void *owned = route->owned;
    *route->link = route->next;
    if (route->next != NULL) {
        route->next->link = route->link;
    }
    memset(route, 0, sizeof *route);
    wefti_free(owned);
}

weft_status weft_ep_route_destroy(weft_ep_route *route)
{
    if (route != NULL) {
        wefti_ep_route_end(route);
    }
    return WEFT_OK;
}

static weft_status check_updated(const weft_ep_route *route, const void *out, const char *call)
{
    if (route == NULL || out == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s is NULL", call, route == NULL ? "the route" : "the result");
    }
    if (route->epoch == 0) {
        return wefti_error(WEFT_ERR_STATE, "%s: the route has no routing yet; call weft_ep_route_update first", call);
    }
    return WEFT_OK;
}

weft_status wefti_ep_route_check(const weft_ep_route *route, const char *call)
{
    if (route == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the route is NULL", call);
    }
    WEFT_TRY(wefti_ep_check_alive(route->ep, call));
    WEFT_TRY(check_updated(route, route, call));
    if (*route->status == WEFT_ERR_OVERFLOW) {
        return wefti_error(
            WEFT_ERR_OVERFLOW,
            "%s: the route's last update overflowed the group's rows_max, %lld, on some rank (%d rows for "
            "this one); nothing moves until the next update",
            call, (long long)route->ep->rows_limit, *route->rows);
    }
    return WEFT_OK;
}

weft_status weft_ep_route_counts(const weft_ep_route *route, weft_ep_counts *counts)
{
    WEFT_TRY(check_updated(route, counts, "weft_ep_route_counts"));
    counts->rows = route->rows;
    counts->rows_of_expert = route->rows_of_expert;
    counts->offset_of_expert = route->offset_of_expert;
    counts->rows_of_source = route->rows_of_source;
    counts->offset_of_source = route->offset_of_source;
    counts->dropped = route->dropped;
    counts->status = route->status;
    return WEFT_OK;
}

weft_status weft_ep_route_query(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts)
{
    WEFT_TRY(check_updated(route, counts, "weft_ep_route_query"));
    if (stream != NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "weft_ep_route_query: this build has no streams; give NULL");
    }
    const weft_ep *ep = route->ep;
    counts->rows = *route->rows;
    counts->tokens = route->offset_of_source[ep->ranks];
    counts->dropped = *route->dropped;
    counts->local_experts = wefti_ep_local_experts(ep);
    counts->first_expert = ep->owners.first[ep->rank];
    counts->status = (weft_status)*route->status;
    return WEFT_OK;
}
