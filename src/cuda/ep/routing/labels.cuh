/* cuda/ep/routing/labels.cuh: what the caller's arrays get of received tokens, from records as they come or were kept.
 * */
#ifndef WEFTI_CUDA_EP_ROUTING_LABELS_CUH
#define WEFTI_CUDA_EP_ROUTING_LABELS_CUH

#include "cuda/ep/device/record.cuh"
#include "cuda/ep/routing/count.cuh"

/* A received local expert, or -1, to the caller's array, if there is one. */
EP_DEVICE void ep_give_expert(const wefti_cuda_ep_arrays &arrays, wefti_u64 at, wefti_i32 expert)
{
    const wefti_i32 id = expert >= 0 ? expert + arrays.first_expert : expert;
    if (arrays.experts != 0 && arrays.wide_experts != 0) {
        ((wefti_i64 *)arrays.experts)[at] = (wefti_i64)id;
    } else if (arrays.experts != 0) {
        arrays.experts[at] = id;
    }
}

/* One word of a received record, to where the caller wants it. */
EP_DEVICE void ep_spread(const ep_dispatch &args, wefti_u64 place, int word, wefti_u32 value, int source)
{
    const wefti_cuda_ep_arrays &arrays = args.arrays;
    wefti_u64 topk = (wefti_u64)args.topk;
    if (word == 0) {
        if (arrays.source_token != 0) {
            arrays.source_token[place] = (wefti_i32)value;
        }
        if (arrays.source_rank != 0) {
            arrays.source_rank[place] = source;
        }
    } else if (word <= args.topk) {
        ep_give_expert(arrays, place * topk + (wefti_u64)(word - 1), (wefti_i32)value);
    } else if (arrays.weights != 0) {
        arrays.weights[place * topk + (wefti_u64)(word - 1) - topk] = __uint_as_float(value);
    }
}

/* What the caller's arrays get of a token's rows. A warp. */
EP_DEVICE void ep_label(const ep_dispatch &args, const wefti_u32 *record, int source)
{
    const wefti_cuda_ep_arrays &arrays = args.arrays;
    for (int base = 0; base < args.topk; base += 32) {
        wefti_u32 row;
        const bool has = ep_has_row(record, args.topk, args.experts.slots != 0, base, &row);
        const int k = base + ep_lane();
        float weight = has && arrays.weights != 0 ? 0.0f + ep_record_weight(record, args.topk, k) : 0.0f;
        for (int also = k + 1; has && args.experts.slots != 0 && also < args.topk; also++) {
            weight += ep_record_row(record, args.topk, also) == row ? ep_record_weight(record, args.topk, also) : 0.0f;
        }
        if (!has) {
            continue;
        }
        if (arrays.weights != 0) {
            arrays.weights[row] = weight;
        }
        ep_give_expert(arrays, row, (wefti_i32)ep_record_expert(record, base + ep_lane()));
        if (arrays.source_rank != 0) {
            arrays.source_rank[row] = source;
        }
        if (arrays.source_token != 0) {
            arrays.source_token[row] = (wefti_i32)record[0];
        }
    }
}

/* The caller's arrays in a call on a cached route. This block's share of each source's tokens, also of
 * those that have been masked since: nothing comes from them now, but their rows are the route's. */
template <class LAYOUT> EP_DEVICE void ep_receive_cached(const ep_dispatch &args, const ep_call *call)
{
    const int words = LAYOUT::record_words(args.topk);
    const int warps = ep_warps() - args.blocks.sender_warps;
    for (int source = 0; source < args.group.ranks; source++) {
        if (ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS) && (call->alive >> source & 1) != 0) {
            continue; /* with its weights, as they come */
        }
        int first;
        int end;
        ep_share(args.tables.rows_of_source[source], &first, &end);
        for (int i = first + ep_warp() - args.blocks.sender_warps; i < end; i += warps) {
            const wefti_u64 place = (wefti_u64)call->from[source] + (wefti_u64)i;
            const wefti_u32 *record = args.tables.records + place * (wefti_u64)words;
            if constexpr (LAYOUT::ROWS_OF_CHOICES) {
                ep_label(args, record, source);
            } else {
                for (int word = ep_lane(); word < words; word += 32) {
                    ep_spread(args, place, word, record[word], source);
                }
            }
        }
    }
}

/* Where the caller wants the scales of row `row`: its first word. */
EP_DEVICE wefti_u32 *ep_scales_of_row(const ep_dispatch &args, wefti_u64 row)
{
    wefti_u32 *words = args.out_scales.words + row * args.out_scales.row_stride;
    return args.scale_group_step == 0 ? words : words + (wefti_u32)row / args.experts.slots * args.scale_group_step;
}

#endif
