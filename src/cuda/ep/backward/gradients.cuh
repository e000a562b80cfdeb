/* cuda/ep/backward/gradients.cuh: the backward of combine, once a token's gradient has come: to each of its rows, times
 * what combine weighed the row with; and the dot products with what combine was given, back to the source. A way of
 * throughput/dispatch.cuh (combine_bwd.cu, positions.cu) and of many/dispatch.cuh.
 *
 * Grid, blocks, sender warps and shared memory: as of throughput/dispatch.cuh, of a routing that is there; no counts
 *     and no stages of scales are used.
 * Flags: call header, rows_ready; returned, with gradients of weights.
 *
 *     receivers  of each unit of any source, once `rows_ready` is there: a warp a token: its gradient, from where it
 *                has come, to each of its rows, times the row's factor; with gradients of weights first its dot
 *                products to its source, then the unit's word in `returned` there
 *     receivers  with gradients of weights: of each unit of this block, once all ranks have returned it (by position:
 *                have returned all units): those of its tokens to the caller's array
 *
 * Bytes: a gradient is read once and written once to each rank of its token; there it is read once and written once a
 * row; with gradients of weights each result of the combine is read once, and 4 bytes a choice go back. Floor: as of a
 * dispatch by source, and behind it these reads and writes over the rate of the GPU's memory. */
#ifndef WEFTI_CUDA_EP_BACKWARD_GRADIENTS_CUH
#define WEFTI_CUDA_EP_BACKWARD_GRADIENTS_CUH

#include "cuda/ep/device/dot.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/device/values.cuh"
#include "cuda/ep/throughput/recv.cuh"

/* ---- rows ---- */

template <int DTYPE> EP_DEVICE uint4 ep_scaled(const uint4 &vector, float factor)
{
    float values[ep_type<DTYPE>::ELEMENTS];
    ep_type<DTYPE>::widen(vector, values);
#pragma unroll
    for (int i = 0; i < ep_type<DTYPE>::ELEMENTS; i++) {
        values[i] = __fmul_rn(values[i], factor);
    }
    return ep_type<DTYPE>::round(values);
}

/* The row at `from` to the addresses that `lanes` have, each times its factor, or, of those of `plain`, as it is;
 * `from` may be one of them. A warp. */
template <int DTYPE>
EP_DEVICE void ep_scale_to(wefti_u32 lanes, wefti_u32 plain, wefti_u64 to, float factor, const unsigned char *from,
                           int vectors)
{
    for (int at = ep_lane(); at - ep_lane() < vectors; at += 32) {
        const uint4 vector = at < vectors ? ((const uint4 *)from)[at] : make_uint4(0, 0, 0, 0);
        for (wefti_u32 left = lanes; left != 0; left &= left - 1) {
            const int lane = __ffs((int)left) - 1;
            uint4 *target = (uint4 *)__shfl_sync(~0u, to, lane);
            const float by = __shfl_sync(~0u, factor, lane);
            if (at < vectors) {
                target[at] = (plain >> lane & 1) != 0 ? vector : ep_scaled<DTYPE>(vector, by);
            }
        }
    }
}

/* With what combine weighed the row of choice k: the weights of all choices that share it, or their number. */
template <class LAYOUT> EP_DEVICE float ep_factor(const wefti_u32 *record, int topk, bool weighted, int k)
{
    float factor = 0.0f;
    for (int j = k; j < topk; j++) {
        bool shares = LAYOUT::ROWS_OF_CHOICES ? ep_record_row(record, topk, j) == ep_record_row(record, topk, k)
                                              : (wefti_i32)ep_record_expert(record, j) >= 0;
        factor += shares ? (weighted ? ep_record_weight(record, topk, j) : 1.0f) : 0.0f;
    }
    return factor;
}

/* The rows of the token at `place`, from the one at `from`, which the first choice may have: those of the first choices
 * come last. By source there is one row, lane 0's. A warp. */
template <class LAYOUT, int DTYPE>
EP_DEVICE void ep_scale_rows(const ep_dispatch &args, const wefti_u32 *record, wefti_u32 place,
                             const unsigned char *from)
{
    const bool weighted = ep_is(args, WEFTI_CUDA_EP_WEIGHTED);
    const int vectors = (int)(args.row_bytes / 16);
    for (int base = LAYOUT::ROWS_OF_CHOICES ? (args.topk - 1) / 32 * 32 : 0; base >= 0; base -= 32) {
        wefti_u32 row = place;
        bool has = ep_lane() == 0;
        if (LAYOUT::ROWS_OF_CHOICES) {
            has = ep_has_row(record, args.topk, args.experts.slots != 0, base, &row);
        }
        const float factor = has ? ep_factor<LAYOUT>(record, args.topk, weighted, base + ep_lane()) : 0.0f;
        const wefti_u64 to = (wefti_u64)args.out + (wefti_u64)row * args.out_pitch;
        const wefti_u32 lanes = __ballot_sync(~0u, has);
        const wefti_u32 plain = __ballot_sync(~0u, has && !weighted && (!LAYOUT::ROWS_OF_CHOICES || factor == 1.0f));
        ep_scale_to<DTYPE>(lanes, plain, to, factor, from, vectors);
    }
}

/* ---- dot products ---- */

/* Those of the token's choices, to its source. A warp. */
template <class LAYOUT, int DTYPE>
EP_DEVICE void ep_return_dots(const ep_dispatch &args, const wefti_u32 *record, int source, wefti_u32 place,
                              const unsigned char *gradient)
{
    const wefti_cuda_ep_backward &back = args.backward;
    const int vectors = (int)(args.row_bytes / 16);
    float *to = ep_values(args.group, source, args.topk, record[0]);
    float dot = 0.0f;
    if (!LAYOUT::ROWS_OF_CHOICES) {
        dot = ep_dot<DTYPE>(back.rows + (wefti_u64)place * back.rows_pitch, gradient, vectors);
    }
    for (int k = 0; k < args.topk; k++) {
        if (ep_is_here<LAYOUT>(record, args.topk, k)) {
            if (LAYOUT::ROWS_OF_CHOICES) {
                wefti_u64 row = ep_record_row(record, args.topk, k);
                dot = ep_dot<DTYPE>(back.rows + row * back.rows_pitch, gradient, vectors);
            }
            if (ep_lane() == 0) {
                to[k] = dot;
            }
        }
    }
}

/* ---- units ---- */

/* The words of `owner`'s returns of units of `source`, there. */
EP_DEVICE wefti_u64 *ep_returned(const ep_group &group, int source, int owner)
{
    return (wefti_u64 *)(group.area[source] + group.at.returned) + (wefti_u64)owner * group.at.units;
}

/* Where the gradient of the token at `place` has come. */
template <class LAYOUT>
EP_DEVICE const unsigned char *ep_gradient_of(const ep_dispatch &args, const wefti_u32 *record, int source,
                                              wefti_u32 place)
{
    if (ep_is(args, WEFTI_CUDA_EP_STAGE) && source != args.group.rank) {
        return (const unsigned char *)(args.group.area[args.group.rank] + args.group.at.rows) +
               (wefti_u64)place * args.row_bytes;
    }
    int k = 0;
    while (LAYOUT::ROWS_OF_CHOICES && k + 1 < args.topk && !ep_is_here<ep_by_expert>(record, args.topk, k)) {
        k++;
    }
    return args.out +
           (LAYOUT::ROWS_OF_CHOICES ? (wefti_u64)ep_record_row(record, args.topk, k) : place) * args.out_pitch;
}

template <class LAYOUT, int DTYPE>
EP_DEVICE void ep_receive_gradients(const ep_dispatch &args, int source, wefti_u32 first, wefti_u32 count)
{
    const int words = LAYOUT::record_words(args.topk);
    for (wefti_u32 place = first; place < first + count; place++) {
        const wefti_u32 *record = args.tables.records + (wefti_u64)place * (wefti_u64)words;
        const unsigned char *gradient = ep_gradient_of<LAYOUT>(args, record, source, place);
        if (ep_is(args, WEFTI_CUDA_EP_VALUES)) {
            ep_return_dots<LAYOUT, DTYPE>(args, record, source, place, gradient);
        }
        __syncwarp();
        ep_scale_rows<LAYOUT, DTYPE>(args, record, place, gradient);
    }
}

/* A unit that has come. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_receive_backward(const ep_dispatch &args, const ep_call *call, int source, int unit, wefti_u32 place,
                                   wefti_u32 count)
{
    if (args.backward.dtype == WEFT_EP_BF16) {
        ep_receive_gradients<LAYOUT, WEFT_EP_BF16>(args, source, place, count);
    } else if (args.backward.dtype == WEFT_EP_F16) {
        ep_receive_gradients<LAYOUT, WEFT_EP_F16>(args, source, place, count);
    } else {
        ep_receive_gradients<LAYOUT, WEFT_EP_F32>(args, source, place, count);
    }
    __syncwarp();
    if (ep_is(args, WEFTI_CUDA_EP_VALUES) && ep_lane() == 0) {
        wefti_st_release(ep_returned(args.group, source, args.group.rank) + unit, ep_packed(call->tag, count));
    }
}

/* The backward of combine. */
template <class LAYOUT>
EP_DEVICE bool ep_receive_backward_unit(const ep_dispatch &args, const ep_call *call, const ep_coming &coming)
{
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_coming(args, call, false, true, coming, &place, &count)) {
        return false;
    }
    ep_receive_backward<LAYOUT>(args, call, coming.source, coming.unit, place, count);
    return true;
}

/* By position: wait until all ranks have returned those of all units. A warp. False: one did not come. */
EP_DEVICE bool ep_await_all_returned(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int units = wefti_cuda_ep_units(call->tokens);
    bool well = true;
    for (int i = ep_lane(); i < units * group.ranks && well; i += 32) {
        const int rank = i % group.ranks;
        wefti_u32 value;
        well = (call->alive >> rank & 1) == 0 || ep_await(group, ep_returned(group, group.rank, rank) + i / group.ranks,
                                                          call->tag, rank, args.blocks.rest_ns, &value);
    }
    __syncwarp(); /* what a lane has acquired is every lane's */
    return __all_sync(~0u, well) != 0;
}

/* The gradients of the weights of this block's units, once all ranks have returned them. The warps from `skip` on. */
EP_DEVICE void ep_take_returned(const ep_dispatch &args, const ep_call *call, int skip)
{
    const ep_group &group = args.group;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    int first;
    int end;
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    if (EP_BY_POSITION && !ep_await_all_returned(args, call)) {
        return;
    }
    for (int unit = first + ep_warp() - skip; unit < end; unit += ep_warps() - skip) {
        bool well = true;
        wefti_u32 value;
        if (ep_lane() < group.ranks && (call->alive >> ep_lane() & 1) != 0) {
            well = ep_await(group, ep_returned(group, group.rank, ep_lane()) + unit, call->tag, ep_lane(),
                            args.blocks.rest_ns, &value);
        }
        __syncwarp(); /* what a lane has acquired is every lane's */
        if (!__all_sync(~0u, well)) {
            return;
        }
        const int rows = ep_rows_of_unit(call->tokens, unit_tokens, unit);
        for (int i = 0; i < rows; i++) {
            ep_take_values(group, args.backward.grad_weights, args.topk, unit * unit_tokens + i);
        }
    }
}

/* The way of a dispatch that is the backward of a combine. */
struct ep_backward_way {
    enum { QUANTISES = 0, IS_BACKWARD = 1, IS_EAGER = 0 };
    template <class LAYOUT>
    static __device__ __forceinline__ bool receive_unit(const ep_dispatch &args, const ep_call *call,
                                                        const ep_coming &coming)
    {
        return ep_receive_backward_unit<LAYOUT>(args, call, coming);
    }
    static __device__ __forceinline__ void finish(const ep_dispatch &args, const ep_call *call, bool goes, int skip)
    {
        if (goes && ep_is(args, WEFTI_CUDA_EP_VALUES)) {
            ep_take_returned(args, call, skip);
        }
    }
};

#endif
