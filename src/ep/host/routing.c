#include "ep/host/routing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* What lies in a route's memory behind the struct, in this order: X(field, how many). */
#define ROUTING_TABLE(X)                                                                                               \
    X(rows, 1)                                                                                                         \
    X(rows_of_expert, local)                                                                                           \
    X(offset_of_expert, local + 1)                                                                                     \
    X(rows_of_source, ranks)                                                                                           \
    X(offset_of_source, ranks + 1)                                                                                     \
    X(dropped, 1)                                                                                                      \
    X(status, 1)                                                                                                       \
    X(rows_of_expert_source, local *ranks)                                                                             \
    X(dropped_rows, 1)                                                                                                 \
    X(kept, drops_rows ? tokens *topk : 0)                                                                             \
    X(choice_rank, tokens *topk)                                                                                       \
    X(token_pairs, tokens + 1)                                                                                         \
    X(pair_rank, pairs)                                                                                                \
    X(pair_index, pairs)                                                                                               \
    X(pair_weight, pairs)                                                                                              \
    X(rank_sends, ranks + 1)                                                                                           \
    X(send_token, pairs)                                                                                               \
    X(send_row, by_expert ? pairs : 0)                                                                                 \
    X(first_place, ranks)                                                                                              \
    X(place_of_source, ranks + 1)                                                                                      \
    X(records, received *wefti_ep_record_bytes(topk))                                                                  \
    X(record_rows, by_expert ? received *topk : 0)

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
    int drops_rows = wefti_ep_drops_rows(ep, plan);
    (void)wefti_ep_take(&end, sizeof *route);
#define LAY(field, count) route->field = (void *)(memory + wefti_ep_take(&end, (count) * sizeof *route->field));
    ROUTING_TABLE(LAY)
#undef LAY
    return end;
}

/* The addresses of the fields, and behind them that of the end: how many there are. */
#define ROUTING_FIELDS 22
static size_t addresses(const wefti_ep_routing *route, uintptr_t of[ROUTING_FIELDS + 1])
{
    size_t count = 0;
#define ADDRESS(field, number) of[count++] = (uintptr_t)route->field;
    ROUTING_TABLE(ADDRESS)
#undef ADDRESS
    of[count] = (uintptr_t)route + route->laid_bytes;
    return count;
}

size_t wefti_ep_routing_bytes(const weft_ep *ep, const weft_ep_plan *plan)
{
    wefti_ep_routing routing;
    return lay_out(&routing, ep, plan, 0);
}

/* Place the route, of which all but the pointers is given, in `memory` of so many bytes. */
static wefti_ep_routing *place(const weft_ep_route *handle, wefti_ep_routing route, void *memory, size_t bytes)
{
    wefti_ep_routing *placed = memory;
    route.bytes = bytes;
    route.laid_bytes = lay_out(&route, handle->ep, &handle->plan, (uintptr_t)memory);
    *placed = route;
    return placed;
}

weft_status wefti_ep_routing_open(weft_ep_route *handle, void *memory)
{
    wefti_ep_routing route = {.ep = handle->ep, .plan = handle->plan};
    size_t bytes = wefti_ep_routing_bytes(handle->ep, &handle->plan);
    route.owned = memory == NULL ? wefti_alloc_aligned(WEFTI_EP_MEMORY_ALIGNMENT, bytes) : NULL;
    if (memory == NULL && route.owned == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_create: no memory for a route of %zu bytes", bytes);
    }
    handle->host = place(handle, route, memory != NULL ? memory : route.owned, bytes);
    return WEFT_OK;
}

/* Nothing of the routing before is kept. */
weft_status wefti_ep_routing_fit(weft_ep_route *handle, const char *call)
{
    wefti_ep_routing route = *handle->host;
    size_t bytes = wefti_ep_routing_bytes(handle->ep, &handle->plan);
    if (bytes == route.laid_bytes) {
        return WEFT_OK;
    }
    if (bytes <= route.bytes) {
        (void)place(handle, route, handle->host, route.bytes);
        return WEFT_OK;
    }
    if (route.owned == NULL) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: limits have grown; the route's memory, which is yours, holds %zu bytes, and it takes "
                           "%zu now: give it as many (weft_ep_route_bytes, weft_ep_route_move) and call again",
                           call, route.bytes, bytes);
    }
    void *memory = wefti_alloc_aligned(WEFTI_EP_MEMORY_ALIGNMENT, bytes);
    if (memory == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a route that grows to %zu bytes", call, bytes);
    }
    wefti_free(route.owned);
    route.owned = memory;
    handle->host = place(handle, route, memory, bytes);
    return WEFT_OK;
}

weft_status wefti_ep_routing_move(weft_ep_route *handle, void *memory, size_t bytes)
{
    const wefti_ep_routing *route = handle->host;
    uintptr_t from[ROUTING_FIELDS + 1];
    uintptr_t to[ROUTING_FIELDS + 1];
    if (route->owned != NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_move: the route lies in memory of the library's own; give "
                                              "weft_ep_route_create memory for one that is to move");
    }
    wefti_ep_routing *moved = place(handle, *route, memory, bytes);
    const size_t count = addresses(moved, to);
    (void)addresses(route, from);
    for (size_t i = 0; i < count; i++) { /* of other limits, perhaps, but of as many choices */
        size_t there = to[i + 1] - to[i];
        size_t here = from[i + 1] - from[i];
        memcpy((void *)to[i], (const void *)from[i], here < there ? here : there);
    }
    handle->host = moved;
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
    counts->tokens = wefti_ep_tokens_received(route);
    counts->dropped = *route->dropped;
    counts->local_experts = wefti_ep_local_experts(ep);
    counts->first_expert = ep->owners.first[ep->rank];
    counts->status = (weft_status)*route->status;
    counts->dropped_rows = *route->dropped_rows;
    return WEFT_OK;
}
