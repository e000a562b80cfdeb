/* cuda/ep/low_latency/recv.cuh: of a dispatch into slots of few tokens, what arrives: counts and route header of a new
 * routing, then records and slices of any source, to where the caller wants them. */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_RECV_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_RECV_CUH

#include "cuda/ep/device/copy.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/low_latency/passing.cuh"
#include "cuda/ep/low_latency/send.cuh"
#include "cuda/ep/routing/labels.cuh"

/* ---- the routing ---- */

/* How many rows the sources before `end` have for `expert`. Called by a lane. */
EP_DEVICE wefti_u32 ep_rows_of_sources(const ep_dispatch &args, const ep_call *call, int expert, int end)
{
    wefti_u32 rows = 0;
    for (int base = 0; base < end; base += EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        (void)ep_await_counts(args, call, expert, base, end, counts);
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            rows += counts[i];
        }
    }
    return rows;
}

/* By expert: find the rows of this rank's own choices at their owners, for later calls that send straight there. A warp
 * does the tokens whose numbers it kept. */
EP_DEVICE void ep_find_own_rows(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const ep_warp_group warps = ep_idle_sender_warps(args.blocks.sender_warps);
    for (int token = warps.number; token < call->tokens; token += warps.count) {
        for (int k = ep_lane(); k < args.topk; k += 32) {
            const int at = token * args.topk + k;
            const int id = ep_shared_table_id(args, at, at + 1);
            const int owner = ep_owner(group, call->alive, id);
            if (owner >= 0) {
                args.tables.rows[at] += (wefti_u32)(id - group.first_expert[owner]) * args.experts.slots +
                                        ep_rows_of_sources(args, call, id, group.rank);
            }
        }
        __syncwarp();
        for (int rank = ep_lane(); rank < group.ranks; rank += 32) {
            wefti_u32 row = WEFTI_CUDA_EP_NO_ROW;
            for (int k = args.topk - 1; k >= 0; k--) {
                const int at = token * args.topk + k;
                row = ep_owner(group, call->alive, ep_shared_table_id(args, at, at + 1)) == rank ? args.tables.rows[at]
                                                                                                 : row;
            }
            args.tables.target[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank] = row;
        }
        __syncwarp();
    }
}

/* What comes from a source: lane r has that of source r. */
typedef struct ep_inflow {
    wefti_u32 count; /* tokens */
    wefti_u32 from; /* the place of the first */
    int tokens; /* T */
} ep_inflow;

/* Write down the counts of this rank's experts. Called by the sender warps. */
template <class LAYOUT> EP_DEVICE void ep_note_experts(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int first = group.first_expert[group.rank];
    const int local = group.first_expert[group.rank + 1] - first;
    const ep_warp_group warps = ep_idle_sender_warps(args.blocks.sender_warps);
    const int source = ep_lane();
    for (int expert = warps.number; expert < local; expert += warps.count) {
        wefti_u32 count = 0;
        if (source < group.ranks) {
            if ((call->alive >> source & 1) != 0) {
                (void)ep_await_value(group, ep_counts(group, call, group.rank, source) + first + expert, call->tag,
                                     source, &count);
            }
            args.tables.rows_of_expert_source[expert * group.ranks + source] = (wefti_i32)count;
        }
        count = __reduce_add_sync(~0u, count);
        if (source == 0) {
            args.tables.rows_of_expert[expert] = (wefti_i32)count;
        }
        if (LAYOUT::ROWS_OF_CHOICES && source == 0) {
            args.tables.offset_of_expert[expert] = expert * (int)args.experts.slots;
        }
    }
}

/* Lane r: the place at rank r of this rank's first token. */
template <class LAYOUT> EP_DEVICE wefti_u32 ep_low_latency_place(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const bool is_packed = LAYOUT::ROWS_OF_CHOICES && !ep_passes_by(args);
    wefti_u32 place = is_packed ? 0 : (wefti_u32)group.rank * args.low_latency_slots;
    for (int source = 0; source < group.rank && is_packed && ep_lane() < group.ranks; source++) {
        wefti_u32 count = 0;
        if ((call->alive >> source & 1) != 0) {
            (void)ep_await_value(
                group, ep_header_words(group, call, group.rank, source) + WEFTI_CUDA_EP_HEADER_WORDS + ep_lane(),
                call->tag, source, &count);
        }
        place += count;
    }
    return place;
}

/* Write down how many rows come from each source, and where they begin. Called by a warp. */
template <class LAYOUT>
EP_DEVICE void ep_note_received(const ep_dispatch &args, const ep_call *call, const ep_inflow &inflow)
{
    const ep_group &group = args.group;
    const int local = group.first_expert[group.rank + 1] - group.first_expert[group.rank];
    const int rank = ep_lane();
    const wefti_u32 received = __reduce_add_sync(~0u, inflow.count);
    const wefti_u32 end =
        LAYOUT::ROWS_OF_CHOICES && !ep_passes_by(args) ? received : (wefti_u32)group.ranks * args.low_latency_slots;
    const wefti_u32 place = ep_low_latency_place<LAYOUT>(args, call);
    if (rank < group.ranks) {
        args.tables.place[rank] = place;
        args.tables.rows_of_source[rank] = (wefti_i32)inflow.count;
        args.tables.offset_of_source[rank] = (wefti_i32)inflow.from;
        args.tables.tokens_of[rank] = inflow.tokens;
    }
    if (rank == 0) {
        wefti_cuda_ep_route_header *route_header = args.tables.route_header;
        args.tables.offset_of_source[group.ranks] = (wefti_i32)end;
        route_header->received = (wefti_i32)received;
        route_header->rows = LAYOUT::ROWS_OF_CHOICES ? local * (int)args.experts.slots : (wefti_i32)end;
        route_header->tag = call->tag;
        if (LAYOUT::ROWS_OF_CHOICES) {
            args.tables.offset_of_expert[local] = route_header->rows;
        }
    }
}

/* ---- rows ---- */

/* A row of which something has come: number `index` of `source`, at `place` among all that came. */
typedef struct ep_arrival {
    int source;
    wefti_u32 index;
    wefti_u32 place;
    int first_word; /* of its words */
} ep_arrival;

/* By expert: lane i reads from the record the row of choice base + i, and whether no choice before has the same row.
 * Called by a warp. */
EP_DEVICE bool ep_low_latency_row(const ep_dispatch &args, const ep_call *call, const wefti_u32 *record, int source,
                                  int base, wefti_u32 *row)
{
    const int k = base + ep_lane();
    const wefti_u32 expert = k < args.topk ? ep_record_expert(record, k) : ~0u;
    const bool has = expert != ~0u;
    bool again = (__match_any_sync(~0u, has ? (int)expert : -1 - ep_lane()) & ((1u << ep_lane()) - 1)) != 0;
    for (int before = 0; before < base; before++) {
        again = again || ep_record_expert(record, before) == expert;
    }
    *row = has ? ep_record_row(record, args.topk, k) : WEFTI_CUDA_EP_NO_ROW;
    if (has && ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        *row += expert * args.experts.slots +
                ep_rows_of_sources(args, call, args.group.first_expert[args.group.rank] + (int)expert, source);
    }
    return has && !again;
}

/* Copy the record of a token into the route, with its rows, and fill in the caller's arrays from it. Called by a
 * warp. */
template <class LAYOUT>
EP_DEVICE void ep_take_record(const ep_dispatch &args, const ep_call *call, const ep_arrival &came)
{
    const int words = LAYOUT::record_words(args.topk);
    const wefti_u32 *from = ep_low_latency_record<LAYOUT>(args, call, args.group.rank, came.source, came.index);
    wefti_u32 *record = args.tables.records + (wefti_u64)came.place * (wefti_u64)words;
    for (int base = 0; LAYOUT::ROWS_OF_CHOICES && base < args.topk; base += 32) {
        wefti_u32 row;
        (void)ep_low_latency_row(args, call, from, came.source, base, &row);
        if (base + ep_lane() < args.topk) {
            record[1 + 2 * args.topk + base + ep_lane()] = row;
        }
    }
    for (int word = ep_lane(); word < 1 + 2 * args.topk; word += 32) {
        record[word] = from[word];
        if (!LAYOUT::ROWS_OF_CHOICES) {
            ep_spread(args, came.place, word, from[word], came.source);
        }
    }
    __syncwarp();
    if (LAYOUT::ROWS_OF_CHOICES) {
        ep_label(args, record, came.source);
    }
}

/* Copy the scales that came with a row to those of row `row`. Called by a warp. */
EP_DEVICE void ep_take_given(const ep_dispatch &args, const wefti_u32 *from, wefti_u64 row)
{
    wefti_u32 *to = ep_scales_of_row(args, row);
    for (int word = ep_lane(); word < (int)args.given_words; word += 32) {
        to[(wefti_u64)word * args.out_scales.word_stride] = from[word];
    }
}

/* Copy the scales of a slice that was made fp8; the last slice also fills up the row's last word. Called by a warp. */
template <int GROUP>
EP_DEVICE void ep_take_made(const ep_dispatch &args, const wefti_u32 *from, wefti_u64 row, const ep_slice &slice)
{
    const int elements = 16 / (int)args.wide.element_bytes;
    const int groups = ((int)(args.wide.row_bytes / 16) * elements + GROUP - 1) / GROUP;
    const int first = slice.first * elements / GROUP;
    const int behind = (slice.end * elements + GROUP - 1) / GROUP;
    const bool is_ue8m0 = args.wide.scales == WEFTI_CUDA_EP_MADE_UE8M0;
    const int end = is_ue8m0 && behind == groups ? (groups + 3) / 4 * 4 : behind;
    wefti_u32 *words = ep_scales_of_row(args, row);
    for (int group = first + ep_lane(); group < end; group += 32) {
        if (is_ue8m0) {
            unsigned char *bytes = (unsigned char *)(words + (wefti_u64)(group / 4) * args.out_scales.word_stride);
            bytes[group % 4] = group < groups ? ((const unsigned char *)from)[group] : 0;
        } else {
            words[(wefti_u64)group * args.out_scales.word_stride] = from[group];
        }
    }
}

/* Copy a slice to the rows of `lanes`: its bytes, and its scales if it was made fp8. Called by a warp. */
template <int GROUP>
EP_DEVICE void ep_take_slice(const ep_dispatch &args, const ep_call *call, const ep_arrival &came,
                             const ep_slice &slice, wefti_u32 lanes, wefti_u64 row)
{
    const int rank = args.group.rank;
    const int shrinks = GROUP != 0 ? (int)args.wide.element_bytes : 1;
    const int vectors = (int)(args.row_bytes / 16);
    const int end = (slice.end + shrinks - 1) / shrinks;
    const unsigned char *from = (const unsigned char *)(ep_low_latency_rows(args.group, call, rank, came.source,
                                                                            args.low_latency_slots, args.row_bytes) +
                                                        (wefti_u64)came.index * args.row_bytes);
    ep_copy_to<4>(lanes, (wefti_u64)args.out + row * args.out_pitch, from, slice.first / shrinks,
                  end < vectors ? end : vectors);
    if constexpr (GROUP != 0) {
        for (; lanes != 0; lanes &= lanes - 1) {
            ep_take_made<GROUP>(args, ep_low_latency_scales(args, call, rank, came.source, came.index),
                                __shfl_sync(~0u, row, __ffs((int)lanes) - 1), slice);
        }
    }
}

/* Wait for a record (word 0) or a slice of a row, and take it in. Called by a warp. False: it did not come. */
template <class LAYOUT, int GROUP>
EP_DEVICE bool ep_take_word(const ep_dispatch &args, const ep_call *call, const ep_arrival &came, int word,
                            const wefti_cuda_ep_slices &slices)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    bool well = true;
    if (ep_lane() == 0 ||
        (LAYOUT::ROWS_OF_CHOICES && fresh && ep_lane() == 1)) { /* by expert the record has the rows, too */
        const int number = came.first_word + (ep_lane() == 0 ? word : 0);
        well = ep_passes_by(args) ? ep_pass_await_row(args.group, call, came.source, number)
                                  : ep_low_latency_await(args.group, call, came.source, number);
    }
    __syncwarp(); /* what a lane has acquired is every lane's */
    if (!__all_sync(~0u, well)) {
        return false;
    }
    if (word == 0 && fresh) {
        ep_take_record<LAYOUT>(args, call, came);
    }
    const wefti_u32 *record = args.tables.records; /* of the row, by expert */
    if (LAYOUT::ROWS_OF_CHOICES) {
        record = fresh ? ep_low_latency_record<ep_by_expert>(args, call, args.group.rank, came.source, came.index)
                       : record + (wefti_u64)came.place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
    }
    const wefti_u32 *given = ep_low_latency_scales(args, call, args.group.rank, came.source, came.index);
    const ep_slice slice = ep_slice_of(slices, word - 1, ep_low_latency_wide_bytes<GROUP>(args));
    for (int base = 0; base < (LAYOUT::ROWS_OF_CHOICES ? args.topk : 1); base += 32) {
        wefti_u32 row = came.place;
        wefti_u32 lanes = 1;
        if (LAYOUT::ROWS_OF_CHOICES) {
            lanes = __ballot_sync(~0u, ep_low_latency_row(args, call, record, came.source, base, &row));
        }
        if (word != 0) {
            ep_take_slice<GROUP>(args, call, came, slice, lanes, row);
            continue;
        }
        for (; args.given_words != 0 && lanes != 0; lanes &= lanes - 1) {
            ep_take_given(args, given, __shfl_sync(~0u, row, __ffs((int)lanes) - 1));
        }
    }
    return true;
}

/* Take in all rows. Called by all warps. False: something did not come. */
template <class LAYOUT, int GROUP>
EP_DEVICE bool ep_take_rows(const ep_dispatch &args, const ep_call *call, const ep_inflow &inflow)
{
    const ep_group &group = args.group;
    const wefti_u32 wide_bytes = ep_low_latency_wide_bytes<GROUP>(args);
    const ep_warp_group warps = ep_all_warps();
    const wefti_cuda_ep_slices mine = wefti_cuda_ep_slices_of(inflow.tokens, wide_bytes, group.at.low_latency_words);
    int most = (int)inflow.count * (1 + mine.count); /* words of a source */
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_xor_sync(~0u, most, step);
        most = other > most ? other : most;
    }
    for (int i = warps.number; i < most * group.ranks; i += warps.count) {
        const int source = (group.rank + i) % group.ranks;
        const wefti_cuda_ep_slices slices = {__shfl_sync(~0u, mine.count, source), __shfl_sync(~0u, mine.each, source)};
        const int words = 1 + slices.count;
        ep_arrival came;
        came.source = source;
        came.index = (wefti_u32)(i / group.ranks / words);
        came.place = __shfl_sync(~0u, inflow.from, source) + came.index;
        came.first_word = (int)came.index * words;
        if (came.index < __shfl_sync(~0u, inflow.count, source) &&
            !ep_take_word<LAYOUT, GROUP>(args, call, came, i / group.ranks % words, slices) && !ep_passes_by(args)) {
            return false;
        }
    }
    return true;
}

#endif
