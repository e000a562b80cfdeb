/* Counts to the caller's arrays, in the call that agrees on them. */
#include "ep/host/routing.h"
#include "weft/protocol/mem.h"

weft_status wefti_ep_routing_counts_told(weft_ep_route *handle, const weft_ep_count_arrays *arrays)
{
    handle->host->counts_to = *arrays;
    handle->host->counted = 0;
    return WEFT_OK;
}

/* Element `at` of an array, if there is one. */
static void tell(const weft_ep_count_arrays *to, void *array, size_t at, int32_t value)
{
    if (array != NULL && to->type == WEFT_EP_INT64) {
        ((int64_t *)array)[at] = value;
    } else if (array != NULL) {
        ((int32_t *)array)[at] = value;
    }
}

void wefti_ep_routing_tell_counts(wefti_ep_routing *route)
{
    const weft_ep_count_arrays *to = &route->counts_to;
    if (to->generation == NULL && !to->on_stream) {
        return;
    }
    size_t slot = to->on_stream ? 0 : (size_t)(++route->counted % 2);
    size_t experts = (size_t)wefti_ep_local_experts(route->ep);
    size_t ranks = (size_t)route->ep->ranks;
    tell(to, to->rows, slot, to->with_dropped ? route->wanted_rows : *route->rows);
    for (size_t i = 0; i < experts; i++) {
        int32_t rows = route->rows_of_expert[i];
        int32_t aligned = route->offset_of_expert[i + 1] - route->offset_of_expert[i];
        tell(to, to->rows_of_expert, slot * experts + i, rows);
        tell(to, to->rows_of_expert_aligned, slot * experts + i, wefti_ep_is_by_source(route) ? rows : aligned);
        tell(to, to->offset_of_expert, slot * experts + i,
             wefti_ep_is_by_source(route) ? 0 : route->offset_of_expert[i]);
    }
    for (size_t i = 0; i < ranks; i++) {
        tell(to, to->rows_of_source, slot * ranks + i, route->rows_of_source[i]);
    }
    if (!to->on_stream) {
        wefti_st64(&to->generation[slot], route->counted, WEFTI_RELEASE);
    }
}
