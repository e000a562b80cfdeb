/* cuda/ep/low_latency/low_latency.cuh: slots of few tokens: what leaves before the call headers of its receivers have
 * come.
 *
 * In slots the place of a row at its receiver follows from its source's own choices, so a row can leave as soon as its
 * token is known to go there: to memory that is the source's at that rank, by the parity of the epoch (memory.h says
 * why it is free). Every block works out all choices by itself, so that blocks of a rank do not wait for each other
 * either. A warp takes a slice of a row, or a record, stores it to all its ranks, and tells each by a word; where the
 * slice is wanted a warp waits for that word and copies it to where the caller has it. So a call is one flight long;
 * the call headers are on their way meanwhile. The first `sender_warps` warps of a block send, and those that have
 * nothing to send write down what later calls are to find; the others post the call header and take what comes, in
 * which the first ones join.
 *
 * Bytes: each row is read once, written once to each of its ranks, and read and written once more there, out of the
 * second level cache. */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_LOW_LATENCY_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_LOW_LATENCY_CUH

#include "cuda/ep/device/signal.cuh"
#include "cuda/ep/device/warp_roles.cuh"
#include "cuda/ep/routing/count.cuh"

/* ---- what a call begins with ---- */

/* Have `bytes` bytes in the second level cache. A warp. */
EP_DEVICE void ep_prefetch(const void *from, wefti_u32 bytes)
{
    for (wefti_u32 at = (wefti_u32)ep_lane() * 128; at < bytes; at += 32 * 128) {
        wefti_prefetch((const unsigned char *)from + at);
    }
}

/* As ep_look_up, for low-latency calls. The prologue warps. */
template <ep_phase PHASE, class ARGS> EP_DEVICE void ep_low_latency_look_up(const ARGS &args, ep_call *call)
{
    const ep_group &group = args.group;
    if (ep_looks_up()) {
        wefti_cuda_ep_control *control = ep_control(group);
        ep_begin_at(group, call,
                    ep_does<PHASE, EP_RECV>(args) ? control->half_epoch : wefti_ld_relaxed(&control->epoch) + 1);
        call->headers_here = 0;
    }
}

/* As ep_begin, for low-latency calls. All threads. */
template <ep_phase PHASE, class ARGS> EP_DEVICE bool ep_low_latency_begin(const ARGS &args, ep_call *call)
{
    __syncthreads();
    if (!ep_does<PHASE, EP_RECV>(args) && threadIdx.x == 0) {
        ep_advance(args.group, call);
    }
    ep_note_half<PHASE>(args, call);
    ep_forget_masked(args.group, call);
    return call->failed == 0;
}

/* ---- waiting for call headers ---- */

/* The last warp of a block waits for all call headers, the others for it: all warps looking at the same few words would
 * keep them from coming. */
enum { EP_HEADERS_ALL = 1, EP_HEADERS_MISSING = 2 };
#define EP_HEADERS_REST_NS 32

/* Rank r's call header, as the rest of the block needs it: status, T, and tokens of a new routing. A lane a word, so
 * that all looks, and all looks again, are one. False: a rank did not come. A warp. */
EP_DEVICE bool ep_wait_header_words(const ep_group &group, ep_call *call, const ep_call_header &header, bool fresh)
{
    enum { AGREED = 3, WORDS = 5 }; /* which call; T; tokens */
    bool well = true;
    for (int i = ep_lane(); i < WORDS * group.ranks; i += 32) {
        const int source = i / WORDS;
        const int which = i % WORDS;
        const int word = which < AGREED    ? WEFTI_CUDA_EP_SIGNATURE_LOW + which
                         : which == AGREED ? (int)WEFTI_CUDA_EP_TOKENS
                                           : (int)WEFTI_CUDA_EP_HEADER_WORDS + group.rank;
        wefti_u32 value = 0;
        if ((call->alive >> source & 1) != 0) {
            well = ep_await_value(group, ep_header_words(group, call, group.rank, source) + word, call->tag, source,
                                  &value) &&
                   well;
        }
        call->headers[source][word] = value;
    }
    __syncwarp();
    const int rank = ep_lane();
    const bool here = rank < group.ranks && (call->alive >> rank & 1) != 0;
    const bool differs = here && !ep_agrees(call, header, rank);
    if (rank < group.ranks) {
        call->tokens_of[rank] = (int)call->headers[rank][WEFTI_CUDA_EP_TOKENS];
        call->count[rank] = fresh ? call->headers[rank][WEFTI_CUDA_EP_HEADER_WORDS + group.rank] : call->count[rank];
    }
    const bool mismatch = __any_sync(~0u, differs);
    if (rank == 0) {
        call->status = mismatch ? WEFT_ERR_MISMATCH : WEFT_OK;
    }
    if (mismatch) {
        ep_report_mismatch(group, call, header, differs);
    }
    return __all_sync(~0u, well);
}

/* Until all call headers are here. All warps, each by itself. ACQUIRES: and what came before them; who reads that
 * fences once more. False: a rank did not come. */
template <bool ACQUIRES>
EP_DEVICE bool ep_wait_headers_once(const ep_group &group, ep_call *call, const ep_call_header &header, bool fresh)
{
    wefti_u32 headers_here = 0;
    if (ep_warp() == ep_warps() - 1) {
        headers_here = ep_wait_header_words(group, call, header, fresh) ? EP_HEADERS_ALL : EP_HEADERS_MISSING;
        if (ACQUIRES) {
            wefti_fence_acq_rel(); /* each lane, of the words that it has read */
        }
        __syncwarp();
        if (ep_lane() == 0) { /* releases what all lanes wrote and acquired: so its fence comes after they met */
            __threadfence_block();
            (void)atomicOr(&call->headers_here, headers_here);
        }
        __syncwarp();
        return headers_here == EP_HEADERS_ALL;
    }
    if (ep_lane() == 0) {
        while ((headers_here = atomicOr(&call->headers_here, 0u)) == 0) { /* ends as the last warp's waits do */
            wefti_rest(EP_HEADERS_REST_NS);
        }
    }
    __threadfence_block();
    __syncwarp(); /* what lane 0 has acquired is every lane's */
    headers_here = __shfl_sync(~0u, headers_here, 0);
    return headers_here == EP_HEADERS_ALL;
}

/* ---- low-latency memory ---- */

/* What this epoch uses, as offsets. */
EP_DEVICE const wefti_cuda_ep_low_latency &ep_low_latency(const ep_group &group, const ep_call *call)
{
    return group.at.low_latency[call->epoch & 1];
}

/* The words that `writer` writes at `reader`. */
EP_DEVICE wefti_u64 *ep_low_latency_words(const ep_group &group, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(group.area[reader] + ep_low_latency(group, call).words) +
           (wefti_u64)writer * group.at.low_latency_words;
}

/* The rows that rank `writer` writes at `reader`, of `slots` each. */
EP_DEVICE wefti_u64 ep_low_latency_rows(const ep_group &group, const ep_call *call, int reader, int writer,
                                        wefti_u32 slots, wefti_u32 row_bytes)
{
    return group.area[reader] + ep_low_latency(group, call).rows + (wefti_u64)writer * slots * row_bytes;
}

/* This lane's thing is there, for all that the warp stored: after __syncwarp. `words`: those that this rank writes
 * there. */
EP_DEVICE void ep_low_latency_post(const ep_call *call, wefti_u64 *words, int word)
{
    wefti_st_release(words + word, ep_packed(call->tag, 1));
}

/* Until the word is there, as it mostly is when the call headers are here: so the first look acquires. A lane. False:
 * it did not come. */
EP_DEVICE bool ep_low_latency_await(const ep_group &group, const ep_call *call, int rank, int word)
{
    const wefti_u64 *at = ep_low_latency_words(group, call, group.rank, rank) + word;
    wefti_u32 value;
    return (wefti_u32)(wefti_ld_acquire(at) >> 32) == call->tag || ep_await(group, at, call->tag, rank, 0, &value);
}

/* Vectors first .. end - 1 of a row. */
typedef struct ep_slice {
    int first;
    int end;
} ep_slice;

EP_DEVICE ep_slice ep_slice_of(const wefti_cuda_ep_slices &slices, int number, wefti_u32 row_bytes)
{
    const int vectors = (int)(row_bytes / 16);
    ep_slice slice = {number * slices.each, number * slices.each + slices.each};
    slice.end = slice.end < vectors ? slice.end : vectors;
    return slice;
}

/* ---- copies ---- */

/* The next vectors of a slice that a lane copies, which are loaded before it is known where they go, or while the ones
 * before are stored. */
#define EP_AHEAD 4
typedef struct ep_ahead {
    uint4 vectors[EP_AHEAD];
} ep_ahead;

/* Those from the slice's first on. Without a condition, as in ep_include. A warp. */
EP_DEVICE void ep_load_ahead(ep_ahead *ahead, const unsigned char *row, const ep_slice &slice)
{
    const uint4 *source = (const uint4 *)row;
#pragma unroll
    for (int i = 0; i < EP_AHEAD; i++) {
        const int at = slice.first + ep_lane() + 32 * i;
        ahead->vectors[i] = source[at < slice.end ? at : slice.end - 1];
    }
}

/* A slice of the row, whose first vectors have been loaded, to the addresses that `lanes` have. A warp. */
EP_DEVICE void ep_copy_ahead(ep_ahead *ahead, wefti_u32 lanes, wefti_u64 to, const unsigned char *row, ep_slice slice)
{
    while (slice.first < slice.end) {
        const ep_ahead here = *ahead;
        const ep_slice rest = {slice.first + 32 * EP_AHEAD, slice.end};
        if (rest.first < rest.end) {
            ep_load_ahead(ahead, row, rest);
        }
        for (wefti_u32 left = lanes; left != 0; left &= left - 1) {
            uint4 *target = (uint4 *)__shfl_sync(~0u, to, __ffs((int)left) - 1);
#pragma unroll
            for (int i = 0; i < EP_AHEAD; i++) {
                const int at = slice.first + ep_lane() + 32 * i;
                if (at < slice.end) {
                    target[at] = here.vectors[i];
                }
            }
        }
        slice = rest;
    }
}

#endif
