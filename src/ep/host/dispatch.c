/* weft_ep_dispatch: rows to their owners (push.h), on the route's routing or on a fresh one, which is agreed on between the
 * lines and the rows (exchange.h), and whose records go out with the rows. */
#include "base/error.h"
#include "ep/check.h"
#include "ep/host/calls.h"
#include "ep/host/exchange.h"
#include "ep/host/push.h"
#include "ep/host/received.h"
#include "ep/host/records.h"

static const char call_name[] = "weft_ep_dispatch";

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    WEFT_TRY(wefti_ep_routing_check(route, call_name));
    WEFT_TRY(wefti_ep_rows_held(in, route->tokens, call_name, "in"));
    WEFT_TRY(wefti_ep_rows_held(&out->rows, *route->rows, call_name, "out.rows"));
    if (out->rows_capacity < (size_t)*route->rows) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: out.rows holds %zu rows and %d come; size it by weft_ep_route_query or the group's "
                           "rows_max",
                           call_name, out->rows_capacity, *route->rows);
    }
    return WEFT_OK;
}

static void begin(wefti_ep_push *push, wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    wefti_ep_shape_parts parts = {.kind = WEFTI_EP_DISPATCH,
                                  .dtype = (unsigned)in->dtype,
                                  .out_dtype = (unsigned)out->rows.dtype,
                                  .scale_type = (unsigned)out->rows.scale_type,
                                  .hidden = (unsigned)in->hidden};
    wefti_ep_call call = wefti_ep_call_begin(route->ep, call_name, &parts);
    wefti_ep_call_follows(&call, route);
    wefti_ep_span from = wefti_ep_span_of(in);
    wefti_ep_span to = wefti_ep_span_of(&out->rows);
    wefti_ep_push_init(push, route, &call, &from, &to, *route->rows, 0);
    if (in->dtype != out->rows.dtype) {
        push->quantises = wefti_ep_arithmetic_of(in->dtype);
        push->hidden = (size_t)in->hidden;
        push->is_ue8m0 = out->rows.scale_type == WEFT_EP_SCALE_UE8M0;
    }
    push->streams = (size_t)*route->rows * to.row_bytes >= WEFTI_STREAM_BYTES;
}

static void zero_padding(const wefti_ep_push *push)
{
    const wefti_ep_routing *route = push->route;
    for (int expert = 0; expert < wefti_ep_local_experts(push->ep); expert++) {
        int row = route->offset_of_expert[expert] + route->rows_of_expert[expert];
        for (; row < route->offset_of_expert[expert + 1]; row++) {
            wefti_ep_span_zero(&push->out, (size_t)row);
        }
    }
}

/* The caller's arrays, and padding. */
static void fill(const wefti_ep_push *push, const weft_ep_received *out)
{
    wefti_ep_received_padding(push->route, out);
    if ((push->route->plan.flags & WEFT_EP_ZERO_PADDING) != 0 && push->route->plan.layout == WEFT_EP_EXPERT_MAJOR) {
        zero_padding(push);
    }
    for (int source = 0; source < push->ep->ranks; source++) {
        wefti_ep_received_source(push->route, out, source);
    }
}

static weft_status dispatch(wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_received *out)
{
    wefti_ep_push push;
    begin(&push, route, in, out);
    WEFT_TRY(wefti_ep_push_post(&push));
    wefti_ep_push_listen(&push);
    WEFT_TRY(wefti_ep_push_send_all(&push));
    fill(&push, out);
    WEFT_TRY(wefti_ep_push_receive(&push));
    return wefti_ep_call_end(&push.call);
}

weft_status wefti_ep_host_dispatch(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_received *out,
                                   weft_stream *stream)
{
    wefti_ep_routing *route = handle->host;
    (void)stream;
    WEFT_TRY(check(route, in, out));
    WEFT_TRY(dispatch(route, in, out));
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_dispatches, 1);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_rows_sent, (uint64_t)route->token_pairs[route->tokens]);
    wefti_world_count(route->ep->world, WEFTI_COUNTER_ep_rows_received, (uint64_t)route->received);
    return WEFT_OK;
}
