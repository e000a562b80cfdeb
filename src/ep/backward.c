/* weft_ep_dispatch_bwd and weft_ep_combine_bwd. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

static weft_status check_rows(const weft_ep_route *route, const weft_ep_rows *in, const char *in_name,
                              const weft_ep_rows *out, const char *out_name, const char *call)
{
    WEFT_TRY(wefti_ep_sums_check(route->ep, in, call, in_name));
    WEFT_TRY(wefti_ep_sums_check(route->ep, out, call, out_name));
    return wefti_ep_rows_alike(in, out, call, in_name, out_name);
}

weft_status weft_ep_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                 const float *grad_weights_received, const weft_ep_rows *grad_in, float *grad_weights,
                                 weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_bwd";
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_call(route->ep, stream, call));
    weft_ep_rows copy[2];
    WEFT_TRY(wefti_ep_rows_take(&grad_received, &copy[0], call, "grad_received"));
    WEFT_TRY(wefti_ep_rows_take(&grad_in, &copy[1], call, "grad_in"));
    WEFT_TRY(check_rows(route, grad_received, "grad_received", grad_in, "grad_in", call));
    if ((grad_weights_received == NULL) != (grad_weights == NULL)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument '%s' is NULL; give both gradients of weights or neither",
                           call, grad_weights == NULL ? "grad_weights" : "grad_weights_received");
    }
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    return wefti_ep_leave(route->ep, route->ep->backend->dispatch_bwd(route, grad_received, grad_weights_received,
                                                                      grad_in, grad_weights, stream));
}

static weft_status check_weights(const weft_ep_rows *rows, const float *grad_weights, unsigned flags, const char *call)
{
    if ((flags & ~WEFT_EP_WEIGHTED) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: flags is 0x%x; give 0 or WEFT_EP_WEIGHTED", call, flags);
    }
    if (grad_weights != NULL && flags == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: grad_weights without WEFT_EP_WEIGHTED; give NULL or the flag", call);
    }
    if ((rows == NULL) != (grad_weights == NULL)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument '%s' is NULL; give rows and grad_weights, or neither", call,
                           rows == NULL ? "rows" : "grad_weights");
    }
    return WEFT_OK;
}

weft_status weft_ep_combine_bwd(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_bwd";
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_call(route->ep, stream, call));
    weft_ep_rows copy[3];
    WEFT_TRY(wefti_ep_rows_take(&grad_out, &copy[0], call, "grad_out"));
    WEFT_TRY(wefti_ep_rows_take(&grad_rows, &copy[1], call, "grad_rows"));
    WEFT_TRY(check_rows(route, grad_out, "grad_out", grad_rows, "grad_rows", call));
    WEFT_TRY(check_weights(rows, grad_weights, flags, call));
    if (rows != NULL) {
        WEFT_TRY(wefti_ep_rows_take(&rows, &copy[2], call, "rows"));
        WEFT_TRY(check_rows(route, grad_out, "grad_out", rows, "rows", call));
    }
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    return wefti_ep_leave(
        route->ep, route->ep->backend->combine_bwd(route, grad_out, rows, grad_rows, grad_weights, flags, stream));
}
