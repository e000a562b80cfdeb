/* cuda/ep/combine.c: the calls that add up rows at their sources: from the caller's arguments to a launch. */
#include "base/error.h"
#include "cuda/ep/calls.h"
#include "ep/check.h"

static wefti_cuda_ep_combine_args combine_args(const weft_ep_route *route, wefti_cuda_ep_work work,
                                               const weft_ep_rows *in, const weft_ep_rows *out)
{
    return (wefti_cuda_ep_combine_args){
        .group = route->ep->device->group,
        .tables = route->device->tables,
        .blocks = wefti_cuda_ep_divide(route, work, wefti_cuda_ep_row_bytes(in)),
        .in = in->data,
        .in_pitch = wefti_cuda_ep_pitch(in),
        .out = out->data,
        .out_pitch = wefti_cuda_ep_pitch(out),
        .place = wefti_cuda_ep_area_rows(route->ep),
        .row_bytes = (wefti_u32)wefti_cuda_ep_row_bytes(in),
        .dtype = in->dtype,
        .topk = route->plan.topk,
    };
}

static uint64_t signature_of(const wefti_cuda_ep_combine_args *args, const weft_ep_route *route,
                             wefti_cuda_ep_call call, const weft_ep_rows *in)
{
    return wefti_cuda_ep_signature(call, args->flags | wefti_cuda_ep_layout_flags(route), (unsigned)in->dtype,
                                   (unsigned)in->hidden, (unsigned)args->topk);
}

/* What kernels do not do yet. */
static weft_status refuse(const wefti_ep_combining *combining)
{
    const char *field = combining->weights != NULL     ? "weights"
                        : combining->ids != NULL       ? "ids"
                        : combining->biases > 0        ? "bias"
                        : combining->values_in != NULL ? "values_in"
                                                       : NULL;
    return field == NULL ? WEFT_OK
                         : wefti_error(WEFT_ERR_UNSUPPORTED,
                                       "weft_ep_combine_with: options.%s is not there on GPUs; give NULL", field);
}

weft_status wefti_cuda_ep_combine_prepare(const weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const wefti_ep_combining *combining, wefti_cuda_ep_call call,
                                          wefti_cuda_ep_combine_args *args)
{
    WEFT_TRY(refuse(combining));
    WEFT_TRY(wefti_ep_rows_held(out, route->device->tokens_least, "weft_ep_combine", "out"));
    WEFT_TRY(wefti_cuda_ep_host_status(route->ep, "weft_ep_combine"));
    *args = combine_args(route, WEFTI_CUDA_EP_WORK_COMBINE, in, out);
    args->flags = (combining->flags & WEFT_EP_WEIGHTED) != 0 ? WEFTI_CUDA_EP_WEIGHTED : 0;
    args->signature = signature_of(args, route, call, in);
    return WEFT_OK;
}

weft_status wefti_cuda_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                  const wefti_ep_combining *combining, weft_stream *stream)
{
    wefti_cuda_ep_combine_args args;
    WEFT_TRY(wefti_cuda_ep_combine_prepare(route, in, out, combining, WEFTI_CUDA_EP_COMBINE, &args));
    args.low_latency_slots = wefti_cuda_ep_low_latency_slots(route, WEFTI_CUDA_EP_WHOLE);
    const wefti_cuda_ep_kernel kernel = {.work = WEFTI_CUDA_EP_WORK_COMBINE,
                                         .is_low_latency = args.low_latency_slots != 0};
    if (kernel.is_low_latency) {
        args.blocks = wefti_cuda_ep_low_latency_blocks();
    }
    return wefti_cuda_ep_launch(route, kernel, &args.blocks, &args, stream, "weft_ep_combine");
}

/* A combine without weights, in which a row that choices share is added once. */
weft_status wefti_cuda_ep_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                       const float *grad_weights_received, const weft_ep_rows *grad_in,
                                       float *grad_weights, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_bwd";
    wefti_cuda_ep_work work = grad_weights != NULL ? WEFTI_CUDA_EP_WORK_DISPATCH_BWD : WEFTI_CUDA_EP_WORK_COMBINE;
    WEFT_TRY(wefti_ep_rows_held(grad_in, route->device->tokens_least, call, "grad_in"));
    WEFT_TRY(wefti_cuda_ep_host_status(route->ep, call));
    wefti_cuda_ep_combine_args args = combine_args(route, work, grad_received, grad_in);
    args.flags = route->plan.layout == WEFT_EP_SLOTS_EXPERT ? WEFTI_CUDA_EP_ONCE : 0;
    if (grad_weights != NULL) {
        args.flags |= WEFTI_CUDA_EP_VALUES;
        args.backward.given = grad_weights_received;
        args.backward.grad_weights = grad_weights;
    }
    args.signature = signature_of(&args, route, WEFTI_CUDA_EP_DISPATCH_BWD, grad_received);
    return wefti_cuda_ep_launch(route, (wefti_cuda_ep_kernel){.work = work}, &args.blocks, &args, stream, call);
}
