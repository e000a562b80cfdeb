/* weft_ep_combine and its halves. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

static weft_status check_flags(unsigned flags, const char *call)
{
    if ((flags & ~WEFT_EP_WEIGHTED) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: flags is 0x%x; give 0 or WEFT_EP_WEIGHTED", call, flags);
    }
    return WEFT_OK;
}

/* *in and *out become what can be read: see base/sized.h. */
static weft_status check(const weft_ep_route *route, const weft_ep_rows **in, const weft_ep_rows **out,
                         weft_ep_rows own[2], unsigned flags, const weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_call(route->ep, stream, call));
    WEFT_TRY(wefti_ep_rows_take(in, &own[0], call, "in"));
    WEFT_TRY(wefti_ep_rows_take(out, &own[1], call, "out"));
    WEFT_TRY(wefti_ep_sums_check(route->ep, *in, call, "in"));
    WEFT_TRY(wefti_ep_sums_check(route->ep, *out, call, "out"));
    WEFT_TRY(wefti_ep_rows_alike(*in, *out, call, "in", "out"));
    return check_flags(flags, call);
}

weft_status weft_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                            weft_stream *stream)
{
    static const char call[] = "weft_ep_combine";
    weft_ep_rows own[2];
    WEFT_TRY(check(route, &in, &out, own, flags, stream, call));
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    return wefti_ep_leave(route->ep, route->ep->backend->combine(route, in, out, flags, stream));
}

weft_status weft_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                                 weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_send";
    weft_ep_rows own[2];
    WEFT_TRY(check(route, &in, &out, own, flags, stream, call));
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    weft_status status = route->ep->backend->combine_send(route, in, out, flags, stream);
    wefti_ep_open_half(route->ep, WEFTI_EP_HALF_COMBINE, route, stream, status);
    return wefti_ep_leave(route->ep, status);
}

weft_status weft_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_recv";
    WEFT_TRY(wefti_ep_check_half(route, WEFTI_EP_HALF_COMBINE, stream, call));
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    weft_status status = route->ep->backend->combine_recv(route, stream);
    wefti_ep_end_half(route->ep, status);
    return wefti_ep_leave(route->ep, status);
}
