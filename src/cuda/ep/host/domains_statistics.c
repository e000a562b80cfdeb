/* cuda/ep/host/domains_statistics.c: what WEFT_EP_STATISTICS keeps in groups of several domains. It is kept and added
 * up as in one domain (statistics.c), of n waits: those for the S ranks of the own domain, which kernels of the group
 * inside note, by their place there, then those for all R, which crossings note (domains/crossing.cuh). */
#include "cuda/ep/host/domains.h"

static uint64_t waits_of(const weft_ep *ep)
{
    return (uint64_t)(wefti_ep_domains_size(&ep->domains, ep->domains.of[ep->rank]) + ep->ranks);
}

uint64_t wefti_ep_between_stats_words(const weft_ep *ep)
{
    return (ep->config.flags & WEFT_EP_STATISTICS) != 0
               ? (uint64_t)ep->owners.local_max + 3 * waits_of(ep) + 2 /* the running call's behind the numbers */
               : 0;
}

/* Sums of waits of dispatches, then of combines, the numbers of both, then waits of the running call. */
static wefti_u64 *waits_at(const weft_ep *ep)
{
    return ep->between->group.stats + wefti_ep_local_experts(ep);
}

static wefti_u64 *running_waits_at(const weft_ep *ep)
{
    return waits_at(ep) + 2 * waits_of(ep) + 2;
}

weft_status wefti_ep_between_stats_clear(const weft_ep *ep)
{
    return wefti_cuda_clear(&ep->between->cuda->base, ep->between->group.stats,
                            wefti_ep_between_stats_words(ep) * sizeof(uint64_t));
}

weft_status wefti_ep_between_stats_open(weft_ep *ep)
{
    wefti_ep_between *between = ep->between;
    const weft_ep *inner = between->inner;
    wefti_cuda_ep_control *control =
        (void *)(uintptr_t)(wefti_cuda_ep_own_area(inner, 0) + inner->device->group[0].at.control);
    const uint64_t waits = (uintptr_t)running_waits_at(ep);
    if (ep->stats == NULL) {
        return WEFT_OK;
    }
    between->group.waits = running_waits_at(ep) + inner->ranks;
    WEFT_TRY(wefti_cuda_copy(&between->cuda->base, &control->waits, &waits, sizeof waits));
    return wefti_ep_between_stats_clear(ep);
}

weft_status wefti_ep_between_stats_fetch(const weft_ep *ep)
{
    wefti_device *device = &ep->between->cuda->base;
    const wefti_ep_domains *domains = &ep->domains;
    const int own = domains->of[ep->rank];
    const int size = wefti_ep_domains_size(domains, own);
    for (int of = 0; of < 2; of++) {
        const wefti_u64 *from = waits_at(ep) + (uint64_t)of * waits_of(ep);
        uint64_t *to = wefti_ep_stats_waits(ep, of);
        uint64_t inside[WEFTI_CUDA_EP_MANY_MAX];
        WEFT_TRY(wefti_cuda_copy(device, inside, from, (size_t)size * sizeof *inside));
        WEFT_TRY(wefti_cuda_copy(device, to, from + size, (size_t)ep->ranks * sizeof *to));
        for (int i = 0; i < size; i++) {
            to[domains->members[domains->first[own] + i]] += inside[i]; /* beside calls that go directly */
        }
    }
    WEFT_TRY(wefti_cuda_copy(device, ep->stats, ep->between->group.stats,
                             (size_t)wefti_ep_local_experts(ep) * sizeof *ep->stats));
    return wefti_cuda_copy(device, wefti_ep_stats_calls(ep, 0), waits_at(ep) + 2 * waits_of(ep), 2 * sizeof(uint64_t));
}

weft_status wefti_ep_between_count(const weft_ep_route *route, wefti_cuda_ep_counted counted, weft_stream *stream,
                                   const char *call)
{
    const weft_ep *ep = route->ep;
    if (ep->stats == NULL) {
        return WEFT_OK;
    }
    wefti_cuda *cuda = ep->between->cuda;
    const weft_ep *inner = ep->between->inner;
    wefti_u64 *waits = waits_at(ep);
    wefti_cuda_ep_stats_args args = {
        .control = (void *)(uintptr_t)(wefti_cuda_ep_own_area(inner, 0) + inner->device->group[0].at.control),
        .mismatch = (wefti_u64 *)&wefti_cuda_ep_host_words(inner, 0)[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH],
        .route_header = route->between->tables.route_header,
        .rows_of_expert = route->between->tables.rows_of_expert,
        .rows = ep->between->group.stats,
        .dispatch_waits = waits,
        .combine_waits = waits + waits_of(ep),
        .calls = waits + 2 * waits_of(ep),
        .experts = wefti_ep_local_experts(ep),
        .ranks = (int)waits_of(ep),
        .counted = counted,
    };
    void *arguments[] = {&args};
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result =
        cuda->driver.cuLaunchKernel(ep->between->kernel[WEFTI_EP_BETWEEN_STATISTICS], 1, 1, 1, WEFTI_CUDA_EP_THREADS, 1,
                                    1, 0, (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}
