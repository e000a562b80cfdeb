/* cuda/ep/routing/after.cu: kernels that go on with what calls have left, on their streams, and wait for nobody: after
 * each call of a group with WEFT_EP_STATISTICS what it received and whom it waited for is added to what is kept; and
 * before each call of a group of two channels that masks by itself (masking.h). */
#include "cuda/ep/device/base.cuh"
#include "cuda/ep/masking.h"

/* Whether the call that was last on its channel moved rows. */
EP_DEVICE bool ep_was_completed(const ep_stats &args)
{
    const bool matched = (wefti_u32)wefti_ld_relaxed(args.mismatch) != (wefti_u32)args.control->epoch << 1;
    const int status =
        args.counted == WEFTI_CUDA_EP_COUNTED_DISPATCH ? args.route_header->status : args.route_header->routed;
    return args.control->failed == 0 && matched && status != WEFT_ERR_OVERFLOW && status != WEFT_ERR_MISMATCH;
}

/* Calls of two channels may be on two streams, so it is added by atomics. All threads of one block. */
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

/* Stores of this channel's kernels to its word are over. One thread. */
EP_DEVICE void ep_take_masks(const wefti_cuda_ep_masking_args &args)
{
    const wefti_u32 own = wefti_ld_relaxed(&args.control->masked);
    const wefti_u32 all = own | wefti_ld_relaxed(&args.other->masked);
    if (threadIdx.x == 0 && all != own) {
        wefti_st_relaxed(&args.control->masked, all);
        wefti_st_release(args.told, (wefti_u64)all);
    }
}

EP_KERNEL(5masks, C1, wefti_cuda_ep_masking_args, ep_take_masks)
