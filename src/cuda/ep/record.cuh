/* cuda/ep/record.cuh: by expert, the words of a received token: its number, K experts, K weights, K rows here. */
#ifndef WEFTI_CUDA_EP_RECORD_CUH
#define WEFTI_CUDA_EP_RECORD_CUH

#include "cuda/ep/words.cuh"

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

/* Whether an earlier choice has the same row. */
EP_DEVICE bool ep_row_is_again(const wefti_u32 *record, int topk, int k)
{
    bool again = false;
    for (int before = 0; before < k; before++) {
        again = again || ep_record_row(record, topk, before) == ep_record_row(record, topk, k);
    }
    return again;
}

/* Lane i knows choice base + i: whether it has a row, and which; with `once`, one that no choice before it has. */
EP_DEVICE bool ep_has_row(const wefti_u32 *record, int topk, bool once, int base, wefti_u32 *row)
{
    int k = base + ep_lane();
    *row = k < topk ? ep_record_row(record, topk, k) : WEFTI_CUDA_EP_NO_ROW;
    return *row != WEFTI_CUDA_EP_NO_ROW && !(once && ep_row_is_again(record, topk, k));
}

#endif
