/* weft_ep_route_update, as the areas of protocol/ep_layout.h are written:
 *
 *     every rank to every rank    counts, then its call line
 *     every owner to every rank   bases and verdict, then its reply line, once all call lines have come
 *     every rank to every owner   records at those bases, then its done flag, once all reply lines have come
 *
 * An overflow ends after the second step, on all ranks; calls that do not match skip the second and the records. */
#include "ep/host/calls.h"
#include "ep/host/counts.h"
#include "ep/host/records.h"
#include "ep/host/sends.h"

static weft_status announce(const wefti_ep_routing *route, const wefti_ep_call *call)
{
    for (int i = 0; i < route->ep->ranks; i++) {
        int rank = (route->ep->rank + i) % route->ep->ranks;
        WEFT_TRY(wefti_ep_counts_put(route, rank));
        WEFT_TRY(wefti_ep_call_post(call, rank));
    }
    return WEFT_OK;
}

static weft_status exchange_records(wefti_ep_routing *route, const wefti_ep_call *call, const float *weights)
{
    for (int i = 0; i < route->ep->ranks; i++) {
        int rank = (route->ep->rank + i) % route->ep->ranks;
        WEFT_TRY(wefti_ep_records_put(route, weights, rank));
        WEFT_TRY(wefti_ep_call_done(call, rank));
    }
    WEFT_TRY(wefti_ep_call_await_done(call));
    wefti_ep_records_take(route);
    return WEFT_OK;
}

/* Once all call lines have come and match. */
static weft_status exchange(wefti_ep_routing *route, const wefti_ep_call *call, const float *weights)
{
    wefti_ep_counts_scan(route);
    WEFT_TRY(wefti_ep_counts_answer(route, call));
    int32_t status = *route->dropped > 0 ? WEFT_ERR_RANGE : WEFT_OK;
    WEFT_TRY(wefti_ep_counts_hear(route, call, &status));
    *route->status = status;
    if (status == WEFT_ERR_OVERFLOW) {
        return WEFT_OK;
    }
    route->received = route->offset_of_source[route->ep->ranks];
    wefti_ep_sends_place(route);
    return exchange_records(route, call, weights);
}

static weft_status update(wefti_ep_routing *route, const weft_ep_choices *choices)
{
    uint64_t shape = wefti_ep_update_shape((unsigned)route->plan.layout, (unsigned)route->plan.topk,
                                           (unsigned)route->plan.alignment);
    wefti_ep_call call = wefti_ep_call_begin(route->ep, "weft_ep_route_update", shape, 0);
    route->epoch = 0;
    route->received = 0;
    wefti_ep_choices_read(route, choices);
    wefti_ep_sends_build(route, choices->weights);
    WEFT_TRY(announce(route, &call));
    WEFT_TRY(wefti_ep_call_meet_all(&call));
    if (call.odd_rank >= 0) {
        WEFT_TRY(wefti_ep_call_done_all(&call));
        WEFT_TRY(wefti_ep_call_await_done(&call));
        return wefti_ep_call_end(&call);
    }
    WEFT_TRY(exchange(route, &call, choices->weights));
    route->epoch = call.epoch;
    return wefti_ep_call_end(&call);
}

weft_status wefti_ep_host_update(weft_ep_route *handle, const weft_ep_choices *choices, weft_stream *stream)
{
    (void)stream;
    weft_status status = update(handle->host, choices);
    handle->is_routed = handle->host->epoch != 0;
    return status;
}
