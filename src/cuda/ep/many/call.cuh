/* cuda/ep/many/call.cuh: how a call runs where ranks are many: what a block knows of it, waiting, the steps of a rank's
 * blocks, call headers.
 *
 * A call goes in steps, between which all blocks of the rank meet (ep_many_meet): what a step left in the route tables
 * or the directory is every block's in the next. What concerns a rank is done by one thread or warp of the grid.
 *
 * Calls that pass ranks by (WEFT_EP_MASK_ON_TIMEOUT) go in the same steps. A rank that does not come in one is masked
 * in the directory, by whoever waited for it, and left out by all blocks once they have met: so they agree on who is in
 * the call, as they do on all else. What others store for this rank lies in memory of its own for each of them
 * (many.h), which one that is late may still write. */
#ifndef WEFTI_CUDA_EP_MANY_CALL_CUH
#define WEFTI_CUDA_EP_MANY_CALL_CUH

#include "cuda/ep/device/base.cuh"
#include "cuda/ep/device/signal.cuh"
#include "cuda/ep/device/warp_roles.cuh"
#include "cuda/ep/many.h"
#include "cuda/ep/passing.h"

typedef wefti_cuda_ep_directory ep_directory;

/* Whether the calls of these kernels pass ranks by. Those that do are others (.._passing.cu), so that those of other
 * groups have nothing of it. */
#if defined(WEFTI_CUDA_EP_PASSING)
#define EP_MANY_PASSES true
#else
#define EP_MANY_PASSES false
#endif

/* What the threads of a block share. */
typedef struct ep_many_call {
    wefti_u64 epoch;
    wefti_u32 tag; /* as of other groups */
    wefti_u32 alive[WEFTI_CUDA_EP_MANY_WORDS]; /* ranks, as bits */
    wefti_u32 step; /* so many times the blocks have met */
    int status;
    int tokens; /* T */
    wefti_u32 route; /* of a call that makes no routing: the epoch of the one it uses */
    int route_status; /* the status of that routing */
    int odd_tokens; /* T was given out of range, and clamped */
    int failed; /* some thread of this block waited in vain */
    wefti_u32 found; /* by ep_many_any */
    wefti_u32 wanted; /* block 0: rows that would come here, padding included, if none were dropped */
} ep_many_call;

EP_DEVICE wefti_cuda_ep_control *ep_many_control(const ep_group &group)
{
    return (wefti_cuda_ep_control *)(group.area[0] + group.at.control);
}

EP_DEVICE ep_directory *ep_directory_of(const ep_group &group)
{
    return (ep_directory *)(group.area[0] + wefti_cuda_ep_directory_at(&group.at));
}

EP_DEVICE bool ep_many_is_alive(const ep_many_call *call, int rank)
{
    return (call->alive[rank >> 5] >> (rank & 31) & 1) != 0;
}

/* This thread, or warp, among all of the grid, neighbours in different blocks. */
EP_DEVICE ep_warp_group ep_many_threads()
{
    ep_warp_group members = {(int)(threadIdx.x * gridDim.x + blockIdx.x), (int)(blockDim.x * gridDim.x)};
    return members;
}

EP_DEVICE ep_warp_group ep_many_warps()
{
    ep_warp_group members = {ep_warp() * (int)gridDim.x + (int)blockIdx.x, ep_warps() * (int)gridDim.x};
    return members;
}

/* ---- waiting ---- */

/* A call of the group fails; ranks that were waited for in vain have been noted. */
EP_DEVICE_SLOW void ep_many_fail(const ep_group *group, int status)
{
    const ep_directory *directory = ep_directory_of(*group);
    wefti_cuda_ep_control *control = ep_many_control(*group);
    if (atomicCAS(&control->failed, 0u, (wefti_u32)-status) == 0) { /* as ep_fail */
        wefti_st_relaxed(&control->failed_epoch, wefti_ld_relaxed(&control->epoch));
    }
    for (int i = 0; i < WEFTI_CUDA_EP_MANY_WORDS / 2; i++) {
        wefti_st_relaxed(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_MISSING + i],
                         (wefti_u64)wefti_ld_relaxed(&directory->missing[2 * i + 1]) << 32 |
                             wefti_ld_relaxed(&directory->missing[2 * i]));
    }
    wefti_st_release(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_FAILED], (wefti_u64)(wefti_u32)-status);
}

/* Whether to go on waiting for `rank`, or, -1, for another block of this rank, which ends its waiting by itself. A word
 * of this rank's own comes from its blocks: as ep_go_on_slow says, they have one more deadline, and nobody is named. */
EP_DEVICE_SLOW bool ep_many_go_on_slow(const ep_group *group, wefti_u64 start_ns, int rank)
{
    wefti_cuda_ep_control *control = ep_many_control(*group);
    ep_directory *directory = ep_directory_of(*group);
    if (wefti_ld_relaxed(&control->failed) != 0) {
        return false;
    }
    const int status = wefti_dev_pause_slow(&group->dev, rank < 0 ? wefti_time_ns() : start_ns);
    const bool is_late = status == WEFT_ERR_TIMEOUT;
    const bool is_own = rank == group->rank;
    if (rank >= 0 && !is_own) {
        ep_note_wait(control, rank, start_ns);
    }
    if (status == WEFT_OK ||
        (is_late && is_own && (wefti_time_ns() - start_ns) / 2 < wefti_ld_relaxed(&group->dev.control->deadline_ns))) {
        return true;
    }
    if (is_late && rank >= 0 && !is_own) {
        atomicOr(&directory->missing[rank >> 5], 1u << (rank & 31));
    }
    ep_many_fail(group, status);
    return false;
}

EP_DEVICE bool ep_many_go_on(const ep_group &group, wefti_dev_waiter *waiter, int rank)
{
    EP_PAUSE();
    if (++waiter->looks % WEFTI_DEV_LOOKS != 0) {
        return true;
    }
    waiter->start_ns = waiter->start_ns == 0 ? wefti_time_ns() : waiter->start_ns;
    return ep_many_go_on_slow(&group, waiter->start_ns, rank);
}

/* The value of the packed word of this tag, which `rank` writes. 0, and the call has failed: it did not come. A
 * thread. */
EP_DEVICE_SLOW wefti_u32 ep_many_await(const ep_group *group, ep_many_call *call, const wefti_u64 *word, int rank)
{
    wefti_dev_waiter waiter = {0, 0};
    wefti_u64 seen = wefti_ld_relaxed(word);
    while ((wefti_u32)(seen >> 32) != call->tag) {
        if (call->failed != 0 || !ep_many_go_on(*group, &waiter, rank)) {
            call->failed = 1;
            return 0;
        }
        seen = wefti_ld_relaxed(word);
    }
    return (wefti_u32)seen;
}

/* ---- passing by ---- */

/* How many deadlines a rank has in each step of a call that passes ranks by: one more than in the step before, since a
 * rank that has come to that one may wait there for one that is gone. */
enum { EP_MANY_IN_HEADERS = 1, EP_MANY_IN_ANSWERS = 2, EP_MANY_IN_DONE = 3, EP_MANY_IN_DONE_OF_COMBINE = 2 };

EP_DEVICE wefti_u64 ep_many_masked_pair(const ep_directory *directory, int pair)
{
    return (wefti_u64)wefti_ld_relaxed(&directory->masked[2 * pair + 1]) << 32 |
           wefti_ld_relaxed(&directory->masked[2 * pair]);
}

EP_DEVICE bool ep_many_is_masked(const ep_group &group, int rank)
{
    return (wefti_ld_relaxed(&ep_directory_of(group)->masked[rank >> 5]) >> (rank & 31) & 1) != 0;
}

/* Mask a rank, for this call from its next step on, and for those that come, and tell the host. */
EP_DEVICE_SLOW void ep_many_pass_by(const ep_group *group, int rank)
{
    ep_directory *directory = ep_directory_of(*group);
    const int pair = rank >> 6;
    wefti_u64 told;
    (void)atomicOr(&directory->masked[rank >> 5], 1u << (rank & 31));
    do { /* until what was stored last is all of it, whoever stores at the same time */
        told = ep_many_masked_pair(directory, pair);
        wefti_st_release(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_MASKED + pair], told);
    } while (ep_many_masked_pair(directory, pair) != told);
}

/* Whether to go on waiting for `rank`, which is masked after so many deadlines. */
EP_DEVICE_SLOW bool ep_many_pass_go_on(const ep_group *group, wefti_u64 start_ns, int rank, wefti_u32 deadlines)
{
    wefti_cuda_ep_control *control = ep_many_control(*group);
    if (wefti_ld_relaxed(&control->failed) != 0 || ep_many_is_masked(*group, rank)) {
        return false;
    }
    const int status = wefti_dev_pause_slow(&group->dev, start_ns);
    ep_note_wait(control, rank, start_ns);
    if (status == WEFT_OK || (status == WEFT_ERR_TIMEOUT && (wefti_time_ns() - start_ns) / deadlines <
                                                                wefti_ld_relaxed(&group->dev.control->deadline_ns))) {
        return true;
    }
    if (status == WEFT_ERR_TIMEOUT) {
        ep_many_pass_by(group, rank);
    } else {
        ep_many_fail(group, status);
    }
    return false;
}

/* As ep_many_await, in calls that pass ranks by. 0: it did not come, and the rank is masked or the call has failed. */
EP_DEVICE_SLOW wefti_u32 ep_many_await_passing(const ep_group *group, ep_many_call *call, const wefti_u64 *word,
                                               int rank, wefti_u32 deadlines)
{
    wefti_u64 start_ns = 0;
    wefti_u64 seen = wefti_ld_relaxed(word);
    for (wefti_u32 looks = 1; (wefti_u32)(seen >> 32) != call->tag; looks++) {
        EP_PAUSE();
        if (looks % WEFTI_DEV_LOOKS == 0) {
            start_ns = start_ns == 0 ? wefti_time_ns() : start_ns;
            if (!ep_many_pass_go_on(group, start_ns, rank, deadlines)) {
                call->failed = wefti_ld_relaxed(&ep_many_control(*group)->failed) != 0 ? 1 : call->failed;
                return 0;
            }
        }
        seen = wefti_ld_relaxed(word);
    }
    return (wefti_u32)seen;
}

/* One or the other: what the steps of all calls wait with. */
EP_DEVICE wefti_u32 ep_many_await_in(const ep_group &group, ep_many_call *call, const wefti_u64 *word, int rank,
                                     wefti_u32 deadlines)
{
    if constexpr (EP_MANY_PASSES) {
        if (rank != group.rank) { /* words of its own come from its other blocks */
            return ep_many_await_passing(&group, call, word, rank, deadlines);
        }
    }
    return ep_many_await(&group, call, word, rank);
}

/* Whom some block has passed by takes no part any more. After the blocks met; all threads. */
EP_DEVICE void ep_many_leave_out(const ep_group &group, ep_many_call *call)
{
    if (threadIdx.x < WEFTI_CUDA_EP_MANY_WORDS) {
        call->alive[threadIdx.x] &= ~wefti_ld_relaxed(&ep_directory_of(group)->masked[threadIdx.x]);
    }
}

/* ---- steps ---- */

/* Whether nobody in the block has waited in vain so far, the same to all threads, of which some may wait again before
 * others have looked. All threads. */
EP_DEVICE bool ep_many_is_well(const ep_many_call *call)
{
    __syncthreads();
    const bool well = call->failed == 0;
    __syncthreads();
    return well;
}

/* All blocks of this rank have come here, and know what the others stored before. All threads. False: a block waited in
 * vain for something. */
EP_DEVICE_SLOW bool ep_many_meet(const ep_group *group, const ep_tables *tables, ep_many_call *call)
{
    __syncthreads();
    const wefti_u32 step = call->step + 1;
    const wefti_u32 number = step << 1 | (call->tag & 1);
    if (threadIdx.x == 0 && call->failed == 0) {
        wefti_fence_acq_rel();
        wefti_st_relaxed(&tables->next_unit[blockIdx.x], ep_packed(call->tag & ~1u, number));
    }
    for (int block = (int)threadIdx.x; block < (int)gridDim.x && call->failed == 0; block += (int)blockDim.x) {
        wefti_dev_waiter waiter = {0, 0};
        for (;;) {
            const wefti_u64 seen = wefti_ld_relaxed(&tables->next_unit[block]);
            if ((wefti_u32)(seen >> 32) == (call->tag & ~1u) && (wefti_u32)seen >= number) {
                break;
            }
            if (!ep_many_go_on(*group, &waiter, -1)) {
                call->failed = 1;
                break;
            }
        }
        wefti_fence_acq_rel();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        call->step = step;
    }
    if constexpr (EP_MANY_PASSES) {
        ep_many_leave_out(*group, call);
    }
    return ep_many_is_well(call);
}

/* Whether a word of `words` is not 0: [R], as the last step left them. All threads. */
EP_DEVICE bool ep_many_any(const ep_group &group, ep_many_call *call, const wefti_u32 *words)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        call->found = 0;
    }
    __syncthreads();
    for (int rank = (int)threadIdx.x; rank < group.ranks; rank += (int)blockDim.x) {
        if (ep_many_is_alive(call, rank) && wefti_ld_relaxed(&words[rank]) != 0) {
            atomicOr(&call->found, 1u);
        }
    }
    __syncthreads();
    const bool found = call->found != 0;
    __syncthreads(); /* all have looked before it says something else */
    return found;
}

/* ---- the call ---- */

/* The call begins, or its second half; `call->tokens` and `odd_tokens` are the caller's to find. All threads. False:
 * the group has failed. */
EP_DEVICE bool ep_many_begin(const ep_group &group, const ep_tables &tables, ep_many_call *call,
                             wefti_cuda_ep_phase phase)
{
    wefti_cuda_ep_control *control = ep_many_control(group);
    if (threadIdx.x == 0) {
        call->epoch = phase == WEFTI_CUDA_EP_RECV ? control->half_epoch : wefti_ld_relaxed(&control->epoch) + 1;
        call->tag = (wefti_u32)call->epoch << 1;
        call->step = phase == WEFTI_CUDA_EP_RECV ? 1u << 8 : 0;
        const wefti_u32 failed = wefti_ld_relaxed(&control->failed);
        const wefti_u64 fault = wefti_ld_relaxed(&group.dev.control->fault); /* as ep_begin_at says */
        call->failed = failed != 0 || fault != 0;
        if (fault != 0) {
            ep_many_fail(&group, wefti_dev_fault_status(fault));
        }
        call->status = WEFT_OK;
        call->route = tables.route_header->tag;
        call->route_status = tables.route_header->routed;
    }
    if (threadIdx.x < WEFTI_CUDA_EP_MANY_WORDS) {
        const int left = group.ranks - 32 * (int)threadIdx.x;
        const wefti_u32 all = left >= 32 ? ~0u : left > 0 ? (1u << left) - 1 : 0;
        call->alive[threadIdx.x] = ~wefti_ld_relaxed(&ep_directory_of(group)->masked[threadIdx.x]) & all;
    }
    __syncthreads();
    if (threadIdx.x == 0 && phase != WEFTI_CUDA_EP_RECV &&
        atomicInc(&control->begun, gridDim.x - 1) == gridDim.x - 1) { /* as ep_advance */
        wefti_st_relaxed(&control->epoch, call->epoch + ((wefti_u32)(call->epoch + 1) << 1 == 0 ? 2 : 0));
    }
    if (threadIdx.x == 0 && phase == WEFTI_CUDA_EP_SEND && blockIdx.x == 0) {
        control->half_epoch = call->epoch;
    }
    return ep_many_is_well(call);
}

/* ---- call headers ---- */

/* What this rank's call header has. */
typedef struct ep_many_header {
    wefti_u64 signature;
    wefti_u32 route;
    wefti_u64 place;
    wefti_u64 pitch;
    wefti_u32 capacity;
} ep_many_header;

EP_DEVICE wefti_u64 *ep_many_header_words(const ep_group &group, const ep_many_call *call, int reader, int writer)
{
    const wefti_u64 number = (call->epoch & 1) * (wefti_u64)group.ranks + (wefti_u64)writer;
    return (wefti_u64 *)(ep_directory_of(group)->area[reader] + group.at.headers) +
           number * (wefti_u64)(WEFTI_CUDA_EP_HEADER_WORDS + 1 + (int)group.at.local_max);
}

EP_DEVICE void ep_many_post_word(const ep_group &group, const ep_many_call *call, int reader, int word, wefti_u32 value)
{
    if (ep_many_is_alive(call, reader)) {
        wefti_st_relaxed(ep_many_header_words(group, call, reader, group.rank) + word, ep_packed(call->tag, value));
    }
}

EP_DEVICE wefti_u32 ep_many_word_of(const ep_many_call *call, const ep_many_header &header, int word)
{
    switch (word) {
    case WEFTI_CUDA_EP_SIGNATURE_LOW:
        return (wefti_u32)header.signature;
    case WEFTI_CUDA_EP_SIGNATURE_HIGH:
        return (wefti_u32)(header.signature >> 32);
    case WEFTI_CUDA_EP_ROUTE:
        return header.route;
    case WEFTI_CUDA_EP_BUFFER_LOW:
        return (wefti_u32)header.place;
    case WEFTI_CUDA_EP_BUFFER_HIGH:
        return (wefti_u32)(header.place >> 32);
    case WEFTI_CUDA_EP_PITCH:
        return (wefti_u32)(header.pitch / 16);
    case WEFTI_CUDA_EP_CAPACITY:
        return header.capacity;
    default:
        return (wefti_u32)call->tokens;
    }
}

/* The words that say what is called, to all ranks. All threads of the grid, each of which has fenced. */
EP_DEVICE void ep_many_post_call(const ep_group &group, const ep_many_call *call, const ep_many_header &header)
{
    const ep_warp_group threads = ep_many_threads();
    for (int i = threads.number; i < group.ranks * WEFTI_CUDA_EP_HEADER_WORDS; i += threads.count) {
        const int reader = (group.rank + 1 + i / WEFTI_CUDA_EP_HEADER_WORDS) % group.ranks;
        const int word = i % WEFTI_CUDA_EP_HEADER_WORDS;
        ep_many_post_word(group, call, reader, word, ep_many_word_of(call, header, word));
    }
}

/* The address here of what `rank` calls its `place`. */
EP_DEVICE wefti_u64 ep_many_resolve(const ep_group &group, wefti_u64 place, int rank)
{
    const wefti_u64 offset = place & (((wefti_u64)1 << WEFTI_CUDA_EP_OFFSET_BITS) - 1);
    const wefti_u64 region = (place & ~WEFTI_CUDA_EP_STAGED) >> WEFTI_CUDA_EP_OFFSET_BITS;
    const weft_dev &dev = group.dev;
    const wefti_u64 here = region == 0 ? dev.heap + offset : wefti_dev_region_base(dev, region - 1) + offset;
    return wefti_dev_peer(dev, (const void *)here, 1, ep_directory_of(group)->pe_of[rank]);
}

/* Tell the host of a rank that calls something else, and of both calls. One thread. */
EP_DEVICE void ep_many_report(const ep_group &group, const ep_many_call *call, const ep_many_header &header, int rank)
{
    const wefti_u64 *words = ep_many_header_words(group, call, group.rank, rank);
    const wefti_u64 signature = wefti_ld_relaxed(&words[WEFTI_CUDA_EP_SIGNATURE_HIGH]) << 32 |
                                (wefti_u32)wefti_ld_relaxed(&words[WEFTI_CUDA_EP_SIGNATURE_LOW]);
    wefti_st_relaxed(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_THEIR_CALL], signature);
    wefti_st_relaxed(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_OWN_CALL], header.signature);
    wefti_st_relaxed(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_ROUTES],
                     wefti_ld_relaxed(&words[WEFTI_CUDA_EP_ROUTE]) << 32 | header.route);
    wefti_st_release(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH], (wefti_u64)(rank + 1) << 32 | call->tag);
}

/* A rank is in a call that passes ranks by if its call header has come, and the `beside` words behind it; all these
 * words are here afterwards. A lane has the word of its number. A warp. False: it is not. */
EP_DEVICE bool ep_many_await_header_passing(const ep_group &group, ep_many_call *call, int rank, int beside,
                                            wefti_u32 *value)
{
    static_assert(WEFTI_CUDA_EP_HEADER_WORDS <= 32, "a lane a word");
    const wefti_u64 *words = ep_many_header_words(group, call, group.rank, rank);
    for (int i = ep_lane(); i < WEFTI_CUDA_EP_HEADER_WORDS + beside; i += 32) {
        const wefti_u32 one = ep_many_await_in(group, call, words + i, rank, EP_MANY_IN_HEADERS);
        *value = i < 32 ? one : *value;
    }
    wefti_fence_acq_rel(); /* what came before the header */
    __syncwarp(); /* votes order no memory */
    return __all_sync(~0u, !ep_many_is_masked(group, rank));
}

/* Wait for the call header of each rank, a warp a rank, and write down what it says: `note(rank, words)`, by lane
 * 0. Then the blocks meet. `beside`: ep_many_await_header_passing. All threads. False: some rank did not come. */
template <class Note>
EP_DEVICE bool ep_many_study(const ep_group &group, const ep_tables &tables, ep_many_call *call,
                             const ep_many_header &header, int beside, const Note &note)
{
    ep_directory *directory = ep_directory_of(group);
    const ep_warp_group warps = ep_many_warps();
    for (int rank = warps.number; rank < group.ranks; rank += warps.count) {
        if (!ep_many_is_alive(call, rank)) {
            continue;
        }
        wefti_u32 value = 0;
        if (EP_MANY_PASSES) {
            if (!ep_many_await_header_passing(group, call, rank, beside, &value)) {
                continue;
            }
        } else if (ep_lane() < WEFTI_CUDA_EP_HEADER_WORDS) {
            const wefti_u64 *words = ep_many_header_words(group, call, group.rank, rank);
            value = ep_many_await(&group, call, words + ep_lane(), rank);
            wefti_fence_acq_rel(); /* what came before the header */
        }
        wefti_u32 theirs[WEFTI_CUDA_EP_HEADER_WORDS];
        for (int word = 0; word < WEFTI_CUDA_EP_HEADER_WORDS; word++) {
            theirs[word] = __shfl_sync(~0u, value, word);
        }
        __syncwarp(); /* shuffles order no memory: each lane reads what any lane's header says is there */
        if (ep_lane() == 0) {
            wefti_st_relaxed(&directory->differs[rank],
                             (wefti_u32)(theirs[WEFTI_CUDA_EP_SIGNATURE_LOW] != (wefti_u32)header.signature ||
                                         theirs[WEFTI_CUDA_EP_SIGNATURE_HIGH] != (wefti_u32)(header.signature >> 32) ||
                                         theirs[WEFTI_CUDA_EP_ROUTE] != header.route));
            note(rank, theirs);
        }
        __syncwarp(); /* it may have acquired where memory of the caller's lies */
    }
    if (!ep_many_meet(&group, &tables, call)) {
        return false;
    }
    if (!ep_many_any(group, call, directory->differs)) {
        return true;
    }
    if (threadIdx.x == 0) {
        call->status = WEFT_ERR_MISMATCH;
        for (int rank = 0; rank < group.ranks && blockIdx.x == 0; rank++) {
            if (ep_many_is_alive(call, rank) && wefti_ld_relaxed(&directory->differs[rank]) != 0) {
                ep_many_report(group, call, header, rank);
                break;
            }
        }
    }
    __syncthreads();
    return true;
}

/* ---- what has been stored ---- */

EP_DEVICE wefti_u64 *ep_many_done_word(const ep_group &group, int reader, int writer, int which)
{
    return (wefti_u64 *)(ep_directory_of(group)->area[reader] + group.at.rows_ready) +
           (wefti_u64)which * (wefti_u64)group.ranks + (wefti_u64)writer;
}

/* All blocks have stored what they store at other ranks: tell these, then wait for the same of them. `deadlines`: of
 * calls that pass ranks by. All threads. False: a rank or block did not come. */
EP_DEVICE bool ep_many_exchange(const ep_group &group, const ep_tables &tables, ep_many_call *call, int which,
                                wefti_u32 deadlines)
{
    if (!ep_many_meet(&group, &tables, call)) {
        return false;
    }
    for (int i = (int)threadIdx.x; i < group.ranks && blockIdx.x == 0; i += (int)blockDim.x) {
        const int rank = (group.rank + 1 + i) % group.ranks;
        if (ep_many_is_alive(call, rank)) {
            wefti_st_release(ep_many_done_word(group, rank, group.rank, which), ep_packed(call->tag, 1));
        }
    }
    for (int rank = (int)threadIdx.x; rank < group.ranks; rank += (int)blockDim.x) {
        if (ep_many_is_alive(call, rank)) {
            const wefti_u64 *word = ep_many_done_word(group, group.rank, rank, which);
            (void)ep_many_await_in(group, call, word, rank, deadlines);
            (void)wefti_ld_acquire(word);
        }
    }
    if constexpr (EP_MANY_PASSES) { /* who has not stored it all is left out by all blocks */
        __syncthreads(); /* behind the acquires */
        return ep_many_meet(&group, &tables, call);
    }
    return ep_many_is_well(call);
}

/* ---- memory of calls that pass ranks by ---- */

/* Where `writer` stores at `reader`. */
EP_DEVICE wefti_u64 ep_many_passing_at(const ep_group &group, int reader, int writer,
                                       const wefti_cuda_ep_passing &memory)
{
    return ep_directory_of(group)->area[reader] + memory.at + (wefti_u64)writer * memory.each;
}

EP_DEVICE wefti_u64 ep_many_passing_rows(const ep_group &group, int reader, int writer)
{
    return ep_many_passing_at(group, reader, writer, wefti_cuda_ep_passing_rows(&group.at));
}

/* Where records that `writer` stores at `reader` begin, of all that are there or, of calls that pass ranks by, of its
 * own; and scales. */
EP_DEVICE wefti_u64 ep_many_records(const ep_group &group, int reader, int writer)
{
    return EP_MANY_PASSES ? ep_many_passing_at(group, reader, writer, wefti_cuda_ep_passing_records(&group.at))
                          : ep_directory_of(group)->area[reader] + group.at.records;
}

EP_DEVICE wefti_u64 ep_many_scales(const ep_group &group, int reader, int writer)
{
    return EP_MANY_PASSES ? ep_many_passing_at(group, reader, writer, wefti_cuda_ep_passing_scales(&group.at))
                          : ep_directory_of(group)->area[reader] + group.at.scales;
}

#endif
