/* weft_ep_combine: rows back to their sources, added up (pull.h). */
#include "ep/check.h"
#include "ep/host/calls.h"
#include "ep/host/gradients.h"
#include "ep/host/growth.h"
#include "ep/host/pull.h"

static const char call_name[] = "weft_ep_combine";

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *out,
                         const wefti_ep_combining *combining)
{
    WEFT_TRY(wefti_ep_routing_check(route, call_name));
    WEFT_TRY(wefti_ep_rows_held(in, *route->rows, call_name, "in"));
    for (int i = 0; i < combining->biases; i++) {
        WEFT_TRY(wefti_ep_rows_held(&combining->bias[i], route->tokens, call_name, "options.bias"));
    }
    WEFT_TRY(wefti_ep_rows_held(out, route->tokens, call_name, "out"));
    return wefti_ep_pull_check(route, in, call_name, "in");
}

static wefti_ep_signature_fields fields_of(const weft_ep_rows *in, const wefti_ep_combining *combining)
{
    return (wefti_ep_signature_fields){.kind = WEFTI_EP_COMBINE,
                                       .dtype = (unsigned)in->dtype,
                                       .flags = wefti_ep_combining_signature_flags(combining),
                                       .hidden = (unsigned)in->hidden};
}

static void begin(wefti_ep_pull *pull, const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *out,
                  const wefti_ep_combining *combining)
{
    wefti_ep_signature_fields fields = fields_of(in, combining);
    wefti_ep_call call = wefti_ep_call_begin(route->ep, call_name, &fields);
    wefti_ep_call_set_route(&call, route);
    wefti_ep_pull_init(pull, route, &call, in, out, (combining->flags & WEFT_EP_WEIGHTED) != 0);
    wefti_ep_pull_combining(pull, combining);
    pull->wait_ns = wefti_ep_stats_waits(route->ep, 1);
}

static weft_status send(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_rows *out,
                        const wefti_ep_combining *combining)
{
    const wefti_ep_routing *route = handle->host;
    wefti_ep_signature_fields fields = fields_of(in, combining);
    wefti_ep_need need = {.tokens_max = 0};
    wefti_ep_need_rows(&need, in);
    WEFT_TRY(check(route, in, out, combining));
    WEFT_TRY(wefti_ep_grow_for_rows(handle, call_name, &fields, &need));
    wefti_ep_pull *pull = route->ep->host->pull;
    begin(pull, route, in, out, combining);
    if (combining->values_in != NULL) {
        wefti_ep_gradients_keep_all(route, combining->values_in);
    }
    return wefti_ep_pull_post(pull);
}

static weft_status receive(wefti_ep_pull *pull)
{
    WEFT_TRY(wefti_ep_pull_wait_headers(pull));
    for (int again = pull->call.mismatched_rank < 0; again;) {
        WEFT_TRY(wefti_ep_pull_sums(pull));
        WEFT_TRY(pull->combining.values_out != NULL ? wefti_ep_pull_values(pull) : WEFT_OK);
        WEFT_TRY(wefti_ep_pull_verify(pull, &again));
    }
    WEFT_TRY(wefti_ep_pull_end(pull));
    if (pull->ep->stats != NULL) {
        ++*wefti_ep_stats_calls(pull->ep, 1);
    }
    wefti_world_count(pull->ep->world, WEFTI_COUNTER_ep_combines, 1);
    return WEFT_OK;
}

weft_status wefti_ep_host_combine(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_rows *out,
                                  const wefti_ep_combining *combining, weft_stream *stream)
{
    (void)stream;
    WEFT_TRY(send(handle, in, out, combining));
    return receive(handle->ep->host->pull);
}

weft_status wefti_ep_host_combine_send(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_rows *out,
                                       const wefti_ep_combining *combining, weft_stream *stream)
{
    (void)stream;
    return send(handle, in, out, combining);
}

weft_status wefti_ep_host_combine_recv(weft_ep_route *handle, weft_stream *stream)
{
    (void)stream;
    return receive(handle->ep->host->pull);
}
