/* cuda/ep/host/domains_status.c: what kernels of a group of several domains have found out. */
#include <stdio.h>

#include "cuda/ep/host/describe.h"
#include "cuda/ep/host/domains.h"
#include "ep/check.h"

uint64_t wefti_ep_between_failed(const weft_ep *ep)
{
    const uint64_t *told = (const uint64_t *)ep->between->group.host_status;
    const uint64_t failed = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
    return failed != 0 ? failed : wefti_cuda_ep_failed_word(ep->between->inner);
}

/* The ranks that were waited for, between domains and inside. */
static int is_missing(const weft_ep *ep, int rank)
{
    const uint64_t *told = (const uint64_t *)ep->between->group.host_status;
    const weft_ep *inner = ep->between->inner;
    const int is_inside = ep->domains.of[rank] == ep->domains.of[ep->rank];
    return (told[WEFTI_CUDA_EP_HOST_STATUS_MISSING + rank / 64] >> rank % 64 & 1) != 0 ||
           (is_inside && wefti_cuda_ep_is_missing(inner, ep->domains.slot[rank]));
}

weft_status wefti_ep_between_status(weft_ep *ep, const char *call)
{
    char ranks[128] = "";
    size_t at = 0;
    const uint64_t failed = wefti_ep_between_failed(ep);
    if (failed == 0) {
        return WEFT_OK;
    }
    ep->dead = (weft_status) - (int)(uint32_t)failed;
    wefti_ep_close_halves(ep);
    if (ep->dead == WEFT_ERR_OVERFLOW) {
        return wefti_error(ep->dead,
                           "%s: in a call of the group more rows came than `out` of the dispatch holds, which ends a "
                           "group of several domains; give rows_capacity of the worst case",
                           call);
    }
    for (int rank = 0; rank < ep->ranks; rank++) {
        if (is_missing(ep, rank)) {
            ep->late[rank] = 1;
            at += at + 8 < sizeof ranks ? (size_t)snprintf(ranks + at, sizeof ranks - at, " %d", rank) : 0;
        }
    }
    return wefti_error(ep->dead, "%s: a call of the group failed on the GPU%s%s", call,
                       at > 0                          ? "; it waited in vain for rank"
                       : ep->dead == WEFT_ERR_MISMATCH ? ": ranks of other domains made another; " WEFTI_EP_SAME_CALLS
                                                       : wefti_cuda_ep_describe_nobody(ep),
                       ranks);
}
