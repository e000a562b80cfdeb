/* cuda/ep/low_latency/combine.cuh: a combine from slots of few tokens, in one launch or as halves; by source, or by
 * expert. The kernels: combine.cu, combine_options.cu.
 *
 * Grid, warps: as of low_latency/dispatch.cuh; all warps add up, the last first.
 * Shared memory: what the block knows of the call, and T of each rank in the routing.
 * Flags: call header, a low-latency word for each slice, or LL packets, which are their own flags; headers_here inside
 *     a block.
 *
 *     block 0    its call header to all ranks
 *     senders    a slice of a received row, by expert of the sum of a token's rows: to its source, then its word
 *                there, or as LL packets, which say by themselves that they are there, to a source of few tokens
 *     warps      wait for all call headers; a part of a token: once the slices of its rows are here, their sum in
 *                ascending rank
 *
 * Rows have no record here, and all words are of slices. By source a rank's own rows are read where they are; as
 * LL packets they go the way of the others.
 *
 * Bytes: each row, or by expert each sum of a token on a rank, is written once, there, and read there; LL packets are a
 * third more. Floor: as of a low-latency dispatch. */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_COMBINE_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_COMBINE_CUH

#include "cuda/ep/device/combine_options.cuh"
#include "cuda/ep/device/copy.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/device/packet.cuh"
#include "cuda/ep/low_latency/passing.cuh"

/* Rows as they lie, three words at a time; their sums leave as LL packets. */
struct ep_into_ll_packets {
    enum { COMES = 0, AT_ONCE = 1 };
    int words;
    wefti_u32 tag;
    __device__ __forceinline__ uint4 load(wefti_u64 row, int at) const
    {
        return ep_load_payload((const wefti_u32 *)row, words, at);
    }
    __device__ __forceinline__ void store(unsigned char *out, int at, const uint4 &payload) const
    {
        ep_store_ll_packet((wefti_u64)out, at, payload, tag);
    }
};

/* LL packets that lane r's rank stores; their sums lie as rows do. */
struct ep_out_of_ll_packets {
    enum { COMES = 1, AT_ONCE = 1 };
    const ep_group *group;
    int words;
    wefti_u32 tag;
    int *failed; /* of the block: something did not come */
    __device__ __forceinline__ int rank_of(int lane) const
    {
        return lane;
    }
    __device__ __forceinline__ uint4 load_beside(wefti_u64 row, int at) const
    {
        return ep_load_payload((const wefti_u32 *)row, words, at);
    }
    __device__ __forceinline__ uint4 load(wefti_u64 row, int at) const
    {
        return ep_load_ll_packet(row, at);
    }
    __device__ __forceinline__ bool is_late(const uint4 &packet) const
    {
        return packet.w != tag;
    }
    __device__ __forceinline__ bool wait(wefti_u64 row, int at, int rank) const
    {
        const bool came = ep_await_ll_packet(group, row, at, tag, rank);
        *failed = came ? *failed : 1;
        return came;
    }
    __device__ __forceinline__ void store(unsigned char *out, int at, const uint4 &payload) const
    {
        ep_store_payload((wefti_u32 *)out, words, at, payload);
    }
    template <int DTYPE, int OUT>
    __device__ __forceinline__ void store_as(unsigned char *out, int at, const float *sum) const
    {
        enum { A_WORD = ep_type<DTYPE>::ELEMENTS / 4, A_PACKET = 3 * A_WORD };
        const int first = at * A_PACKET;
        const int left = words * A_WORD - first;
#pragma unroll
        for (int i = 0; i < A_PACKET; i++) {
            if (i < left) {
                ep_store_element<OUT>(out, first + i, sum[i]);
            }
        }
    }
};

/* The same where lanes have ranks in another order. */
struct ep_out_of_ll_packets_in_order : ep_out_of_ll_packets {
    int rank; /* of the lane */
    __device__ __forceinline__ int rank_of(int lane) const
    {
        return __shfl_sync(~0u, rank, lane);
    }
};

/* What rank `writer` stores at `reader` of its row `index`. */
EP_DEVICE wefti_u64 ep_ll_packets(const ep_group &group, const ep_call *call, int reader, int writer, wefti_u32 index)
{
    return group.area[reader] + ep_low_latency(group, call).ll_packets +
           ((wefti_u64)writer * group.at.ll_packet_rows + index) * group.at.ll_packets_each * 16;
}

/* Whether the rows of a rank of `tokens` return as LL packets. Calls that pass ranks by have words to look at instead:
 * a packet that does not come would be missed in the middle of a sum. */
EP_DEVICE bool ep_returns_ll_packets(const ep_combine &args, int tokens)
{
    return wefti_cuda_ep_uses_ll_packets(tokens) && !ep_passes_by(args);
}

/* What is cut into slices: rows, or their LL packets. */
EP_DEVICE wefti_u32 ep_returned_bytes(const ep_combine &args, bool in_packets)
{
    return in_packets ? wefti_cuda_ep_ll_packets(args.row_bytes) * 16 : args.row_bytes;
}

/* ---- leaving ---- */

/* A slice of the row at `place`, by expert of the sum of its rows: as LL packets to `to`. A warp. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE void ep_return_ll_packets(const ep_combine &args, const ep_call *call, wefti_u64 place, const ep_slice &slice,
                                    wefti_u64 to)
{
    const ep_into_ll_packets form = {(int)(args.row_bytes / 4), call->tag};
    if (LAYOUT::SUMS_AT_OWNER) {
        ep_fold_any<KIND>(form, args, call, place, (unsigned char *)to, slice.first, slice.end);
    } else if (slice.first + ep_lane() < slice.end) {
        const int at = slice.first + ep_lane();
        form.store((unsigned char *)to, at, form.load((wefti_u64)args.in + place * args.in_pitch, at));
    }
}

/* Called by the sender warps. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE void ep_return_rows(const ep_combine &args, const ep_call *call, const wefti_i32 *tokens_of)
{
    const ep_group &group = args.group;
    const bool to_itself = LAYOUT::SUMS_AT_OWNER || ep_returns_ll_packets(args, call->tokens);
    const int others = to_itself ? group.ranks : group.ranks - 1;
    const ep_warp_group warps = ep_sender_warps(args.blocks.sender_warps);
    const int lane = ep_lane();
    const bool in_packets = lane < group.ranks && ep_returns_ll_packets(args, tokens_of[lane]);
    const int rows_here = lane < group.ranks && (to_itself || lane != group.rank) ? (int)call->count[lane] : 0;
    const wefti_u32 from_here = lane < group.ranks ? call->from[lane] : 0;
    const wefti_cuda_ep_slices mine =
        in_packets ? wefti_cuda_ep_slices_of_ll_packets(args.row_bytes)
                   : wefti_cuda_ep_slices_of(rows_here, args.row_bytes, group.at.low_latency_words);
    const wefti_u32 all_in_packets = __ballot_sync(~0u, in_packets);
    int most = rows_here * mine.count;
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_xor_sync(~0u, most, step);
        most = other > most ? other : most;
    }
    for (int i = warps.number; i < most * others; i += warps.count) {
        const int source = (group.rank + 1 + i % others) % group.ranks;
        const int rows = __shfl_sync(~0u, rows_here, source);
        const wefti_cuda_ep_slices slices = {__shfl_sync(~0u, mine.count, source), __shfl_sync(~0u, mine.each, source)};
        const wefti_u32 from = __shfl_sync(~0u, from_here, source);
        const int word = i / others;
        const int index = word / slices.count;
        if (index >= rows) {
            continue;
        }
        const wefti_u64 place = (wefti_u64)from + (wefti_u64)index;
        const bool as_packets = (all_in_packets >> source & 1) != 0;
        const ep_slice slice = ep_slice_of(slices, word % slices.count, ep_returned_bytes(args, as_packets));
        if (as_packets) {
            ep_return_ll_packets<LAYOUT, KIND>(args, call, place, slice,
                                               ep_ll_packets(group, call, source, group.rank, (wefti_u32)index));
            continue;
        }
        const wefti_u64 to =
            ep_low_latency_rows(group, call, source, group.rank, args.low_latency_slots, args.row_bytes) +
            (wefti_u64)index * args.row_bytes;
        if (LAYOUT::SUMS_AT_OWNER) {
            ep_fold_any<KIND>(ep_in_vectors(), args, call, place, (unsigned char *)to, slice.first, slice.end);
        } else {
            ep_copy_to<4>(1, to, args.in + place * args.in_pitch, slice.first, slice.end);
        }
        __syncwarp();
        if (ep_lane() == 0) {
            ep_low_latency_post(call, ep_low_latency_words(group, call, source, group.rank), word);
        }
    }
}

/* ---- adding up ---- */

/* Until vectors first .. end - 1 of row `index` of the lane's rank, cut into these slices, are here. */
EP_DEVICE bool ep_await_returned(const ep_combine &args, const ep_call *call, int rank,
                                 const wefti_cuda_ep_slices &slices, wefti_u32 index, int first, int end)
{
    const int words = (int)index * slices.count;
    bool well = true;
    for (int slice = first / slices.each; slice <= (end - 1) / slices.each && well; slice++) {
        well = ep_passes_by(args) ? ep_pass_await_row(args.group, call, rank, words + slice)
                                  : ep_low_latency_await(args.group, call, rank, words + slice);
    }
    return well;
}

/* A part of a token's result, which a warp adds up. */
typedef struct ep_summand {
    int token;
    int first; /* vectors first .. end - 1 */
    int end;
    ep_going going; /* of the lane's rank */
    float weight;
    wefti_u64 row; /* and where its row is */
} ep_summand;

/* The warp's share of the parts, and the first of them, ready before the call headers are here. */
typedef struct ep_summing {
    ep_warp_group warps;
    bool in_packets;
    int vectors; /* of a row, or its LL packets */
    int parts; /* of a token */
    int each; /* vectors of a part */
    wefti_cuda_ep_slices slices; /* of the rows of the lane's rank */
    ep_summand next;
} ep_summing;

/* Part `i` of all, if there is one. A warp. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE ep_summand ep_summand_of(const ep_combine &args, const ep_call *call, const ep_summing &summing, int i)
{
    const ep_group &group = args.group;
    const int vectors = summing.vectors;
    const int rank = ep_lane();
    ep_summand part = {i / summing.parts, 0, 0, {false, 0}, 0.0f, 0};
    part.first = (i - part.token * summing.parts) * summing.each;
    part.end = part.first + summing.each < vectors ? part.first + summing.each : vectors;
    if (part.token < call->tokens && rank < group.ranks) {
        part.going = ep_going_of(group, args.tables, part.token, wefti_cuda_ep_unit(call->tokens), rank);
        part.going.goes = part.going.goes && (call->alive >> rank & 1) != 0;
        const wefti_u64 at = (wefti_u64)part.token * (wefti_u64)group.ranks + (wefti_u64)rank;
        part.weight = !LAYOUT::KEEPS_WEIGHTS    ? 0.0f
                      : KIND == EP_WITH_OPTIONS ? ep_weight_of_rank(args, part.token, rank)
                                                : args.tables.weights[at];
        part.row = summing.in_packets ? ep_ll_packets(group, call, group.rank, rank, part.going.index)
                   : !LAYOUT::returns(group.rank, rank)
                       ? (wefti_u64)args.in + ((wefti_u64)call->from[rank] + part.going.index) * args.in_pitch
                       : ep_low_latency_rows(group, call, group.rank, rank, args.low_latency_slots, args.row_bytes) +
                             (wefti_u64)part.going.index * args.row_bytes;
    }
    return part;
}

template <class LAYOUT, ep_kind KIND> EP_DEVICE ep_summing ep_summing_open(const ep_combine &args, const ep_call *call)
{
    const int sent = ep_lane() < args.group.ranks ? (int)call->total[ep_lane()] : 0;
    ep_summing summing;
    summing.warps = ep_all_warps();
    summing.in_packets = ep_returns_ll_packets(args, call->tokens);
    summing.vectors = (int)(ep_returned_bytes(args, summing.in_packets) / 16);
    const int adders = (ep_warps() - args.blocks.sender_warps) * (int)gridDim.x;
    summing.parts = summing.in_packets ? ep_parts<ep_out_of_ll_packets>(call->tokens, adders, summing.vectors)
                                       : ep_parts<ep_in_vectors>(call->tokens, adders, summing.vectors);
    summing.each = (summing.vectors + summing.parts - 1) / summing.parts;
    summing.slices = wefti_cuda_ep_slices_of(sent, args.row_bytes, args.group.at.low_latency_words);
    summing.next = ep_summand_of<LAYOUT, KIND>(args, call, summing, summing.warps.number);
    return summing;
}

/* A part of a token, whose rows are here, or come as LL packets. A warp. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE void ep_sum_partial(const ep_combine &args, ep_call *call, bool in_packets, const ep_summand &part)
{
    const bool scaled = LAYOUT::KEEPS_WEIGHTS && (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    const wefti_u32 ranks = __ballot_sync(~0u, part.going.goes);
    unsigned char *out = args.out + (wefti_u64)part.token * args.out_pitch;
    const ep_out_of_ll_packets packets = {&args.group, (int)(args.row_bytes / 4), call->tag, &call->failed};
    if constexpr (KIND == EP_WITH_OPTIONS) {
        const ep_lineup line = ep_line_up(args, part.token, ranks, part.row, part.weight);
        const ep_biases biases = ep_biases_of(args, part.token);
        if (in_packets) {
            ep_out_of_ll_packets_in_order form;
            (ep_out_of_ll_packets &)form = packets;
            form.rank = line.rank;
            ep_sum_as(form, args.dtype, scaled, line.lanes, line.row, line.weight, out, part.first, part.end, biases);
        } else {
            ep_sum_as(ep_in_vectors(), args.dtype, scaled, line.lanes, line.row, line.weight, out, part.first, part.end,
                      biases);
        }
    } else if (in_packets) {
        ep_sum_as(packets, args.dtype, scaled, ranks, part.row, part.weight, out, part.first, part.end, ep_no_biases());
    } else {
        ep_sum_as(ep_in_vectors(), args.dtype, scaled, ranks, part.row, part.weight, out, part.first, part.end,
                  ep_no_biases());
    }
}

/* Called by all warps. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE void ep_add_returned(const ep_combine &args, ep_call *call, ep_summing *summing)
{
    for (int i = summing->warps.number; summing->next.token < call->tokens;) {
        ep_summand part = summing->next;
        const bool comes = !summing->in_packets && part.going.goes && LAYOUT::returns(args.group.rank, ep_lane());
        const bool well =
            !comes || ep_await_returned(args, call, ep_lane(), summing->slices, part.going.index, part.first, part.end);
        __syncwarp(); /* what a lane has acquired is every lane's */
        if (!__all_sync(~0u, well)) {
            if (!ep_passes_by(args)) {
                return;
            }
            part.going.goes = part.going.goes && well;
        }
        ep_sum_partial<LAYOUT, KIND>(args, call, summing->in_packets, part);
        if (__any_sync(~0u, call->failed != 0)) {
            return;
        }
        i += summing->warps.count;
        summing->next = ep_summand_of<LAYOUT, KIND>(args, call, *summing, i);
    }
}

/* ---- the call ---- */

/* As ep_wait_headers_once. All threads. */
template <bool ACQUIRES>
EP_DEVICE bool ep_low_latency_meet(const ep_combine &args, ep_call *call, const ep_call_header &header)
{
    const ep_source_words none = {0, 0, 0};
    return ep_passes_by(args) ? ep_settle_sources(&args.group, call, &header, false, &none)
                              : ep_wait_headers_once<ACQUIRES>(args.group, call, header, false);
}

/* What the first part is, where it is now known that not all of its ranks are in the call. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE void ep_summing_again(const ep_combine &args, const ep_call *call, ep_summing *summing)
{
    if (ep_passes_by(args)) {
        summing->next = ep_summand_of<LAYOUT, KIND>(args, call, *summing, summing->warps.number);
    }
}

/* What a block has in its shared memory. */
typedef struct ep_low_latency_return {
    ep_call call;
    wefti_i32
        tokens_of[WEFTI_CUDA_EP_RANKS_MAX]; /* T of each rank in the routing; the call has those of its call headers */
} ep_low_latency_return;

/* All threads of all blocks. */
template <class LAYOUT, ep_phase PHASE, ep_kind KIND> EP_DEVICE void ep_low_latency_combine(const ep_combine &args)
{
    EP_SHARED(ep_low_latency_return, shared);
    ep_call &call = shared.call;
    const ep_group &group = args.group;
    const bool posts_header = !ep_does<PHASE, EP_RECV>(args) && ep_posts_header();
    if (posts_header) {
        wefti_fence_acq_rel();
    } else if (ep_in_prologue()) {
        ep_low_latency_look_up<PHASE>(args, &call);
        ep_touch(args);
        ep_recall(group, &call, args.tables);
        if (threadIdx.x == 64) {
            call.tokens = args.tables.route_header->tokens;
        }
        if ((int)threadIdx.x < group.ranks) {
            shared.tokens_of[threadIdx.x] = args.tables.tokens_of[threadIdx.x];
        }
    }
    if (!ep_low_latency_begin<PHASE>(args, &call)) {
        return;
    }
    const ep_call_header header = ep_combine_header(args, &call);
    const bool waits_first = KIND == EP_WITH_OPTIONS && LAYOUT::SUMS_AT_OWNER && ep_has_combine_choices(args);
    if (posts_header && waits_first) {
        ep_post_header(group, &call, header);
    }
    if (waits_first) { /* own choices come before the call headers */
        if (!ep_low_latency_meet<true>(args, &call, header) || call.status != WEFT_OK) {
            return;
        }
        wefti_fence_acq_rel();
    }
    if (!ep_does<PHASE, EP_RECV>(args) && ep_warp() < args.blocks.sender_warps) {
        ep_return_rows<LAYOUT, KIND>(args, &call, shared.tokens_of);
    }
    if (posts_header && !waits_first) {
        ep_post_header(group, &call, header);
    }
    if (!ep_does<PHASE, EP_SEND>(args)) {
        ep_summing summing = ep_summing_open<LAYOUT, KIND>(args, &call);
        if (waits_first || (ep_low_latency_meet<false>(args, &call, header) && call.status == WEFT_OK)) {
            ep_summing_again<LAYOUT, KIND>(args, &call, &summing);
            ep_add_returned<LAYOUT, KIND>(args, &call, &summing);
        }
    }
}

#endif
