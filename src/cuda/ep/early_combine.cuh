/* cuda/ep/early_combine.cuh: a combine from slots of few tokens, in one launch or as halves; by source, or by expert.
 *
 *     block 0    its line to all ranks
 *     warps      a slice of a received row, by expert of the sum of a token's rows: to its source, then its word there
 *     all        hear all lines
 *     warps      a part of a token: once the slices of its rows are here, their sum in ascending rank
 *
 * Rows have no record here, and all words are of slices. By source a rank's own rows are read where they are. */
#ifndef WEFTI_CUDA_EP_EARLY_COMBINE_CUH
#define WEFTI_CUDA_EP_EARLY_COMBINE_CUH

#include "cuda/ep/early.cuh"

/* ---- leaving ---- */

/* A slice of the sum of the rows of a received token. A warp. */
EP_DEVICE void ep_send_sum(const ep_combine &args, const wefti_u32 *record, unsigned char *to, const ep_slice &slice)
{
    if (args.dtype == WEFT_EP_BF16) {
        ep_fold<WEFT_EP_BF16>(args, record, to, slice.first, slice.end);
    } else if (args.dtype == WEFT_EP_F16) {
        ep_fold<WEFT_EP_F16>(args, record, to, slice.first, slice.end);
    } else {
        ep_fold<WEFT_EP_F32>(args, record, to, slice.first, slice.end);
    }
}

/* All warps of the grid. */
template <bool BY_EXPERT> EP_DEVICE void ep_return_rows(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int others = BY_EXPERT ? group.ranks : group.ranks - 1;
    int most = 0;
    for (int source = 0; source < group.ranks; source++) {
        const int rows = (int)call->count[source];
        const int words = rows * wefti_cuda_ep_slices_of(rows, args.row_bytes, args.group.at.early_words).count;
        most = words > most ? words : most;
    }
    for (int i = ep_warp_of_grid(); i < most * others; i += ep_warps_of_grid()) {
        const int source = (group.rank + 1 + i % others) % group.ranks;
        const int rows = (int)call->count[source];
        const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of(rows, args.row_bytes, args.group.at.early_words);
        const int word = i / others;
        const int index = word / slices.count;
        if (index >= rows) {
            continue;
        }
        const wefti_u64 place = (wefti_u64)call->from[source] + (wefti_u64)index;
        const ep_slice slice = ep_slice_of(slices, word % slices.count, args.row_bytes);
        const wefti_u64 to = ep_early_rows(group, call, source, group.rank, args.early_slots, args.row_bytes) +
                             (wefti_u64)index * args.row_bytes;
        if (BY_EXPERT) {
            const wefti_u64 words = (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
            ep_send_sum(args, args.sheet.records + place * words, (unsigned char *)to, slice);
        } else {
            ep_copy_to<4>(1, to, args.in + place * args.in_pitch, slice.first, slice.end);
        }
        __syncwarp();
        if (ep_lane() == 0) {
            ep_early_tell(group, call, source, word);
        }
    }
}

/* ---- adding up ---- */

/* Until vectors first .. end - 1 of row `index` of the lane's rank are here. */
EP_DEVICE bool ep_await_returned(const ep_combine &args, const ep_call *call, int rank, wefti_u32 index, int first,
                                 int end)
{
    const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of((int)call->total[rank], args.row_bytes, args.group.at.early_words);
    const int words = (int)index * slices.count;
    bool well = true;
    for (int slice = first / slices.each; slice <= (end - 1) / slices.each && well; slice++) {
        well = ep_early_await(args.group, call, rank, words + slice);
    }
    return well;
}

/* All warps of the grid. */
template <bool BY_EXPERT> EP_DEVICE void ep_add_returned(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int rank = ep_lane();
    const int vectors = (int)(args.row_bytes / 16);
    const bool scaled = !BY_EXPERT && (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    const int parts = ep_parts(call->tokens, ep_warps_of_grid(), vectors);
    const int each = (vectors + parts - 1) / parts;
    for (int i = ep_warp_of_grid(); i < call->tokens * parts; i += ep_warps_of_grid()) {
        const int token = i / parts;
        const int first = i % parts * each;
        const int end = first + each < vectors ? first + each : vectors;
        ep_going going = {false, 0};
        float weight = 0.0f;
        wefti_u64 row = 0;
        bool well = true;
        if (rank < group.ranks) {
            going = ep_going_of(group, args.sheet, token, unit_tokens, rank);
            going.goes = going.goes && (call->alive >> rank & 1) != 0;
            weight = BY_EXPERT ? 0.0f : args.sheet.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank];
        }
        if (going.goes && !BY_EXPERT && rank == group.rank) {
            row = (wefti_u64)args.in + ((wefti_u64)call->from[rank] + going.index) * args.in_pitch;
        } else if (going.goes) {
            row = ep_early_rows(group, call, group.rank, rank, args.early_slots, args.row_bytes) +
                  (wefti_u64)going.index * args.row_bytes;
            well = ep_await_returned(args, call, rank, going.index, first, end);
        }
        if (!__all_sync(~0u, well)) {
            return;
        }
        const wefti_u32 ranks = __ballot_sync(~0u, going.goes);
        unsigned char *out = args.out + (wefti_u64)token * args.out_pitch;
        if (args.dtype == WEFT_EP_BF16) {
            ep_sum<WEFT_EP_BF16>(scaled, ranks, row, weight, out, first, end);
        } else if (args.dtype == WEFT_EP_F16) {
            ep_sum<WEFT_EP_F16>(scaled, ranks, row, weight, out, first, end);
        } else {
            ep_sum<WEFT_EP_F32>(scaled, ranks, row, weight, out, first, end);
        }
    }
}

/* ---- the call ---- */

/* All threads of all blocks. */
template <bool BY_EXPERT, ep_part PART> EP_DEVICE void ep_early_combine(const ep_combine &args)
{
    EP_SHARED(ep_call, call);
    const ep_group &group = args.group;
    const bool speaks = PART != EP_RECV && blockIdx.x == 0 && ep_warp() < 2;
    if (threadIdx.x == blockDim.x - 1) {
        call.tokens = args.sheet.facts->tokens;
    }
    if (speaks) {
        wefti_fence_acq_rel();
    }
    if (!ep_begin_part<PART>(group, &call)) {
        return;
    }
    ep_recall(group, &call, args.sheet);
    if (PART != EP_RECV) {
        if (speaks) {
            ep_say(group, &call, ep_combine_saying(args, &call), (int)threadIdx.x, 64);
        }
        ep_return_rows<BY_EXPERT>(args, &call);
    }
    if (PART == EP_SEND || !ep_hear(group, &call)) {
        return;
    }
    if (ep_warp() == 0) {
        ep_study(group, &call, ep_combine_saying(args, &call), false);
    }
    __syncthreads();
    if (call.status == WEFT_OK) {
        ep_add_returned<BY_EXPERT>(args, &call);
    }
}

#define EP_EARLY(NAME, BY_EXPERT, PART)                                                                                \
    extern "C" __global__ void __launch_bounds__(512, 1)                                                               \
        wefti_cuda_ep_early_##NAME(const __grid_constant__ ep_combine args)                                            \
    {                                                                                                                  \
        ep_early_combine<BY_EXPERT, PART>(args);                                                                       \
    }
#define EP_EARLY_PARTS(NAME, BY_EXPERT)                                                                                \
    EP_EARLY(NAME, BY_EXPERT, EP_WHOLE)                                                                                \
    EP_EARLY(NAME##_send, BY_EXPERT, EP_SEND)                                                                          \
    EP_EARLY(NAME##_recv, BY_EXPERT, EP_RECV)
EP_EARLY_PARTS(combine, false)
EP_EARLY_PARTS(combine_expert, true)
#undef EP_EARLY_PARTS
#undef EP_EARLY

#endif
