/* weft_ep_route_update: the exchange (exchange.h), then records from every rank to every owner at the bases that it
 * gave, and its done flag. */
#include "ep/host/calls.h"
#include "ep/host/exchange.h"
#include "ep/host/growth.h"
#include "ep/host/records.h"
#include "ep/host/sends.h"

static weft_status exchange_records(wefti_ep_routing *route, const wefti_ep_call *call, const float *weights)
{
    wefti_ep_stage(route->ep, "move");
    for (int i = 0; i < route->ep->ranks; i++) {
        int rank = (route->ep->rank + i) % route->ep->ranks;
        if (route->ep->masked[rank]) {
            continue;
        }
        WEFT_TRY(wefti_ep_records_put(route, weights, rank));
        WEFT_TRY(wefti_ep_call_done(call, rank));
    }
    wefti_ep_stage(route->ep, "wait for done");
    wefti_ep_arrivals arrivals = wefti_ep_arrivals_start(route->ep, WEFTI_EP_WORD_DONE, call->epoch, call->name);
    while (wefti_ep_arrivals_left(&arrivals)) {
        int source;
        WEFT_TRY(wefti_ep_arrivals_next(&arrivals, &source));
        if (source < 0) {
            break;
        }
        wefti_ep_records_take(route, source);
    }
    return WEFT_OK;
}

static weft_status update(weft_ep_route *handle, const weft_ep_choices *choices)
{
    WEFT_TRY(wefti_ep_routing_fit(handle, "weft_ep_route_update"));
    wefti_ep_routing *route = handle->host;
    wefti_ep_signature_fields fields = {.kind = WEFTI_EP_UPDATE};
    int64_t limit = route->ep->rows_limit;
    wefti_ep_need need = wefti_ep_need_of_routing(&route->plan, choices->tokens);
    int again;
    wefti_ep_call call = wefti_ep_call_begin(route->ep, "weft_ep_route_update", &fields);
    wefti_ep_call_set_plan(&call, &route->plan, need.tokens_max);
    WEFT_TRY(wefti_ep_need_exceeds(route->ep, &need) ? wefti_ep_call_post_all(&call)
                                                     : wefti_ep_exchange_post(route, &call, choices, limit));
    WEFT_TRY(wefti_ep_call_wait_headers(&call));
    WEFT_TRY(wefti_ep_grow_for_routing(handle, &call, &need, &again));
    if (again) {
        return update(handle, choices);
    }
    if (call.mismatched_rank < 0) {
        WEFT_TRY(wefti_ep_exchange_agree(route, &call, limit));
    }
    if (call.mismatched_rank >= 0 || *route->status == WEFT_ERR_OVERFLOW) {
        WEFT_TRY(wefti_ep_call_done_all(&call));
        WEFT_TRY(wefti_ep_call_await_done(&call));
    } else {
        WEFT_TRY(exchange_records(route, &call, choices->weights));
    }
    return wefti_ep_call_end_routed(&call, route);
}

weft_status wefti_ep_host_update(weft_ep_route *handle, const weft_ep_choices *choices, weft_stream *stream)
{
    (void)stream;
    handle->is_routed = 0;
    WEFT_TRY(update(handle, choices));
    handle->is_routed = 1;
    wefti_world_count(handle->ep->world, WEFTI_COUNTER_ep_updates, 1);
    return WEFT_OK;
}
