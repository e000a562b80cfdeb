/* cuda/ep/throughput/send.cuh: the rows of a block's units to all their ranks, and the word in `rows_ready`
 * of each unit or, by expert, of each grain; of rows that leave with send (eager.cuh) that of each unit there. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_SEND_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_SEND_CUH

#include "cuda/ep/device/pipe.cuh"
#include "cuda/ep/device/quantise.cuh"
#include "cuda/ep/routing/count.cuh"
#include "cuda/ep/throughput/eager.cuh"

/* What becomes of rows on their way; a backward of combine has a way of its own (backward/gradients.cuh). IS_EAGER:
 * they leave, or have left, with send. */
struct ep_as_they_are {
    enum { QUANTISES = 0, IS_BACKWARD = 0, IS_EAGER = 0 };
};
struct ep_as_fp8 {
    enum { QUANTISES = 1, IS_BACKWARD = 0, IS_EAGER = 0, GROUP = WEFTI_FP8_GROUP };
};
struct ep_as_mxfp8 {
    enum { QUANTISES = 1, IS_BACKWARD = 0, IS_EAGER = 0, GROUP = WEFTI_FP8_GROUP_MX };
};
template <class WAY> struct ep_eager : WAY {
    enum { IS_EAGER = 1 };
};

/* Whether something is sent beside the rows of units: records, new weights or scales. */
EP_DEVICE bool ep_has_meta(const ep_dispatch &args)
{
    return (args.flags & (WEFTI_CUDA_EP_FRESH | WEFTI_CUDA_EP_NEW_WEIGHTS)) != 0 || args.given_words != 0;
}

/* What a lane knows of a unit: its tokens that go to the lane's rank. */
typedef struct ep_unit {
    int rank; /* -1: none */
    wefti_u32 bits; /* by token of the unit */
    wefti_u64 to; /* where the next of them goes */
    wefti_u64 pitch;
    wefti_u32 first; /* the number of the first of them among all of this rank's there */
} ep_unit;

/* The tokens of units that go to ranks, as bits: those that are accepted; of rows that leave with send and of a new
 * routing all, as it is not known yet who is. */
template <bool IS_EAGER> EP_DEVICE const wefti_u64 *ep_goes(const ep_dispatch &args)
{
    return IS_EAGER && ep_is(args, WEFTI_CUDA_EP_FRESH) ? args.tables.bits : args.tables.goes;
}

/* What is known of a unit before the call headers are here. Lane i has rank i + `shift`, modulo R. */
template <bool IS_EAGER = false>
EP_DEVICE ep_unit ep_unit_read(const ep_dispatch &args, const ep_call *call, int number, int shift)
{
    ep_unit unit = {-1, 0, 0, 0, 0};
    if (ep_lane() < args.group.ranks) {
        unit.rank = (ep_lane() + shift) % args.group.ranks;
        int at = number * args.group.ranks + unit.rank;
        unit.bits = (call->alive >> unit.rank & 1) != 0 ? (wefti_u32)wefti_ld_relaxed(&ep_goes<IS_EAGER>(args)[at]) : 0;
        unit.first = args.tables.before[at];
    }
    return unit;
}

/* And where its rows go. */
EP_DEVICE void ep_unit_place(const ep_call *call, ep_unit *unit)
{
    if (unit->rank >= 0) {
        unit->pitch = call->pitch[unit->rank];
        unit->to = call->to[unit->rank] + (wefti_u64)(call->place[unit->rank] + unit->first) * unit->pitch;
    }
}

template <bool IS_EAGER = false>
EP_DEVICE ep_unit ep_unit_of(const ep_dispatch &args, const ep_call *call, int number, int shift)
{
    ep_unit unit = ep_unit_read<IS_EAGER>(args, call, number, shift);
    ep_unit_place(call, &unit);
    return unit;
}

EP_DEVICE int ep_rows_of_unit(int tokens, int unit_tokens, int unit)
{
    int left = tokens - unit * unit_tokens;
    return left < unit_tokens ? left : unit_tokens;
}

/* What this lane tells its rank of a unit. */
EP_DEVICE wefti_u64 ep_unit_word(const ep_call *call, const ep_unit &unit)
{
    return ep_packed(call->tag, wefti_cuda_ep_unit_value(call->place[unit.rank] + unit.first, __popc(unit.bits)));
}

/* The number of the unit's token `row` among all tokens at the lane's rank, whatever their source. */
EP_DEVICE wefti_u64 ep_place_of(const ep_dispatch &args, const ep_call *call, const ep_unit &unit, int token, int row)
{
    if (EP_BY_POSITION) {
        return (wefti_u64)call->place[unit.rank] +
               args.tables.target[(wefti_u64)token * (wefti_u64)args.group.ranks + (wefti_u64)unit.rank];
    }
    return call->place[unit.rank] + unit.first + (wefti_u32)__popc(unit.bits & ((1u << row) - 1));
}

/* What is told of a unit by position: its share of this rank's rows there, as if tokens kept their order. Its own rows
 * lie anywhere among them, so that receivers wait for all units first. */
EP_DEVICE ep_unit ep_share_of_rows(const ep_dispatch &args, const ep_call *call, int number, ep_unit unit)
{
    if (EP_BY_POSITION && unit.rank >= 0) {
        const wefti_u32 total = call->total[unit.rank];
        const wefti_u64 word = wefti_ld_relaxed(&args.tables.bits[number * args.group.ranks + unit.rank]);
        const wefti_u32 end = unit.first + (wefti_u32)__popc((wefti_u32)word);
        const wefti_u32 left = unit.first < total ? total - unit.first : 0;
        const wefti_u32 count = end - unit.first < left ? end - unit.first : left;
        unit.first = unit.first < total ? unit.first : total;
        unit.bits = count < 32 ? (1u << count) - 1 : ~0u;
    }
    return unit;
}

/* Of how many tokens `rows_ready` has a word. */
template <class LAYOUT, class WAY> EP_DEVICE int ep_grain(int tokens)
{
    return LAYOUT::ROWS_OF_CHOICES && !WAY::IS_BACKWARD ? wefti_cuda_ep_grain(tokens) : wefti_cuda_ep_unit(tokens);
}

/* The words that tell `rank` of this rank's rows. */
template <class WAY> EP_DEVICE wefti_u64 *ep_rows_words(const ep_dispatch &args, const ep_call *call, int rank)
{
    if constexpr (WAY::IS_EAGER) {
        return ep_eager_words(args, call, rank, args.group.rank);
    } else {
        return ep_rows_ready(args.group, rank, args.group.rank);
    }
}

/* Of the unit's first `rows` tokens all that went to this lane's rank are there: tell of the last grain of them. With
 * grains of 2, 6 rows: tokens 4 and 5; 5 rows, where a unit has no more: token 4. A warp. */
template <class WAY>
EP_DEVICE void ep_post_grain(const ep_dispatch &args, const ep_call *call, int number, const ep_unit &unit, int grain,
                             int rows)
{
    const int first = (rows - 1) & ~(grain - 1);
    const int word = number * (wefti_cuda_ep_unit(call->tokens) / grain) + first / grain;
    ep_unit part = unit;
    part.bits = unit.bits >> first & (~0u >> (32 - grain));
    part.first = unit.first + (wefti_u32)__popc(unit.bits & ((1u << first) - 1));
    if constexpr (EP_BY_POSITION) {
        part = ep_share_of_rows(args, call, number, unit);
    }
    wefti_bulk_stores_complete();
    if (unit.rank >= 0 && (call->alive >> unit.rank & 1) != 0) {
        wefti_st_release(ep_rows_words<WAY>(args, call, unit.rank) + word, ep_unit_word(call, part));
    }
}

/* By expert: where the unit's token `index` goes: to the row of its first choice there, or, where rows are staged, to
 * its place. */
EP_DEVICE wefti_u64 ep_target_of(const ep_dispatch &args, const ep_call *call, const ep_unit &unit, int token,
                                 int index)
{
    wefti_u32 row = args.tables.target[(wefti_u64)token * (wefti_u64)args.group.ranks + (wefti_u64)unit.rank];
    wefti_u32 place = call->place[unit.rank] + unit.first + (wefti_u32)__popc(unit.bits & ((1u << index) - 1));
    return call->to[unit.rank] + ((call->staged >> unit.rank & 1) != 0 ? place : row) * unit.pitch;
}

/* ---- which warp moves what ---- */

/* Each sender warp begins with a unit of its block's share; the others are taken one by one, by this block's sender
 * warps, and, when they have none left, by those of others: with few blocks some reach the links better than others,
 * and end up to 200 us earlier.
 */

/* What this block's sender warps do not begin with is to be taken. One thread, once the block has written all that
 * sender warps read. */
EP_DEVICE void ep_offer_units(const ep_dispatch &args, const ep_call *call, int first, int end)
{
    if (first + args.blocks.sender_warps < end) {
        wefti_st_release(&args.tables.next_unit[blockIdx.x],
                         ep_packed(call->tag, (wefti_u32)(first + args.blocks.sender_warps)));
    }
}

/* How many units of a block are left, as far as it has offered them; its word there. */
EP_DEVICE int ep_units_left(const ep_dispatch &args, const ep_call *call, int block)
{
    int first;
    int end;
    const wefti_u64 word = wefti_ld_relaxed(&args.tables.next_unit[block]);
    ep_share_of(wefti_cuda_ep_units(call->tokens), block, (int)gridDim.x, &first, &end);
    return (wefti_u32)(word >> 32) == call->tag ? end - (int)(wefti_u32)word : 0;
}

/* The block with the most units left; -1: none has any. A warp. */
EP_DEVICE int ep_block_behind(const ep_dispatch &args, const ep_call *call)
{
    wefti_u32 most = 0; /* above the block's number */
    for (int block = ep_lane(); block < (int)gridDim.x; block += 32) {
        const int left = ep_units_left(args, call, block);
        const wefti_u32 here = left > 0 ? (wefti_u32)left << 16 | (wefti_u32)block : 0;
        most = here > most ? here : most;
    }
    most = __reduce_max_sync(~0u, most);
    return most != 0 ? (int)(most & 0xffff) : -1;
}

/* Take a unit of a block that has offered them; -1: there is none left. Lane 0's answer counts. */
EP_DEVICE int ep_next_unit_of(const ep_dispatch &args, const ep_call *call, int block)
{
    int first;
    int end;
    ep_share_of(wefti_cuda_ep_units(call->tokens), block, (int)gridDim.x, &first, &end);
    const wefti_u64 word = atomicAdd((unsigned long long *)&args.tables.next_unit[block], 1ull);
    return (wefti_u32)(word >> 32) == call->tag && (int)(wefti_u32)word < end ? (int)(wefti_u32)word : -1;
}

/* One of this block's, which some thread of it has offered or is about to; -1: there is none left. A warp. */
EP_DEVICE int ep_next_own_unit(const ep_dispatch &args, const ep_call *call)
{
    int first;
    int end;
    int unit = -1;
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    if (first + args.blocks.sender_warps < end && ep_lane() == 0) {
        while ((wefti_u32)(wefti_ld_relaxed(&args.tables.next_unit[blockIdx.x]) >> 32) != call->tag) {
            EP_PAUSE();
        }
        unit = ep_next_unit_of(args, call, (int)blockIdx.x);
    }
    return __shfl_sync(~0u, unit, 0);
}

/* One of another block's; -1: all are taken. A warp. */
EP_DEVICE int ep_next_other_unit(const ep_dispatch &args, const ep_call *call)
{
    int unit = -1;
    int block = ep_block_behind(args, call);
    while (unit < 0 && block >= 0) {
        if (ep_lane() == 0) {
            unit = ep_next_unit_of(args, call, block);
            wefti_fence_acq_rel(); /* what that block wrote before it offered */
        }
        __syncwarp(); /* what lane 0 has acquired is every lane's */
        unit = __shfl_sync(~0u, unit, 0);
        block = unit < 0 ? ep_block_behind(args, call) : block;
    }
    return unit;
}

/* ---- moving ---- */

/* Values in place of the number of a unit. */
#define EP_NO_UNIT (-1)
#define EP_NEXT_OWN (-2) /* the next is still to be taken, of this block's */
#define EP_NEXT_OTHER (-3) /* or of another's */

/* What a warp that moves units keeps, from the first piece loaded on. Loading runs ahead of storing. */
typedef struct ep_sender {
    ep_pipe pipe;
    ep_cut cut;
    ep_cursor load; /* what is loaded next */
    /* Lane i has the number of the warp's unit i, i + 32, ..: the latest of these that loading has begun. The one
     * behind the warp's last unit is EP_NO_UNIT, by which storing knows the end. */
    int units;
    int begun; /* how many units loading has begun, with that one */
    int read_unit; /* EP_NO_UNIT, or the unit of `read`, which was read ahead while others wait for call headers */
    ep_unit read;
} ep_sender;

EP_DEVICE void ep_sender_begin(ep_sender *sender, int unit)
{
    sender->load.unit = unit;
    sender->units = ep_lane() == sender->begun % 32 ? unit : sender->units;
    sender->begun++;
}

/* Take the next unit: of another block's only when all loaded has been stored, because that takes longer. */
EP_DEVICE void ep_sender_next(const ep_dispatch &args, const ep_call *call, ep_sender *sender)
{
    if (sender->load.unit == EP_NEXT_OWN) {
        const int unit = ep_next_own_unit(args, call);
        if (unit >= 0) {
            ep_sender_begin(sender, unit);
        } else {
            sender->load.unit = EP_NEXT_OTHER;
        }
    }
    if (sender->load.unit == EP_NEXT_OTHER && sender->pipe.loads == sender->pipe.stores) {
        ep_sender_begin(sender, ep_next_other_unit(args, call));
    }
}

/* Begin loads while there is room. `takes`: also of units to be taken. */
EP_DEVICE void ep_sender_load(const ep_dispatch &args, const ep_call *call, ep_sender *sender, bool takes)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    while (ep_pipe_has_room(sender->pipe)) {
        if (takes && sender->load.unit < EP_NO_UNIT) {
            ep_sender_next(args, call, sender);
        }
        if (sender->load.unit < 0) {
            return;
        }
        wefti_u64 token = (wefti_u64)(sender->load.unit * unit_tokens + sender->load.row);
        ep_pipe_load(&sender->pipe, args.in + token * args.in_pitch + sender->load.at,
                     ep_cursor_bytes(sender->load, sender->cut));
        if (ep_cursor_advance(&sender->load, sender->cut, ep_rows_of_unit(call->tokens, unit_tokens, sender->load.unit),
                              0)) {
            sender->load.unit = EP_NEXT_OWN;
        }
    }
}

/* The first rows come while the ranks meet: it is known what is sent before it is known where to. */
template <bool QUANTISES>
EP_DEVICE ep_sender ep_sender_open(const ep_dispatch &args, const ep_call *call, unsigned char *shared)
{
    ep_sender sender;
    int first;
    int end;
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    if (QUANTISES) {
        sender.cut = {args.wide.row_bytes, args.blocks.stage_bytes};
    } else {
        sender.cut = ep_cut_of(args.row_bytes, args.blocks.stage_bytes);
    }
    sender.pipe = ep_pipe_open(shared + ep_warp() * ep_pipe_bytes(args.blocks.stage_bytes), args.blocks.stage_bytes);
    sender.load = {EP_NEXT_OWN, 0, 0};
    sender.units = EP_NO_UNIT;
    sender.begun = 0;
    sender.read_unit = EP_NO_UNIT;
    sender.read = {-1, 0, 0, 0, 0};
    if (first + ep_warp() < end) {
        ep_sender_begin(&sender, first + ep_warp());
    }
    ep_sender_load(args, call, &sender, false);
    return sender;
}

/* The order of ranks in which a unit's rows leave: not all to one rank at first. */
EP_DEVICE int ep_shift_of(const ep_dispatch &args, int unit)
{
    return args.group.rank + unit;
}

/* The sender warp's first unit, while others read the call headers: not where tokens may still be dropped. */
EP_DEVICE void ep_sender_look(const ep_dispatch &args, const ep_call *call, ep_sender *sender)
{
    sender->read_unit = args.group.drops == 0 ? __shfl_sync(~0u, sender->units, 0) : EP_NO_UNIT;
    if (sender->read_unit >= 0) {
        sender->read = ep_unit_read(args, call, sender->read_unit, ep_shift_of(args, sender->read_unit));
    }
}

/* Make the piece that the sender warp is to store next fp8, and store its scales. A warp. */
template <class WAY>
EP_DEVICE void ep_sender_quantise(const ep_dispatch &args, const ep_call *call, unsigned char *piece,
                                  const ep_cursor &store, const ep_cut &cut, const ep_unit &unit)
{
    const int element = (int)args.wide.element_bytes;
    const int first = (int)store.at / element;
    const int count = (int)ep_cursor_bytes(store, cut) / element;
    const bool is_ue8m0 = args.wide.scales == WEFTI_CUDA_EP_MADE_UE8M0;
    constexpr int GROUP = WAY::GROUP;
    const wefti_u32 scale =
        ep_quantise_as<GROUP>(args.wide.dtype, piece, count, args.wide.scales != WEFTI_CUDA_EP_MADE_F32);
    wefti_fence_before_bulk();
    __syncwarp();
    wefti_u64 to = 0;
    if (unit.rank >= 0) {
        wefti_u64 place = call->place[unit.rank] + unit.first + (wefti_u32)__popc(unit.bits & ((1u << store.row) - 1));
        if constexpr (EP_BY_POSITION) {
            place = ep_place_of(args, call, unit, store.unit * wefti_cuda_ep_unit(call->tokens) + store.row, store.row);
        }
        if constexpr (WAY::IS_EAGER) {
            to = (wefti_u64)ep_eager_scales(args, call, unit.rank, args.group.rank, place);
        } else {
            to = args.group.area[unit.rank] + args.group.at.scales +
                 place * (wefti_u64)wefti_cuda_ep_padded((int)args.scale_words) * 4;
        }
    }
    wefti_u32 lanes = __ballot_sync(~0u, (unit.bits >> store.row & 1) != 0);
    for (; lanes != 0; lanes &= lanes - 1) {
        ep_store_scales<GROUP>((wefti_u32 *)__shfl_sync(~0u, to, __ffs((int)lanes) - 1), scale, first / WEFTI_FP8_GROUP,
                               (first + count + WEFTI_FP8_GROUP - 1) / WEFTI_FP8_GROUP, is_ue8m0,
                               store.at + cut.piece_bytes >= cut.row_bytes);
    }
}

/* Moves the rows of units of this block, then of blocks that are behind, piece by piece: ep_sender_load keeps pieces
 * of rows on their way into the pipe, for this and later units; `store` is the piece that leaves it next, to all ranks
 * of its token. At the end of each grain and unit it posts the words. A sender warp. */
template <class LAYOUT, class WAY>
EP_DEVICE void ep_sender_run(const ep_dispatch &args, const ep_call *call, ep_sender *sender)
{
    constexpr bool QUANTISES = WAY::QUANTISES;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int grain = ep_grain<LAYOUT, WAY>(call->tokens);
    const ep_cut cut = sender->cut;
    ep_cursor store = {EP_NO_UNIT, 0, 0};
    ep_unit unit = {-1, 0, 0, 0, 0};
    for (int begun = 0;;) {
        ep_sender_load(args, call, sender, true);
        if (store.row == 0 && store.at == 0) {
            store.unit = __shfl_sync(~0u, sender->units, begun % 32);
            if (store.unit == EP_NO_UNIT) {
                return;
            }
            unit = store.unit == sender->read_unit
                       ? sender->read
                       : ep_unit_read<WAY::IS_EAGER>(args, call, store.unit, ep_shift_of(args, store.unit));
            ep_unit_place(call, &unit);
            begun++;
        }
        const int number = store.unit;
        unsigned char *piece = ep_pipe_next(&sender->pipe);
        if constexpr (QUANTISES) {
            ep_sender_quantise<WAY>(args, call, piece, store, cut, unit);
        }
        const wefti_u32 shrinks = QUANTISES ? args.wide.element_bytes : 1;
        bool goes = (unit.bits >> store.row & 1) != 0;
        if (LAYOUT::ROWS_OF_CHOICES && goes && store.at == 0) {
            unit.to = ep_target_of(args, call, unit, number * unit_tokens + store.row, store.row);
        }
        if constexpr (EP_BY_POSITION) {
            if (goes && store.at == 0) {
                unit.to = call->to[unit.rank] +
                          ep_place_of(args, call, unit, number * unit_tokens + store.row, store.row) * unit.pitch;
            }
        }
        if (goes) {
            wefti_bulk_store_add((void *)(unit.to + store.at / shrinks), piece, ep_cursor_bytes(store, cut) / shrinks);
        }
        ep_pipe_stored(&sender->pipe);
        unit.to += !LAYOUT::ROWS_OF_CHOICES && goes && store.at + cut.piece_bytes >= cut.row_bytes ? unit.pitch : 0;
        const int rows = ep_rows_of_unit(call->tokens, unit_tokens, number);
        const bool ended = ep_cursor_advance(&store, cut, rows, 0) != 0; /* then `row` is 0 again */
        if (store.at == 0 && (store.row & (grain - 1)) == 0) {
            if (QUANTISES) {
                __syncwarp(); /* scales are stored by other lanes than those that tell of them */
            }
            ep_post_grain<WAY>(args, call, number, unit, grain, ended ? rows : store.row);
        }
    }
}

#endif
