/* cuda/ep/host/halves.c: a launch for send, where its rows leave with it one more for these, and one for recv; nothing
 * of the call runs between send and recv. */
#include "cuda/ep/host/calls.h"

/* `leaves`: the rows behind a send. */
static weft_status launch_dispatch(const weft_ep_route *route, wefti_cuda_ep_phase phase, int leaves,
                                   weft_stream *stream, const char *call)
{
    wefti_cuda_ep_eager_dispatch_args args = {.call = route->device->sent.dispatch, .eager = route->ep->device->eager};
    const wefti_cuda_ep_launch_plan plan =
        wefti_cuda_ep_dispatch_plan(route, route->device->sent_work, phase, leaves, &args.call);
    WEFT_TRY(wefti_cuda_ep_launch(route, &plan, &args, stream, call));
    return phase == WEFTI_CUDA_EP_SEND && plan.is_eager && !leaves ? launch_dispatch(route, phase, 1, stream, call)
                                                                   : WEFT_OK;
}

static weft_status send_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                 const weft_ep_received *out, weft_stream *stream, const char *call)
{
    wefti_ep_device_route *device = route->device;
    wefti_cuda_ep_dispatch_args *args = &device->sent.dispatch;
    WEFT_TRY(wefti_cuda_ep_dispatch_prepare(route, fresh, in, out, WEFTI_CUDA_EP_DISPATCH_HALVES, args,
                                            &device->sent_work, stream));
    WEFT_TRY(wefti_cuda_ep_launch_destinations(route, args, stream, call));
    return launch_dispatch(route, WEFTI_CUDA_EP_SEND, 0, stream, call);
}

weft_status wefti_cuda_ep_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_send";
    const int before = wefti_cuda_ep_begin_choices(route, fresh);
    return wefti_cuda_ep_chosen(route, fresh, before, send_dispatch(route, fresh, in, out, stream, call));
}

weft_status wefti_cuda_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream)
{
    return launch_dispatch(route, WEFTI_CUDA_EP_RECV, 0, stream, "weft_ep_dispatch_recv");
}

static weft_status launch_combine(const weft_ep_route *route, wefti_cuda_ep_phase phase, int leaves,
                                  weft_stream *stream, const char *call)
{
    wefti_cuda_ep_eager_combine_args args = {.call = route->device->sent.combine, .eager = route->ep->device->eager};
    const wefti_cuda_ep_launch_plan plan =
        wefti_cuda_ep_combine_plan(route, route->device->sent_work, phase, leaves, &args.call);
    WEFT_TRY(wefti_cuda_ep_launch(route, &plan, &args, stream, call));
    return phase == WEFTI_CUDA_EP_SEND && plan.is_eager && !leaves ? launch_combine(route, phase, 1, stream, call)
                                                                   : WEFT_OK;
}

weft_status wefti_cuda_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                       const wefti_ep_combining *combining, weft_stream *stream)
{
    wefti_ep_device_route *device = route->device;
    static const char call[] = "weft_ep_combine_send";
    wefti_cuda_ep_combine_args *args = &device->sent.combine;
    WEFT_TRY(wefti_cuda_ep_combine_prepare(route, in, out, combining, WEFTI_CUDA_EP_COMBINE_HALVES, args,
                                           &device->sent_work, stream));
    WEFT_TRY(wefti_cuda_ep_launch_order(route, device->sent_work, args, stream, call));
    return launch_combine(route, WEFTI_CUDA_EP_SEND, 0, stream, call);
}

weft_status wefti_cuda_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    return launch_combine(route, WEFTI_CUDA_EP_RECV, 0, stream, "weft_ep_combine_recv");
}
