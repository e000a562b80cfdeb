/* cuda/ep/host/host_status.c: what kernels have told the host of a group since it looked last. */
#include <stdio.h>
#include <string.h>

#include "cuda/ep/host/group.h"
#include "ep/check.h"

#define PLAN_BYTES 48
#define ROWS_BYTES 96
#define CALL_BYTES 240

/* The plan of a call that updates its route, or the route's last update. */
static void describe_route(char text[PLAN_BYTES], int is_fresh, weft_ep_layout layout, uint32_t route, int ranks)
{
    static const char *const words[] = {"", ", alignment ", ", Tmax ", ", Tmax "};
    const uint32_t number = layout == WEFT_EP_SLOTS_EXPERT ? route / (uint32_t)ranks : route; /* 1 + R * Tmax */
    if (!is_fresh) {
        (void)snprintf(text, PLAN_BYTES, ", on the route updated in call %u", route / 2);
    } else if (layout == WEFT_EP_RANK_MAJOR) {
        text[0] = '\0';
    } else {
        (void)snprintf(text, PLAN_BYTES, "%s%u", words[layout], number);
    }
}

/* What a combine has beside, behind what `text` says of its rows. */
static void describe_options(char text[ROWS_BYTES], unsigned call, unsigned flags)
{
    const size_t at = strlen(text);
    if (call == WEFTI_CUDA_EP_COMBINE || call == WEFTI_CUDA_EP_COMBINE_HALVES) {
        (void)snprintf(text + at, ROWS_BYTES - at, "%s%s%s%s%s",
                       (flags & WEFTI_CUDA_EP_WEIGHTED) != 0 ? ", weighted" : "",
                       (flags & WEFTI_CUDA_EP_OWN_WEIGHTS) != 0 ? ", own weights" : "",
                       (flags & WEFTI_CUDA_EP_OWN_IDS) != 0 ? ", own ids" : "",
                       (flags & WEFTI_CUDA_EP_VALUES) != 0 ? ", values" : "",
                       (flags & WEFTI_CUDA_EP_BY_CHOICE) != 0 ? ", order by choice" : "");
    }
}

/* What a call is, by its signature and its WEFTI_CUDA_EP_ROUTE. Compared, but not told: the type and the kind of scales
 * of a dispatch's `out`, and of a backward all that describe_options tells of a combine. Two texts that are alike
 * differ there (docs/failures.md). */
static void describe(char text[CALL_BYTES], uint64_t signature, uint32_t route, int ranks)
{
    static const char *const calls[] = {"no call",
                                        "a dispatch",
                                        "a combine",
                                        "a dispatch backward",
                                        "a combine backward",
                                        "a dispatch in halves",
                                        "a combine in halves"};
    const wefti_cuda_ep_signature_fields fields = wefti_cuda_ep_signature_split(signature);
    const int is_dispatch = fields.call == WEFTI_CUDA_EP_DISPATCH || fields.call == WEFTI_CUDA_EP_DISPATCH_HALVES;
    const int is_update = is_dispatch && (fields.flags & WEFTI_CUDA_EP_MOVE) == 0;
    const weft_ep_layout layout = (weft_ep_layout)(fields.flags >> WEFTI_CUDA_EP_LAYOUT_SHIFT & 3);
    char rows[ROWS_BYTES] = "";
    char plan[PLAN_BYTES];
    if (!is_update) {
        const weft_ep_dtype dtype = (weft_ep_dtype)(fields.dtype & 7);
        const unsigned width = fields.hidden & ~WEFTI_CUDA_EP_TO_RANKS;
        const unsigned scale_bytes = wefti_ep_width_scale_bytes(dtype, width);
        const int bytes =
            snprintf(rows, sizeof rows, " of %u %s", wefti_ep_width_hidden(dtype, width), wefti_ep_dtype_name(dtype));
        if (scale_bytes != 0) {
            (void)snprintf(rows + bytes, sizeof rows - (size_t)bytes, " with %u of scales", scale_bytes);
        }
    }
    describe_options(rows, fields.call, fields.flags);
    describe_route(plan, is_dispatch && (fields.flags & WEFTI_CUDA_EP_FRESH) != 0, layout, route, ranks);
    (void)snprintf(text, CALL_BYTES, "%s%s, topk %u, %s%s%s", is_update ? "an update" : calls[fields.call % 7], rows,
                   fields.topk, wefti_ep_layout_name(layout), plan,
                   is_dispatch && (fields.hidden & WEFTI_CUDA_EP_TO_RANKS) != 0 ? ", of destinations" : "");
}

static weft_status report_mismatch(const weft_ep *ep, const uint64_t *told, uint64_t mismatch, const char *call)
{
    const uint64_t routes = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_ROUTES], __ATOMIC_RELAXED);
    char own[CALL_BYTES];
    char theirs[CALL_BYTES];
    describe(own, __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_OWN_CALL], __ATOMIC_RELAXED), (uint32_t)routes,
             ep->ranks);
    describe(theirs, __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_THEIR_CALL], __ATOMIC_RELAXED),
             (uint32_t)(routes >> 32), ep->ranks);
    return wefti_error(
        WEFT_ERR_MISMATCH,
        "%s: the group's call %u, an earlier one, is %s on rank %d and %s on rank %d; nothing was moved; "
        "ranks must make the same calls in the same order",
        call, (unsigned)(uint32_t)mismatch / 2, own, ep->rank, theirs, (int)(mismatch >> 32) - 1);
}

/* What a failure has to say if no rank was waited for in vain. */
static const char *describe_nobody(const weft_ep *ep, weft_status status)
{
    const int has_fault = weft_world_fault(ep->world, NULL) != WEFT_OK;
    return has_fault ? "; this PE's kernels have latched a fault (weft_world_fault)"
           : status == WEFT_ERR_TIMEOUT
               ? "; blocks of this rank's own did not come within two deadlines: other kernels had its multiprocessors "
                 "(weft_ep_plan.sms, weft_device_sms_take). weft_ep_mask of any rank, as it is, goes on"
               : "";
}

/* Whether a kernel waited in vain for `rank`, of groups of few and of many. */
static int is_missing(const weft_ep *ep, const uint64_t *told, uint64_t failed, int rank)
{
    return ep->device->is_many ? (int)(told[WEFTI_CUDA_EP_HOST_STATUS_MISSING + rank / 64] >> rank % 64 & 1)
                               : (int)(failed >> 32 >> rank & 1);
}

int wefti_cuda_ep_is_missing(const weft_ep *ep, int rank)
{
    int is_one = 0;
    for (int channel = 0; channel < wefti_ep_channels(ep); channel++) {
        const uint64_t *told = wefti_cuda_ep_host_words(ep, channel);
        const uint64_t failed = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
        is_one |= failed != 0 && is_missing(ep, told, failed, rank);
    }
    return is_one;
}

static weft_status report_failure(weft_ep *ep, const uint64_t *told, uint64_t failed, const char *call)
{
    char ranks[128] = "";
    size_t at = 0;
    for (int rank = 0; rank < ep->ranks; rank++) {
        if (is_missing(ep, told, failed, rank)) {
            ep->late[rank] = 1;
            at += at + 8 < sizeof ranks ? (size_t)snprintf(ranks + at, sizeof ranks - at, " %d", rank) : 0;
        }
    }
    ep->dead = (weft_status) - (int)(uint32_t)failed;
    wefti_ep_close_halves(ep); /* whose recv cannot be called any more */
    return wefti_error(ep->dead, "%s: a call of the group failed on the GPU%s%s", call,
                       at > 0 ? "; it waited in vain for rank" : describe_nobody(ep, ep->dead), ranks);
}

static weft_status look(weft_ep *ep, int channel, const char *call)
{
    const uint64_t *told = wefti_cuda_ep_host_words(ep, channel);
    uint64_t failed = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
    uint64_t mismatch = __atomic_load_n(&told[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH], __ATOMIC_ACQUIRE);
    if (failed != 0) {
        return report_failure(ep, told, failed, call);
    }
    if (mismatch != ep->device->mismatch_seen[channel]) {
        ep->device->mismatch_seen[channel] = mismatch;
        return report_mismatch(ep, told, mismatch, call);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_host_status(weft_ep *ep, const char *call)
{
    for (int channel = 0; channel < wefti_ep_channels(ep); channel++) {
        WEFT_TRY(look(ep, channel, call));
    }
    return WEFT_OK;
}
