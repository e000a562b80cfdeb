/* weft_ep_combine and its halves. */
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "ep/backend.h"
#include "ep/check.h"

static weft_status check_flags(unsigned flags, const char *call)
{
    if ((flags & ~WEFT_EP_WEIGHTED) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: flags is 0x%x; give 0 or WEFT_EP_WEIGHTED", call, flags);
    }
    return WEFT_OK;
}

/* What the structs are copied to that are of other headers, and what the options amount to. */
typedef struct arguments {
    weft_ep_rows in;
    weft_ep_rows out;
    wefti_ep_combining combining;
} arguments;

/* *in and *out become what can be read: see base/sized.h. */
static weft_status check(const weft_ep_route *route, const weft_ep_rows **in, const weft_ep_rows **out, arguments *copy,
                         const weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_route_check(route, call));
    WEFT_TRY(wefti_ep_check_call(route->ep, stream, call));
    WEFT_TRY(wefti_ep_rows_take(in, &copy->in, call, "in"));
    WEFT_TRY(wefti_ep_rows_take(out, &copy->out, call, "out"));
    WEFT_TRY(wefti_ep_sums_check(route->ep, *in, call, "in"));
    return wefti_ep_combined_check(route->ep, *in, *out, call);
}

/* ---- options ---- */

static weft_status check_choices(const weft_ep_combine_options *options, const char *call)
{
    if (options->weights != NULL && (options->flags & WEFT_EP_WEIGHTED) == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: options.weights without WEFT_EP_WEIGHTED; give NULL or the flag",
                           call);
    }
    if (options->ids != NULL && options->weights == NULL && options->flags != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: options.ids with WEFT_EP_WEIGHTED and without options.weights; give both", call);
    }
    if (options->id_type != WEFT_EP_INT32 && options->id_type != WEFT_EP_INT64) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: options.id_type is %d; give a weft_ep_id_type", call,
                           (int)options->id_type);
    }
    return WEFT_OK;
}

static weft_status take_bias(const weft_ep *ep, const weft_ep_rows *bias, const weft_ep_rows *in,
                             wefti_ep_combining *combining, const char *call)
{
    static const char *const names[] = {"options.bias[0]", "options.bias[1]"};
    const char *name = names[combining->biases];
    weft_ep_rows copy;
    WEFT_TRY(wefti_ep_rows_take(&bias, &copy, call, name));
    WEFT_TRY(wefti_ep_sums_check(ep, bias, call, name));
    WEFT_TRY(wefti_ep_rows_alike(in, bias, call, "in", name));
    combining->bias[combining->biases++] = *bias;
    return WEFT_OK;
}

static weft_status take_options(const weft_ep *ep, const weft_ep_combine_options *options, const weft_ep_rows *in,
                                wefti_ep_combining *combining, const char *call)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_combine_options, flags, "WEFT_EP_COMBINE_OPTIONS_INIT");
    weft_ep_combine_options copy;
    memset(combining, 0, sizeof *combining);
    if (options == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: options is NULL; start from WEFT_EP_COMBINE_OPTIONS_INIT", call);
    }
    WEFTI_SIZED_TRY(&form, call, "options", options, &copy);
    WEFT_TRY(check_flags(options->flags, call));
    WEFT_TRY(check_choices(options, call));
    if (options->bias[0] == NULL && options->bias[1] != NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: options.bias[1] without options.bias[0]; give the first", call);
    }
    if ((options->values_in == NULL) != (options->values_out == NULL)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: options.%s is NULL; give values_in and values_out, or neither", call,
                           options->values_in == NULL ? "values_in" : "values_out");
    }
    combining->values_in = options->values_in;
    combining->values_out = options->values_out;
    combining->flags = options->flags;
    combining->weights = options->weights;
    combining->ids = options->ids;
    combining->ids_are_wide = options->id_type == WEFT_EP_INT64;
    for (int i = 0; i < 2 && options->bias[i] != NULL; i++) {
        WEFT_TRY(take_bias(ep, options->bias[i], in, combining, call));
    }
    return WEFT_OK;
}

/* ---- the calls ---- */

static weft_status combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                           const wefti_ep_combining *combining, weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    return wefti_ep_leave(route->ep, route->ep->backend->combine(route, in, out, combining, stream));
}

weft_status weft_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                            weft_stream *stream)
{
    static const char call[] = "weft_ep_combine";
    arguments copy;
    WEFT_TRY(check(route, &in, &out, &copy, stream, call));
    WEFT_TRY(check_flags(flags, call));
    copy.combining = (wefti_ep_combining){.flags = flags};
    return combine(route, in, out, &copy.combining, stream, call);
}

weft_status weft_ep_combine_with(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                 const weft_ep_combine_options *options, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_with";
    arguments copy;
    WEFT_TRY(check(route, &in, &out, &copy, stream, call));
    WEFT_TRY(take_options(route->ep, options, in, &copy.combining, call));
    return combine(route, in, out, &copy.combining, stream, call);
}

static weft_status combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                const wefti_ep_combining *combining, weft_stream *stream, const char *call)
{
    WEFT_TRY(wefti_ep_enter(route->ep, call));
    weft_status status = route->ep->backend->combine_send(route, in, out, combining, stream);
    wefti_ep_open_half(route->ep, WEFTI_EP_HALF_COMBINE, route, stream, status);
    return wefti_ep_leave(route->ep, status);
}

weft_status weft_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                                 weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_send";
    arguments copy;
    WEFT_TRY(check(route, &in, &out, &copy, stream, call));
    WEFT_TRY(check_flags(flags, call));
    copy.combining = (wefti_ep_combining){.flags = flags};
    return combine_send(route, in, out, &copy.combining, stream, call);
}

weft_status weft_ep_combine_send_with(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                      const weft_ep_combine_options *options, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_send_with";
    arguments copy;
    WEFT_TRY(check(route, &in, &out, &copy, stream, call));
    WEFT_TRY(take_options(route->ep, options, in, &copy.combining, call));
    return combine_send(route, in, out, &copy.combining, stream, call);
}

weft_status weft_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_recv";
    int bank;
    WEFT_TRY(wefti_ep_check_half(route, WEFTI_EP_HALF_COMBINE, stream, call, &bank));
    WEFT_TRY(wefti_ep_enter_half(route->ep, bank, call));
    weft_status status = route->ep->backend->combine_recv(route, stream);
    wefti_ep_end_half(route->ep, status);
    return wefti_ep_leave(route->ep, status);
}
