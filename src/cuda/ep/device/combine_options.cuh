/* cuda/ep/device/combine_options.cuh: what a combine may do beside adding up rows in ascending rank:
 * weft_ep_combine_options, an `out` of another type, and WEFT_EP_ORDER_CHOICE. Kernels of their own have it, so that
 * those without it stay as fast as they are.
 *
 * A kernel before such a combine, on the same stream, writes down for each token in which order its results are added
 * (`order` of the route tables), by source the sums of its own weights, and by expert sends the call's own choices to
 * the owners, who need them when they add up rows: to `combine_choices` there, which by the parity of the epoch is free
 * as low-latency memory is (memory.h). The call header comes after them, and a block that has all call headers has them
 * too.
 *
 * Values go where gradients of weights go; by source each rank's to a place of its own, as all are added. */
#ifndef WEFTI_CUDA_EP_DEVICE_COMBINE_OPTIONS_CUH
#define WEFTI_CUDA_EP_DEVICE_COMBINE_OPTIONS_CUH

#include "cuda/ep/device/call.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/device/reduce.cuh"
#include "cuda/ep/device/values.cuh"

/* Which kind of combine a kernel is for. */
enum ep_kind {
    EP_PLAIN,
    EP_GRADIENTS, /* by expert: gradients of weights come back beside; by source these are options */
    EP_WITH_OPTIONS
};

EP_DEVICE bool ep_has_combine_choices(const ep_combine &args)
{
    return (args.flags & (WEFTI_CUDA_EP_COMBINE_WEIGHTS | WEFTI_CUDA_EP_COMBINE_IDS)) != 0;
}

/* ---- own choices ---- */

/* Where the own choices of the token at `place` of `rank` lie in the call of this epoch: K words. */
EP_DEVICE wefti_u32 *ep_combine_choices(const ep_combine &args, wefti_u64 epoch, int rank, wefti_u64 place)
{
    return (wefti_u32 *)(args.group.area[rank] + args.group.at.combine_choices[epoch & 1]) +
           place * (wefti_u64)args.topk;
}

/* Whether the choice at `at` of [T][K] takes part. */
EP_DEVICE bool ep_participates(const wefti_cuda_ep_options &options, wefti_u64 at)
{
    return options.ids == 0 || (options.wide != 0 ? ((const wefti_i64 *)options.ids)[at] != -1
                                                  : ((const wefti_i32 *)options.ids)[at] != -1);
}

EP_DEVICE float ep_combine_weight(const wefti_cuda_ep_options &options, wefti_u64 at)
{
    return options.weights != 0 ? options.weights[at] : 1.0f;
}

EP_DEVICE wefti_u32 ep_combine_choice(const wefti_cuda_ep_options &options, wefti_u64 at)
{
    const wefti_u32 bits = __float_as_uint(ep_combine_weight(options, at));
    return !ep_participates(options, at) ? WEFTI_CUDA_EP_LEFT_OUT : bits == WEFTI_CUDA_EP_LEFT_OUT ? 0x7fffffffu : bits;
}

/* ---- adding up ---- */

/* Which result a lane adds: lane i that of the i-th rank in the token's order. */
typedef struct ep_lineup {
    wefti_u32 lanes; /* as bits, those that add one */
    int rank;
    wefti_u64 row;
    float weight;
} ep_lineup;

/* `ranks`: bits of the ranks whose results of the token are here; `row`, `weight`: lane r has those of rank r. Called
 * by a warp. */
EP_DEVICE ep_lineup ep_line_up(const ep_combine &args, int token, wefti_u32 ranks, wefti_u64 row, float weight)
{
    const int all = args.group.ranks;
    if (args.options.by_rank != 0) {
        return ep_lineup{ranks, ep_lane(), row, weight};
    }
    const wefti_u32 next = ep_lane() < all ? args.tables.order[(wefti_u64)token * (wefti_u64)all + (wefti_u64)ep_lane()]
                                           : WEFTI_CUDA_EP_NO_RANK;
    ep_lineup line;
    line.rank = (int)(next & 31);
    line.row = __shfl_sync(~0u, row, line.rank);
    line.weight = __shfl_sync(~0u, weight, line.rank);
    line.lanes = __ballot_sync(~0u, next < WEFTI_CUDA_EP_NOT_ADDED && (ranks >> line.rank & 1) != 0);
    return line;
}

EP_DEVICE ep_biases ep_biases_of(const ep_combine &args, int token)
{
    ep_biases biases;
    for (int i = 0; i < 2; i++) {
        const wefti_u64 first = (wefti_u64)args.options.bias[i];
        biases.row[i] = first != 0 ? first + (wefti_u64)token * args.options.bias_pitch[i] : 0;
    }
    biases.first = (args.flags & WEFTI_CUDA_EP_BY_CHOICE) != 0;
    biases.out_dtype = args.options.out_dtype;
    return biases;
}

/* By source: by what the result of `rank` for a token is multiplied. */
EP_DEVICE float ep_weight_of_rank(const ep_combine &args, int token, int rank)
{
    const float *weights =
        (args.flags & WEFTI_CUDA_EP_COMBINE_WEIGHTS) != 0 ? args.tables.combine_weights : args.tables.weights;
    return weights[(wefti_u64)token * (wefti_u64)args.group.ranks + (wefti_u64)rank];
}

/* By expert: the sum of the rows of the token at `place`: vectors first .. end - 1. A warp. */
template <ep_kind KIND, class FORM>
EP_DEVICE void ep_fold_any(const FORM &form, const ep_combine &args, const ep_call *call, wefti_u64 place,
                           unsigned char *out, int first, int end)
{
    const wefti_u32 *record = args.tables.records + place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
    if (KIND == EP_WITH_OPTIONS && ep_has_combine_choices(args)) {
        ep_fold_as<true>(form, args, record, ep_combine_choices(args, call->epoch, args.group.rank, place), out, first,
                         end);
    } else {
        ep_fold_as<false>(form, args, record, 0, out, first, end);
    }
}

/* ---- values ---- */

/* Where the values of `token` that rank `from` sends lie at the token's source. */
template <class LAYOUT> EP_DEVICE float *ep_values_from(const ep_combine &args, int source, int from, wefti_u32 token)
{
    const wefti_u64 before = LAYOUT::ROWS_OF_CHOICES ? 0 : (wefti_u64)from * args.group.at.tokens_max;
    return ep_values(args.group, source, args.topk, 0) + (before + token) * (wefti_u64)args.topk;
}

/* By source: send the values of the row at `place` to its source. Called by a warp. */
EP_DEVICE void ep_send_values(const ep_combine &args, int source, wefti_u64 place)
{
    const wefti_u32 *record = args.tables.records + place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 0);
    float *to = ep_values_from<ep_by_source>(args, source, args.group.rank, record[0]);
    for (int k = ep_lane(); k < args.topk; k += 32) {
        to[k] = args.options.values_in[place * (wefti_u64)args.topk + (wefti_u64)k];
    }
}

/* By source: what rank `from` sent for choice k of the token; `own_place`: the token's place at this rank itself. */
EP_DEVICE float ep_value_from(const ep_combine &args, int token, int from, int k, wefti_u64 own_place)
{
    return from == args.group.rank ? args.options.values_in[own_place * (wefti_u64)args.topk + (wefti_u64)k]
                                   : ep_values_from<ep_by_source>(args, args.group.rank, from, (wefti_u32)token)[k];
}

/* Give the caller a token's values, all of which are here: by expert, for each choice that of its owner; by source, the
 * sum over `ranks`. Called by a warp. */
template <class LAYOUT>
EP_DEVICE void ep_take_values_with(const ep_combine &args, int token, wefti_u32 ranks, wefti_u64 own_place)
{
    const int all = args.group.ranks;
    const unsigned char *order = args.tables.order + (wefti_u64)token * (wefti_u64)all;
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    __syncwarp();
    for (int k = ep_lane(); k < args.topk; k += 32) {
        const int owner = (int)args.tables.owner[first + (wefti_u64)k];
        const bool owned = owner >= 0 && (ranks >> owner & 1) != 0;
        float sum = 0.0f;
        if (LAYOUT::ROWS_OF_CHOICES || args.options.of_owners != 0) {
            const float value = !owned ? 0.0f
                                : LAYOUT::ROWS_OF_CHOICES
                                    ? ep_values_from<ep_by_expert>(args, args.group.rank, owner, (wefti_u32)token)[k]
                                    : ep_value_from(args, token, owner, k, own_place);
            sum = args.options.of_owners != 0 ? value : __fadd_rn(sum, value);
        } else {
            for (int i = 0; i < all && order[i] != WEFTI_CUDA_EP_NO_RANK; i++) {
                const int from = (int)(order[i] & 31u);
                if ((ranks >> from & 1) != 0) {
                    sum = __fadd_rn(sum, ep_value_from(args, token, from, k, own_place));
                }
            }
        }
        args.options.values_out[first + (wefti_u64)k] = sum;
    }
}

#endif
