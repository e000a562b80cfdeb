/* weft_ep_route_update. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

weft_status weft_ep_route_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    if (route == NULL || choices == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           route == NULL ? "the route is NULL" : "the choices are NULL");
    }
    weft_ep *ep = route->ep;
    WEFT_TRY(wefti_ep_check_call(ep, stream, call));
    WEFT_TRY(wefti_ep_choices_check(route, choices, call));
    WEFT_TRY(wefti_ep_enter(ep, call));
    return wefti_ep_leave(ep, ep->backend->update(route, choices, stream));
}
