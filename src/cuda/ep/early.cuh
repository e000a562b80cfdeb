/* cuda/ep/early.cuh: slots of few tokens: what leaves before its receivers have been heard.
 *
 * In slots the place of a row at its receiver follows from its source's own choices, so a row can leave as soon as its token is
 * known to go there: to memory that is the source's at that rank, by the parity of the epoch (shape.h says why it is free).
 * Every block works out all choices by itself, so that blocks of a rank do not wait for each other either. A warp takes a
 * slice of a row, or a record, stores it to all its ranks, and tells each by a word; where the slice is wanted a warp waits
 * for that word and copies it to where the caller has it. So a call is one flight long; the lines are on their way meanwhile.
 *
 * Bytes: each row is read once, written once to each of its ranks, and read and written once more there, out of the second
 * level cache. */
#ifndef WEFTI_CUDA_EP_EARLY_CUH
#define WEFTI_CUDA_EP_EARLY_CUH

#include "cuda/ep/halves.cuh"

enum ep_part { EP_WHOLE, EP_SEND, EP_RECV };

/* False: the group has failed. All threads. */
template <ep_part PART> EP_DEVICE bool ep_begin_part(const ep_group &group, ep_call *call)
{
    return PART == EP_SEND ? ep_begin_send(group, call)
           : PART == EP_RECV ? ep_begin_recv(group, call)
                             : ep_begin(group, call);
}

/* What this epoch uses, as offsets. */
EP_DEVICE const wefti_cuda_ep_early &ep_early(const ep_group &group, const ep_call *call)
{
    return group.at.early[call->epoch & 1];
}

/* The words that `writer` writes at `reader`. */
EP_DEVICE wefti_u64 *ep_early_words(const ep_group &group, const ep_call *call, int reader, int writer)
{
    return (wefti_u64 *)(group.area[reader] + ep_early(group, call).words) +
           (wefti_u64)writer * group.at.early_words;
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

/* This warp's number among the warps of the grid, neighbours in different blocks. */
EP_DEVICE int ep_warp_of_grid()
{
    return ep_warp() * (int)gridDim.x + (int)blockIdx.x;
}

EP_DEVICE int ep_warps_of_grid()
{
    return ep_warps() * (int)gridDim.x;
}

#endif
