/* cuda/ep/host/launch.c: the launch of a kernel by its plan. Nothing here waits or allocates. */
#include "common/timeline.h"
#include "cuda/ep/host/calls.h"

/* A recv on another stream than its send comes after all that the send's stream has by then. */
static weft_status order_streams(const weft_ep_route *route, const weft_stream *stream, wefti_cuda_ep_phase phase,
                                 const char *call)
{
    const weft_ep *ep = route->ep;
    if (!wefti_cuda_ep_is_apart(route, stream, phase)) {
        return WEFT_OK;
    }
    const wefti_cuda *cuda = ep->device->cuda;
    WEFT_TRY(wefti_cuda_enter(cuda));
    const CUevent sent = ep->device->sent[ep->bank];
    CUresult result = cuda->driver.cuEventRecord(sent, (CUstream)(void *)(uintptr_t)ep->half_stream[ep->bank]);
    result =
        result == CUDA_SUCCESS ? cuda->driver.cuStreamWaitEvent((CUstream)(void *)(uintptr_t)stream, sent, 0) : result;
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}

weft_status wefti_cuda_ep_launch(const weft_ep_route *route, const wefti_cuda_ep_launch_plan *plan, const void *args,
                                 weft_stream *stream, const char *call)
{
    const weft_ep *ep = route->ep;
    WEFTI_SPAN_OF_BLOCK(ep->world, call);
    wefti_cuda *cuda = ep->device->cuda;
    const wefti_cuda_ep_kernel *kernel = &plan->kernel;
    void *arguments[] = {(void *)(uintptr_t)args};
    const int begins = kernel->phase == WEFTI_CUDA_EP_FUSED || kernel->phase == WEFTI_CUDA_EP_SEND;
    const int ends = kernel->phase == WEFTI_CUDA_EP_FUSED || kernel->phase == WEFTI_CUDA_EP_RECV;
    const int is_call = kernel->work < WEFTI_CUDA_EP_WORK_COMBINE_ORDER;
    const int by_expert = wefti_cuda_ep_is_by_expert(route) && kernel->work < WEFTI_CUDA_EP_WORK_DESTINATIONS;
    const int is_eager = plan->is_eager && kernel->phase != WEFTI_CUDA_EP_SEND; /* which is as any other */
    const wefti_cuda_ep_way way = plan->low_latency_slots != 0            ? WEFTI_CUDA_EP_WAY_LOW_LATENCY
                                  : is_eager                              ? WEFTI_CUDA_EP_WAY_EAGER
                                  : plan->is_piped                        ? WEFTI_CUDA_EP_WAY_PIPED
                                  : is_call && route->device->by_position ? WEFTI_CUDA_EP_WAY_POSITIONS
                                                                          : WEFTI_CUDA_EP_WAY_THROUGHPUT;
    CUfunction function = ep->device->kernel[way][kernel->phase][kernel->work][by_expert];
    WEFT_TRY(wefti_cuda_ep_check_plan(route, plan, stream, call));
    WEFT_TRY(order_streams(route, stream, kernel->phase, call));
    wefti_ep_device_route *of = route->device;
    WEFT_TRY(wefti_cuda_ep_clear_dirty(cuda, of->tables.route_header, &of->dirty_bytes, stream));
    WEFT_TRY(is_call && begins && wefti_cuda_ep_joins_masks(ep) ? wefti_cuda_ep_launch_masks(ep, stream, call)
                                                                : WEFT_OK);
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuLaunchKernel(function, (unsigned)plan->blocks, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1,
                                                  plan->shared_bytes, (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    WEFT_TRY(wefti_cuda_check(&cuda->driver, result, call));
    if (kernel->phase == WEFTI_CUDA_EP_SEND) {
        wefti_cuda_ep_sent_of(route)->blocks = plan->blocks;
        wefti_cuda_ep_sent_of(route)->sms = route->sms;
    }
    if (begins && is_call) {
        ++*ep->started;
    }
    WEFT_TRY(wefti_ep_grows(ep) && is_call ? wefti_cuda_ep_note_launch(ep, stream, call) : WEFT_OK);
    return ep->stats != NULL && ends && is_call ? wefti_cuda_ep_launch_statistics(route, kernel->counted, stream, call)
                                                : WEFT_OK;
}

/* A kernel that waits for nobody. */
static weft_status launch_before(const weft_ep_route *route, wefti_cuda_ep_work work, const void *args,
                                 weft_stream *stream, const char *call)
{
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_plan_launch(route, (wefti_cuda_ep_kernel){.work = work});
    return wefti_cuda_ep_launch(route, &plan, args, stream, call);
}

weft_status wefti_cuda_ep_launch_destinations(const weft_ep_route *route, const wefti_cuda_ep_dispatch_args *args,
                                              weft_stream *stream, const char *call)
{
    const wefti_cuda_ep_work work =
        route->device->by_position ? WEFTI_CUDA_EP_WORK_POSITIONS : WEFTI_CUDA_EP_WORK_DESTINATIONS;
    return (args->flags & WEFTI_CUDA_EP_FRESH) != 0 && wefti_ep_plan_is_by_rank(&route->plan)
               ? launch_before(route, work, args, stream, call)
               : WEFT_OK;
}

weft_status wefti_cuda_ep_launch_dropping(const weft_ep_route *route, const wefti_cuda_ep_drop_args *args,
                                          weft_stream *stream, const char *call)
{
    return launch_before(route, WEFTI_CUDA_EP_WORK_DROPPING, args, stream, call);
}

weft_status wefti_cuda_ep_launch_order(const weft_ep_route *route, wefti_cuda_ep_work work,
                                       const wefti_cuda_ep_combine_args *args, weft_stream *stream, const char *call)
{
    return work == WEFTI_CUDA_EP_WORK_COMBINE_WITH && !route->ep->device->kind->all_in_one
               ? launch_before(route, WEFTI_CUDA_EP_WORK_COMBINE_ORDER, args, stream, call)
               : WEFT_OK;
}
