/* cuda/ep/routing/after.cu: kernels that go on with what calls have left, on their streams, and wait for nobody: after
 * each call of a group with WEFT_EP_STATISTICS what it received and whom it waited for is added to what is kept; before
 * each call of a group of two banks that masks by itself (masking.h); and that of weft_ep_route_pad. */
#include "cuda/ep/device/base.cuh"
#include "cuda/ep/masking.h"
#include "cuda/ep/pad.h"

typedef wefti_cuda_ep_pad_args ep_padding;

/* Whether the call that was last on its bank moved rows. */
EP_DEVICE bool ep_was_completed(const ep_stats &args)
{
    const wefti_u32 epoch = (wefti_u32)args.control->epoch; /* 0: of a group inside whose calls all go directly */
    const bool matched = epoch == 0 || (wefti_u32)wefti_ld_relaxed(args.mismatch) != epoch << 1;
    const int status =
        args.counted == WEFTI_CUDA_EP_COUNTED_DISPATCH ? args.route_header->status : args.route_header->routed;
    return args.control->failed == 0 && matched && status != WEFT_ERR_OVERFLOW && status != WEFT_ERR_MISMATCH;
}

/* Calls of two banks may be on two streams, so it is added by atomics. All threads of one block. */
EP_DEVICE void ep_add_statistics(const ep_stats &args)
{
    unsigned long long *waits = (unsigned long long *)args.control->waits;
    const bool is_dispatch = args.counted == WEFTI_CUDA_EP_COUNTED_DISPATCH;
    const bool counts = args.counted != WEFTI_CUDA_EP_COUNTED_NOT && ep_was_completed(args);
    unsigned long long *sums = (unsigned long long *)(is_dispatch ? args.dispatch_waits : args.combine_waits);
    for (int rank = (int)threadIdx.x; rank < args.ranks; rank += (int)blockDim.x) {
        if (counts && waits[rank] != 0) {
            atomicAdd(&sums[rank], waits[rank]);
        }
        waits[rank] = 0;
    }
    for (int expert = (int)threadIdx.x; counts && is_dispatch && args.rows_of_expert != 0 && expert < args.experts;
         expert += (int)blockDim.x) {
        atomicAdd((unsigned long long *)&args.rows[expert], (unsigned long long)args.rows_of_expert[expert]);
    }
    if (counts && threadIdx.x == 0) {
        atomicAdd((unsigned long long *)&args.calls[is_dispatch ? 0 : 1], 1ull);
    }
}

EP_KERNEL(10statistics, C1, ep_stats, ep_add_statistics)

/* Stores of this bank's kernels to its words are over. A thread has two of them. */
EP_DEVICE void ep_take_masks(const wefti_cuda_ep_masking_args &args)
{
    const int first = 2 * (int)threadIdx.x;
    wefti_u64 told = 0;
    bool is_new = false;
    for (int word = first; word < args.words && word < first + 2; word++) {
        const wefti_u32 own = wefti_ld_relaxed(&args.masked[word]);
        const wefti_u32 all = own | wefti_ld_relaxed(&args.other[word]);
        is_new = is_new || all != own;
        told |= (wefti_u64)all << 32 * (word - first);
        wefti_st_relaxed(&args.masked[word], all);
    }
    if (is_new) {
        wefti_st_release(&args.told[threadIdx.x], told);
    }
}

EP_KERNEL(5masks, C1, wefti_cuda_ep_masking_args, ep_take_masks)

/* How many rows the routing filled. */
EP_DEVICE wefti_u32 ep_rows_filled(const ep_padding &args)
{
    const int status = *args.status;
    return status == WEFT_OK || status == WEFT_ERR_RANGE ? (wefti_u32)*args.rows : 0;
}

/* How many rows may hold something else than padding. The last block that reads the mark sets it. A thread a block. */
EP_DEVICE wefti_u32 ep_rows_dirty(const ep_padding &args, wefti_u32 filled)
{
    if (args.mark == 0) {
        return args.capacity;
    }
    const wefti_u64 mark = atomicAdd((unsigned long long *)args.mark, 1ull << 32);
    if ((wefti_u32)(mark >> 32) == gridDim.x - 1) {
        *args.mark = filled;
    }
    return (wefti_u32)mark < args.capacity ? (wefti_u32)mark : args.capacity;
}

/* A warp. */
EP_DEVICE void ep_pad_row(const ep_padding &args, wefti_u32 row)
{
    const wefti_cuda_ep_arrays &arrays = args.arrays;
    uint4 *data = (uint4 *)(args.out + row * args.pitch);
    for (wefti_u32 i = (wefti_u32)ep_lane(); i < args.row_bytes / 16; i += 32) {
        data[i] = make_uint4(0, 0, 0, 0);
    }
    for (wefti_u32 i = (wefti_u32)ep_lane(); i < args.scale_words; i += 32) {
        args.scales.words[row * args.scales.row_stride + i * args.scales.word_stride] = 0;
    }
    for (wefti_u32 i = (wefti_u32)ep_lane(); i < args.places; i += 32) {
        const wefti_u64 at = (wefti_u64)row * args.places + i;
        if (arrays.weights != 0) {
            arrays.weights[at] = 0;
        }
        if (arrays.experts != 0 && arrays.wide_experts) {
            ((wefti_i64 *)arrays.experts)[at] = -1;
        } else if (arrays.experts != 0) {
            arrays.experts[at] = -1;
        }
    }
    if (ep_lane() == 0 && arrays.source_rank != 0) {
        arrays.source_rank[row] = -1;
    }
    if (ep_lane() == 0 && arrays.source_token != 0) {
        arrays.source_token[row] = -1;
    }
}

EP_DEVICE void ep_pad_rows(const ep_padding &args)
{
    EP_SHARED(wefti_u32, dirty);
    const wefti_u32 filled = ep_rows_filled(args);
    if (threadIdx.x == 0) {
        dirty = ep_rows_dirty(args, filled);
    }
    __syncthreads();
    const wefti_u32 warps = gridDim.x * (wefti_u32)ep_warps();
    for (wefti_u32 row = filled + blockIdx.x * (wefti_u32)ep_warps() + (wefti_u32)ep_warp(); row < dirty;
         row += warps) {
        ep_pad_row(args, row);
    }
}

EP_KERNEL(3pad, C1, ep_padding, ep_pad_rows)
