/* weft_ep_dispatch_bwd: gradients of rows go back and are added up (pull.h), beside them those of weights
 * (gradients.h). */
#include "ep/check.h"
#include "ep/host/calls.h"
#include "ep/host/gradients.h"
#include "ep/host/growth.h"
#include "ep/host/pull.h"

static const char call_name[] = "weft_ep_dispatch_bwd";

/* What depends on the routing. */
static weft_status check(const wefti_ep_routing *route, const weft_ep_rows *in, const weft_ep_rows *out)
{
    WEFT_TRY(wefti_ep_routing_check(route, call_name));
    WEFT_TRY(wefti_ep_rows_held(in, *route->rows, call_name, "grad_received"));
    WEFT_TRY(wefti_ep_rows_held(out, route->tokens, call_name, "grad_in"));
    return wefti_ep_pull_check(route, in, call_name, "grad_received");
}

static weft_status read_gradients(const wefti_ep_routing *route, float *grad_weights)
{
    wefti_ep_gradients_clear(route, grad_weights);
    for (int rank = 0; rank < route->ep->ranks; rank++) {
        WEFT_TRY(route->ep->masked[rank] ? WEFT_OK : wefti_ep_gradients_read(route, rank, grad_weights));
    }
    return WEFT_OK;
}

weft_status wefti_ep_host_dispatch_bwd(weft_ep_route *handle, const weft_ep_rows *grad_received,
                                       const float *grad_weights_received, const weft_ep_rows *grad_in,
                                       float *grad_weights, weft_stream *stream)
{
    const wefti_ep_routing *route = handle->host;
    wefti_ep_need need = {.tokens_max = 0};
    wefti_ep_signature_fields fields = {.kind = WEFTI_EP_DISPATCH_BWD,
                                        .dtype = (unsigned)grad_in->dtype,
                                        .flags = grad_weights != NULL ? WEFTI_EP_VALUES : 0,
                                        .hidden = (unsigned)grad_in->hidden};
    (void)stream;
    wefti_ep_need_rows(&need, grad_in);
    WEFT_TRY(check(route, grad_received, grad_in));
    WEFT_TRY(wefti_ep_grow_for_rows(handle, call_name, &fields, &need));
    wefti_ep_pull *pull = route->ep->host->pull;
    wefti_ep_call call = wefti_ep_call_begin(route->ep, call_name, &fields);
    wefti_ep_call_set_route(&call, route);
    wefti_ep_pull_init(pull, route, &call, grad_received, grad_in, 0);
    pull->each_once = route->plan.layout == WEFT_EP_SLOTS_EXPERT;
    if (grad_weights != NULL) {
        wefti_ep_gradients_keep_all(route, grad_weights_received);
    }
    WEFT_TRY(wefti_ep_pull_post(pull));
    WEFT_TRY(wefti_ep_pull_wait_headers(pull));
    for (int again = pull->call.mismatched_rank < 0; again;) {
        WEFT_TRY(wefti_ep_pull_sums(pull));
        WEFT_TRY(grad_weights != NULL ? read_gradients(route, grad_weights) : WEFT_OK);
        WEFT_TRY(wefti_ep_pull_verify(pull, &again));
    }
    return wefti_ep_pull_end(pull);
}
