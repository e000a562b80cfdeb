/* cuda/ep/host/halves.c: a launch for send, where its rows leave with it one more for these, and one for recv; nothing
 * of the call runs between send and recv. */
#include "cuda/ep/host/calls.h"

/* A launch of the dispatch or combine that is under way on a route, with the plan that it has. */
static weft_status launch_phase(const weft_ep_route *route, wefti_cuda_ep_phase phase, weft_stream *stream,
                                const char *call, wefti_cuda_ep_launch_plan *plan)
{
    const wefti_cuda_ep_sent *sent = wefti_cuda_ep_sent_of(route);
    const wefti_cuda_ep_work work = sent->work;
    const wefti_cuda_ep_eager *eager = &route->ep->device->eager;
    union {
        wefti_cuda_ep_eager_dispatch_args dispatch;
        wefti_cuda_ep_eager_combine_args combine;
    } args;
    if (work < WEFTI_CUDA_EP_WORK_COMBINE) {
        args.dispatch = (wefti_cuda_ep_eager_dispatch_args){
            .call = sent->args.dispatch, .eager = *eager, .is_by_expert = (wefti_i32)wefti_cuda_ep_is_by_expert(route)};
        *plan = wefti_cuda_ep_dispatch_plan(route, work, phase, &args.dispatch.call);
    } else {
        args.combine = (wefti_cuda_ep_eager_combine_args){.call = sent->args.combine, .eager = *eager};
        *plan = wefti_cuda_ep_combine_plan(route, work, phase, &args.combine.call);
    }
    return wefti_cuda_ep_launch(route, plan, &args, stream, call);
}

static weft_status launch_send(const weft_ep_route *route, weft_stream *stream, const char *call)
{
    wefti_cuda_ep_launch_plan plan;
    WEFT_TRY(launch_phase(route, WEFTI_CUDA_EP_SEND, stream, call, &plan));
    return plan.is_eager ? launch_phase(route, WEFTI_CUDA_EP_ROWS, stream, call, &plan) : WEFT_OK;
}

static weft_status launch_recv(const weft_ep_route *route, weft_stream *stream, const char *call)
{
    wefti_cuda_ep_launch_plan plan;
    return launch_phase(route, WEFTI_CUDA_EP_RECV, stream, call, &plan);
}

static weft_status send_dispatch(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                 const weft_ep_received *out, weft_stream *stream, const char *call)
{
    wefti_cuda_ep_sent *sent = wefti_cuda_ep_sent_of(route);
    wefti_cuda_ep_dispatch_args *args = &sent->args.dispatch;
    WEFT_TRY(wefti_cuda_ep_dispatch_prepare(route, fresh, in, out, WEFTI_CUDA_EP_DISPATCH_HALVES, args, &sent->work,
                                            stream));
    WEFT_TRY(wefti_cuda_ep_launch_destinations(route, args, stream, call));
    return launch_send(route, stream, call);
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
    return launch_recv(route, stream, "weft_ep_dispatch_recv");
}

weft_status wefti_cuda_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                       const wefti_ep_combining *combining, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_send";
    wefti_cuda_ep_sent *sent = wefti_cuda_ep_sent_of(route);
    wefti_cuda_ep_combine_args *args = &sent->args.combine;
    WEFT_TRY(wefti_cuda_ep_combine_prepare(route, in, out, combining, WEFTI_CUDA_EP_COMBINE_HALVES, args, &sent->work,
                                           stream));
    WEFT_TRY(wefti_cuda_ep_launch_order(route, sent->work, args, stream, call));
    return launch_send(route, stream, call);
}

weft_status wefti_cuda_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    return launch_recv(route, stream, "weft_ep_combine_recv");
}
