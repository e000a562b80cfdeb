/* cuda/ep/device/values.cuh: gradients of weights, a float a choice, from the rank that has the choice's row back to
 * its source.
 *
 * Where each source has one place for a choice (a backward of combine; by expert of dispatch, where ranks are few) it
 * clears its `values` before its call header, and the owners store to them after it: a choice that nobody has stays 0.
 * Words that announce rows of a unit announce its values, or, of a backward of combine, those in `returned`. */
#ifndef WEFTI_CUDA_EP_DEVICE_VALUES_CUH
#define WEFTI_CUDA_EP_DEVICE_VALUES_CUH

#include "cuda/ep/device/call.cuh"
#include "cuda/ep/device/record.cuh"

/* Where the values of `token` are at its source. */
EP_DEVICE float *ep_values(const ep_group &group, int source, int topk, wefti_u32 token)
{
    return (float *)(group.area[source] + group.at.values) + (wefti_u64)token * (wefti_u64)topk;
}

/* By the block that posts the call header, before it does. All threads. */
EP_DEVICE void ep_clear_values(const ep_group &group, const ep_call *call, int topk)
{
    float *values = ep_values(group, group.rank, topk, 0);
    for (int i = (int)threadIdx.x; i < call->tokens * topk; i += (int)blockDim.x) {
        values[i] = 0.0f;
    }
    __syncthreads();
}

/* Whether choice k of a received token is of this rank. */
template <class LAYOUT> EP_DEVICE bool ep_is_here(const wefti_u32 *record, int topk, int k)
{
    return LAYOUT::ROWS_OF_CHOICES ? ep_record_row(record, topk, k) != WEFTI_CUDA_EP_NO_ROW
                                   : (wefti_i32)ep_record_expert(record, k) >= 0;
}

/* What the caller has for choice k of the token at `place`. */
template <class LAYOUT>
EP_DEVICE float ep_given_value(const float *given, const wefti_u32 *record, int topk, wefti_u64 place, int k)
{
    return given[LAYOUT::ROWS_OF_CHOICES ? (wefti_u64)ep_record_row(record, topk, k)
                                         : place * (wefti_u64)topk + (wefti_u64)k];
}

/* Send the gradients of weights that were given for a row to its source. Called by a warp. */
template <class LAYOUT>
EP_DEVICE void ep_return_given(const ep_group &group, const float *given, const wefti_u32 *record, int topk, int source,
                               wefti_u64 place)
{
    float *to = ep_values(group, source, topk, record[0]);
    for (int k = ep_lane(); k < topk; k += 32) {
        if (ep_is_here<LAYOUT>(record, topk, k)) {
            to[k] = ep_given_value<LAYOUT>(given, record, topk, place, k);
        }
    }
}

/* What has come for a token, to the caller. A warp. */
EP_DEVICE void ep_take_values(const ep_group &group, float *to, int topk, int token)
{
    const float *values = ep_values(group, group.rank, topk, (wefti_u32)token);
    for (int k = ep_lane(); k < topk; k += 32) {
        to[(wefti_u64)token * (wefti_u64)topk + (wefti_u64)k] = values[k];
    }
}

#endif
