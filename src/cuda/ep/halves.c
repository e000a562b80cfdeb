/* cuda/ep/halves.c: a launch for send and one for recv; nothing of the call runs between them. */
#include "cuda/ep/calls.h"

/* Tokens of a source, where its rows leave with send; 0: they leave with recv. */
static wefti_u32 early_slots(const weft_ep_route *route)
{
    int has_slots = wefti_ep_plan_is_slots(&route->plan) && route->ep->device->group.at.early[0].bytes != 0;
    return has_slots ? (wefti_u32)route->plan.slot_tokens : 0;
}

/* How the blocks of a half are divided that moves rows, or does not. */
static wefti_cuda_ep_blocks divide(const weft_ep_route *route, int moves, const wefti_cuda_ep_blocks *whole)
{
    return moves ? *whole : wefti_cuda_ep_divide(route, route->device->sent_work, 0);
}

static weft_status check_recv(const weft_ep_route *route, const weft_stream *stream, const char *call)
{
    if (route->device->sent_on != stream) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: on GPUs recv is given the stream of its send", call);
    }
    return WEFT_OK;
}

static weft_status launch_dispatch(const weft_ep_route *route, wefti_cuda_ep_part part, weft_stream *stream,
                                   const char *call)
{
    wefti_cuda_ep_dispatch_args args = route->device->sent.dispatch;
    int is_early = args.early_slots != 0;
    args.blocks = divide(route, is_early == (part == WEFTI_CUDA_EP_SEND), &args.blocks);
    args.experts.starts_at = wefti_cuda_ep_pipes_bytes(&args.blocks);
    const wefti_cuda_ep_kernel kernel = {.work = route->device->sent_work, .part = part};
    return wefti_cuda_ep_launch(route, kernel, &args.blocks, &args, stream, call);
}

weft_status wefti_cuda_ep_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream)
{
    wefti_ep_device_route *device = route->device;
    wefti_cuda_ep_dispatch_args *args = &device->sent.dispatch;
    WEFT_TRY(
        wefti_cuda_ep_dispatch_prepare(route, fresh, in, out, WEFTI_CUDA_EP_DISPATCH_HALVES, args, &device->sent_work));
    args->early_slots = early_slots(route);
    if (args->early_slots != 0) {
        args->flags |= WEFTI_CUDA_EP_LAND;
        args->kept_source = -1;
    }
    device->sent_on = stream;
    return launch_dispatch(route, WEFTI_CUDA_EP_SEND, stream, "weft_ep_dispatch_send");
}

weft_status wefti_cuda_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_recv";
    WEFT_TRY(check_recv(route, stream, call));
    return launch_dispatch(route, WEFTI_CUDA_EP_RECV, stream, call);
}

static weft_status launch_combine(const weft_ep_route *route, wefti_cuda_ep_part part, weft_stream *stream,
                                  const char *call)
{
    wefti_cuda_ep_combine_args args = route->device->sent.combine;
    int is_early = args.early_slots != 0;
    args.blocks = divide(route, is_early == (part == WEFTI_CUDA_EP_SEND), &args.blocks);
    const wefti_cuda_ep_kernel kernel = {.work = route->device->sent_work, .part = part};
    return wefti_cuda_ep_launch(route, kernel, &args.blocks, &args, stream, call);
}

weft_status wefti_cuda_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                       unsigned flags, weft_stream *stream)
{
    wefti_ep_device_route *device = route->device;
    WEFT_TRY(wefti_cuda_ep_combine_prepare(route, in, out, flags, WEFTI_CUDA_EP_COMBINE_HALVES, &device->sent.combine));
    device->sent.combine.early_slots = early_slots(route);
    device->sent_work = WEFTI_CUDA_EP_WORK_COMBINE;
    device->sent_on = stream;
    return launch_combine(route, WEFTI_CUDA_EP_SEND, stream, "weft_ep_combine_send");
}

weft_status wefti_cuda_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine_recv";
    WEFT_TRY(check_recv(route, stream, call));
    return launch_combine(route, WEFTI_CUDA_EP_RECV, stream, call);
}
