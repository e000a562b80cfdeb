/* cuda/ep/halves.c: send launches the whole call, which its stream completes. */
#include "cuda/ep/calls.h"

static weft_status check_recv(const weft_ep_route *route, const weft_stream *stream, const char *call)
{
    if (route->device->sent_on != stream) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: on GPUs recv is given the stream of its send", call);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_dispatch_send(weft_ep_route *route, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream)
{
    route->device->sent_on = stream;
    return wefti_cuda_ep_dispatch(route, fresh, in, out, stream);
}

weft_status wefti_cuda_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream)
{
    return check_recv(route, stream, "weft_ep_dispatch_recv");
}

weft_status wefti_cuda_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                       unsigned flags, weft_stream *stream)
{
    route->device->sent_on = stream;
    return wefti_cuda_ep_combine(route, in, out, flags, stream);
}

weft_status wefti_cuda_ep_combine_recv(weft_ep_route *route, weft_stream *stream)
{
    return check_recv(route, stream, "weft_ep_combine_recv");
}
