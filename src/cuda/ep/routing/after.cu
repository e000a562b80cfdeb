/* cuda/ep/routing/after.cu: a kernel after each call of a group with WEFT_EP_STATISTICS, on its stream: what the call
 * received and whom it waited for is added to what is kept. It waits for nobody. */
#include "cuda/ep/device/base.cuh"

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
