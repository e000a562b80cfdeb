#include "ep/host/routing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* Set the pointers of a route whose memory begins at `memory`, and return the bytes it takes. `memory` is not touched
 * and may be 0. */
static size_t lay_out(wefti_ep_routing *route, const weft_ep *ep, const weft_ep_plan *plan, uintptr_t memory)
{
    size_t end = 0;
    size_t ranks = ep->host->limits.ranks;
    size_t local = (size_t)wefti_ep_local_experts(ep);
    size_t tokens = (size_t)ep->config.tokens_max;
    size_t topk = (size_t)plan->topk;
    size_t pairs = tokens * (topk < ranks ? topk : ranks);
    size_t received = ep->host->limits.received_max;
    int by_expert = !wefti_ep_plan_is_by_source(plan);
    (void)wefti_ep_take(&end, sizeof *route);
#define LAY(field, count) route->field = (void *)(memory + wefti_ep_take(&end, (count) * sizeof *route->field))
    LAY(rows, 1);
    LAY(rows_of_expert, local);
    LAY(offset_of_expert, local + 1);
    LAY(rows_of_source, ranks);
    LAY(offset_of_source, ranks + 1);
    LAY(dropped, 1);
    LAY(status, 1);
    LAY(rows_of_expert_source, local * ranks);
    LAY(dropped_rows, 1);
    LAY(choice_rank, tokens * topk);
    LAY(token_pairs, tokens + 1);
    LAY(pair_rank, pairs);
    LAY(pair_index, pairs);
    LAY(pair_weight, pairs);
    LAY(rank_sends, ranks + 1);
    LAY(send_token, pairs);
    LAY(send_row, by_expert ? pairs : 0);
    LAY(first_place, ranks);
    LAY(place_of_source, ranks + 1);
    LAY(records, received * wefti_ep_record_bytes(topk));
    LAY(record_rows, by_expert ? received * topk : 0);
#undef LAY
    return end;
}

size_t wefti_ep_routing_bytes(const weft_ep *ep, const weft_ep_plan *plan)
{
    wefti_ep_routing routing;
    return lay_out(&routing, ep, plan, 0);
}

weft_status wefti_ep_routing_open(weft_ep_route *handle, void *memory)
{
    wefti_ep_routing route;
    memset(&route, 0, sizeof route);
    size_t bytes = lay_out(&route, handle->ep, &handle->plan, 0);
    route.owned = memory == NULL ? wefti_alloc_aligned(WEFTI_EP_MEMORY_ALIGNMENT, bytes) : NULL;
    if (memory == NULL && route.owned == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_create: no memory for a route of %zu bytes", bytes);
    }
    wefti_ep_routing *placed = memory != NULL ? memory : route.owned;
    (void)lay_out(&route, handle->ep, &handle->plan, (uintptr_t)placed);
    route.ep = handle->ep;
    route.plan = handle->plan;
    route.bytes = bytes;
    *placed = route;
    handle->host = placed;
    return WEFT_OK;
}

weft_status wefti_ep_routing_fit(weft_ep_route *handle)
{
    wefti_ep_routing *old = handle->host;
    wefti_ep_routing route = *old;
    size_t bytes = wefti_ep_routing_bytes(handle->ep, &handle->plan);
    if (bytes <= old->bytes) {
        return WEFT_OK;
    }
    wefti_ep_routing *placed = wefti_alloc_aligned(WEFTI_EP_MEMORY_ALIGNMENT, bytes);
    if (placed == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_update: no memory for a route that grows to %zu bytes",
                           bytes);
    }
    (void)lay_out(&route, handle->ep, &handle->plan, (uintptr_t)placed);
    route.owned = placed;
    route.bytes = bytes;
    *placed = route;
    handle->host = placed;
    wefti_free(old->owned);
    return WEFT_OK;
}

weft_status wefti_ep_routing_move(weft_ep_route *handle, void *memory)
{
    wefti_ep_routing *route = handle->host;
    if (route->owned != NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_move: the route lies in memory of the library's own");
    }
    memmove(memory, route, wefti_ep_routing_bytes(handle->ep, &handle->plan));
    handle->host = memory;
    (void)lay_out(handle->host, handle->ep, &handle->plan, (uintptr_t)memory);
    return WEFT_OK;
}

void wefti_ep_routing_close(weft_ep_route *handle)
{
    wefti_ep_routing *route = handle->host;
    void *owned = route->owned;
    memset(route, 0, sizeof *route);
    wefti_free(owned);
}

weft_status wefti_ep_routing_check(const wefti_ep_routing *route, const char *call)
{
    if (*route->status == WEFT_ERR_OVERFLOW) {
        return wefti_error(
            WEFT_ERR_OVERFLOW,
            "%s: more rows than the group's rows_max or a buffer's rows_capacity would come to some rank (%d to "
            "this one); nothing moves until the route has another routing",
            call, *route->rows);
    }
    return WEFT_OK;
}

weft_status wefti_ep_routing_counts(const weft_ep_route *handle, weft_ep_counts *counts)
{
    const wefti_ep_routing *route = handle->host;
    counts->rows = route->rows;
    counts->rows_of_expert = route->rows_of_expert;
    counts->offset_of_expert = route->offset_of_expert;
    counts->rows_of_source = route->rows_of_source;
    counts->offset_of_source = route->offset_of_source;
    counts->dropped = route->dropped;
    counts->status = route->status;
    counts->rows_of_expert_source = route->rows_of_expert_source;
    counts->dropped_rows = route->dropped_rows;
    return WEFT_OK;
}

weft_status wefti_ep_routing_query(const weft_ep_route *handle, weft_stream *stream, weft_ep_host_counts *counts)
{
    const wefti_ep_routing *route = handle->host;
    const weft_ep *ep = route->ep;
    (void)stream;
    counts->rows = *route->rows;
    counts->tokens = route->place_of_source[ep->ranks];
    counts->dropped = *route->dropped;
    counts->local_experts = wefti_ep_local_experts(ep);
    counts->first_expert = ep->owners.first[ep->rank];
    counts->status = (weft_status)*route->status;
    counts->dropped_rows = *route->dropped_rows;
    return WEFT_OK;
}
