/* weft_ep_dispatch. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

static weft_status check(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                         const weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_call(route->ep, stream, call));
    if (out == NULL || out->size != sizeof *out) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: out %s", call,
                           out == NULL ? "is NULL" : "has a wrong size; start from WEFT_EP_RECEIVED_INIT");
    }
    WEFT_TRY(wefti_ep_rows_check(route->ep, in, call, "in"));
    WEFT_TRY(wefti_ep_rows_check(route->ep, &out->rows, call, "out.rows"));
    return wefti_ep_rows_become(in, &out->rows, call);
}

weft_status weft_ep_dispatch(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                             weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch";
    WEFT_TRY(check(route, in, out, stream, call));
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    return wefti_ep_leave(route->ep, route->ep->backend->dispatch(route, in, out, stream));
}
