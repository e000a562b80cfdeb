/* cuda/ep/throughput/replicate.cuh: by expert, what has come of a token, to all of its rows: labels, scales, and copies
 * of the row that came once, straight to where its first choice reads it, or, for a buffer that is not symmetric, to
 * its place in the area. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_REPLICATE_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_REPLICATE_CUH

#include "cuda/ep/device/copy.cuh"
#include "cuda/ep/routing/labels.cuh"
#include "cuda/ep/routing/prefix.cuh"

/* The record of the token at `place`: as it came, or as it was kept. */
EP_DEVICE const wefti_u32 *ep_record_here(const ep_dispatch &args, wefti_u32 place)
{
    const wefti_u32 *records = (const wefti_u32 *)(args.group.area[args.group.rank] + args.group.at.records);
    return (ep_is(args, WEFTI_CUDA_EP_FRESH) ? records : args.tables.records) +
           (wefti_u64)place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
}

EP_DEVICE void ep_keep_record(const ep_dispatch &args, wefti_u32 place, const wefti_u32 *record)
{
    const int words = wefti_cuda_ep_record_words(args.topk, 1);
    for (int i = ep_lane(); i < words; i += 32) {
        args.tables.records[(wefti_u64)place * (wefti_u64)words + (wefti_u64)i] = record[i];
    }
}

/* The scales of a row, which `from_of` finds by how many words they are, to all rows of its token. A warp. */
template <class FROM>
EP_DEVICE void ep_replicate_scales_from(const ep_dispatch &args, const wefti_u32 *record, const FROM &from_of)
{
    const int words = (int)args.scale_words;
    const wefti_u32 *from = from_of(words);
    for (int base = 0; base < args.topk && words > 0; base += 32) {
        wefti_u32 row;
        wefti_u32 lanes = __ballot_sync(~0u, ep_has_row(record, args.topk, args.experts.slots != 0, base, &row));
        for (; lanes != 0; lanes &= lanes - 1) {
            wefti_u64 to = __shfl_sync(~0u, row, __ffs((int)lanes) - 1);
            wefti_u32 *scales = ep_scales_of_row(args, to);
            for (int word = ep_lane(); word < words; word += 32) {
                scales[(wefti_u64)word * args.out_scales.word_stride] = from[word];
            }
        }
    }
}

EP_DEVICE void ep_replicate_scales(const ep_dispatch &args, const wefti_u32 *record, wefti_u32 place)
{
    ep_replicate_scales_from(args, record, [&](int words) {
        return (const wefti_u32 *)(args.group.area[args.group.rank] + args.group.at.scales) +
               (wefti_u64)place * (wefti_u64)wefti_cuda_ep_padded(words);
    });
}

/* Into how many parts rows are cut, so that several warps copy the rows of a unit: each part eight looks of a warp. */
EP_DEVICE int ep_replica_parts(const ep_dispatch &args)
{
    int parts = (int)((args.row_bytes + 4095) / 4096);
    return parts > 0 ? parts : 1;
}

/* A row of padding: nobody's, and zeroed if asked for. A warp. */
EP_DEVICE void ep_pad_row(const ep_dispatch &args, wefti_u32 row)
{
    const wefti_cuda_ep_arrays &arrays = args.arrays;
    if (ep_lane() == 0) {
        if (arrays.weights != 0) {
            arrays.weights[row] = 0.0f;
        }
        ep_give_expert(arrays, row, -1);
        if (arrays.source_rank != 0) {
            arrays.source_rank[row] = -1;
        }
        if (arrays.source_token != 0) {
            arrays.source_token[row] = -1;
        }
    }
    if (args.experts.zeroes == 0 || !ep_is(args, WEFTI_CUDA_EP_MOVE)) {
        return;
    }
    uint4 *data = (uint4 *)(args.out + (wefti_u64)row * args.out_pitch);
    for (int i = ep_lane(); i < (int)(args.row_bytes / 16); i += 32) {
        data[i] = make_uint4(0, 0, 0, 0);
    }
    for (int word = ep_lane(); word < (int)args.scale_words; word += 32) {
        args.out_scales
            .words[(wefti_u64)row * args.out_scales.row_stride + (wefti_u64)word * args.out_scales.word_stride] = 0;
    }
}

/* How a row came: to its place in the area, apart from the token's rows here, or straight to the first of these. */
struct ep_came_to_place {
    int source;
    wefti_u32 place;

    __device__ __forceinline__ bool is_apart(const ep_dispatch &args) const
    {
        return ep_is(args, WEFTI_CUDA_EP_STAGE) && source != args.group.rank;
    }
    __device__ __forceinline__ const unsigned char *row(const ep_dispatch &args) const
    {
        return (const unsigned char *)(args.group.area[args.group.rank] + args.group.at.rows) +
               (wefti_u64)place * args.row_bytes;
    }
};

/* The same of one that left with send. */
struct ep_came_with_send {
    const unsigned char *at;

    __device__ __forceinline__ bool is_apart(const ep_dispatch &) const
    {
        return true;
    }
    __device__ __forceinline__ const unsigned char *row(const ep_dispatch &) const
    {
        return at;
    }
};

/* Part `part` of a row, to all of its token's rows but the one that it came to, if it did. A warp. */
template <class CAME>
EP_DEVICE void ep_replicate(const ep_dispatch &args, const wefti_u32 *record, const CAME &came, int part, int parts)
{
    const int vectors = (int)(args.row_bytes / 16);
    const int each = (vectors + parts - 1) / parts;
    const int first = part * each;
    const int end = first + each < vectors ? first + each : vectors;
    const bool staged = came.is_apart(args);
    const unsigned char *from = came.row(args);
    bool found = staged;
    for (int base = 0; base < args.topk; base += 32) {
        wefti_u32 row;
        wefti_u32 lanes = __ballot_sync(~0u, ep_has_row(record, args.topk, args.experts.slots != 0, base, &row));
        wefti_u64 to = (wefti_u64)args.out + (wefti_u64)row * args.out_pitch;
        if (!found && lanes != 0) {
            from = (const unsigned char *)__shfl_sync(~0u, to, __ffs((int)lanes) - 1);
            lanes &= lanes - 1;
            found = true;
        }
        if (lanes != 0) {
            ep_copy_to<8>(lanes, to, from, first, end);
        }
    }
}

/* ---- padding ---- */

/* The rows behind those of each local expert: labelled as nobody's, and zeroed if asked for. The warps from `skip` on,
 * each an expert. False: a block did not come. */
EP_DEVICE bool ep_pad(const ep_dispatch &args, const ep_call *call, int skip)
{
    const ep_group &group = args.group;
    const int local = group.first_expert[group.rank + 1] - group.first_expert[group.rank];
    const int step = (ep_warps() - skip) * (int)gridDim.x;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    for (int expert = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x; expert < local; expert += step) {
        wefti_u32 row = (wefti_u32)wefti_ld_relaxed(&args.tables.end[expert]);
        wefti_u32 end = (wefti_u32)wefti_ld_relaxed(&args.tables.begin[expert + 1]);
        bool well = true;
        if (fresh && ep_lane() < 2) {
            well = ep_await_value(group, ep_lane() == 0 ? &args.tables.end[expert] : &args.tables.begin[expert + 1],
                                  call->tag, group.rank, ep_lane() == 0 ? &row : &end);
        }
        if (!__all_sync(~0u, well)) {
            return false;
        }
        row = __shfl_sync(~0u, row, 0);
        end = __shfl_sync(~0u, end, 1);
        for (; row < end; row++) {
            ep_pad_row(args, row);
        }
    }
    return true;
}

#endif
