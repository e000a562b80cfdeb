/* faces/nccl_ep/masks.c: ranks that are gone. */
#include "faces/nccl_ep/face.h"

static ncclResult_t check_masks(const char *call, const struct ncclEpGroup *group)
{
    NEP_TRY(nep_check_group(call, group));
    if (!group->config.enable_mask) {
        return nep_fail(ncclInvalidUsage, "%s: the group was made without enable_mask", call);
    }
    return ncclSuccess;
}

static uint64_t load(const uint64_t *words, int i)
{
    return __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
}

/* A timeout is remembered until ncclEpErrorClear, also when masks have made the group work again: of a call that
 * failed, or that masked ranks by itself. */
static void look_for_timeout(struct ncclEpGroup *group)
{
    const uint64_t *words = NULL;
    int is_new = weft_ep_failure(group->ep) == WEFT_ERR_TIMEOUT || weft_ep_mask_words(group->ep, &words) != WEFT_OK;
    for (int i = 0; words != NULL && i < (group->ranks + 63) / 64; i++) {
        is_new |= (load(words, i) & ~load(group->known, i)) != 0;
    }
    if (is_new) {
        __atomic_store_n(&group->has_timed_out, 1, __ATOMIC_RELEASE);
    }
}

/* Note which ranks are masked now as known to the caller. */
static void know_masks(struct ncclEpGroup *group)
{
    const uint64_t *words = NULL;
    for (int i = 0; weft_ep_mask_words(group->ep, &words) == WEFT_OK && i < (group->ranks + 63) / 64; i++) {
        __atomic_store_n(&group->known[i], load(words, i), __ATOMIC_RELEASE);
    }
}

static int is_alive(const uint64_t *words, int rank)
{
    return (load(words, rank / 64) >> (rank % 64) & 1) == 0;
}

static ncclResult_t set_masks(struct ncclEpGroup *group, const int *mask)
{
    const uint64_t *words = NULL;
    look_for_timeout(group);
    NEP_TRY(nep_result_of(weft_ep_mask_words(group->ep, &words)));
    for (int rank = 0; rank < group->ranks; rank++) {
        int alive = mask == NULL || mask[rank] != 0;
        if (rank != group->rank && alive != is_alive(words, rank)) {
            (void)__atomic_add_fetch(&group->mask_changes, 1, __ATOMIC_RELAXED);
            NEP_TRY(nep_result_of(weft_ep_mask(group->ep, rank, alive)));
        }
    }
    know_masks(group);
    return ncclSuccess;
}

/* Ranks that have missed calls are in step again with those that have made the most. */
static ncclResult_t meet(const char *call, struct ncclEpGroup *group, cudaStream_t stream)
{
    const uint64_t *words = NULL;
    uint64_t calls = 0;
    int error = nep_load_cuda(call)->stream_synchronize(stream);
    if (error != 0) {
        return nep_fail(ncclUnhandledCudaError, "%s: the stream cannot be waited for: CUDA error %d", call, error);
    }
    NEP_TRY(nep_result_of(weft_ep_calls(group->ep, &calls)));
    NEP_TRY(nep_result_of(weft_ep_mask_words(group->ep, &words)));
    NEP_TRY(nep_clean_meet(group, words, calls, &calls));
    look_for_timeout(group);
    (void)__atomic_add_fetch(&group->mask_changes, 1, __ATOMIC_RELAXED);
    NEP_TRY(nep_result_of(weft_ep_rejoin(group->ep, calls)));
    know_masks(group);
    return ncclSuccess;
}

ncclResult_t ncclEpMaskQuery(ncclEpGroup_t ep_group, int *mask_status, cudaStream_t stream)
{
    static const char call[] = "ncclEpMaskQuery";
    const uint64_t *words = NULL;
    NEP_TRY(check_masks(call, ep_group));
    if (mask_status == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument 'mask_status' is NULL", call);
    }
    NEP_TRY(nep_result_of(weft_ep_mask_words(ep_group->ep, &words)));
    size_t bytes = (size_t)ep_group->ranks * sizeof *ep_group->mask;
    (void)pthread_mutex_lock(&ep_group->mask_lock); /* the driver has read pageable memory when its call returns */
    for (int rank = 0; rank < ep_group->ranks; rank++) {
        ep_group->mask[rank] = is_alive(words, rank);
    }
    int error = nep_load_cuda(call)->memcpy_async((uintptr_t)mask_status, (uintptr_t)ep_group->mask, bytes, stream);
    (void)pthread_mutex_unlock(&ep_group->mask_lock);
    if (error != 0) {
        return nep_fail(ncclUnhandledCudaError, "%s: mask_status cannot be written on the stream: CUDA error %d", call,
                        error);
    }
    return ncclSuccess;
}

ncclResult_t ncclEpMaskUpdate(ncclEpGroup_t ep_group, const int *mask, cudaStream_t stream)
{
    static const char call[] = "ncclEpMaskUpdate";
    (void)stream;
    NEP_TRY(check_masks(call, ep_group));
    if (mask == NULL || mask[ep_group->rank] == 0) {
        return nep_fail(ncclInvalidArgument, "%s: %s", call,
                        mask == NULL ? "argument 'mask' is NULL" : "a rank cannot mask itself");
    }
    return set_masks(ep_group, mask);
}

ncclResult_t ncclEpMaskClean(ncclEpGroup_t ep_group, cudaStream_t stream)
{
    static const char call[] = "ncclEpMaskClean";
    uint64_t calls = 0;
    NEP_TRY(check_masks(call, ep_group));
    return weft_ep_calls(ep_group->ep, &calls) == WEFT_ERR_UNSUPPORTED ? set_masks(ep_group, NULL)
                                                                       : meet(call, ep_group, stream);
}

/* Errors are of groups with masks, and of HT, where more rows may come than there is room for. */
static ncclResult_t check_errors(const char *call, const struct ncclEpGroup *group)
{
    NEP_TRY(nep_check_group(call, group));
    return nep_is_ll(group) ? check_masks(call, group) : ncclSuccess;
}

/* The overflow that the GPU has told last; `event` 0: none. */
static weft_ep_overflow_report last_overflow(const struct ncclEpGroup *group)
{
    weft_ep_overflow_report report = WEFT_EP_OVERFLOW_REPORT_INIT;
    return weft_ep_overflow_query(group->ep, &report) == WEFT_OK ? report
                                                                 : (weft_ep_overflow_report){.size = sizeof report};
}

static void tell_overflow(const struct ncclEpGroup *group, const weft_ep_overflow_report *report)
{
    const unsigned most = group->config.max_recv_tokens_per_rank;
    const int is_of_group = most != NCCL_EP_AUTO && report->rows_limit == (int64_t)most;
    (void)nep_fail(ncclInvalidUsage,
                   "ncclEpGetAsyncError: more rows were to come to rank %d than the %lld %s; on no rank did any move. "
                   "%s, or change the routing, then call ncclEpErrorClear",
                   report->rank, (long long)report->rows_limit,
                   is_of_group ? "of the group's max_recv_tokens_per_rank" : "that its received tensors hold",
                   is_of_group ? "Make the group with more, or with NCCL_EP_OVERFLOW_DROP" : "Give larger tensors");
}

ncclResult_t ncclEpGetAsyncError(ncclEpGroup_t ep_group, int *error_out)
{
    static const char call[] = "ncclEpGetAsyncError";
    NEP_TRY(check_errors(call, ep_group));
    if (error_out == NULL) {
        return nep_fail(ncclInvalidArgument, "%s: argument 'error_out' is NULL", call);
    }
    look_for_timeout(ep_group);
    *error_out = __atomic_load_n(&ep_group->has_timed_out, __ATOMIC_ACQUIRE);
    const weft_ep_overflow_report overflow = last_overflow(ep_group);
    if (*error_out == 0 && overflow.event != __atomic_load_n(&ep_group->overflow_cleared, __ATOMIC_ACQUIRE)) {
        *error_out = WEFT_NCCL_EP_OVERFLOWED;
        tell_overflow(ep_group, &overflow);
    }
    return ncclSuccess;
}

ncclResult_t ncclEpErrorClear(ncclEpGroup_t ep_group)
{
    NEP_TRY(check_errors("ncclEpErrorClear", ep_group));
    know_masks(ep_group);
    __atomic_store_n(&ep_group->overflow_cleared, last_overflow(ep_group).event, __ATOMIC_RELEASE);
    __atomic_store_n(&ep_group->has_timed_out, 0, __ATOMIC_RELEASE);
    return ncclSuccess;
}
