/* cuda/ep/early.cuh: slots of few tokens: what leaves before its receivers have been heard.
 *
 * In slots the place of a row at its receiver follows from its source's own choices, so a row can leave as soon as its token is
 * known to go there: to memory that is the source's at that rank, by the parity of the epoch (shape.h says why it is free).
 * Every block works out all choices by itself, so that blocks of a rank do not wait for each other either. A warp takes a
 * slice of a row, or a record, stores it to all its ranks, and tells each by a word; where the slice is wanted a warp waits
 * for that word and copies it to where the caller has it. So a call is one flight long; the lines are on their way meanwhile.
 * The first `movers` warps of a block send, and those that have nothing to send write down what later calls are to find; the
 * others say, and take what comes, in which the first ones join.
 *
 * Bytes: each row is read once, written once to each of its ranks, and read and written once more there, out of the second
 * level cache. */
#ifndef WEFTI_CUDA_EP_EARLY_CUH
#define WEFTI_CUDA_EP_EARLY_CUH

#include "cuda/ep/halves.cuh"

enum ep_part { EP_WHOLE, EP_SEND, EP_RECV };

/* ---- what a call begins with: little, but nothing of it is in any cache ---- */

/* Have `bytes` bytes in the second level cache. A warp. */
EP_DEVICE void ep_prefetch(const void *from, wefti_u32 bytes)
{
    for (wefti_u32 at = (wefti_u32)ep_lane() * 128; at < bytes; at += 32 * 128) {
        wefti_prefetch((const unsigned char *)from + at);
    }
}

/* The routing of the last update into `call`, before it is known who is alive. */
EP_DEVICE void ep_early_recall(const ep_group &group, ep_call *call, const ep_sheet &sheet)
{
    const int i = (int)threadIdx.x - 32;
    if (i >= 0 && i < group.ranks) {
        call->total[i] = sheet.sent[i];
        call->count[i] = (wefti_u32)sheet.rows_of_source[i];
        call->from[i] = (wefti_u32)sheet.offset_of_source[i];
    }
    if (i == group.ranks) {
        call->route = sheet.facts->epoch;
        call->route_status = sheet.facts->routed;
    }
}

/* False: the group has failed. All threads. */
template <ep_part PART> EP_DEVICE bool ep_early_begin(const ep_group &group, ep_call *call)
{
    if (threadIdx.x == 0) {
        wefti_cuda_ep_own *own = ep_own(group);
        call->heard = 0;
        ep_begin_at(group, call, PART == EP_RECV ? own->half_epoch : wefti_ld_relaxed(&own->epoch) + 1);
    }
    __syncthreads();
    if (PART != EP_RECV && threadIdx.x == 0) {
        ep_advance(group, call);
    }
    if (PART == EP_SEND && blockIdx.x == 0 && threadIdx.x == 0) {
        ep_own(group)->half_epoch = call->epoch;
    }
    if (call->alive != (wefti_u32)((1ull << group.ranks) - 1)) {
        if (threadIdx.x < (unsigned)group.ranks && (call->alive >> threadIdx.x & 1) == 0) {
            call->count[threadIdx.x] = 0;
        }
        __syncthreads();
    }
    return call->failed == 0;
}

/* ---- hearing ---- */

/* The last warp of a block hears for it: all warps looking at the same few words would keep them from coming. */
enum { EP_HEARD_ALL = 1, EP_HEARD_IN_VAIN = 2 };
#define EP_HEAR_REST_NS 32

/* Lane r's words of rank r's line, as the rest of the block needs them: status, T, and tokens of a new routing. False: a rank
 * did not come. A warp. */
EP_DEVICE bool ep_hear_lines(const ep_group &group, ep_call *call, const ep_saying &saying, bool fresh)
{
    enum { WORDS = 5 };
    const int rank = ep_lane();
    const bool here = rank < group.ranks && (call->alive >> rank & 1) != 0;
    const wefti_u64 *line = ep_line(group, call, group.rank, here ? rank : group.rank);
    const int at[WORDS] = {WEFTI_CUDA_EP_SHAPE_LOW, WEFTI_CUDA_EP_SHAPE_HIGH, WEFTI_CUDA_EP_ROUTE, WEFTI_CUDA_EP_TOKENS,
                           WEFTI_CUDA_EP_WORDS + group.rank};
    wefti_u64 seen[WORDS];
    wefti_u32 words[WORDS];
    bool well = true;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        seen[i] = wefti_ld_relaxed(line + at[i]);
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        words[i] = (wefti_u32)seen[i];
        if (here && (wefti_u32)(seen[i] >> 32) != call->tag) {
            well = well && ep_await_value(group, line + at[i], call->tag, rank, &words[i]);
        }
    }
    const bool differs = here && (words[0] != (wefti_u32)saying.shape || words[1] != (wefti_u32)(saying.shape >> 32) ||
                                  words[2] != saying.route);
    if (rank < group.ranks) {
        call->tokens_of[rank] = here ? (int)words[3] : 0;
        call->count[rank] = fresh ? (here ? words[4] : 0) : call->count[rank];
    }
    const bool odd = __any_sync(~0u, differs);
    if (rank == 0) {
        call->status = odd ? WEFT_ERR_MISMATCH : WEFT_OK;
    }
    if (differs && blockIdx.x == 0) {
        wefti_st_release(&group.news[WEFTI_CUDA_EP_NEWS_ODD], (wefti_u64)(rank + 1) << 32 | call->tag);
    }
    return __all_sync(~0u, well);
}

/* Until all ranks are heard. All warps, each by itself. False: a rank did not come. */
EP_DEVICE bool ep_hear_once(const ep_group &group, ep_call *call, const ep_saying &saying, bool fresh)
{
    wefti_u32 heard = 0;
    if (ep_warp() == ep_warps() - 1) {
        heard = ep_hear_lines(group, call, saying, fresh) ? EP_HEARD_ALL : EP_HEARD_IN_VAIN;
        __threadfence_block();
        __syncwarp();
        if (ep_lane() == 0) {
            (void)atomicOr(&call->heard, heard);
        }
        __syncwarp();
        return heard == EP_HEARD_ALL;
    }
    if (ep_lane() == 0) {
        while ((heard = atomicOr(&call->heard, 0u)) == 0) { /* ends as the last warp's waits do */
            wefti_rest(EP_HEAR_REST_NS);
        }
    }
    heard = __shfl_sync(~0u, heard, 0);
    __threadfence_block();
    return heard == EP_HEARD_ALL;
}

/* ---- early memory ---- */

#define EP_SPEAKERS 2 /* the last warps of block 0 */

/* What this epoch uses, as offsets. */
EP_DEVICE const wefti_cuda_ep_early &ep_early(const ep_group &group, const ep_call *call)
{
    return group.at.early[call->epoch & 1];
}

/* The words that `writer` writes at `reader`. */
EP_DEVICE wefti_u64 *ep_early_words(const ep_group &group, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(group.area[reader] + ep_early(group, call).words) + (wefti_u64)writer * group.at.early_words;
}

/* The rows that rank `writer` writes at `reader`, of `slots` each. */
EP_DEVICE wefti_u64 ep_early_rows(const ep_group &group, const ep_call *call, int reader, int writer, wefti_u32 slots,
                                  wefti_u32 row_bytes)
{
    return group.area[reader] + ep_early(group, call).rows + (wefti_u64)writer * slots * row_bytes;
}

/* This lane's thing is at `rank`, for all that the warp stored: after __syncwarp. */
EP_DEVICE void ep_early_tell(const ep_group &group, const ep_call *call, int rank, int word)
{
    wefti_st_release(ep_early_words(group, call, rank, group.rank) + word, ep_packed(call->tag, 1));
}

/* Until the word is there. A lane. False: it did not come. */
EP_DEVICE bool ep_early_await(const ep_group &group, const ep_call *call, int rank, int word)
{
    wefti_u32 value;
    return ep_await(group, ep_early_words(group, call, group.rank, rank) + word, call->tag, rank, 0, &value);
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

/* ---- who does what ---- */

/* A share of the warps, or threads, of a grid: its number among them, neighbours in different blocks, and how many there are. */
typedef struct ep_crew {
    int number;
    int count;
} ep_crew;

/* This warp among all; the last come first, as they have nothing else to do. */
EP_DEVICE ep_crew ep_crew_of_all()
{
    const int blocks = (int)gridDim.x;
    ep_crew crew = {(ep_warps() - 1 - ep_warp()) * blocks + (int)blockIdx.x, ep_warps() * blocks};
    return crew;
}

/* Among the first `movers` warps of each block, which send. */
EP_DEVICE ep_crew ep_crew_of_movers(int movers)
{
    const int blocks = (int)gridDim.x;
    ep_crew crew = {ep_warp() * blocks + (int)blockIdx.x, movers * blocks};
    return crew;
}

/* The same for what need not be soon: those that have the least to send come first. */
EP_DEVICE ep_crew ep_crew_of_idle(int movers)
{
    ep_crew crew = ep_crew_of_movers(movers);
    crew.number = crew.count - 1 - crew.number;
    return crew;
}

/* This thread among those of the warps from `movers` on. */
EP_DEVICE ep_crew ep_crew_of_speakers(int movers)
{
    const int blocks = (int)gridDim.x;
    ep_crew crew = {((int)threadIdx.x - movers * 32) * blocks + (int)blockIdx.x, (ep_warps() - movers) * 32 * blocks};
    return crew;
}

#endif
