/* cuda/ep/device/record.cuh: by expert, the words of a received token: number, K experts, K weights, K rows here. */
#ifndef WEFTI_CUDA_EP_DEVICE_RECORD_CUH
#define WEFTI_CUDA_EP_DEVICE_RECORD_CUH

#include "cuda/ep/device/base.cuh"

EP_DEVICE wefti_u32 ep_record_expert(const wefti_u32 *record, int k)
{
    return record[1 + k];
}

EP_DEVICE float ep_record_weight(const wefti_u32 *record, int topk, int k)
{
    return __uint_as_float(record[1 + topk + k]);
}

EP_DEVICE wefti_u32 ep_record_row(const wefti_u32 *record, int topk, int k)
{
    return record[1 + 2 * topk + k];
}

/* Lane i knows choice base + i: whether it has a row, and which; with `once`, one that no choice before it has. A
 * warp. */
EP_DEVICE bool ep_has_row(const wefti_u32 *record, int topk, bool once, int base, wefti_u32 *row)
{
    const int k = base + ep_lane();
    const wefti_u32 here = k < topk ? ep_record_row(record, topk, k) : WEFTI_CUDA_EP_NO_ROW;
    bool again = false;
    if (once) {
        again = (__match_any_sync(~0u, (int)here) & ((1u << ep_lane()) - 1)) != 0;
        for (int before = 0; before < base; before++) {
            again = again || ep_record_row(record, topk, before) == here;
        }
    }
    *row = here;
    return here != WEFTI_CUDA_EP_NO_ROW && !again;
}

#endif
