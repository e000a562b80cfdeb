/* cuda/ep/early_dispatch.cuh: a dispatch into slots of few tokens, in one launch or as halves; by source, or by expert.
 *
 *     all        the board: where all tokens go
 *     block 0    its line to all ranks
 *     movers     a record (word 0 of a row), or a slice of a row (the others): to all ranks of its token, then their words;
 *                what later calls are to find of the routing
 *     others     counts to the owners of experts
 *     warps      a record or slice of any source, once lines are heard and its word is here: to where the caller wants it
 *
 * By expert a row's number among those of its source is known when it leaves; its place is found where it arrives, from what
 * all sources have of each expert. */
#ifndef WEFTI_CUDA_EP_EARLY_DISPATCH_CUH
#define WEFTI_CUDA_EP_EARLY_DISPATCH_CUH

#include "cuda/ep/board.cuh"

/* What rows are before they leave. */
template <bool QUANTISES> EP_DEVICE wefti_u32 ep_early_wide_bytes(const ep_dispatch &args)
{
    return QUANTISES ? args.wide.row_bytes : args.row_bytes;
}

/* The scales of row `index` that rank `writer` writes at `reader`. */
EP_DEVICE wefti_u32 *ep_early_scales(const ep_dispatch &args, const ep_call *call, int reader, int writer,
                                     wefti_u32 index)
{
    const wefti_u64 row = (wefti_u64)writer * args.early_slots + index;
    return (wefti_u32 *)(args.group.area[reader] + ep_early(args.group, call).scales) + row * args.scale_words;
}

template <bool BY_EXPERT>
EP_DEVICE wefti_u32 *ep_early_record(const ep_dispatch &args, const ep_call *call, int reader, int writer,
                                     wefti_u32 index)
{
    const wefti_u64 row = (wefti_u64)writer * args.early_slots + index;
    return (wefti_u32 *)(args.group.area[reader] + ep_early(args.group, call).records) +
           row * (wefti_u64)wefti_cuda_ep_record_words(args.topk, BY_EXPERT);
}

/* ---- leaving ---- */

/* A token's record and the scales that are given with it, to the ranks of `lanes`, where it is number `index`. A warp. */
template <bool BY_EXPERT>
EP_DEVICE void ep_send_record(const ep_dispatch &args, const ep_call *call, const ep_board &board, int token,
                              wefti_u32 lanes, wefti_u32 index)
{
    const ep_group &group = args.group;
    const int words = ep_is(args, WEFTI_CUDA_EP_FRESH) ? wefti_cuda_ep_record_words(args.topk, BY_EXPERT) : 0;
    for (int base = 0; base < words; base += 32) {
        const int word = base + ep_lane();
        const int kind = word > 0 && word < words ? (word - 1) / args.topk : -1; /* expert, weight, number */
        const int at = token * args.topk + (kind >= 0 ? (word - 1) % args.topk : 0);
        const int id = kind >= 0 ? ep_board_id(args, at, at + 1) : -1;
        const int owner = ep_owner(group, call->alive, id);
        wefti_u32 value = __float_as_uint(kind == 1 && args.choices.weights != 0 ? args.choices.weights[at] : 1.0f);
        value = kind == 0 && owner >= 0 ? (wefti_u32)(id - group.first_expert[owner]) : value;
        value = BY_EXPERT && kind == 2 && owner >= 0 ? ep_board_number(board, id, token) : value;
        const wefti_u32 none = kind == 1 ? __float_as_uint(0.0f) : WEFTI_CUDA_EP_NO_ROW; /* which is -1, too */
        for (wefti_u32 left = lanes; left != 0; left &= left - 1) {
            const int rank = __ffs((int)left) - 1;
            wefti_u32 *record = ep_early_record<BY_EXPERT>(args, call, rank, group.rank, __shfl_sync(~0u, index, rank));
            if (word < words) {
                record[word] = word == 0 ? (wefti_u32)token : owner == rank ? value : none;
            }
        }
    }
    for (; args.given_words != 0 && lanes != 0; lanes &= lanes - 1) {
        const int rank = __ffs((int)lanes) - 1;
        wefti_u32 *scales = ep_early_scales(args, call, rank, group.rank, __shfl_sync(~0u, index, rank));
        for (int word = ep_lane(); word < (int)args.given_words; word += 32) {
            scales[word] =
                args.in_scales
                    .words[(wefti_u64)token * args.in_scales.row_stride + (wefti_u64)word * args.in_scales.word_stride];
        }
    }
}

/* A slice of a row, made fp8: to the addresses of `lanes`, and its scales to `scales`. A warp. */
template <int DTYPE>
EP_DEVICE void ep_send_quantised(const unsigned char *row, const ep_slice &slice, bool is_ue8m0, wefti_u32 lanes,
                                 wefti_u64 to, wefti_u64 scales)
{
    enum { PER_VECTOR = ep_type<DTYPE>::ELEMENTS, AT_ONCE = EP_STEPS * EP_STEP };
    const int end = slice.end * PER_VECTOR;
    int base = slice.first * PER_VECTOR;
    ep_raw<DTYPE> raw;
    ep_load_steps<DTYPE>(row, base + ep_lane() * EP_EIGHT, end, &raw);
    for (; base < end; base += AT_ONCE) {
        const int at = base + ep_lane() * EP_EIGHT;
        const int group = base / WEFTI_FP8_GROUP + ep_group_of_lane();
        float values[EP_STEPS][EP_EIGHT];
        ep_widen_steps<DTYPE>(raw, values);
        ep_load_steps<DTYPE>(row, at + AT_ONCE, end, &raw); /* on their way meanwhile */
        const ep_quantised made = ep_quantise_steps(values, is_ue8m0);
        const bool tells = ep_has_group_first() && group * WEFTI_FP8_GROUP < end;
        for (wefti_u32 left = lanes; left != 0; left &= left - 1) {
            const int lane = __ffs((int)left) - 1;
            unsigned char *target = (unsigned char *)__shfl_sync(~0u, to, lane) + at;
            const wefti_u64 words = __shfl_sync(~0u, scales, lane);
#pragma unroll
            for (int i = 0; i < EP_STEPS; i++) {
                if (at + i * EP_STEP < end) {
                    *(uint2 *)(target + i * EP_STEP) = made.words[i];
                }
            }
            if (tells && is_ue8m0) {
                ((unsigned char *)words)[group] = (unsigned char)(made.scale >> 23);
            } else if (tells) {
                ((wefti_u32 *)words)[group] = made.scale;
            }
        }
    }
}

/* What a warp sends at a time: a record (word 0 of a token), or a slice of a row. */
typedef struct ep_parcel {
    int token;
    int word;
    ep_slice slice;
} ep_parcel;

EP_DEVICE ep_parcel ep_parcel_of(const wefti_cuda_ep_slices &slices, int number, wefti_u32 wide_bytes)
{
    ep_parcel parcel;
    parcel.token = number / (1 + slices.count);
    parcel.word = number - parcel.token * (1 + slices.count);
    parcel.slice = ep_slice_of(slices, parcel.word > 0 ? parcel.word - 1 : 0, wide_bytes);
    return parcel;
}

/* The slice that this warp sends first, if it sends: on its way. */
template <bool QUANTISES> EP_DEVICE void ep_prefetch_row(const ep_dispatch &args, int tokens)
{
    const wefti_u32 bytes = ep_early_wide_bytes<QUANTISES>(args);
    const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of(tokens, bytes, args.group.at.early_words);
    const ep_parcel parcel = ep_parcel_of(slices, ep_crew_of_movers(args.blocks.movers).number, bytes);
    if (ep_warp() < args.blocks.movers && parcel.token < tokens && parcel.word > 0) {
        ep_prefetch(args.in + (wefti_u64)parcel.token * args.in_pitch + (wefti_u64)parcel.slice.first * 16,
                    (wefti_u32)(parcel.slice.end - parcel.slice.first) * 16);
    }
}

/* Where lane r finds what this rank has at rank r in this call. */
typedef struct ep_there {
    bool is; /* it takes part */
    wefti_u64 rows;
    wefti_u64 scales;
    wefti_u64 *words;
} ep_there;

EP_DEVICE ep_there ep_there_of(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int rank = ep_lane();
    ep_there there = {false, 0, 0, 0};
    if (rank < group.ranks) {
        there.is = (call->alive >> rank & 1) != 0;
        there.rows = ep_early_rows(group, call, rank, group.rank, args.early_slots, args.row_bytes);
        there.scales = (wefti_u64)ep_early_scales(args, call, rank, group.rank, 0);
        there.words = ep_early_words(group, call, rank, group.rank);
    }
    return there;
}

/* A slice to the addresses of `lanes`; `ahead`: its first vectors. A warp. */
template <bool QUANTISES>
EP_DEVICE void ep_send_slice(const ep_dispatch &args, const ep_parcel &parcel, ep_ahead *ahead, wefti_u32 lanes,
                             wefti_u64 to, wefti_u64 scales)
{
    const unsigned char *row = args.in + (wefti_u64)parcel.token * args.in_pitch;
    const bool is_ue8m0 = args.wide.is_ue8m0 != 0;
    if (!QUANTISES) {
        ep_copy_ahead(ahead, lanes, to, row, parcel.slice);
    } else if (args.wide.dtype == WEFT_EP_BF16) {
        ep_send_quantised<WEFT_EP_BF16>(row, parcel.slice, is_ue8m0, lanes, to, scales);
    } else if (args.wide.dtype == WEFT_EP_F16) {
        ep_send_quantised<WEFT_EP_F16>(row, parcel.slice, is_ue8m0, lanes, to, scales);
    } else {
        ep_send_quantised<WEFT_EP_F32>(row, parcel.slice, is_ue8m0, lanes, to, scales);
    }
}

/* What this warp sends, and the first of it, ready before it is known where to. */
typedef struct ep_sending {
    wefti_cuda_ep_slices slices;
    ep_crew warps;
    ep_parcel parcel;
    ep_there there;
    ep_ahead ahead;
} ep_sending;

template <bool QUANTISES> EP_DEVICE void ep_sending_load(const ep_dispatch &args, ep_sending *sending)
{
    if (!QUANTISES && sending->parcel.word > 0) {
        ep_load_ahead(&sending->ahead, args.in + (wefti_u64)sending->parcel.token * args.in_pitch,
                      sending->parcel.slice);
    }
}

template <bool QUANTISES> EP_DEVICE ep_sending ep_sending_open(const ep_dispatch &args, const ep_call *call)
{
    const wefti_u32 wide_bytes = ep_early_wide_bytes<QUANTISES>(args);
    ep_sending sending;
    sending.slices = wefti_cuda_ep_slices_of(call->tokens, wide_bytes, args.group.at.early_words);
    sending.warps = ep_crew_of_movers(args.blocks.movers);
    sending.parcel = ep_parcel_of(sending.slices, sending.warps.number, wide_bytes);
    sending.there = ep_there_of(args, call);
    if (sending.parcel.token < call->tokens) {
        ep_sending_load<QUANTISES>(args, &sending);
    }
    return sending;
}

/* The warps that send. */
template <bool BY_EXPERT, bool QUANTISES>
EP_DEVICE void ep_send_rows(const ep_dispatch &args, const ep_call *call, const ep_board &board, ep_sending *sending)
{
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const int words = 1 + sending->slices.count;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const ep_there &there = sending->there;
    const int rank = ep_lane();
    for (int i = sending->warps.number; sending->parcel.token < call->tokens;) {
        const ep_parcel parcel = sending->parcel;
        ep_going going = {false, 0};
        if (there.is) {
            going = fresh ? ep_board_going(board, parcel.token, rank)
                          : ep_going_of(group, args.sheet, parcel.token, unit_tokens, rank);
        }
        const wefti_u32 lanes = __ballot_sync(~0u, going.goes);
        if (parcel.word == 0) {
            ep_send_record<BY_EXPERT>(args, call, board, parcel.token, lanes, going.index);
        } else {
            ep_send_slice<QUANTISES>(args, parcel, &sending->ahead, lanes,
                                     there.rows + (wefti_u64)going.index * args.row_bytes,
                                     there.scales + (wefti_u64)going.index * args.scale_words * 4);
        }
        __syncwarp();
        if (going.goes) {
            ep_early_tell(call, there.words, (int)going.index * words + parcel.word);
        }
        i += sending->warps.count;
        sending->parcel = ep_parcel_of(sending->slices, i, ep_early_wide_bytes<QUANTISES>(args));
        if (sending->parcel.token < call->tokens) {
            ep_sending_load<QUANTISES>(args, sending);
        }
    }
}

/* ---- arriving ---- */

/* The rows of `expert` that the sources before `end` have. A lane. */
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

/* By expert: the rows of this rank's own choices at their owners, for calls that send straight to them. A warp a token, the
 * one that kept their numbers. */
EP_DEVICE void ep_find_own_rows(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const ep_crew warps = ep_crew_of_idle(args.blocks.movers);
    for (int token = warps.number; token < call->tokens; token += warps.count) {
        for (int k = ep_lane(); k < args.topk; k += 32) {
            const int at = token * args.topk + k;
            const int id = ep_board_id(args, at, at + 1);
            const int owner = ep_owner(group, call->alive, id);
            if (owner >= 0) {
                args.sheet.rows[at] += (wefti_u32)(id - group.first_expert[owner]) * args.experts.slots +
                                       ep_rows_of_sources(args, call, id, group.rank);
            }
        }
        __syncwarp();
        for (int rank = ep_lane(); rank < group.ranks; rank += 32) {
            wefti_u32 row = WEFTI_CUDA_EP_NO_ROW;
            for (int k = args.topk - 1; k >= 0; k--) {
                const int at = token * args.topk + k;
                row = ep_owner(group, call->alive, ep_board_id(args, at, at + 1)) == rank ? args.sheet.rows[at] : row;
            }
            args.sheet.target[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank] = row;
        }
        __syncwarp();
    }
}

/* What lane r knows of source r. */
typedef struct ep_inflow {
    wefti_u32 count; /* tokens */
    wefti_u32 from; /* the place of the first */
    int tokens; /* T */
} ep_inflow;

/* Counts of this rank's experts. The warps that send. */
template <bool BY_EXPERT> EP_DEVICE void ep_note_experts(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int first = group.first_expert[group.rank];
    const int local = group.first_expert[group.rank + 1] - first;
    const ep_crew warps = ep_crew_of_idle(args.blocks.movers);
    const int source = ep_lane();
    for (int expert = warps.number; expert < local; expert += warps.count) {
        wefti_u32 count = 0;
        if (source < group.ranks) {
            if ((call->alive >> source & 1) != 0) {
                (void)ep_await_value(group, ep_counts(group, call, group.rank, source) + first + expert, call->tag,
                                     source, &count);
            }
            args.sheet.rows_of_expert_source[expert * group.ranks + source] = (wefti_i32)count;
        }
        count = __reduce_add_sync(~0u, count);
        if (source == 0) {
            args.sheet.rows_of_expert[expert] = (wefti_i32)count;
        }
        if (BY_EXPERT && source == 0) {
            args.sheet.offset_of_expert[expert] = expert * (int)args.experts.slots;
        }
    }
}

/* The place at the lane's rank of this rank's first token. */
template <bool BY_EXPERT> EP_DEVICE wefti_u32 ep_early_place(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    wefti_u32 place = BY_EXPERT ? 0 : (wefti_u32)group.rank * args.early_slots;
    for (int source = 0; source < group.rank && BY_EXPERT && ep_lane() < group.ranks; source++) {
        wefti_u32 count = 0;
        if ((call->alive >> source & 1) != 0) {
            (void)ep_await_value(group, ep_line(group, call, group.rank, source) + WEFTI_CUDA_EP_WORDS + ep_lane(),
                                 call->tag, source, &count);
        }
        place += count;
    }
    return place;
}

/* What is received. A warp. */
template <bool BY_EXPERT>
EP_DEVICE void ep_note_received(const ep_dispatch &args, const ep_call *call, const ep_inflow &inflow)
{
    const ep_group &group = args.group;
    const int local = group.first_expert[group.rank + 1] - group.first_expert[group.rank];
    const int rank = ep_lane();
    const wefti_u32 received = __reduce_add_sync(~0u, inflow.count);
    const wefti_u32 end = BY_EXPERT ? received : (wefti_u32)group.ranks * args.early_slots;
    const wefti_u32 place = ep_early_place<BY_EXPERT>(args, call);
    if (rank < group.ranks) {
        args.sheet.place[rank] = place;
        args.sheet.rows_of_source[rank] = (wefti_i32)inflow.count;
        args.sheet.offset_of_source[rank] = (wefti_i32)inflow.from;
    }
    if (rank == 0) {
        wefti_cuda_ep_facts *facts = args.sheet.facts;
        args.sheet.offset_of_source[group.ranks] = (wefti_i32)end;
        facts->received = (wefti_i32)received;
        facts->rows = BY_EXPERT ? local * (int)args.experts.slots : (wefti_i32)end;
        facts->epoch = call->tag;
        if (BY_EXPERT) {
            args.sheet.offset_of_expert[local] = facts->rows;
        }
    }
}

/* What has come of a row: number `index` of `source`, at `place` among all that came. */
typedef struct ep_arrival {
    int source;
    wefti_u32 index;
    wefti_u32 place;
    int first_word; /* of its words */
} ep_arrival;

/* By expert: lane i's row of the record, that of choice base + i; and whether it is the first choice that has it. A warp. */
EP_DEVICE bool ep_early_row(const ep_dispatch &args, const ep_call *call, const wefti_u32 *record, int source, int base,
                            wefti_u32 *row)
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

/* The record of a token, into the route, with its rows, and what the caller is told of it. A warp. */
template <bool BY_EXPERT>
EP_DEVICE void ep_take_record(const ep_dispatch &args, const ep_call *call, const ep_arrival &came)
{
    const int words = wefti_cuda_ep_record_words(args.topk, BY_EXPERT);
    const wefti_u32 *from = ep_early_record<BY_EXPERT>(args, call, args.group.rank, came.source, came.index);
    wefti_u32 *record = args.sheet.records + (wefti_u64)came.place * (wefti_u64)words;
    for (int base = 0; BY_EXPERT && base < args.topk; base += 32) {
        wefti_u32 row;
        (void)ep_early_row(args, call, from, came.source, base, &row);
        if (base + ep_lane() < args.topk) {
            record[1 + 2 * args.topk + base + ep_lane()] = row;
        }
    }
    for (int word = ep_lane(); word < 1 + 2 * args.topk; word += 32) {
        record[word] = from[word];
        if (!BY_EXPERT) {
            ep_spread(args, came.place, word, from[word], came.source);
        }
    }
    __syncwarp();
    if (BY_EXPERT) {
        ep_label(args, record, came.source);
    }
}

/* A row's scales, as many words as are given with rows, to those of row `row`. A warp. */
EP_DEVICE void ep_take_given(const ep_dispatch &args, const wefti_u32 *from, wefti_u64 row)
{
    for (int word = ep_lane(); word < (int)args.given_words; word += 32) {
        args.out_scales.words[row * args.out_scales.row_stride + (wefti_u64)word * args.out_scales.word_stride] =
            from[word];
    }
}

/* The scales of a slice that was made fp8, the last with what fills the last word up. A warp. */
EP_DEVICE void ep_take_made(const ep_dispatch &args, const wefti_u32 *from, wefti_u64 row, const ep_slice &slice)
{
    const int elements = 16 / (int)args.wide.element_bytes;
    const int groups = ((int)(args.wide.row_bytes / 16) * elements + WEFTI_FP8_GROUP - 1) / WEFTI_FP8_GROUP;
    const int first = slice.first * elements / WEFTI_FP8_GROUP;
    const int behind = (slice.end * elements + WEFTI_FP8_GROUP - 1) / WEFTI_FP8_GROUP;
    const bool is_ue8m0 = args.wide.is_ue8m0 != 0;
    const int end = is_ue8m0 && behind == groups ? (groups + 3) / 4 * 4 : behind;
    wefti_u32 *words = args.out_scales.words + row * args.out_scales.row_stride;
    for (int group = first + ep_lane(); group < end; group += 32) {
        if (is_ue8m0) {
            unsigned char *bytes = (unsigned char *)(words + (wefti_u64)(group / 4) * args.out_scales.word_stride);
            bytes[group % 4] = group < groups ? ((const unsigned char *)from)[group] : 0;
        } else {
            words[(wefti_u64)group * args.out_scales.word_stride] = from[group];
        }
    }
}

/* A slice to the rows of `lanes`: its bytes, and its scales if it was made fp8. A warp. */
template <bool QUANTISES>
EP_DEVICE void ep_take_slice(const ep_dispatch &args, const ep_call *call, const ep_arrival &came,
                             const ep_slice &slice, wefti_u32 lanes, wefti_u64 row)
{
    const int rank = args.group.rank;
    const int shrinks = QUANTISES ? (int)args.wide.element_bytes : 1;
    const int vectors = (int)(args.row_bytes / 16);
    const int end = (slice.end + shrinks - 1) / shrinks;
    const unsigned char *from =
        (const unsigned char *)(ep_early_rows(args.group, call, rank, came.source, args.early_slots, args.row_bytes) +
                                (wefti_u64)came.index * args.row_bytes);
    ep_copy_to<4>(lanes, (wefti_u64)args.out + row * args.out_pitch, from, slice.first / shrinks,
                  end < vectors ? end : vectors);
    for (; QUANTISES && lanes != 0; lanes &= lanes - 1) {
        ep_take_made(args, ep_early_scales(args, call, rank, came.source, came.index),
                     __shfl_sync(~0u, row, __ffs((int)lanes) - 1), slice);
    }
}

/* Record (word 0) or slice of a row that came, once it is here. A warp. False: it did not come. */
template <bool BY_EXPERT, bool QUANTISES>
EP_DEVICE bool ep_take_word(const ep_dispatch &args, const ep_call *call, const ep_arrival &came, int word,
                            const wefti_cuda_ep_slices &slices)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    bool well = true;
    if (ep_lane() == 0 || (BY_EXPERT && fresh && ep_lane() == 1)) { /* rows by expert stand in the record */
        well = ep_early_await(args.group, call, came.source, came.first_word + (ep_lane() == 0 ? word : 0));
    }
    if (!__all_sync(~0u, well)) {
        return false;
    }
    __syncwarp();
    if (word == 0 && fresh) {
        ep_take_record<BY_EXPERT>(args, call, came);
    }
    const wefti_u32 *record = args.sheet.records; /* of the row, by expert */
    if (BY_EXPERT) {
        record = fresh ? ep_early_record<true>(args, call, args.group.rank, came.source, came.index)
                       : record + (wefti_u64)came.place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
    }
    const wefti_u32 *given = ep_early_scales(args, call, args.group.rank, came.source, came.index);
    const ep_slice slice = ep_slice_of(slices, word - 1, ep_early_wide_bytes<QUANTISES>(args));
    for (int base = 0; base < (BY_EXPERT ? args.topk : 1); base += 32) {
        wefti_u32 row = came.place;
        wefti_u32 lanes = 1;
        if (BY_EXPERT) {
            lanes = __ballot_sync(~0u, ep_early_row(args, call, record, came.source, base, &row));
        }
        if (word != 0) {
            ep_take_slice<QUANTISES>(args, call, came, slice, lanes, row);
            continue;
        }
        for (; args.given_words != 0 && lanes != 0; lanes &= lanes - 1) {
            ep_take_given(args, given, __shfl_sync(~0u, row, __ffs((int)lanes) - 1));
        }
    }
    return true;
}

/* All warps. False: something did not come. */
template <bool BY_EXPERT, bool QUANTISES>
EP_DEVICE bool ep_take_rows(const ep_dispatch &args, const ep_call *call, const ep_inflow &inflow)
{
    const ep_group &group = args.group;
    const wefti_u32 wide_bytes = ep_early_wide_bytes<QUANTISES>(args);
    const ep_crew warps = ep_crew_of_all();
    const wefti_cuda_ep_slices mine = wefti_cuda_ep_slices_of(inflow.tokens, wide_bytes, group.at.early_words);
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
            !ep_take_word<BY_EXPERT, QUANTISES>(args, call, came, i / group.ranks % words, slices)) {
            return false;
        }
    }
    return true;
}

/* ---- the call ---- */

template <bool BY_EXPERT> EP_DEVICE ep_saying ep_early_saying(const ep_dispatch &args, const ep_call *call)
{
    ep_saying saying = ep_dispatch_saying<BY_EXPERT>(args, call);
    saying.place = 0;
    saying.pitch = 0; /* nobody writes to where it would be */
    return saying;
}

/* All that waits for no other rank. `id`: this thread's first choice, if ep_board_first read it. All threads of all blocks. */
template <bool BY_EXPERT, bool QUANTISES>
EP_DEVICE void ep_early_leave(const ep_dispatch &args, ep_call *call, const ep_board &board, int id, bool speaks)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    ep_sending sending;
    if (fresh) {
        ep_board_fill<BY_EXPERT>(args, call, board, id);
    }
    if (ep_warp() < args.blocks.movers) {
        sending = ep_sending_open<QUANTISES>(args, call);
    }
    if (fresh) {
        __syncthreads();
        ep_board_add_up(args.group, call, board);
    }
    if (ep_warp() < args.blocks.movers) {
        ep_send_rows<BY_EXPERT, QUANTISES>(args, call, board, &sending);
        if (fresh) {
            ep_board_keep<BY_EXPERT>(args, call, board);
        }
        return;
    }
    if (speaks) {
        ep_say(args.group, call, ep_early_saying<BY_EXPERT>(args, call));
    }
    if (fresh) {
        ep_board_tell<BY_EXPERT>(args, call, board);
    }
}

/* What lane r knows of source r. */
template <bool BY_EXPERT> EP_DEVICE ep_inflow ep_inflow_of(const ep_dispatch &args, const ep_call *call)
{
    const int rank = ep_lane();
    ep_inflow inflow = {0, 0, 0};
    if (rank < args.group.ranks) {
        inflow.count = call->count[rank];
        inflow.from = BY_EXPERT ? call->from[rank] : (wefti_u32)rank * args.early_slots;
        inflow.tokens = call->tokens_of[rank];
    }
    if (BY_EXPERT && ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        inflow.from = ep_scan(inflow.count) - inflow.count;
    }
    return inflow;
}

/* The rest. */
template <bool BY_EXPERT, bool QUANTISES> EP_DEVICE void ep_early_arrive(const ep_dispatch &args, ep_call *call)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const bool sends = ep_warp() < args.blocks.movers;
    if (!ep_hear_once(args.group, call, ep_early_saying<BY_EXPERT>(args, call), fresh)) {
        return;
    }
    if (call->status != WEFT_OK) {
        if (fresh && ep_notes_facts(args) && ep_lane() == 0) {
            args.sheet.facts->status = args.sheet.facts->routed = call->status;
            args.sheet.facts->epoch = 0;
        }
        return;
    }
    const ep_inflow inflow = ep_inflow_of<BY_EXPERT>(args, call);
    if (sends && fresh) {
        ep_note_experts<BY_EXPERT>(args, call);
        if (ep_notes_facts(args)) {
            ep_note_received<BY_EXPERT>(args, call, inflow);
        }
        if (BY_EXPERT) {
            ep_find_own_rows(args, call);
        }
    }
    if (ep_take_rows<BY_EXPERT, QUANTISES>(args, call, inflow) && !sends && !fresh) {
        ep_settle_again<BY_EXPERT>(args, call);
    }
}

/* What is read before it is known which call this is. Before ep_early_begin. The openers. */
template <bool BY_EXPERT, bool QUANTISES, ep_part PART>
EP_DEVICE void ep_early_open(const ep_dispatch &args, ep_call *call, const ep_board &board)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (PART != EP_RECV && fresh) {
        ep_board_prefetch(args);
        ep_prefetch_row<QUANTISES>(args, args.choices.tokens);
        ep_board_clear(board);
    }
    if (!fresh) {
        ep_recall(args.group, call, args.sheet);
    }
    if (threadIdx.x == 64) {
        call->tokens = PART == EP_RECV ? args.sheet.facts->tokens : ep_tokens_of_call(args, call);
    }
}

template <bool BY_EXPERT, bool QUANTISES, ep_part PART> EP_DEVICE void ep_early_dispatch(const ep_dispatch &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(shared);
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const bool speaks = PART != EP_RECV && ep_speaks();
    const ep_board board = ep_board_of<BY_EXPERT>(args, shared);
    const int id = PART != EP_RECV && fresh ? ep_board_first(args) : -1;
    if (speaks) {
        wefti_fence_acq_rel();
    } else if (ep_opens()) {
        ep_early_look_up<PART>(group, &call);
        ep_touch(args);
        ep_early_open<BY_EXPERT, QUANTISES, PART>(args, &call, board);
    }
    if (!ep_early_begin<PART>(group, &call)) {
        return;
    }
    if (PART != EP_RECV) {
        ep_early_leave<BY_EXPERT, QUANTISES>(args, &call, board, id, speaks);
    }
    if (PART != EP_SEND) {
        ep_early_arrive<BY_EXPERT, QUANTISES>(args, &call);
    }
}

#define EP_EARLY(NAME, BY_EXPERT, QUANTISES, PART)                                                                     \
    extern "C" __global__ void __launch_bounds__(512, 1)                                                               \
        wefti_cuda_ep_early_##NAME(const __grid_constant__ ep_dispatch args)                                           \
    {                                                                                                                  \
        ep_early_dispatch<BY_EXPERT, QUANTISES, PART>(args);                                                           \
    }
#define EP_EARLY_PARTS(NAME, BY_EXPERT, QUANTISES)                                                                     \
    EP_EARLY(NAME, BY_EXPERT, QUANTISES, EP_WHOLE)                                                                     \
    EP_EARLY(NAME##_send, BY_EXPERT, QUANTISES, EP_SEND)                                                               \
    EP_EARLY(NAME##_recv, BY_EXPERT, QUANTISES, EP_RECV)
EP_EARLY_PARTS(dispatch, false, false)
EP_EARLY_PARTS(dispatch_quantised, false, true)
EP_EARLY_PARTS(dispatch_expert, true, false)
EP_EARLY_PARTS(dispatch_expert_quantised, true, true)
#undef EP_EARLY_PARTS
#undef EP_EARLY

#endif
