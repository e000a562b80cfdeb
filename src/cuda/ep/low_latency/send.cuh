/* cuda/ep/low_latency/send.cuh: of a dispatch into slots of few tokens, what leaves: records, scales and slices of
 * rows, each a warp's. */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_SEND_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_SEND_CUH

#include "cuda/ep/device/quantise.cuh"
#include "cuda/ep/low_latency/shared_table.cuh"

/* ---- what lies where ---- */

/* What rows are before they leave. */
template <int GROUP> EP_DEVICE wefti_u32 ep_low_latency_wide_bytes(const ep_dispatch &args)
{
    return GROUP != 0 ? args.wide.row_bytes : args.row_bytes;
}

/* The scales of row `index` that rank `writer` writes at `reader`. */
EP_DEVICE wefti_u32 *ep_low_latency_scales(const ep_dispatch &args, const ep_call *call, int reader, int writer,
                                           wefti_u32 index)
{
    const wefti_u64 row = (wefti_u64)writer * args.low_latency_slots + index;
    return (wefti_u32 *)(args.group.area[reader] + ep_low_latency(args.group, call).scales) + row * args.scale_words;
}

template <class LAYOUT>
EP_DEVICE wefti_u32 *ep_low_latency_record(const ep_dispatch &args, const ep_call *call, int reader, int writer,
                                           wefti_u32 index)
{
    const wefti_u64 row = (wefti_u64)writer * args.low_latency_slots + index;
    return (wefti_u32 *)(args.group.area[reader] + ep_low_latency(args.group, call).records) +
           row * (wefti_u64)LAYOUT::record_words(args.topk);
}

/* ---- parcels ---- */

/* A token's record and the scales that are given with it, to the ranks of `lanes`, where it is number `index`. A
 * warp. */
template <class LAYOUT>
EP_DEVICE void ep_send_record(const ep_dispatch &args, const ep_call *call, const ep_shared_table &table, int token,
                              wefti_u32 lanes, wefti_u32 index)
{
    const ep_group &group = args.group;
    const int words = ep_is(args, WEFTI_CUDA_EP_FRESH) ? LAYOUT::record_words(args.topk) : 0;
    for (int base = 0; base < words; base += 32) {
        const int word = base + ep_lane();
        const int kind = word > 0 && word < words ? (word - 1) / args.topk : -1; /* expert, weight, number */
        const int at = token * args.topk + (kind >= 0 ? (word - 1) % args.topk : 0);
        const int id = kind >= 0 ? ep_shared_table_id(args, at, at + 1) : -1;
        const int owner = ep_owner(group, call->alive, id);
        wefti_u32 value = __float_as_uint(kind == 1 && args.choices.weights != 0 ? args.choices.weights[at] : 1.0f);
        value = kind == 0 && owner >= 0 ? (wefti_u32)(id - group.first_expert[owner]) : value;
        value = LAYOUT::ROWS_OF_CHOICES && kind == 2 && owner >= 0 ? ep_shared_table_number(table, id, token) : value;
        const bool everywhere = kind == 1 && args.choices.all_weights != 0;
        const wefti_u32 none = kind == 1 ? __float_as_uint(0.0f) : WEFTI_CUDA_EP_NO_ROW; /* which is -1, too */
        for (wefti_u32 left = lanes; left != 0; left &= left - 1) {
            const int rank = __ffs((int)left) - 1;
            wefti_u32 *record =
                ep_low_latency_record<LAYOUT>(args, call, rank, group.rank, __shfl_sync(~0u, index, rank));
            if (word < words) {
                record[word] = word == 0 ? (wefti_u32)token : owner == rank || everywhere ? value : none;
            }
        }
    }
    for (; args.given_words != 0 && lanes != 0; lanes &= lanes - 1) {
        const int rank = __ffs((int)lanes) - 1;
        wefti_u32 *scales = ep_low_latency_scales(args, call, rank, group.rank, __shfl_sync(~0u, index, rank));
        for (int word = ep_lane(); word < (int)args.given_words; word += 32) {
            scales[word] =
                args.in_scales
                    .words[(wefti_u64)token * args.in_scales.row_stride + (wefti_u64)word * args.in_scales.word_stride];
        }
    }
}

/* A slice of a row, made fp8: to the addresses of `lanes`, and its scales to `scales`. A warp. */
template <int DTYPE, int GROUP>
EP_DEVICE void ep_send_quantised(const unsigned char *row, const ep_slice &slice, const wefti_cuda_ep_wide &wide,
                                 wefti_u32 lanes, wefti_u64 to, wefti_u64 scales)
{
    const bool is_ue8m0 = wide.scales == WEFTI_CUDA_EP_MADE_UE8M0;
    enum { PER_VECTOR = ep_type<DTYPE>::ELEMENTS, AT_ONCE = EP_STEPS * EP_STEP };
    const int end = slice.end * PER_VECTOR;
    int base = slice.first * PER_VECTOR;
    ep_raw<DTYPE> raw;
    ep_load_steps<DTYPE>(row, base + ep_lane() * EP_EIGHT, end, &raw);
    for (; base < end; base += AT_ONCE) {
        const int at = base + ep_lane() * EP_EIGHT;
        const int group = base / GROUP + ep_group_of_lane<GROUP>();
        float values[EP_STEPS][EP_EIGHT];
        ep_widen_steps<DTYPE>(raw, values);
        ep_load_steps<DTYPE>(row, at + AT_ONCE, end, &raw); /* on their way meanwhile */
        const ep_quantised made = ep_quantise_steps<GROUP>(values, wide.scales != WEFTI_CUDA_EP_MADE_F32);
        const bool has_scale = ep_has_group_first<GROUP>() && group * GROUP < end;
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
            if (has_scale && is_ue8m0) {
                ((unsigned char *)words)[group] = (unsigned char)(made.scale >> 23);
            } else if (has_scale) {
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
template <int GROUP> EP_DEVICE void ep_prefetch_row(const ep_dispatch &args, int tokens)
{
    const wefti_u32 bytes = ep_low_latency_wide_bytes<GROUP>(args);
    const wefti_cuda_ep_slices slices = wefti_cuda_ep_slices_of(tokens, bytes, args.group.at.low_latency_words);
    const ep_parcel parcel = ep_parcel_of(slices, ep_sender_warps(args.blocks.sender_warps).number, bytes);
    if (ep_warp() < args.blocks.sender_warps && parcel.token < tokens && parcel.word > 0) {
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
        there.rows = ep_low_latency_rows(group, call, rank, group.rank, args.low_latency_slots, args.row_bytes);
        there.scales = (wefti_u64)ep_low_latency_scales(args, call, rank, group.rank, 0);
        there.words = ep_low_latency_words(group, call, rank, group.rank);
    }
    return there;
}

/* A slice to the addresses of `lanes`; `ahead`: its first vectors. A warp. */
template <int GROUP>
EP_DEVICE void ep_send_slice(const ep_dispatch &args, const ep_parcel &parcel, ep_ahead *ahead, wefti_u32 lanes,
                             wefti_u64 to, wefti_u64 scales)
{
    const unsigned char *row = args.in + (wefti_u64)parcel.token * args.in_pitch;
    if constexpr (GROUP == 0) {
        ep_copy_ahead(ahead, lanes, to, row, parcel.slice);
    } else if (args.wide.dtype == WEFT_EP_BF16) {
        ep_send_quantised<WEFT_EP_BF16, GROUP>(row, parcel.slice, args.wide, lanes, to, scales);
    } else if (args.wide.dtype == WEFT_EP_F16) {
        ep_send_quantised<WEFT_EP_F16, GROUP>(row, parcel.slice, args.wide, lanes, to, scales);
    } else {
        ep_send_quantised<WEFT_EP_F32, GROUP>(row, parcel.slice, args.wide, lanes, to, scales);
    }
}

/* What this warp sends, and the first of it, ready before it is known where to. */
typedef struct ep_sending {
    wefti_cuda_ep_slices slices;
    ep_warp_group warps;
    ep_parcel parcel;
    ep_there there;
    ep_ahead ahead;
} ep_sending;

template <int GROUP> EP_DEVICE void ep_sending_load(const ep_dispatch &args, ep_sending *sending)
{
    if (GROUP == 0 && sending->parcel.word > 0) {
        ep_load_ahead(&sending->ahead, args.in + (wefti_u64)sending->parcel.token * args.in_pitch,
                      sending->parcel.slice);
    }
}

template <int GROUP> EP_DEVICE ep_sending ep_sending_open(const ep_dispatch &args, const ep_call *call)
{
    const wefti_u32 wide_bytes = ep_low_latency_wide_bytes<GROUP>(args);
    ep_sending sending;
    sending.slices = wefti_cuda_ep_slices_of(call->tokens, wide_bytes, args.group.at.low_latency_words);
    sending.warps = ep_sender_warps(args.blocks.sender_warps);
    sending.parcel = ep_parcel_of(sending.slices, sending.warps.number, wide_bytes);
    sending.there = ep_there_of(args, call);
    if (sending.parcel.token < call->tokens) {
        ep_sending_load<GROUP>(args, &sending);
    }
    return sending;
}

/* Called by the sender warps. */
template <class LAYOUT, int GROUP>
EP_DEVICE void ep_send_rows(const ep_dispatch &args, const ep_call *call, const ep_shared_table &table,
                            ep_sending *sending)
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
            going = fresh ? ep_shared_table_going(table, parcel.token, rank)
                          : ep_going_of(group, args.tables, parcel.token, unit_tokens, rank);
        }
        const wefti_u32 lanes = __ballot_sync(~0u, going.goes);
        if (parcel.word == 0) {
            ep_send_record<LAYOUT>(args, call, table, parcel.token, lanes, going.index);
        } else {
            ep_send_slice<GROUP>(args, parcel, &sending->ahead, lanes,
                                 there.rows + (wefti_u64)going.index * args.row_bytes,
                                 there.scales + (wefti_u64)going.index * args.scale_words * 4);
        }
        __syncwarp();
        if (going.goes) {
            ep_low_latency_post(call, there.words, (int)going.index * words + parcel.word);
        }
        i += sending->warps.count;
        sending->parcel = ep_parcel_of(sending->slices, i, ep_low_latency_wide_bytes<GROUP>(args));
        if (sending->parcel.token < call->tokens) {
            ep_sending_load<GROUP>(args, sending);
        }
    }
}

#endif
