/* cuda/ep/host/statistics.c: what WEFT_EP_STATISTICS keeps, in device memory, and the kernel after each call that adds
 * to it (routing/after.cu). Words lie as those of weft_ep.stats, behind the group's areas, and behind them what threads
 * of the running call of each bank have waited. */
#include "cuda/ep/host/calls.h"

uint64_t wefti_cuda_ep_stats_words(const weft_ep *ep)
{
    const uint64_t ranks = (uint64_t)ep->ranks;
    const uint64_t banks = (uint64_t)wefti_ep_banks(ep);
    return (ep->config.flags & WEFT_EP_STATISTICS) != 0 ? (uint64_t)ep->owners.local_max + (2 + banks) * ranks + 2 : 0;
}

weft_status wefti_cuda_ep_stats_clear(const weft_ep *ep)
{
    return wefti_cuda_clear(&ep->device->cuda->base, (void *)(uintptr_t)ep->device->stats,
                            wefti_cuda_ep_stats_words(ep) * sizeof(uint64_t));
}

weft_status wefti_cuda_ep_stats_open(weft_ep *ep)
{
    wefti_ep_device *device = ep->device;
    device->stats = wefti_cuda_ep_own_area(ep, 0) + (uint64_t)wefti_ep_banks(ep) * device->group[0].at.bytes;
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        const uint64_t before = wefti_ep_stats_words(ep) + (uint64_t)bank * (uint64_t)ep->ranks;
        const uint64_t waits = device->stats + before * sizeof(uint64_t);
        wefti_cuda_ep_control *control =
            (void *)(uintptr_t)(wefti_cuda_ep_own_area(ep, bank) + device->group[bank].at.control);
        WEFT_TRY(wefti_cuda_copy(&device->cuda->base, &control->waits, &waits, sizeof waits));
    }
    return wefti_cuda_ep_stats_clear(ep);
}

weft_status wefti_cuda_ep_stats_fetch(const weft_ep *ep)
{
    return wefti_cuda_copy(&ep->device->cuda->base, ep->stats, (void *)(uintptr_t)ep->device->stats,
                           wefti_ep_stats_words(ep) * sizeof(uint64_t));
}

weft_status wefti_cuda_ep_launch_statistics(const weft_ep_route *route, wefti_cuda_ep_counted counted,
                                            weft_stream *stream, const char *call)
{
    const weft_ep *ep = route->ep;
    wefti_cuda *cuda = ep->device->cuda;
    const wefti_cuda_ep_tables *tables = &route->device->tables;
    const int experts = wefti_ep_local_experts(ep);
    wefti_u64 *words = (void *)(uintptr_t)ep->device->stats;
    wefti_cuda_ep_stats_args args = {
        .control = (void *)(uintptr_t)(wefti_cuda_ep_own_area(ep, ep->bank) + ep->device->group[0].at.control),
        .mismatch = (wefti_u64 *)&wefti_cuda_ep_host_words(ep, ep->bank)[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH],
        .route_header = tables->route_header,
        .rows_of_expert = wefti_ep_plan_is_by_rank(&route->plan) ? NULL : tables->rows_of_expert,
        .rows = words,
        .dispatch_waits = words + experts,
        .combine_waits = words + experts + ep->ranks,
        .calls = words + experts + 2 * ep->ranks,
        .experts = experts,
        .ranks = ep->ranks,
        .counted = counted,
    };
    void *arguments[] = {&args};
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuLaunchKernel(ep->device->statistics, 1, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1, 0,
                                                  (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}
