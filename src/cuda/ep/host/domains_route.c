/* cuda/ep/host/domains_route.c: routes of groups of several domains. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/ep/host/domains.h"
#include "weft.h"

/* Set the pointers of the tables at `memory`, which is not touched and may be 0. Returns their bytes. */
static size_t lay_out(wefti_cuda_ep_domains_tables *tables, const weft_ep *ep, const weft_ep_plan *plan,
                      uint64_t memory)
{
    wefti_u64 end = 0;
    const uint64_t ranks = (uint64_t)ep->ranks;
    const uint64_t local = (uint64_t)wefti_ep_local_experts(ep);
    const uint64_t tokens = (uint64_t)ep->config.tokens_max;
    const uint64_t topk = (uint64_t)plan->topk;
#define LAY(field, count)                                                                                              \
    tables->field = (void *)(uintptr_t)(memory + wefti_cuda_ep_take(&end, (count) * sizeof *tables->field))
    LAY(route_header, 1);
    LAY(rows_of_expert, local);
    LAY(rows_of_expert_source, local * ranks);
    LAY(rows_of_source, ranks);
    LAY(offset_of_expert, local + 1);
    LAY(offset_of_source, ranks + 1);
    LAY(before_source, ranks);
    LAY(inner_tokens, 1);
    LAY(sent_count, ranks);
    LAY(line_count, ranks);
    LAY(counted, 1);
    LAY(are_odd, 1);
    LAY(ids, tokens * topk);
    LAY(weights, tokens * topk);
    LAY(sent_token, ranks * tokens);
    LAY(line_row, ranks * tokens);
    LAY(inner_ids, wefti_ep_between_tokens_max(ep) * topk);
    LAY(row, wefti_ep_between_received_max(ep) * topk);
    LAY(row_weight, wefti_ep_between_received_max(ep) * topk);
    LAY(here, wefti_ep_between_received_max(ep) * topk);
    LAY(own_ids, wefti_ep_between_orders_inside(plan) ? wefti_ep_between_tokens_max(ep) * topk : 0);
#undef LAY
    return end;
}

static weft_ep_plan inner_plan(const weft_ep *ep, const weft_ep_plan *plan)
{
    const int by_rank = wefti_ep_plan_is_by_rank(plan);
    return (weft_ep_plan){.size = sizeof(weft_ep_plan),
                          .topk = by_rank ? ep->between->inner->ranks : plan->topk,
                          .layout = WEFT_EP_RANK_MAJOR,
                          .flags = by_rank ? WEFT_EP_DESTINATIONS : 0,
                          .order = wefti_ep_between_orders_inside(plan) ? WEFT_EP_ORDER_CHOICE : WEFT_EP_ORDER_RANK,
                          .sms = plan->sms};
}

size_t wefti_ep_between_route_bytes(const weft_ep *ep, const weft_ep_plan *plan)
{
    wefti_cuda_ep_domains_tables tables = {0};
    const weft_ep_plan inner = inner_plan(ep, plan);
    return lay_out(&tables, ep, plan, 0) + wefti_cuda_ep_route_bytes(ep->between->inner, &inner);
}

weft_status wefti_ep_between_route_open(weft_ep_route *route, void *memory)
{
    const weft_ep *ep = route->ep;
    const weft_ep_plan inner = inner_plan(ep, &route->plan);
    wefti_cuda_ep_domains_tables none = {0};
    const size_t bytes = lay_out(&none, ep, &route->plan, 0);
    weft_ep_counts counts;
    wefti_ep_between_route *of = wefti_alloc_zeroed(1, sizeof *of);
    if (of == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_route_create: no memory for the route");
    }
    route->between = of;
    weft_status status = memory != NULL ? WEFT_OK : wefti_cuda_ep_allocate(ep->between->cuda, bytes, &of->owned);
    if (status == WEFT_OK) {
        (void)lay_out(&of->tables, ep, &route->plan, memory != NULL ? (uintptr_t)memory : (uintptr_t)of->owned);
        of->dirty_bytes = (size_t)((char *)of->tables.ids - (char *)of->tables.route_header);
        status = ep->calls->route_create(ep->between->inner, &inner,
                                         memory != NULL ? (unsigned char *)memory + bytes : NULL, &of->inner);
    }
    if (status != WEFT_OK) {
        wefti_ep_between_route_close(route);
        return status;
    }
    WEFT_TRY(wefti_cuda_ep_counts(of->inner, &counts));
    of->is_few = wefti_ep_direct_takes(ep, &route->plan);
    of->inner_rows = counts.rows;
    return WEFT_OK;
}

void wefti_ep_between_route_close(weft_ep_route *route)
{
    wefti_ep_between_route *of = route->between;
    if (of->inner != NULL) { /* alive: at a world's end groups end in reverse order, those made last first */
        (void)route->ep->calls->route_destroy(of->inner);
    }
    wefti_cuda_ep_free(route->ep->between->cuda, of->owned);
    wefti_free(of);
    route->between = NULL;
}

weft_status wefti_ep_between_route_move(weft_ep_route *route, void *memory, size_t bytes)
{
    (void)bytes;
    (void)route;
    (void)memory;
    return wefti_error(WEFT_ERR_UNSUPPORTED,
                       "weft_ep_route_move: routes of a group of several domains stay where they were made");
}

weft_status wefti_ep_between_counts(const weft_ep_route *route, weft_ep_counts *counts)
{
    const wefti_cuda_ep_domains_tables *tables = &route->between->tables;
    *counts = (weft_ep_counts){
        .rows = &tables->route_header->rows,
        .rows_of_expert = tables->rows_of_expert,
        .offset_of_expert = tables->offset_of_expert,
        .rows_of_source = tables->rows_of_source,
        .offset_of_source = tables->offset_of_source,
        .dropped = &tables->route_header->dropped,
        .status = &tables->route_header->status,
        .rows_of_expert_source = tables->rows_of_expert_source,
        .dropped_rows = &tables->route_header->dropped_rows,
    };
    return WEFT_OK;
}

weft_status wefti_ep_between_query(const weft_ep_route *route, weft_stream *stream, weft_ep_host_counts *counts)
{
    weft_ep *ep = route->ep;
    wefti_cuda_ep_route_header header;
    WEFT_TRY(wefti_cuda_ep_fetch_header(ep->between->cuda, route->between->tables.route_header, stream, &header));
    WEFT_TRY(wefti_ep_between_status(ep, "weft_ep_route_query"));
    wefti_cuda_ep_tell_counts(ep, &header, counts);
    return WEFT_OK;
}

weft_status wefti_ep_between_counts_told(weft_ep_route *route, const weft_ep_count_arrays *arrays)
{
    wefti_cuda *cuda = route->ep->between->cuda;
    if (arrays->generation == NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_ep_check_told(cuda, arrays));
    return wefti_cuda_clear(&cuda->base, route->between->tables.counted, sizeof *route->between->tables.counted);
}
