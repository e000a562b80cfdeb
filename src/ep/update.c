/* weft_ep_route_update and weft_ep_route_choose. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

/* *choices become what can be read: see base/sized.h. */
static weft_status check_given(const weft_ep_route *route, const weft_ep_choices **choices, weft_ep_choices *own,
                               const char *call)
{
    if (!wefti_ep_route_is_alive(route) || *choices == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           *choices == NULL ? "argument 'choices' is NULL" : "argument 'route' is NULL or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    return wefti_ep_choices_take(choices, own, call);
}

weft_status weft_ep_route_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    weft_ep_choices own;
    WEFT_TRY(check_given(route, &choices, &own, call));
    weft_ep *ep = route->ep;
    WEFT_TRY(wefti_ep_check_call(ep, stream, call));
    WEFT_TRY(wefti_ep_choices_check(route, choices, call));
    WEFT_TRY(wefti_ep_check_unused(route, call));
    WEFT_TRY(wefti_ep_enter(ep, call));
    route->is_chosen = 0;
    route->generation++;
    return wefti_ep_leave(ep, ep->backend->update(route, choices, stream));
}

weft_status weft_ep_route_choose(weft_ep_route *route, const weft_ep_choices *choices)
{
    static const char call[] = "weft_ep_route_choose";
    weft_ep_choices own;
    WEFT_TRY(check_given(route, &choices, &own, call));
    WEFT_TRY(wefti_ep_choices_check(route, choices, call));
    WEFT_TRY(wefti_ep_check_unused(route, call));
    route->choices = *choices;
    route->is_chosen = 1;
    return WEFT_OK;
}
