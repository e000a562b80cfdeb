/* cuda/ep/low_latency/passing.cuh: WEFT_EP_MASK_ON_TIMEOUT: a call goes on without ranks that do not come.
 *
 * A rank is in a call or not, the same for all blocks of a reader, since rows of slots by expert lie behind each other:
 * its call header and its counts have all come, or it is left out. Each block waits for them; the first one that knows
 * of a source writes it to the verdict of that source, by compare and swap, and the others follow: where the verdict is
 * that the source is there, its words are. So that is decided before rows are looked at. Rows that do not come although
 * the header did are skipped; the rank is masked all the same.
 *
 * A verdict is a word of the call's tag, with bit 0 set where the source is there. They lie one a source where LL
 * packets of this parity would be in this rank's area: such calls have none. */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_PASSING_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_PASSING_CUH

#include "cuda/ep/low_latency/low_latency.cuh"
#include "cuda/ep/passing.h"

/* Mask a rank, for this call and those that come, and tell the host. */
EP_DEVICE_SLOW void ep_pass_by(const ep_group *group, int rank)
{
    wefti_cuda_ep_control *control = ep_control(*group);
    wefti_u32 told;
    (void)atomicOr(&control->masked, 1u << rank);
    do { /* until what was stored last is all of it, whoever stores at the same time */
        told = wefti_ld_relaxed(&control->masked);
        wefti_st_release(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_MASKED], (wefti_u64)told);
    } while (wefti_ld_relaxed(&control->masked) != told);
}

/* Whether to go on waiting for `rank`, which is masked at the deadline. Blocks of this rank itself have one more, and
 * then the call fails, as ep_go_on_slow says. */
EP_DEVICE_SLOW bool ep_pass_go_on(const ep_group *group, wefti_u64 start_ns, int rank)
{
    wefti_cuda_ep_control *control = ep_control(*group);
    if (wefti_ld_relaxed(&control->failed) != 0 || (wefti_ld_relaxed(&control->masked) >> rank & 1) != 0) {
        return false;
    }
    if (rank == group->rank) {
        return ep_go_on_slow(group, start_ns, rank);
    }
    const int status = wefti_dev_pause_slow(&group->dev, start_ns);
    ep_note_wait(control, rank, start_ns);
    if (status == WEFT_ERR_TIMEOUT) {
        ep_pass_by(group, rank);
    } else if (status != WEFT_OK) {
        ep_fail(group, status, 0);
    }
    return status == WEFT_OK;
}

/* Wait for a word of this tag that `rank` writes; acquires. One thread. False: it did not come, and the rank is masked
 * or the call has failed. */
EP_DEVICE_SLOW bool ep_pass_await(const ep_group *group, const wefti_u64 *word, wefti_u32 tag, int rank)
{
    wefti_u64 start_ns = 0;
    for (wefti_u32 looks = 1; (wefti_u32)(wefti_ld_relaxed(word) >> 32) != tag; looks++) {
        EP_PAUSE();
        if (looks % WEFTI_DEV_LOOKS == 0) {
            start_ns = start_ns == 0 ? wefti_time_ns() : start_ns;
            if (!ep_pass_go_on(group, start_ns, rank)) {
                return false;
            }
        }
    }
    return (wefti_u32)(wefti_ld_acquire(word) >> 32) == tag;
}

/* As ep_low_latency_await. */
EP_DEVICE bool ep_pass_await_row(const ep_group &group, const ep_call *call, int rank, int word)
{
    return ep_pass_await(&group, ep_low_latency_words(group, call, group.rank, rank) + word, call->tag, rank);
}

/* Whether this call passes ranks by. Kernels that do are others (..._passing.cu), so that those of other groups have
 * nothing of it. */
template <class ARGS> EP_DEVICE bool ep_passes_by(const ARGS &)
{
#if defined(WEFTI_CUDA_EP_PASSING)
    return true;
#else
    return false;
#endif
}

/* A kernel's name, which is another one in a ..._passing.cu: that includes the .cu of the others. */
#if defined(WEFTI_CUDA_EP_PASSING)
#define EP_EITHER(NAME, PASSING_NAME) PASSING_NAME
#else
#define EP_EITHER(NAME, PASSING_NAME) NAME
#endif

/* ---- who is in the call ---- */

/* What a block waits for of each source beside its call header: words 0 .. count - 1, of source s at s * stride. */
typedef struct ep_source_words {
    const wefti_u64 *words;
    int count;
    int stride;
} ep_source_words;

/* Note in call->headers_here, as bits, the sources of which something does not come. All threads. */
EP_DEVICE void ep_await_sources(const ep_group &group, ep_call *call, const ep_source_words &beside)
{
    const int header_words = (int)WEFTI_CUDA_EP_HEADER_WORDS + group.ranks;
    const int words = header_words + beside.count;
    for (int i = (int)threadIdx.x; i < words * group.ranks; i += (int)blockDim.x) {
        const int source = i / words;
        const int at = i % words;
        const wefti_u64 *word = at < header_words
                                    ? ep_header_words(group, call, group.rank, source) + at
                                    : beside.words + (wefti_i64)source * beside.stride + (at - header_words);
        if ((call->alive >> source & 1) != 0 && !ep_pass_await(&group, word, call->tag, source)) {
            (void)atomicOr(&call->headers_here, 1u << source);
        }
    }
}

/* The verdict on the lane's source, by this block's opinion of it if no other block was sooner: whether it is here. */
EP_DEVICE bool ep_verdict(const ep_group &group, const ep_call *call, bool is_here)
{
    wefti_u32 *word = (wefti_u32 *)(group.area[group.rank] + ep_low_latency(group, call).ll_packets) + ep_lane();
    const wefti_u32 mine = call->tag | (is_here ? 1u : 0u);
    wefti_u32 seen = wefti_ld_relaxed(word);
    wefti_fence_acq_rel();
    while (seen >> 1 != call->tag >> 1) {
        const wefti_u32 found = atomicCAS(word, seen, mine);
        seen = found == seen ? mine : found;
    }
    wefti_fence_acq_rel();
    return (seen & 1) != 0;
}

/* Agree with the other blocks, and leave those out that are gone. The first warp. */
EP_DEVICE void ep_agree_on_sources(const ep_group &group, ep_call *call)
{
    const int source = ep_lane();
    const bool participates = source < group.ranks && (call->alive >> source & 1) != 0;
    const bool is_late = (call->headers_here >> source & 1) != 0;
    const bool is_gone = participates && !ep_verdict(group, call, !is_late);
    __syncwarp();
    const wefti_u32 gone = __ballot_sync(~0u, is_gone);
    if (source < group.ranks && is_gone) {
        ep_pass_by(&group, source); /* this block's own opinion may have been another */
        call->count[source] = 0;
    }
    __syncwarp();
    if (source == 0) {
        call->alive &= ~gone;
        call->failed = wefti_ld_relaxed(&ep_control(group)->failed) != 0;
    }
}

/* As ep_wait_headers_once, of calls that pass ranks by: all threads of the block, together; call->alive has who is in
 * the call. False: the call has failed. */
EP_DEVICE_SLOW bool ep_settle_sources(const ep_group *group, ep_call *call, const ep_call_header *header, bool fresh,
                                      const ep_source_words *beside)
{
    ep_await_sources(*group, call, *beside);
    __syncthreads();
    if (ep_warp() == 0) {
        ep_agree_on_sources(*group, call);
    }
    __syncthreads();
    if (call->failed == 0 && ep_warp() == ep_warps() - 1) {
        (void)ep_wait_header_words(*group, call, *header, fresh); /* which are all here */
    }
    __syncthreads();
    return call->failed == 0;
}

#endif
