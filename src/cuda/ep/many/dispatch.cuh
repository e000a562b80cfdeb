/* cuda/ep/many/dispatch.cuh: a dispatch of any layout, an update, the backward of a combine where ranks are many, in
 * one launch or as halves.
 *
 * Grid: as of throughput/dispatch.cuh; all warps of a block do the same. A token's destinations are found from its
 * choices, a lane a choice.
 * Shared memory: what the block knows of the call; where rows become fp8 a piece of a row a warp.
 * Flags: call header with counts, an owner's answer, DONE, RETURNED; next_unit, by which blocks meet.
 *
 *     blocks     new routing: count their tokens' choices                                          meet
 *     threads    a rank or expert: prefix over units or blocks; the call header to each rank
 *     warps      a rank: its call header                                                           meet
 *     block 0    adds up what all sources have here, answers each
 *     threads    an owner: its answer                                                              meet
 *     warps      a token of the block's: record, scales and row to each rank, by expert the row to each of its rows;
 *                to staging at ranks whose buffer is not symmetric                                 meet, DONE
 *     warps      a received token: labels, scales, its rows out of staging; of a backward its gradient to each of its
 *                rows, and the dot products back                                                   meet, RETURNED
 *
 * Where ranks are many most choices of a token have ranks of their own, so by expert rows go over the link once a
 * choice, and none is copied where it arrives.
 *
 * Bytes: each row is read once, and written once a rank or, by expert, once a choice. Floor: the links' rate. */
#ifndef WEFTI_CUDA_EP_MANY_DISPATCH_CUH
#define WEFTI_CUDA_EP_MANY_DISPATCH_CUH

#include "cuda/ep/backward/gradients.cuh"
#include "cuda/ep/device/copy.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/device/quantise.cuh"
#include "cuda/ep/many/routing.cuh"
#include "cuda/ep/routing/labels.cuh"
#include "cuda/ep/throughput/replicate.cuh"

#define EP_MANY_PIECE_GROUPS (WEFTI_CUDA_EP_MANY_PIECE_BYTES / 4 / WEFTI_FP8_GROUP) /* of the widest elements */

/* What a kernel does beside routing. */
enum ep_many_way { EP_MANY_AS_THEY_ARE, EP_MANY_AS_FP8, EP_MANY_AS_MXFP8, EP_MANY_BACKWARD };

/* ---- leaving ---- */

/* Where lane k's choice of a token goes. */
typedef struct ep_many_choice {
    int owner; /* or -1 */
    bool leads; /* this is the first of the token's choices at that rank */
    /* Where the token's record is; of calls that pass ranks by its number among those of this rank there: */
    wefti_u64 place;
    wefti_u32 row; /* by expert; or NO_ROW */
} ep_many_choice;

template <class LAYOUT>
EP_DEVICE ep_many_choice ep_many_choice_of(const ep_dispatch &args, const ep_many_call *call, int token,
                                           int unit_tokens, int base)
{
    const short *owners = ep_many_owners(args.tables) + (wefti_u64)token * (wefti_u64)args.topk;
    const int k = base + ep_lane();
    ep_many_choice choice = {k < args.topk ? (int)owners[k] : -1, false, 0, WEFTI_CUDA_EP_NO_ROW};
    if (choice.owner >= 0 && !ep_many_is_alive(call, choice.owner)) {
        choice.owner = -1;
    }
    const wefti_u32 alike = __match_any_sync(~0u, choice.owner >= 0 ? choice.owner : -1 - ep_lane());
    choice.leads = choice.owner >= 0 && (alike & ((1u << ep_lane()) - 1)) == 0;
    for (int before = 0; before < base && choice.leads; before++) {
        choice.leads = owners[before] != choice.owner;
    }
    if (choice.owner >= 0) {
        const ep_going going = ep_many_going(args.group, args.tables, token, unit_tokens, choice.owner);
        choice.leads = choice.leads && going.goes;
        choice.place = (EP_MANY_PASSES ? 0 : (wefti_u64)args.tables.place[choice.owner]) + going.index;
        if (LAYOUT::ROWS_OF_CHOICES && going.goes) {
            choice.row = args.tables.rows[(wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k];
        }
    }
    return choice;
}

/* By expert: the row of each choice of this block's tokens: numbered in the order of choices, a thread an expert. All
 * threads. */
EP_DEVICE void ep_many_number(const ep_dispatch &args, const ep_many_share &share)
{
    const int experts = ep_many_experts(args);
    const int first = share.first * args.topk;
    const int end = share.end * args.topk;
    const wefti_u64 *ahead = args.tables.ahead + (wefti_u64)blockIdx.x * (wefti_u64)experts;
    for (int at = first + (int)threadIdx.x; at < end; at += (int)blockDim.x) {
        args.tables.rows[at] = WEFTI_CUDA_EP_NO_ROW;
    }
    __syncthreads();
    for (int expert = (int)threadIdx.x; expert < experts; expert += (int)blockDim.x) {
        wefti_u32 row = (wefti_u32)args.tables.base[expert] + (wefti_u32)ahead[expert];
        int last = -1; /* the token that has the row before */
        for (int at = first; at < end; at++) {
            const int token = at / args.topk;
            if (ep_id(args.choices, (wefti_u64)at, experts) != expert) {
                continue;
            }
            const int owner = ep_many_owners(args.tables)[at];
            if (owner < 0 || (args.experts.slots != 0 && token == last) ||
                !ep_many_going(args.group, args.tables, token, share.unit_tokens, owner).goes) {
                continue;
            }
            args.tables.rows[at] = row++;
            last = token;
        }
    }
    __syncthreads();
}

/* By expert: the row of choice k of a token, which may be that of an earlier one. */
EP_DEVICE wefti_u32 ep_many_row_of(const ep_dispatch &args, wefti_u64 first, int k)
{
    if (args.experts.slots == 0) {
        return args.tables.rows[first + (wefti_u64)k];
    }
    const int experts = ep_many_experts(args);
    const int id = ep_id(args.choices, first + (wefti_u64)k, experts);
    int alike = 0;
    while (ep_id(args.choices, first + (wefti_u64)alike, experts) != id) {
        alike++;
    }
    return args.tables.rows[first + (wefti_u64)alike];
}

/* The record of a token to `rank`. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_many_send_record(const ep_dispatch &args, int token, int rank, wefti_u64 place)
{
    const int words = LAYOUT::record_words(args.topk);
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    const int experts = ep_many_experts(args);
    const int first_expert = ep_many_first(args)[rank];
    wefti_u32 *record = (wefti_u32 *)ep_many_records(args.group, rank, args.group.rank) + place * (wefti_u64)words;
    if (ep_lane() == 0) {
        record[0] = (wefti_u32)token;
    }
    for (int k = ep_lane(); k < args.topk; k += 32) {
        const wefti_u64 at = first + (wefti_u64)k;
        const bool here = ep_many_owners(args.tables)[at] == rank;
        const float weight = args.choices.weights != 0 ? args.choices.weights[at] : 1.0f;
        record[1 + k] = (wefti_u32)(here ? ep_id(args.choices, at, experts) - first_expert : -1);
        record[1 + args.topk + k] = __float_as_uint(here || args.choices.all_weights != 0 ? weight : 0.0f);
        if (LAYOUT::ROWS_OF_CHOICES) {
            record[1 + 2 * args.topk + k] = here ? ep_many_row_of(args, first, k) : WEFTI_CUDA_EP_NO_ROW;
        }
    }
}

/* Into the record of a token that `rank` has, the weights of its choices. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_many_send_weights(const ep_dispatch &args, int token, int rank, wefti_u64 place)
{
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    wefti_u32 *record = (wefti_u32 *)ep_many_records(args.group, rank, args.group.rank) +
                        place * (wefti_u64)LAYOUT::record_words(args.topk);
    for (int k = ep_lane(); k < args.topk; k += 32) {
        const wefti_u64 at = first + (wefti_u64)k;
        const bool goes = ep_many_owners(args.tables)[at] == rank || args.choices.all_weights != 0;
        const float weight = args.choices.weights != 0 ? args.choices.weights[at] : 1.0f;
        record[1 + args.topk + k] = __float_as_uint(goes ? weight : 0.0f);
    }
}

/* By source: the sum of a token's weights on the lane's rank, in ascending choice. */
EP_DEVICE float ep_many_weight_of(const ep_dispatch &args, int token, int rank)
{
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    float sum = 0.0f;
    for (int k = 0; k < args.topk; k++) {
        const float weight = args.choices.weights != 0 ? args.choices.weights[first + (wefti_u64)k] : 1.0f;
        sum += ep_many_owners(args.tables)[first + (wefti_u64)k] == rank ? weight : 0.0f;
    }
    return sum;
}

/* Where the scales of the token at `place` of `rank` go. */
EP_DEVICE wefti_u64 ep_many_scales_at(const ep_dispatch &args, int rank, wefti_u64 place)
{
    return ep_many_scales(args.group, rank, args.group.rank) +
           place * (wefti_u64)wefti_cuda_ep_padded((int)args.scale_words) * 4;
}

/* The scales that a token was given, to the ranks of `lanes`, whose addresses for them these have. A warp. */
EP_DEVICE void ep_many_send_scales(const ep_dispatch &args, int token, wefti_u32 lanes, wefti_u64 to)
{
    const wefti_u32 *from = args.in_scales.words + (wefti_u64)token * args.in_scales.row_stride;
    for (; lanes != 0; lanes &= lanes - 1) {
        wefti_u32 *there = (wefti_u32 *)__shfl_sync(~0u, to, __ffs((int)lanes) - 1);
        for (int word = ep_lane(); word < (int)args.given_words; word += 32) {
            there[word] = from[(wefti_u64)word * args.in_scales.word_stride];
        }
    }
}

/* A row becomes fp8, piece by piece, and goes to the addresses of `lanes`, its scales to those of `heads`. A warp. */
template <int GROUP>
EP_DEVICE void ep_many_send_as_fp8(const ep_dispatch &args, int token, wefti_u32 lanes, wefti_u64 to, wefti_u32 heads,
                                   wefti_u64 scales, unsigned char *piece)
{
    const unsigned char *from = args.in + (wefti_u64)token * args.in_pitch;
    const int element = (int)args.wide.element_bytes;
    const int elements = (int)args.wide.row_bytes / element;
    const bool is_ue8m0 = args.wide.scales == WEFTI_CUDA_EP_MADE_UE8M0;
    for (int first = 0; first < elements; first += EP_MANY_PIECE_GROUPS * WEFTI_FP8_GROUP) {
        const int left = elements - first;
        const int count = left < EP_MANY_PIECE_GROUPS * WEFTI_FP8_GROUP ? left : EP_MANY_PIECE_GROUPS * WEFTI_FP8_GROUP;
        const uint4 *vectors = (const uint4 *)(from + (wefti_u64)first * (wefti_u64)element);
        for (int i = ep_lane(); i < count * element / 16; i += 32) {
            ((uint4 *)piece)[i] = vectors[i];
        }
        __syncwarp();
        const wefti_u32 scale =
            ep_quantise_as<GROUP>(args.wide.dtype, piece, count, args.wide.scales != WEFTI_CUDA_EP_MADE_F32);
        __syncwarp();
        ep_copy_to<1>(lanes, to + (wefti_u64)first, piece, 0, count / 16);
        for (wefti_u32 next = heads; next != 0; next &= next - 1) {
            ep_store_scales<GROUP>((wefti_u32 *)__shfl_sync(~0u, scales, __ffs((int)next) - 1), scale,
                                   first / WEFTI_FP8_GROUP, (first + count + WEFTI_FP8_GROUP - 1) / WEFTI_FP8_GROUP,
                                   is_ue8m0, left == count);
        }
        __syncwarp();
    }
}

/* Choices base .. base + 31 of a token: what goes to whom. A warp. */
template <class LAYOUT, ep_many_way WAY>
EP_DEVICE void ep_many_send_token(const ep_dispatch &args, const ep_many_call *call, int token, int unit_tokens,
                                  int base, unsigned char *piece)
{
    const ep_directory *directory = ep_directory_of(args.group);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const bool brings_weights = fresh || ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS);
    const ep_many_choice choice = ep_many_choice_of<LAYOUT>(args, call, token, unit_tokens, base);
    const wefti_u32 heads = __ballot_sync(~0u, choice.leads);
    for (wefti_u32 left = heads; brings_weights && left != 0; left &= left - 1) {
        const int lane = __ffs((int)left) - 1;
        const int rank = __shfl_sync(~0u, choice.owner, lane);
        const wefti_u64 place = __shfl_sync(~0u, choice.place, lane);
        if (fresh) {
            ep_many_send_record<LAYOUT>(args, token, rank, place);
        } else {
            ep_many_send_weights<LAYOUT>(args, token, rank, place);
        }
    }
    if (brings_weights && !LAYOUT::ROWS_OF_CHOICES && choice.leads) {
        args.tables.weights[(wefti_u64)token * (wefti_u64)args.group.ranks + (wefti_u64)choice.owner] =
            ep_many_weight_of(args, token, choice.owner);
    }
    if (!ep_is(args, WEFTI_CUDA_EP_MOVE)) {
        return;
    }
    bool goes = choice.leads;
    wefti_u64 to = 0;
    wefti_u64 scales = 0;
    if (choice.owner >= 0) {
        const bool by_row = WAY != EP_MANY_BACKWARD && LAYOUT::ROWS_OF_CHOICES &&
                            wefti_ld_relaxed(&directory->staged[choice.owner]) == 0;
        const wefti_u64 place = EP_MANY_PASSES && choice.owner == args.group.rank /* whose rows are not staged */
                                    ? args.tables.place[choice.owner] + choice.place
                                    : choice.place;
        goes = by_row ? choice.row != WEFTI_CUDA_EP_NO_ROW : choice.leads;
        to = directory->to[choice.owner] + (by_row ? (wefti_u64)choice.row : place) * directory->pitch[choice.owner];
        scales = ep_many_scales_at(args, choice.owner, choice.place);
    }
    const wefti_u32 lanes = __ballot_sync(~0u, goes);
    if (WAY == EP_MANY_AS_FP8 || WAY == EP_MANY_AS_MXFP8) {
        ep_many_send_as_fp8<WAY == EP_MANY_AS_MXFP8 ? WEFTI_FP8_GROUP_MX : WEFTI_FP8_GROUP>(args, token, lanes, to,
                                                                                            heads, scales, piece);
        return;
    }
    if (args.given_words != 0) {
        ep_many_send_scales(args, token, heads, scales);
    }
    if (lanes != 0) {
        ep_copy_to<8>(lanes, to, args.in + (wefti_u64)token * args.in_pitch, 0, (int)(args.row_bytes / 16));
    }
}

/* All threads of a block: its tokens. */
template <class LAYOUT, ep_many_way WAY>
EP_DEVICE void ep_many_send(const ep_dispatch &args, const ep_many_call *call, unsigned char *shared)
{
    const ep_many_share share = ep_many_share_of(call);
    if (LAYOUT::ROWS_OF_CHOICES && ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        ep_many_number(args, share);
    }
    for (int token = share.first + ep_warp(); token < share.end; token += ep_warps()) {
        for (int base = 0; base < args.topk; base += 32) {
            ep_many_send_token<LAYOUT, WAY>(args, call, token, share.unit_tokens, base,
                                            shared + ep_warp() * WEFTI_CUDA_EP_MANY_PIECE_BYTES);
        }
    }
}

/* ---- arriving ---- */

/* Where values of `token` are at its source. */
EP_DEVICE float *ep_many_values(const ep_group &group, int source, int topk, wefti_u64 token)
{
    return (float *)(ep_directory_of(group)->area[source] + group.at.values) + token * (wefti_u64)topk;
}

/* The dot products of a token's choices, to its source. A warp. */
template <class LAYOUT, int DTYPE>
EP_DEVICE void ep_many_return_dots(const ep_dispatch &args, const wefti_u32 *record, int source, wefti_u64 place,
                                   const unsigned char *gradient)
{
    const wefti_cuda_ep_backward &back = args.backward;
    const int vectors = (int)(args.row_bytes / 16);
    float *to = ep_many_values(args.group, source, args.topk, record[0]);
    float dot = 0.0f;
    if (!LAYOUT::ROWS_OF_CHOICES) {
        dot = ep_dot<DTYPE>(back.rows + place * back.rows_pitch, gradient, vectors);
    }
    for (int k = 0; k < args.topk; k++) {
        if (!ep_is_here<LAYOUT>(record, args.topk, k)) {
            continue;
        }
        if (LAYOUT::ROWS_OF_CHOICES) {
            const wefti_u64 row = ep_record_row(record, args.topk, k);
            dot = ep_dot<DTYPE>(back.rows + row * back.rows_pitch, gradient, vectors);
        }
        if (ep_lane() == 0) {
            to[k] = dot;
        }
    }
}

template <class LAYOUT, int DTYPE>
EP_DEVICE void ep_many_receive_gradient(const ep_dispatch &args, const wefti_u32 *record, int source, wefti_u64 place,
                                        const unsigned char *gradient)
{
    if (ep_is(args, WEFTI_CUDA_EP_VALUES)) {
        ep_many_return_dots<LAYOUT, DTYPE>(args, record, source, place, gradient);
    }
    ep_scale_rows<LAYOUT, DTYPE>(args, record, (wefti_u32)place, gradient);
}

/* What the caller's arrays have of a received token, and, of a new routing, or with new weights of a source that takes
 * part, the record that is kept. `landed`: which of those that the source stored. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_many_receive_record(const ep_dispatch &args, wefti_u64 place, int source, wefti_u64 landed, bool came)
{
    const int words = LAYOUT::record_words(args.topk);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    wefti_u32 *kept = args.tables.records + place * (wefti_u64)words;
    if (EP_MANY_PASSES && fresh && !came) { /* it has answered, and not stored it: the token has no row and no choice */
        for (int word = ep_lane(); word < words; word += 32) {
            kept[word] = WEFTI_CUDA_EP_NO_ROW;
        }
        return;
    }
    if (fresh || (came && ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS))) {
        const wefti_u64 records = EP_MANY_PASSES ? ep_many_records(args.group, args.group.rank, source)
                                                 : args.group.area[0] + args.group.at.records;
        const wefti_u32 *come = (const wefti_u32 *)records + landed * (wefti_u64)words;
        const int first = fresh ? 0 : 1 + args.topk;
        const int end = fresh ? words : first + args.topk;
        for (int word = first + ep_lane(); word < end; word += 32) {
            kept[word] = come[word];
        }
        __syncwarp();
    }
    if constexpr (LAYOUT::ROWS_OF_CHOICES) {
        ep_label(args, kept, source);
    } else {
        for (int word = ep_lane(); word < words; word += 32) {
            ep_spread(args, place, word, kept[word], source);
        }
    }
}

/* Where rows lie that this rank's `source` staged. */
EP_DEVICE const unsigned char *ep_many_staged_rows(const ep_dispatch &args, int source)
{
    return (const unsigned char *)(EP_MANY_PASSES ? ep_many_passing_rows(args.group, args.group.rank, source)
                                                  : args.group.area[0] + args.group.at.rows);
}

/* Scales and rows of the token at `place`, to where the caller wants them. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_many_receive_row(const ep_dispatch &args, wefti_u64 place, int source, wefti_u64 landed)
{
    const wefti_u32 *record = args.tables.records + place * (wefti_u64)LAYOUT::record_words(args.topk);
    const wefti_u64 all_scales = EP_MANY_PASSES ? ep_many_scales(args.group, args.group.rank, source)
                                                : args.group.area[0] + args.group.at.scales;
    const wefti_u32 *scales =
        (const wefti_u32 *)all_scales + landed * (wefti_u64)wefti_cuda_ep_padded((int)args.scale_words);
    const unsigned char *data = ep_many_staged_rows(args, source) + landed * args.row_bytes;
    const bool staged = (EP_MANY_PASSES || ep_is(args, WEFTI_CUDA_EP_STAGE)) && source != args.group.rank;
    for (int base = 0; base < (LAYOUT::ROWS_OF_CHOICES ? args.topk : 1); base += 32) {
        wefti_u32 row = (wefti_u32)place;
        bool has = ep_lane() == 0;
        if (LAYOUT::ROWS_OF_CHOICES) {
            has = ep_has_row(record, args.topk, args.experts.slots != 0, base, &row);
        }
        const wefti_u32 lanes = __ballot_sync(~0u, has);
        for (wefti_u32 left = lanes; left != 0 && args.scale_words != 0; left &= left - 1) {
            wefti_u32 *to = ep_scales_of_row(args, __shfl_sync(~0u, row, __ffs((int)left) - 1));
            for (int word = ep_lane(); word < (int)args.scale_words; word += 32) {
                to[(wefti_u64)word * args.out_scales.word_stride] = scales[word];
            }
        }
        if (staged && lanes != 0) {
            ep_copy_to<8>(lanes, (wefti_u64)args.out + (wefti_u64)row * args.out_pitch, data, 0,
                          (int)(args.row_bytes / 16));
        }
    }
}

/* A received token, the i-th of its source's. `came`: its source takes part in this call. A warp. */
template <class LAYOUT, ep_many_way WAY>
EP_DEVICE void ep_many_receive_token(const ep_dispatch &args, wefti_u64 place, int source, int i, bool came)
{
    if (WAY != EP_MANY_BACKWARD) {
        const wefti_u64 landed = EP_MANY_PASSES ? (wefti_u64)i : place;
        ep_many_receive_record<LAYOUT>(args, place, source, landed, came);
        if (came && ep_is(args, WEFTI_CUDA_EP_MOVE)) {
            ep_many_receive_row<LAYOUT>(args, place, source, landed);
        }
        return;
    }
    if (!came) {
        return;
    }
    const wefti_u32 *record = args.tables.records + place * (wefti_u64)LAYOUT::record_words(args.topk);
    const unsigned char *gradient =
        (const unsigned char *)(args.group.area[0] + args.group.at.rows) + place * args.row_bytes;
    if (args.backward.dtype == WEFT_EP_BF16) {
        ep_many_receive_gradient<LAYOUT, WEFT_EP_BF16>(args, record, source, place, gradient);
    } else if (args.backward.dtype == WEFT_EP_F16) {
        ep_many_receive_gradient<LAYOUT, WEFT_EP_F16>(args, record, source, place, gradient);
    } else {
        ep_many_receive_gradient<LAYOUT, WEFT_EP_F32>(args, record, source, place, gradient);
    }
}

/* All received tokens, each a warp's of the grid. `each(place, source, i)`: the i-th of its source's. */
template <class Each>
EP_DEVICE void ep_many_of_received(const ep_group &group, const ep_tables &tables, const Each &each)
{
    const ep_warp_group warps = ep_many_warps();
    int before = 0; /* tokens of the sources before, modulo the warps */
    for (int source = 0; source < group.ranks; source++) {
        const int count = tables.rows_of_source[source];
        const wefti_u64 from = (wefti_u64)(wefti_u32)tables.offset_of_source[source];
        for (int i = (warps.number - before + warps.count) % warps.count; i < count; i += warps.count) {
            each(from + (wefti_u64)i, source, i);
        }
        before = (int)(((unsigned)before + (unsigned)count) % (unsigned)warps.count);
    }
}

/* By expert: padding behind each local expert. All warps of the grid. */
EP_DEVICE void ep_many_pad(const ep_dispatch &args)
{
    const wefti_i32 *first = ep_directory_of(args.group)->first_expert + args.group.rank;
    const ep_warp_group warps = ep_many_warps();
    for (int expert = warps.number; expert < first[1] - first[0]; expert += warps.count) {
        for (wefti_u64 row = args.tables.end[expert]; row < args.tables.begin[expert + 1]; row++) {
            ep_pad_row(args, (wefti_u32)row);
        }
    }
}

template <class LAYOUT, ep_many_way WAY>
EP_DEVICE void ep_many_receive(const ep_dispatch &args, const ep_many_call *call)
{
    if (LAYOUT::ROWS_OF_CHOICES && args.experts.slots == 0) {
        ep_many_pad(args);
    }
    ep_many_of_received(args.group, args.tables, [&](wefti_u64 place, int source, int i) {
        ep_many_receive_token<LAYOUT, WAY>(args, place, source, i, ep_many_is_alive(call, source));
    });
}

/* ---- the call ---- */

template <class LAYOUT>
EP_DEVICE ep_many_header ep_many_dispatch_header(const ep_dispatch &args, const ep_many_call *call)
{
    ep_many_header header;
    header.signature = args.signature;
    header.route = !ep_is(args, WEFTI_CUDA_EP_FRESH) ? call->route
                   : LAYOUT::ROWS_OF_CHOICES         ? args.experts.alignment + args.experts.slots
                                                     : args.slots;
    header.place = args.place;
    header.pitch = ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.pitch : 0;
    header.capacity = ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.capacity : ~0u;
    return header;
}

/* Until the call header is posted. All threads of all blocks. False: a block did not come. */
template <class LAYOUT, ep_many_way WAY>
EP_DEVICE bool ep_many_dispatch_open(const ep_dispatch &args, ep_many_call *call)
{
    const ep_group &group = args.group;
    if (WAY == EP_MANY_BACKWARD && ep_is(args, WEFTI_CUDA_EP_VALUES)) {
        float *values = ep_many_values(group, group.rank, args.topk, 0);
        const ep_warp_group threads = ep_many_threads();
        for (int i = threads.number; i < call->tokens * args.topk; i += threads.count) {
            values[i] = 0.0f;
        }
        if (!ep_many_meet(&group, &args.tables, call)) {
            return false;
        }
    }
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        if (!ep_many_open_routing<LAYOUT>(args, call)) {
            return false;
        }
    } else {
        wefti_fence_acq_rel();
        __syncthreads();
    }
    ep_many_post_call(group, call, ep_many_dispatch_header<LAYOUT>(args, call));
    return true;
}

/* What the call header of `rank` says of where this rank's rows go. One thread. */
template <ep_many_way WAY>
EP_DEVICE void ep_many_note_buffer(const ep_dispatch &args, int rank, const wefti_u32 *theirs)
{
    const ep_group &group = args.group;
    ep_directory *directory = ep_directory_of(group);
    const wefti_u64 place = (wefti_u64)theirs[WEFTI_CUDA_EP_BUFFER_HIGH] << 32 | theirs[WEFTI_CUDA_EP_BUFFER_LOW];
    const bool own = rank == group.rank;
    wefti_st_relaxed(&directory->capacity[rank], theirs[WEFTI_CUDA_EP_CAPACITY]);
    args.tables.tokens_of[rank] = (wefti_i32)theirs[WEFTI_CUDA_EP_TOKENS];
    if (theirs[WEFTI_CUDA_EP_PITCH] == 0) {
        return; /* an update */
    }
    if (EP_MANY_PASSES && !own) {
        directory->to[rank] = ep_many_passing_rows(group, rank, group.rank);
        directory->pitch[rank] = args.row_bytes;
        wefti_st_relaxed(&directory->staged[rank], 1u);
    } else if (WAY == EP_MANY_BACKWARD) {
        directory->to[rank] = directory->area[rank] + group.at.rows;
        directory->pitch[rank] = args.row_bytes;
    } else {
        directory->to[rank] = own ? (wefti_u64)args.out : ep_many_resolve(group, place, rank);
        directory->pitch[rank] = own ? args.out_pitch : (wefti_u64)theirs[WEFTI_CUDA_EP_PITCH] * 16;
        wefti_st_relaxed(&directory->staged[rank], (wefti_u32)(!own && (place & WEFTI_CUDA_EP_STAGED) != 0));
    }
}

/* From then on. All threads of all blocks. */
template <class LAYOUT, ep_many_way WAY>
EP_DEVICE void ep_many_dispatch_finish(const ep_dispatch &args, ep_many_call *call, unsigned char *shared)
{
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const ep_many_header header = ep_many_dispatch_header<LAYOUT>(args, call);
    const int counts = fresh ? 1 + ep_many_counted<LAYOUT>(args) : 0;
    if (!ep_many_study(group, args.tables, call, header, counts,
                       [&](int rank, const wefti_u32 *theirs) { ep_many_note_buffer<WAY>(args, rank, theirs); })) {
        return;
    }
    if (call->status == WEFT_ERR_MISMATCH) {
        if (fresh && blockIdx.x == 0) {
            ep_many_forget(group, args.tables);
        }
        return;
    }
    if (!ep_many_route<LAYOUT>(args, call)) {
        return;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0 && fresh) {
        ep_many_note(args, call);
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
        args.tables.route_header->status = call->status != WEFT_OK ? call->status : call->route_status;
    }
    if (blockIdx.x == 0 && fresh && args.told.tells != 0) {
        ep_many_tell<LAYOUT>(args, call);
    }
    if (LAYOUT::ROWS_OF_CHOICES && call->status == WEFT_ERR_OVERFLOW && ep_is(args, WEFTI_CUDA_EP_COUNTS)) {
        ep_many_number(args, ep_many_share_of(call));
    }
    if (call->status != WEFT_OK ||
        (!fresh && (call->route_status == WEFT_ERR_OVERFLOW || call->route_status == WEFT_ERR_MISMATCH))) {
        return;
    }
    ep_many_send<LAYOUT, WAY>(args, call, shared);
    if (!ep_many_exchange(group, args.tables, call, WEFTI_CUDA_EP_DONE, EP_MANY_IN_DONE)) {
        return;
    }
    ep_many_receive<LAYOUT, WAY>(args, call);
    if (WAY != EP_MANY_BACKWARD || !ep_is(args, WEFTI_CUDA_EP_VALUES) ||
        !ep_many_exchange(group, args.tables, call, WEFTI_CUDA_EP_RETURNED, EP_MANY_IN_DONE)) {
        return;
    }
    const float *values = ep_many_values(group, group.rank, args.topk, 0);
    const ep_warp_group threads = ep_many_threads();
    for (int i = threads.number; i < call->tokens * args.topk; i += threads.count) {
        args.backward.grad_weights[i] = values[i];
    }
}

/* All threads of all blocks. */
template <class LAYOUT, ep_many_way WAY> EP_DEVICE void ep_many_dispatch(const ep_dispatch &args)
{
    EP_SHARED(ep_many_call, call);
    EP_DYNAMIC_SHARED(shared);
    const wefti_cuda_ep_phase phase = (wefti_cuda_ep_phase)args.blocks.phase;
    if (threadIdx.x == 0) {
        ep_many_find_tokens(args, &call);
    }
    if (!ep_many_begin(args.group, args.tables, &call, phase)) {
        return;
    }
    if (phase != WEFTI_CUDA_EP_RECV && !ep_many_dispatch_open<LAYOUT, WAY>(args, &call)) {
        return;
    }
    if (phase != WEFTI_CUDA_EP_SEND) {
        ep_many_dispatch_finish<LAYOUT, WAY>(args, &call, shared);
    }
}

#endif
