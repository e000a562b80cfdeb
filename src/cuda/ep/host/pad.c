/* cuda/ep/host/pad.c: weft_ep_route_pad: a kernel after the call, on its stream. */
#include "cuda/ep/pad.h"
#include "cuda/ep/host/domains.h"
#include "ep/check.h"

/* In groups of several domains, too: the group inside has the kernel. */
weft_status wefti_cuda_ep_pad(const weft_ep_route *route, const weft_ep_received *out, uint64_t *mark,
                              weft_stream *stream)
{
    const weft_ep *ep = route->ep;
    const wefti_ep_device *device = ep->between != NULL ? ep->between->inner->device : ep->device;
    const wefti_cuda_driver *driver = &device->cuda->driver;
    const unsigned wanted =
        (unsigned)((out->rows_capacity + WEFTI_CUDA_EP_THREADS / 32 - 1) / (WEFTI_CUDA_EP_THREADS / 32));
    weft_ep_counts counts;
    WEFT_TRY(ep->backend->counts(route, &counts));
    wefti_cuda_ep_pad_args args = {
        .rows = counts.rows,
        .status = counts.status,
        .mark = (wefti_u64 *)mark,
        .out = out->rows.data,
        .pitch = wefti_cuda_ep_pitch(&out->rows),
        .row_bytes = (wefti_u32)wefti_cuda_ep_row_bytes(&out->rows),
        .capacity = (wefti_u32)out->rows_capacity,
        .scales = wefti_cuda_ep_scales_of(&out->rows),
        .scale_words = (wefti_u32)wefti_ep_scale_words(&out->rows),
        .places = wefti_ep_plan_is_by_source(&route->plan) ? (wefti_u32)route->plan.topk : 1,
        .arrays = {.weights = out->weights,
                   .experts = out->experts,
                   .source_rank = out->source_rank,
                   .source_token = out->source_token,
                   .wide_experts = out->expert_type == WEFT_EP_INT64},
    };
    void *arguments[] = {&args};
    const unsigned blocks = wanted == 0 ? 1 : wanted < WEFTI_CUDA_EP_PAD_BLOCKS ? wanted : WEFTI_CUDA_EP_PAD_BLOCKS;
    WEFT_TRY(wefti_cuda_enter(device->cuda));
    CUresult result = driver->cuLaunchKernel(device->pad, blocks, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1, 0,
                                             (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(device->cuda);
    return wefti_cuda_check(driver, result, "weft_ep_route_pad");
}
