/* cuda/ep/host/host_status.c: what kernels have told the host of a group since it looked last. */
#include <stdio.h>

#include "cuda/ep/host/describe.h"
#include "cuda/ep/host/kind.h"
#include "ep/check.h"

static weft_status report_mismatch(const weft_ep *ep, const uint64_t *told, uint64_t mismatch, const char *call)
{
    const uint64_t routes = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_ROUTES], __ATOMIC_RELAXED);
    char own[WEFTI_CUDA_EP_CALL_BYTES];
    char theirs[WEFTI_CUDA_EP_CALL_BYTES];
    wefti_cuda_ep_describe(own, __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_OWN_CALL], __ATOMIC_RELAXED),
                           (uint32_t)routes, ep->ranks);
    wefti_cuda_ep_describe(theirs, __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_THEIR_CALL], __ATOMIC_RELAXED),
                           (uint32_t)(routes >> 32), ep->ranks);
    return wefti_error(WEFT_ERR_MISMATCH,
                       "%s: the group's call %u, an earlier one, is %s on rank %d and %s on rank %d; nothing was "
                       "moved; " WEFTI_EP_SAME_CALLS,
                       call, (unsigned)(uint32_t)mismatch / 2, own, ep->rank, theirs, (int)(mismatch >> 32) - 1);
}

int wefti_cuda_ep_is_missing(const weft_ep *ep, int rank)
{
    int is_one = 0;
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        const uint64_t *told = wefti_cuda_ep_host_words(ep, bank);
        const uint64_t failed = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
        is_one |= failed != 0 && ep->device->kind->is_missing(told, failed, rank);
    }
    return is_one;
}

static weft_status report_failure(weft_ep *ep, const uint64_t *told, uint64_t failed, const char *call)
{
    char ranks[128] = "";
    size_t at = 0;
    for (int rank = 0; rank < ep->ranks; rank++) {
        if (ep->device->kind->is_missing(told, failed, rank)) {
            ep->late[rank] = 1;
            at += at + 8 < sizeof ranks ? (size_t)snprintf(ranks + at, sizeof ranks - at, " %d", rank) : 0;
        }
    }
    ep->dead = (weft_status) - (int)(uint32_t)failed;
    wefti_ep_close_halves(ep); /* whose recv cannot be called any more */
    return wefti_error(ep->dead, "%s: a call of the group failed on the GPU%s%s", call,
                       at > 0 ? "; it waited in vain for rank" : wefti_cuda_ep_describe_nobody(ep), ranks);
}

static weft_status look(weft_ep *ep, int bank, const char *call)
{
    const uint64_t *told = wefti_cuda_ep_host_words(ep, bank);
    uint64_t failed = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
    uint64_t mismatch = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH], __ATOMIC_ACQUIRE);
    if (failed != 0) {
        return report_failure(ep, told, failed, call);
    }
    if (mismatch != ep->device->mismatch_seen[bank]) {
        ep->device->mismatch_seen[bank] = mismatch;
        return report_mismatch(ep, told, mismatch, call);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_host_status(weft_ep *ep, const char *call)
{
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        WEFT_TRY(look(ep, bank, call));
    }
    return WEFT_OK;
}

void wefti_cuda_ep_overflow_query(const weft_ep *ep, weft_ep_overflow_report *report)
{
    uint64_t last = 0;
    report->event = 0;
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        const uint64_t *told = wefti_cuda_ep_host_words(ep, bank);
        const uint64_t one = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_OVERFLOW], __ATOMIC_ACQUIRE);
        report->event = report->event * 3 + one; /* another when that of either bank is */
        last = one != 0 ? one : last;
    }
    report->rank = wefti_cuda_ep_overflow_rank(last);
    report->rows_limit = (int64_t)wefti_cuda_ep_overflow_limit(last);
}
