/* weft_ep_route_pad. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

weft_status weft_ep_route_pad(weft_ep_route *route, const weft_ep_received *out, uint64_t *mark, weft_stream *stream)
{
    static const char call[] = "weft_ep_route_pad";
    weft_ep_received copy;
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_unused(route, call));
    WEFT_TRY(wefti_ep_check_stream(route->ep, stream, call));
    if (wefti_ep_plan_is_slots(&route->plan)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: the route's layout is %s, whose unused rows lie between others; clear the arrays "
                           "before the dispatch",
                           call, wefti_ep_layout_name(route->plan.layout));
    }
    WEFT_TRY(wefti_ep_received_take(&out, &copy, call));
    if (out->rows.data == NULL && out->rows.scales == NULL) {
        copy = *out; /* of the arrays alone: rows of no bytes */
        copy.rows.hidden = 0;
        copy.rows.scale_type = WEFT_EP_SCALE_NONE;
        out = &copy;
    } else {
        WEFT_TRY(wefti_ep_rows_check(route->ep, &out->rows, call, "out.rows"));
        WEFT_TRY(wefti_ep_rows_held(&out->rows, (int64_t)out->rows_capacity, call, "out.rows"));
    }
    WEFT_TRY(wefti_ep_received_ids_check(route, out, call));
    if (out->rows_capacity > INT32_MAX || (uintptr_t)mark % sizeof *mark != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: out.rows_capacity is %zu, mark %p; give at most %d rows, and a mark aligned to 8 bytes",
                           call, out->rows_capacity, (void *)mark, INT32_MAX);
    }
    return route->ep->backend->pad(route, out, mark, stream);
}
