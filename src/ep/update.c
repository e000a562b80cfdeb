/* weft_ep_route_update, as the areas of protocol/ep_layout.h are written:
 *
 *     every rank to every rank    counts, then its call line
 *     every owner to every rank   bases and verdict, then its reply line, once all call lines have come
 *     every rank to every owner   records at those bases, then its done flag, once all reply lines have come
 *
 * An overflow ends after the second step, on all ranks; calls that do not match skip the second and the records. */
#include "base/error.h"
#include "ep/counts.h"
#include "ep/records.h"
#include "ep/sends.h"

static weft_status check(const weft_ep_route *route, const weft_ep_choices *choices, const weft_stream *stream)
{
    if (route == NULL || choices == NULL || choices->size != sizeof *choices) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_update: %s",
                           route == NULL     ? "the route is NULL"
                           : choices == NULL ? "the choices are NULL"
                                             : "the choices have a wrong size; start from WEFT_EP_CHOICES_INIT");
    }
    WEFT_TRY(wefti_ep_check_alive(route->ep, "weft_ep_route_update"));
    if (choices->tokens < 0 || choices->tokens > route->ep->config.tokens_max) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_ep_route_update: tokens is %d; give 0 .. %d, the group's tokens_max", choices->tokens,
                           route->ep->config.tokens_max);
    }
    if (choices->id_type != WEFT_EP_INT32 && choices->id_type != WEFT_EP_INT64) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_update: id_type is %d; give a weft_ep_id_type",
                           (int)choices->id_type);
    }
    if (choices->tokens > 0 && choices->ids == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_route_update: ids is NULL with %d tokens", choices->tokens);
    }
    if (stream != NULL) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "weft_ep_route_update: this build has no streams; give NULL");
    }
    return WEFT_OK;
}

static weft_status announce(const weft_ep_route *route, const wefti_ep_call *call)
{
    for (int i = 0; i < route->ep->ranks; i++) {
        int rank = (route->ep->rank + i) % route->ep->ranks;
        WEFT_TRY(wefti_ep_counts_put(route, rank));
        WEFT_TRY(wefti_ep_call_post(call, rank));
    }
    return WEFT_OK;
}

static weft_status exchange_records(weft_ep_route *route, const wefti_ep_call *call, const float *weights)
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
static weft_status exchange(weft_ep_route *route, const wefti_ep_call *call, const float *weights)
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

static weft_status update(weft_ep_route *route, const weft_ep_choices *choices)
{
    int aligned = wefti_ep_is_expert_major(route) && route->plan.alignment > 1;
    uint64_t shape = wefti_ep_update_shape((unsigned)route->plan.layout, (unsigned)route->plan.topk,
                                           aligned ? (unsigned)route->plan.alignment : 1);
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

weft_status weft_ep_route_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    WEFT_TRY(check(route, choices, stream));
    WEFT_TRY(wefti_ep_enter(route->ep, "weft_ep_route_update"));
    return wefti_ep_leave(route->ep, update(route, choices));
}
