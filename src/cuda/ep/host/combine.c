/* cuda/ep/host/combine.c: the calls that add up rows at their sources: from the caller's arguments to a launch. */
#include "base/error.h"
#include "cuda/ep/host/calls.h"
#include "ep/check.h"

static wefti_cuda_ep_combine_args combine_args(const weft_ep_route *route, const weft_ep_rows *in,
                                               const weft_ep_rows *out)
{
    return (wefti_cuda_ep_combine_args){
        .group = *wefti_cuda_ep_group_of(route->ep),
        .tables = wefti_cuda_ep_tables_of(route),
        .in = in->data,
        .in_pitch = wefti_cuda_ep_pitch(in),
        .out = out->data,
        .out_pitch = wefti_cuda_ep_pitch(out),
        .place = wefti_cuda_ep_area_rows(route->ep),
        .row_bytes = (wefti_u32)wefti_cuda_ep_row_bytes(in),
        .dtype = in->dtype,
        .topk = route->plan.topk,
        .options.out_dtype = out->dtype,
    };
}

static uint64_t signature_of(const wefti_cuda_ep_combine_args *args, const weft_ep_route *route,
                             wefti_cuda_ep_call call, const weft_ep_rows *in)
{
    return wefti_cuda_ep_signature(call, args->flags | wefti_cuda_ep_layout_flags(route), (unsigned)in->dtype,
                                   (unsigned)in->hidden, (unsigned)args->topk);
}

/* Whether it is one for the kernels that have options. */
static wefti_cuda_ep_work work_of(const weft_ep_route *route, const wefti_ep_combining *combining,
                                  const weft_ep_rows *in, const weft_ep_rows *out)
{
    int has_options = wefti_ep_combining_has_choices(combining) || combining->biases > 0 ||
                      combining->values_in != NULL || out->dtype != in->dtype;
    return has_options || route->plan.order == WEFT_EP_ORDER_CHOICE ? WEFTI_CUDA_EP_WORK_COMBINE_WITH
                                                                    : WEFTI_CUDA_EP_WORK_COMBINE;
}

/* What all ranks have alike; biases they may not. */
static unsigned flags_of(const weft_ep_route *route, const wefti_ep_combining *combining)
{
    unsigned flags = (combining->flags & WEFT_EP_WEIGHTED) != 0 ? WEFTI_CUDA_EP_WEIGHTED : 0;
    flags |= combining->weights != NULL ? WEFTI_CUDA_EP_COMBINE_WEIGHTS : 0;
    flags |= combining->ids != NULL ? WEFTI_CUDA_EP_COMBINE_IDS : 0;
    flags |= combining->values_in != NULL ? WEFTI_CUDA_EP_VALUES : 0;
    return flags | (route->plan.order == WEFT_EP_ORDER_CHOICE ? WEFTI_CUDA_EP_BY_CHOICE : 0);
}

static weft_status check_biases(const weft_ep_route *route, const wefti_ep_combining *combining, const char *call)
{
    for (int i = 0; i < combining->biases; i++) {
        WEFT_TRY(wefti_ep_rows_held(&combining->bias[i], route->device->tokens_least, call, "options.bias"));
    }
    return WEFT_OK;
}

static void add_options(wefti_cuda_ep_combine_args *args, const wefti_ep_combining *combining)
{
    args->options.weights = combining->weights;
    args->options.ids = combining->ids;
    args->options.values_in = combining->values_in;
    args->options.values_out = combining->values_out;
    args->options.wide = combining->ids_are_wide;
    for (int i = 0; i < combining->biases; i++) {
        const weft_ep_rows *bias = &combining->bias[i];
        args->options.bias[i] = bias->data;
        args->options.bias_pitch[i] = wefti_cuda_ep_pitch(bias);
    }
}

/* Whether rows may leave before their receivers' call headers are here. By expert a half that sends waits for nobody,
 * so that it cannot have the others' own choices; and values travel as rows that are packed do. */
static int may_leave(unsigned flags, const weft_ep_route *route, wefti_cuda_ep_phase phase)
{
    const int has_choices = (flags & (WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS)) != 0;
    const int needs_choices = has_choices && wefti_cuda_ep_is_by_expert(route) && phase != WEFTI_CUDA_EP_FUSED;
    return !needs_choices && (flags & WEFTI_CUDA_EP_VALUES) == 0;
}

static const char staging[] = "rows come back to memory of the group to be added up";

weft_status wefti_cuda_ep_combine_prepare(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const wefti_ep_combining *combining, wefti_cuda_ep_call call,
                                          wefti_cuda_ep_combine_args *args, wefti_cuda_ep_work *work,
                                          weft_stream *stream)
{
    static const char name[] = "weft_ep_combine";
    const wefti_cuda_ep_phase phase = call == WEFTI_CUDA_EP_COMBINE_HALVES ? WEFTI_CUDA_EP_SEND : WEFTI_CUDA_EP_FUSED;
    const unsigned flags = flags_of(route, combining);
    WEFT_TRY(wefti_ep_rows_held(out, route->device->tokens_least, name, "out"));
    WEFT_TRY(check_biases(route, combining, name));
    *work = work_of(route, combining, in, out);
    WEFT_TRY(
        wefti_cuda_ep_begin(&(wefti_cuda_ep_beginning){.route = route,
                                                       .kernel = {.work = *work,
                                                                  .phase = phase,
                                                                  .may_be_low_latency = may_leave(flags, route, phase),
                                                                  .may_leave = may_leave(flags, route, phase)},
                                                       .staging = staging,
                                                       .kind = WEFTI_EP_COMBINE,
                                                       .flags = wefti_ep_combining_signature_flags(combining),
                                                       .in = in},
                            stream, name));
    *args = combine_args(route, in, out);
    args->flags = flags;
    args->signature = signature_of(args, route, call, in);
    add_options(args, combining);
    return WEFT_OK;
}

wefti_cuda_ep_launch_plan wefti_cuda_ep_combine_plan(const weft_ep_route *route, wefti_cuda_ep_work work,
                                                     wefti_cuda_ep_phase phase, wefti_cuda_ep_combine_args *args)
{
    const wefti_cuda_ep_kernel kernel = {.work = work,
                                         .phase = phase,
                                         .row_bytes = phase != WEFTI_CUDA_EP_SEND ? args->row_bytes : 0,
                                         .may_be_low_latency = may_leave(args->flags, route, phase),
                                         .may_leave = may_leave(args->flags, route, phase),
                                         .counted = WEFTI_CUDA_EP_COUNTED_COMBINE};
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_plan_launch(route, kernel);
    wefti_cuda_ep_combine_take_plan(args, &plan);
    return plan;
}

weft_status wefti_cuda_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                  const wefti_ep_combining *combining, weft_stream *stream)
{
    static const char call[] = "weft_ep_combine";
    wefti_cuda_ep_combine_args args;
    wefti_cuda_ep_work work;
    WEFT_TRY(wefti_cuda_ep_combine_prepare(route, in, out, combining, WEFTI_CUDA_EP_COMBINE, &args, &work, stream));
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_combine_plan(route, work, WEFTI_CUDA_EP_FUSED, &args);
    WEFT_TRY(wefti_cuda_ep_launch_order(route, work, &args, stream, call));
    return wefti_cuda_ep_launch(route, &plan, &args, stream, call);
}

static wefti_cuda_ep_work work_of_backward(const weft_ep_route *route, int has_weights)
{
    if (route->plan.order == WEFT_EP_ORDER_CHOICE) {
        return WEFTI_CUDA_EP_WORK_COMBINE_WITH;
    }
    if (!has_weights) {
        return WEFTI_CUDA_EP_WORK_COMBINE;
    }
    return wefti_cuda_ep_is_by_expert(route) && !route->ep->device->kind->all_in_one ? WEFTI_CUDA_EP_WORK_DISPATCH_BWD
                                                                                     : WEFTI_CUDA_EP_WORK_COMBINE_WITH;
}

/* A combine without weights, in which a row that choices share is added once. */
weft_status wefti_cuda_ep_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                       const float *grad_weights_received, const weft_ep_rows *grad_in,
                                       float *grad_weights, weft_stream *stream)
{
    static const char call[] = "weft_ep_dispatch_bwd";
    const int by_choice = route->plan.order == WEFT_EP_ORDER_CHOICE;
    const wefti_cuda_ep_work work = work_of_backward(route, grad_weights != NULL);
    WEFT_TRY(wefti_ep_rows_held(grad_in, route->device->tokens_least, call, "grad_in"));
    WEFT_TRY(wefti_cuda_ep_begin(&(wefti_cuda_ep_beginning){.route = route,
                                                            .kernel = {.work = work},
                                                            .staging = staging,
                                                            .kind = WEFTI_EP_DISPATCH_BWD,
                                                            .flags = grad_weights != NULL ? WEFTI_EP_VALUES : 0,
                                                            .in = grad_in},
                                 stream, call));
    wefti_cuda_ep_combine_args args = combine_args(route, grad_received, grad_in);
    args.flags = route->plan.layout == WEFT_EP_SLOTS_EXPERT ? WEFTI_CUDA_EP_ONCE : 0;
    args.flags |= grad_weights != NULL ? WEFTI_CUDA_EP_VALUES : 0;
    args.flags |= by_choice ? WEFTI_CUDA_EP_BY_CHOICE : 0;
    if (work == WEFTI_CUDA_EP_WORK_DISPATCH_BWD) {
        args.backward.given = grad_weights_received;
        args.backward.grad_weights = grad_weights;
    } else {
        args.options.values_in = grad_weights_received;
        args.options.values_out = grad_weights;
        args.options.of_owners = 1;
        args.options.by_rank = !by_choice;
    }
    args.signature = signature_of(&args, route, WEFTI_CUDA_EP_DISPATCH_BWD, grad_received);
    const wefti_cuda_ep_launch_plan plan =
        wefti_cuda_ep_plan_launch(route, (wefti_cuda_ep_kernel){.work = work, .row_bytes = args.row_bytes});
    WEFT_TRY(by_choice ? wefti_cuda_ep_launch_order(route, work, &args, stream, call) : WEFT_OK);
    wefti_cuda_ep_combine_take_plan(&args, &plan);
    return wefti_cuda_ep_launch(route, &plan, &args, stream, call);
}
