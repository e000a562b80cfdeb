/* weft_ep_dispatch and its halves. */
#include "base/error.h"
#include "ep/backend.h"
#include "ep/check.h"

/* What the structs are copied to that are of other headers. */
typedef struct arguments {
    weft_ep_rows in;
    weft_ep_received out;
    weft_ep_choices kept;
} arguments;

/* The scales of one expert come before those of the next. */
static weft_status check_groups(const weft_ep_route *route, const weft_ep_received *out, const char *call)
{
    const weft_ep_rows *rows = &out->rows;
    if (out->scale_group_stride == 0) {
        return WEFT_OK;
    }
    if (route->plan.layout != WEFT_EP_SLOTS_EXPERT || rows->scale_type == WEFT_EP_SCALE_NONE) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: out.scale_group_stride is %zu; give 0, but for rows with scales in "
                           "WEFT_EP_SLOTS_EXPERT",
                           call, out->scale_group_stride);
    }
    size_t words = wefti_ep_scale_words(rows);
    size_t slots = (size_t)route->ep->ranks * (size_t)route->plan.slot_tokens;
    size_t row = rows->scale_row_stride == 0 ? words : rows->scale_row_stride;
    size_t word = rows->scale_row_stride == 0 ? 1 : rows->scale_word_stride;
    size_t extent = slots == 0 ? 0 : (slots - 1) * row + (words - 1) * word + 1;
    if (out->scale_group_stride < extent || out->scale_group_stride > UINT32_MAX) {
        return wefti_error(
            WEFT_ERR_ARGUMENT,
            "%s: out.scale_group_stride is %zu words, and an expert's scales take %zu; give at least these", call,
            out->scale_group_stride, extent);
    }
    return WEFT_OK;
}

/* *rows and *received become what can be read. */
static weft_status check(const weft_ep_route *route, const weft_ep_rows **rows, const weft_ep_received **received,
                         arguments *copy, const weft_stream *stream, const char *call)
{
    if (route == NULL || !route->is_chosen) {
        WEFT_TRY(wefti_ep_route_check(route, call));
    }
    WEFT_TRY(wefti_ep_check_call(route->ep, stream, call));
    WEFT_TRY(route->is_chosen || route->is_weighed ? wefti_ep_check_unused(route, call) : WEFT_OK);
    WEFT_TRY(wefti_ep_received_take(received, &copy->out, call));
    WEFT_TRY(wefti_ep_rows_take(rows, &copy->in, call, "in"));
    const weft_ep_rows *in = *rows;
    const weft_ep_received *out = *received;
    WEFT_TRY(wefti_ep_rows_check(route->ep, in, call, "in"));
    WEFT_TRY(wefti_ep_rows_check(route->ep, &out->rows, call, "out.rows"));
    WEFT_TRY(check_groups(route, out, call));
    WEFT_TRY(wefti_ep_received_ids_check(route, out, call));
    return wefti_ep_rows_become(in, &out->rows, call);
}

/* The choices of a fresh routing, which this call uses up. */
static const weft_ep_choices *take_choices(weft_ep_route *route)
{
    const weft_ep_choices *fresh = route->is_chosen ? &route->choices : NULL;
    route->is_chosen = 0;
    route->generation += fresh != NULL;
    return fresh;
}

/* The choice of a fresh dispatch, and new weights, are used up unless the call was refused before anything moved. Where
 * calls have streams a mismatch is an earlier call's, and this one was refused for it. */
static void use_up(weft_ep_route *route, const weft_ep_choices *fresh, weft_status status)
{
    int is_late = status == WEFT_ERR_MISMATCH && route->ep->backend->has_streams;
    int is_refused = status == WEFT_ERR_ARGUMENT || status == WEFT_ERR_RANGE || status == WEFT_ERR_STATE ||
                     status == WEFT_ERR_UNSUPPORTED;
    route->is_chosen = fresh != NULL && (is_refused || is_late);
    route->is_counted = route->is_counted && route->is_chosen && !is_late; /* or the count may be what differed */
    route->is_weighed = route->is_weighed && (is_refused || is_late);
    route->generation -= (uint64_t)(route->is_chosen != 0);
    if (fresh != NULL && !route->is_chosen) {
        wefti_ep_route_made(route);
    }
}

weft_status weft_ep_dispatch(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                             weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch";
    arguments copy;
    WEFT_TRY(check(route, &in, &out, &copy, stream, call));
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    const weft_ep_choices *fresh = take_choices(route);
    weft_status status = fresh != NULL ? wefti_ep_route_drop(route, &fresh, &copy.kept, stream) : WEFT_OK;
    status = status == WEFT_OK ? route->ep->backend->dispatch(route, fresh, in, out, stream) : status;
    use_up(route, fresh, status);
    return wefti_ep_leave(route->ep, status);
}

weft_status weft_ep_dispatch_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                                  weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_send";
    arguments copy;
    WEFT_TRY(check(route, &in, &out, &copy, stream, call));
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    const int routes = route->is_chosen || route->is_weighed;
    const weft_ep_choices *fresh = take_choices(route);
    weft_status status = fresh != NULL ? wefti_ep_route_drop(route, &fresh, &copy.kept, stream) : WEFT_OK;
    status = status == WEFT_OK ? route->ep->backend->dispatch_send(route, fresh, in, out, stream) : status;
    use_up(route, fresh, status);
    wefti_ep_open_half(route->ep, WEFTI_EP_HALF_DISPATCH, route, stream, status);
    route->ep->half_routes[route->ep->bank] = routes;
    return wefti_ep_leave(route->ep, status);
}

weft_status weft_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_recv";
    int bank;
    WEFT_TRY(wefti_ep_check_half(route, WEFTI_EP_HALF_DISPATCH, stream, call, &bank));
    WEFT_TRY(wefti_ep_enter_half(route->ep, bank, call));
    weft_status status = route->ep->backend->dispatch_recv(route, stream);
    if (status == WEFT_ERR_RANGE && wefti_ep_grows(route->ep)) { /* the choice was not used up */
        route->is_chosen = 1;
        route->generation--;
        wefti_ep_route_made(route);
    }
    wefti_ep_end_half(route->ep, status);
    return wefti_ep_leave(route->ep, status);
}
