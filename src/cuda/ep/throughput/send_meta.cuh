/* cuda/ep/throughput/send_meta.cuh: what ranks are sent of a block's units beside their rows: records of a new routing,
 * or new weights into those that they have, and scales of fp8 rows; then the word of each unit in `meta_ready`, or,
 * where rows leave with send (IS_EAGER), the word that stands for it (eager.cuh). And the sums of weights that stay
 * here. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_SEND_META_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_SEND_META_CUH

#include "cuda/ep/throughput/send.cuh"

#define EP_META_STAGE_WORDS (WEFTI_CUDA_EP_META_STAGE_BYTES / 4)
#define EP_META_BULK_TOKENS                                                                                            \
    4 /* scales of units of fewer are sent sooner by stores, which do not stand behind rows in the copy engine */

/* By expert: the row of choice `k` of a token, perhaps shared with an earlier one, or with IS_EAGER its number among
 * this rank's rows of the expert; NO_ROW if `rank` does not own it. */
template <bool IS_EAGER>
EP_DEVICE wefti_u32 ep_choice_row(const ep_dispatch &args, const ep_call *call, int token, int rank, int k)
{
    const int experts = args.group.first_expert[args.group.ranks];
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    const int id = ep_id(args.choices, first + (wefti_u64)k, experts);
    if (ep_owner(args.group, call->alive, id) != rank) {
        return WEFTI_CUDA_EP_NO_ROW;
    }
    int alike = args.experts.slots != 0 ? 0 : k;
    while (ep_id(args.choices, first + (wefti_u64)alike, experts) != id) {
        alike++;
    }
    const wefti_u32 row = args.tables.rows[first + (wefti_u64)alike];
    if constexpr (IS_EAGER) { /* it is numbered among those of this block */
        return row + (wefti_u32)wefti_ld_relaxed(
                         &args.tables.ahead[(wefti_u64)blockIdx.x * (wefti_u64)experts + (wefti_u64)id]);
    }
    return row;
}

/* Word `word` of the record of `token` for `rank`. */
template <class LAYOUT, bool IS_EAGER>
EP_DEVICE wefti_u32 ep_record_word(const ep_dispatch &args, const ep_call *call, int token, int rank, int word)
{
    if (LAYOUT::ROWS_OF_CHOICES && word > 2 * args.topk) {
        return ep_choice_row<IS_EAGER>(args, call, token, rank, word - 1 - 2 * args.topk);
    }
    if (word == 0) {
        return (wefti_u32)token;
    }
    const ep_group &group = args.group;
    const bool is_weight = word > args.topk;
    const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)(word - 1 - (is_weight ? args.topk : 0));
    const int id = ep_id(args.choices, at, group.first_expert[group.ranks]);
    const float weight = is_weight && args.choices.weights != 0 ? args.choices.weights[at] : 1.0f;
    const bool here = ep_owner(group, call->alive, id) == rank;
    return is_weight ? __float_as_uint(here || args.choices.all_weights != 0 ? weight : 0.0f)
                     : (wefti_u32)(here ? id - group.first_expert[rank] : -1);
}

/* The token whose record for `rank` is the unit's i-th there; by position of its share (ep_share_of_rows). */
EP_DEVICE int ep_token_of_record(const ep_dispatch &args, int token, int rank, wefti_u32 bits, wefti_u32 first, int i)
{
    if constexpr (EP_BY_POSITION) {
        return (int)args.tables.rows[(wefti_u64)(first + (wefti_u32)i) * (wefti_u64)args.group.ranks + (wefti_u64)rank];
    } else {
        for (int skip = i; skip > 0; skip--) {
            bits &= bits - 1;
        }
        return token + __ffs((int)bits) - 1;
    }
}

/* Where `rank` has the record of a place; with IS_EAGER places are counted among this rank's tokens there. */
template <class LAYOUT, bool IS_EAGER>
EP_DEVICE wefti_u32 *ep_records_at(const ep_dispatch &args, const ep_call *call, int rank, wefti_u64 place)
{
    const int words = LAYOUT::record_words(args.topk);
    if constexpr (IS_EAGER) {
        return ep_eager_records(args, call, rank, args.group.rank, words) + place * (wefti_u64)words;
    } else {
        return (wefti_u32 *)(args.group.area[rank] + args.group.at.records) + place * (wefti_u64)words;
    }
}

/* The records of a unit, which lie one behind the other at each rank. */
template <class LAYOUT, bool IS_EAGER>
EP_DEVICE void ep_send_records(const ep_dispatch &args, const ep_call *call, int token, int rank, wefti_u32 bits,
                               wefti_u32 first)
{
    const int words = LAYOUT::record_words(args.topk);
    wefti_u32 *records = ep_records_at<LAYOUT, IS_EAGER>(args, call, rank, (wefti_u64)(call->place[rank] + first));
#pragma unroll 2
    for (int i = ep_lane(); i < __popc(bits) * words; i += 32) {
        const int which = ep_token_of_record(args, token, rank, bits, first, i / words);
        records[i] = ep_record_word<LAYOUT, IS_EAGER>(args, call, which, rank, i % words);
    }
}

/* What ep_write_weights does, of new weights. A warp. */
EP_DEVICE void ep_write_new_weights(const ep_dispatch &args, int token, int rows)
{
    const ep_group &group = args.group;
    const float *weights = args.choices.weights;
    for (int pair = ep_lane(); pair < rows * group.ranks; pair += 32) {
        const wefti_u64 choice = (wefti_u64)(token + pair / group.ranks) * (wefti_u64)args.topk;
        float sum = 0.0f;
        for (int k = 0; k < args.topk; k++) {
            const bool is = args.tables.owner[choice + (wefti_u64)k] == pair % group.ranks;
            sum += !is ? 0.0f : weights != 0 ? weights[choice + (wefti_u64)k] : 1.0f;
        }
        args.tables.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)pair] = sum;
    }
}

/* What ep_send_records and ep_write_weights do, of weights only: the other words of records are as they were. With
 * IS_EAGER the sums stay as they are: the call may turn out to differ from others'. `bits` and `first` are those of the
 * lane's rank. A warp. */
template <class LAYOUT, bool IS_EAGER>
EP_DEVICE_SLOW void ep_send_new_weights(const ep_dispatch *args, const ep_call *call, int token, int rows,
                                        wefti_u32 bits, wefti_u32 first)
{
    const ep_group &group = args->group;
    const int topk = args->topk;
    const int words = LAYOUT::record_words(topk);
    const float *weights = args->choices.weights;
    for (int rank = 0; rank < group.ranks; rank++) {
        const wefti_u32 there = __shfl_sync(~0u, bits, rank);
        const wefti_u32 number = __shfl_sync(~0u, first, rank);
        wefti_u32 *records = ep_records_at<LAYOUT, IS_EAGER>(*args, call, rank, (wefti_u64)call->place[rank] + number);
        for (int i = ep_lane(); i < __popc(there) * topk; i += 32) {
            const int which = ep_token_of_record(*args, token, rank, there, number, i / topk);
            const wefti_u64 at = (wefti_u64)which * (wefti_u64)topk + (wefti_u64)(i % topk);
            const bool goes = args->tables.owner[at] == rank || args->choices.all_weights != 0;
            const float weight = !goes ? 0.0f : weights != 0 ? weights[at] : 1.0f;
            records[i / topk * words + 1 + topk + i % topk] = __float_as_uint(weight);
        }
    }
    if (LAYOUT::KEEPS_WEIGHTS && !IS_EAGER) {
        ep_write_new_weights(*args, token, rows);
    }
}

/* Where `rank` has the scales of what place 0 there, or with IS_EAGER this rank's first token, is. */
template <bool IS_EAGER> EP_DEVICE wefti_u64 ep_scales_at(const ep_dispatch &args, const ep_call *call, int rank)
{
    if constexpr (IS_EAGER) {
        return (wefti_u64)ep_eager_scales(args, call, rank, args.group.rank, 0);
    } else {
        return args.group.area[rank] + args.group.at.scales;
    }
}

/* The scales of a unit's rows, likewise, of few tokens. */
template <bool IS_EAGER>
EP_DEVICE void ep_send_few_scales(const ep_dispatch &args, const ep_call *call, const ep_unit &unit, int token,
                                  int rows)
{
    const int words = (int)args.given_words;
    for (int row = 0; row < rows; row++) {
        const wefti_u32 *from = args.in_scales.words + (wefti_u64)(token + row) * args.in_scales.row_stride;
        wefti_u64 to = 0;
        if (unit.rank >= 0) {
            to = ep_scales_at<IS_EAGER>(args, call, unit.rank) +
                 ep_place_of(args, call, unit, token + row, row) * (wefti_u64)wefti_cuda_ep_padded(words) * 4;
        }
        for (int word = ep_lane(); word - ep_lane() < words; word += 32) {
            const wefti_u32 value = from[(wefti_u64)(word < words ? word : words - 1) * args.in_scales.word_stride];
            for (wefti_u32 lanes = __ballot_sync(~0u, (unit.bits >> row & 1) != 0); lanes != 0; lanes &= lanes - 1) {
                wefti_u32 *there = (wefti_u32 *)__shfl_sync(~0u, to, __ffs((int)lanes) - 1);
                if (word < words) {
                    there[word] = value;
                }
            }
        }
    }
}

/* The scales of a unit's rows, gathered in shared memory at `stage`, from where the copy engine stores each row's to
 * its ranks, as it does the row: stores of words to a peer take the links twice as long. Lane r stores to rank r. */
template <bool IS_EAGER>
EP_DEVICE void ep_send_scales(const ep_dispatch &args, const ep_call *call, const ep_unit &unit, int token, int rows,
                              wefti_u32 *stage)
{
    const int pitch = wefti_cuda_ep_padded((int)args.given_words);
    const int last = (int)args.given_words - 1;
    const int words =
        pitch < EP_META_STAGE_WORDS ? pitch : EP_META_STAGE_WORDS; /* words of one row that are done at once */
    const int pieces = EP_META_STAGE_WORDS / words; /* rows that are done at once */
    for (int at = 0; at < rows * pitch;) {
        const int row = at / pitch;
        const int first = at % pitch;
        const int width = pitch - first < words ? pitch - first : words;
        const int height = rows - row < pieces ? rows - row : pieces;
        wefti_bulk_stores_read<0>();
        __syncwarp();
#pragma unroll 4
        for (int i = ep_lane(); i < height * width; i += 32) {
            const int word = first + i % width < last ? first + i % width : last;
            stage[i] = args.in_scales.words[(wefti_u64)(token + row + i / width) * args.in_scales.row_stride +
                                            (wefti_u64)word * args.in_scales.word_stride];
        }
        wefti_fence_before_bulk();
        __syncwarp();
        for (int i = 0; i < height && unit.rank >= 0; i++) {
            if ((unit.bits >> (row + i) & 1) != 0) {
                const wefti_u64 place = EP_BY_POSITION ? ep_place_of(args, call, unit, token + row + i, row + i)
                                                       : (wefti_u64)(call->place[unit.rank] + unit.first) +
                                                             (wefti_u64)__popc(unit.bits & ((1u << (row + i)) - 1));
                wefti_u32 *to = (wefti_u32 *)ep_scales_at<IS_EAGER>(args, call, unit.rank) + place * (wefti_u64)pitch;
                wefti_bulk_store_add(to + first, stage + i * width, (unsigned)width * 4);
            }
        }
        wefti_bulk_stores_commit();
        at += first + width < pitch ? width : height * pitch - first;
    }
    wefti_bulk_stores_complete();
}

/* The word by which `rank` is told that this rank's unit `number` is there. */
template <bool IS_EAGER>
EP_DEVICE wefti_u64 *ep_meta_word(const ep_dispatch &args, const ep_call *call, int rank, int number)
{
    if constexpr (IS_EAGER) {
        return ep_eager_meta_words(args, call, rank, args.group.rank) + number;
    } else {
        return ep_meta_ready(args.group, rank, args.group.rank) + number;
    }
}

/* What goes beside the rows of this rank's unit `number`, to all ranks, and then its word for each of them. A warp. */
template <class LAYOUT, bool IS_EAGER>
EP_DEVICE void ep_send_meta_of_unit(const ep_dispatch &args, const ep_call *call, int number, int unit_tokens,
                                    wefti_u32 *stage)
{
    const int rows = ep_rows_of_unit(call->tokens, unit_tokens, number);
    const int token = number * unit_tokens;
    const ep_unit unit = ep_unit_of<IS_EAGER>(args, call, number, 0); /* shift 0: lane r has rank r */
    const ep_unit share = ep_share_of_rows(args, call, number, unit);
    for (int rank = 0; rank < args.group.ranks; rank++) {
        const wefti_u32 bits = __shfl_sync(~0u, share.bits, rank);
        const wefti_u32 first = __shfl_sync(~0u, share.first, rank);
        if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
            ep_send_records<LAYOUT, IS_EAGER>(args, call, token, rank, bits, first);
        }
    }
    if (ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS)) {
        ep_send_new_weights<LAYOUT, IS_EAGER>(&args, call, token, rows, share.bits, share.first);
    }
    if (args.given_words != 0 && unit_tokens < EP_META_BULK_TOKENS) {
        ep_send_few_scales<IS_EAGER>(args, call, unit, token, rows);
    } else if (args.given_words != 0) {
        ep_send_scales<IS_EAGER>(args, call, unit, token, rows, stage);
    }
    if (LAYOUT::KEEPS_WEIGHTS && ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        ep_write_weights(args, call, token, rows);
    }
    __syncwarp(); /* all lanes have stored what the word announces */
    const int rank = ep_lane();
    if (rank < args.group.ranks && (call->alive >> rank & 1) != 0) {
        wefti_st_release(ep_meta_word<IS_EAGER>(args, call, rank, number), ep_unit_word(call, share));
    }
}

/* The same of all units of this block. The warps behind the senders. */
template <class LAYOUT, bool IS_EAGER = false>
EP_DEVICE void ep_send_meta(const ep_dispatch &args, const ep_call *call, unsigned char *shared)
{
    const int mine = ep_warp() - args.blocks.sender_warps;
    wefti_u32 *stage = (wefti_u32 *)(shared + args.meta_stages_at) + mine * EP_META_STAGE_WORDS;
    int first;
    int end;
    int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    for (int unit = first + mine; unit < end; unit += ep_warps() - args.blocks.sender_warps) {
        ep_send_meta_of_unit<LAYOUT, IS_EAGER>(args, call, unit, unit_tokens, stage);
    }
}

/* Where what goes beside rows has left with send: the sums of this block's units' new weights. The warps that do not
 * move. */
EP_DEVICE void ep_write_all_new_weights(const ep_dispatch &args, const ep_call *call)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    int first;
    int end;
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    for (int unit = first + ep_warp() - args.blocks.sender_warps; unit < end;
         unit += ep_warps() - args.blocks.sender_warps) {
        ep_write_new_weights(args, unit * unit_tokens, ep_rows_of_unit(call->tokens, unit_tokens, unit));
    }
}

#endif
