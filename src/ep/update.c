/* weft_ep_route_update, weft_ep_route_choose and weft_ep_route_weigh. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

/* *choices become what can be read: see base/sized.h. */
static weft_status check_given(const weft_ep_route *route, const weft_ep_choices **choices, weft_ep_choices *copy,
                               const char *call)
{
    if (!wefti_ep_route_is_alive(route) || *choices == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           *choices == NULL ? "argument 'choices' is NULL" : "argument 'route' is NULL or destroyed");
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    return wefti_ep_choices_take(choices, copy, call);
}

weft_status wefti_ep_route_drop(weft_ep_route *route, const weft_ep_choices **choices, weft_ep_choices *kept,
                                weft_stream *stream)
{
    const weft_ep *ep = route->ep;
    if (!wefti_ep_drops_rows(ep, &route->plan)) {
        return WEFT_OK;
    }
    WEFT_TRY(ep->backend->drop_rows(route, *choices, route->is_counted, kept, stream));
    route->is_counted = 1;
    *choices = kept;
    return WEFT_OK;
}

weft_status weft_ep_route_update(weft_ep_route *route, const weft_ep_choices *choices, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_update";
    weft_ep_choices copy;
    weft_ep_choices kept;
    WEFT_TRY(check_given(route, &choices, &copy, call));
    weft_ep *ep = route->ep;
    WEFT_TRY(wefti_ep_check_call(ep, stream, call));
    WEFT_TRY(wefti_ep_choices_check(route, choices, call));
    WEFT_TRY(wefti_ep_check_unused(route, call));
    WEFT_TRY(wefti_ep_enter(ep, call));
    route->is_chosen = 0;
    route->is_counted = 0;
    route->is_weighed = 0;
    route->generation++;
    weft_status status = wefti_ep_route_drop(route, &choices, &kept, stream);
    status = status == WEFT_OK ? ep->backend->update(route, choices, stream) : status;
    route->is_counted = 0;
    wefti_ep_route_made(route);
    return wefti_ep_leave(ep, status);
}

weft_status weft_ep_route_choose(weft_ep_route *route, const weft_ep_choices *choices)
{
    static const char call[] = "weft_ep_route_choose";
    weft_ep_choices copy;
    WEFT_TRY(check_given(route, &choices, &copy, call));
    WEFT_TRY(wefti_ep_choices_check(route, choices, call));
    WEFT_TRY(wefti_ep_check_unused(route, call));
    route->choices = *choices;
    route->is_chosen = 1;
    route->is_counted = 0;
    route->is_weighed = 0;
    return WEFT_OK;
}

weft_status weft_ep_route_weigh(weft_ep_route *route, const float *weights)
{
    static const char call[] = "weft_ep_route_weigh";
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_unused(route, call));
    if (route->is_chosen) {
        return wefti_error(WEFT_ERR_STATE,
                           "%s: the route waits for a dispatch of a choice, which has weights; choose "
                           "again with these",
                           call);
    }
    if ((uintptr_t)weights % sizeof(float) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: weights is at %p; align it to its elements", call,
                           (const void *)weights);
    }
    route->weights = weights;
    route->is_weighed = 1;
    return WEFT_OK;
}
