/* cuda/ep/settle.cuh: what has come, unit by unit of all sources: records and scales to the sheet and the caller's arrays, and
 * rows to the caller's when they landed in the area. */
#ifndef WEFTI_CUDA_EP_SETTLE_CUH
#define WEFTI_CUDA_EP_SETTLE_CUH

#include "cuda/ep/expert.cuh"
#include "cuda/ep/gradients.cuh"

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
        if (arrays.experts != 0) {
            arrays.experts[place * topk + (wefti_u64)(word - 1)] = (wefti_i32)value;
        }
    } else if (arrays.weights != 0) {
        arrays.weights[place * topk + (wefti_u64)(word - 1) - topk] = __uint_as_float(value);
    }
}

#define EP_WORDS_AT_ONCE 4

/* The records of a fresh unit: into the sheet and the caller's arrays. A warp. */
EP_DEVICE void ep_settle_records(const ep_dispatch &args, int source, wefti_u32 place, wefti_u32 count)
{
    const int words = wefti_cuda_ep_record_words(args.topk, 0);
    const wefti_u64 first = (wefti_u64)place * (wefti_u64)words;
    const wefti_u32 *from = (const wefti_u32 *)(args.group.area[args.group.rank] + args.group.at.records) + first;
    const int end = (int)count * words;
    for (int base = ep_lane(); base < end; base += 32 * EP_WORDS_AT_ONCE) {
        wefti_u32 values[EP_WORDS_AT_ONCE];
#pragma unroll
        for (int j = 0; j < EP_WORDS_AT_ONCE; j++) {
            values[j] = base + 32 * j < end ? from[base + 32 * j] : 0;
        }
#pragma unroll
        for (int j = 0; j < EP_WORDS_AT_ONCE; j++) {
            int i = base + 32 * j;
            if (i < end) {
                args.sheet.records[first + (wefti_u64)i] = values[j];
                ep_spread(args, (wefti_u64)place + (wefti_u64)(i / words), i % words, values[j], source);
            }
        }
    }
}

/* The scales of a unit: to the caller's. A warp. */
EP_DEVICE void ep_settle_scales(const ep_dispatch &args, wefti_u32 place, wefti_u32 count)
{
    const int words = (int)args.scale_words;
    const wefti_u64 first = (wefti_u64)place * (wefti_u64)words;
    const wefti_u32 *from = (const wefti_u32 *)(args.group.area[args.group.rank] + args.group.at.scales) + first;
#pragma unroll 4
    for (int i = ep_lane(); i < (int)count * words; i += 32) {
        args.out_scales.words[((wefti_u64)place + (wefti_u64)(i / words)) * args.out_scales.row_stride +
                              (wefti_u64)(i % words) * args.out_scales.word_stride] = from[i];
    }
}

/* The caller's arrays of a route that has been settled before. This block's share of each source's tokens, also of those that
 * have been masked since: nothing comes from them now, but their rows are the route's. */
template <bool BY_EXPERT> EP_DEVICE void ep_settle_again(const ep_dispatch &args, const ep_call *call)
{
    const int words = wefti_cuda_ep_record_words(args.topk, BY_EXPERT);
    const int warps = ep_warps() - args.blocks.movers;
    for (int source = 0; source < args.group.ranks; source++) {
        int first;
        int end;
        ep_share(args.sheet.rows_of_source[source], &first, &end);
        for (int i = first + ep_warp() - args.blocks.movers; i < end; i += warps) {
            const wefti_u64 place = (wefti_u64)call->from[source] + (wefti_u64)i;
            const wefti_u32 *record = args.sheet.records + place * (wefti_u64)words;
            if constexpr (BY_EXPERT) {
                ep_label(args, record, source);
            } else {
                for (int word = ep_lane(); word < words; word += 32) {
                    ep_spread(args, place, word, record[word], source);
                }
            }
        }
    }
}

/* Wait for the words of a unit. A warp. False: they did not come. */
EP_DEVICE bool ep_await_unit(const ep_dispatch &args, const ep_call *call, int source, int unit, wefti_u32 *place,
                             wefti_u32 *count)
{
    const ep_group &group = args.group;
    wefti_u32 value = 0;
    bool well = true;
    if (ep_lane() < 2) {
        const wefti_u64 *words =
            ep_lane() == 0 ? ep_told(group, group.rank, source) : ep_moved(group, group.rank, source);
        well = ep_await(group, words + unit, call->tag, source, args.blocks.rest_ns, &value);
    }
    if (!__all_sync(~0u, well)) {
        return false;
    }
    *place = __shfl_sync(~0u, value, 0);
    *count = __shfl_sync(~0u, value, 1);
    return true;
}

EP_DEVICE bool ep_settle_unit(const ep_dispatch &args, const ep_call *call, int source, int unit)
{
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_unit(args, call, source, unit, &place, &count)) {
        return false;
    }
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        ep_settle_records(args, source, place, count);
    }
    ep_settle_scales(args, place, count);
    if (ep_is(args, WEFTI_CUDA_EP_LAND) && source != args.group.rank) {
        const unsigned char *landed = (const unsigned char *)(args.group.area[args.group.rank] + args.group.at.rows);
        for (wefti_u32 i = 0; i < count; i++) {
            wefti_u64 row = (wefti_u64)place + i;
            ep_copy_row(args.out + row * args.out_pitch, landed + row * args.row_bytes, args.row_bytes);
        }
    }
    return true;
}

/* By expert: the same of a part of the unit's rows; of the first part also the records. */
EP_DEVICE bool ep_settle_part(const ep_dispatch &args, const ep_call *call, int source, int unit, int part, int parts)
{
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_unit(args, call, source, unit, &place, &count)) {
        return false;
    }
    __syncwarp();
    for (wefti_u32 i = 0; i < count; i++) {
        const wefti_u32 *record = ep_record_here(args, place + i);
        if (part == 0 && ep_is(args, WEFTI_CUDA_EP_FRESH)) {
            ep_keep_record(args, place + i, record);
            ep_label(args, record, source);
        }
        if (part == 0) {
            ep_replicate_scales(args, record, place + i);
        }
        if (ep_is(args, WEFTI_CUDA_EP_MOVE)) {
            ep_replicate(args, record, source, place + i, part, parts);
        }
    }
    return true;
}

/* The backward of combine. */
template <bool BY_EXPERT>
EP_DEVICE bool ep_settle_back(const ep_dispatch &args, const ep_call *call, int source, int unit)
{
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_unit(args, call, source, unit, &place, &count)) {
        return false;
    }
    __syncwarp();
    ep_settle_backward<BY_EXPERT>(args, call, source, unit, place, count);
    return true;
}

template <bool BY_EXPERT, bool BACKWARD> EP_DEVICE void ep_settle(const ep_dispatch &args, const ep_call *call)
{
    int ranks = args.group.ranks;
    int units = 0;
    int warps = args.blocks.settlers;
    int parts = BY_EXPERT && !BACKWARD ? ep_replica_parts(args) : 1;
    for (int rank = 0; rank < ranks; rank++) {
        int here = wefti_cuda_ep_units(call->tokens_of[rank]);
        units = here > units ? here : units;
    }
    int mine = ep_warp() - args.blocks.movers;
    int end = units * ranks * parts;
    for (int i = mine < warps ? mine * (int)gridDim.x + (int)blockIdx.x : end; i < end; i += warps * (int)gridDim.x) {
        int source = (args.group.rank + i) % ranks;
        int unit = i / ranks / parts;
        if (unit < wefti_cuda_ep_units(call->tokens_of[source]) &&
            !(BACKWARD    ? ep_settle_back<BY_EXPERT>(args, call, source, unit)
              : BY_EXPERT ? ep_settle_part(args, call, source, unit, i / ranks % parts, parts)
                          : ep_settle_unit(args, call, source, unit))) {
            return;
        }
    }
}

#endif
