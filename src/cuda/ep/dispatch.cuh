/* cuda/ep/dispatch.cuh: a new routing (FRESH), its rows (MOVE), or both, in one launch.
 *
 * Any number of blocks, which must be able to run together; warps 0 .. movers - 1 of a block move rows, the others tell and
 * settle. Shared memory: a pipe a mover. Flags: protocol in shape.h.
 *
 *     all        count: bits of all tokens, told to this rank's blocks
 *     block 0    its line to all ranks
 *     all        hear all lines; where rows go, where they come from, is all well?
 *     movers     of each unit of this block: its rows to all their ranks, then the unit's word in `moved`
 *     others     of each unit of this block: its records, then its word in `told`
 *                of each unit of any source: once both words are there, from the area to the route and the caller's arrays
 *
 * Bytes: each row is read once and written once to each of its ranks. */
#ifndef WEFTI_CUDA_EP_DISPATCH_CUH
#define WEFTI_CUDA_EP_DISPATCH_CUH

#include "cuda/ep/choose.cuh"
#include "cuda/ep/pipe.cuh"

typedef wefti_cuda_ep_dispatch_args ep_dispatch;

EP_DEVICE bool ep_is(const ep_dispatch &args, wefti_u32 flag)
{
    return (args.flags & flag) != 0;
}

/* Whether units have something to be told beside their rows. */
EP_DEVICE bool ep_tells(const ep_dispatch &args)
{
    return ep_is(args, WEFTI_CUDA_EP_FRESH) || args.scale_words != 0;
}

/* ---- moving ---- */

/* What a lane knows of a unit: its tokens that go to the lane's rank. */
typedef struct ep_unit {
    int rank; /* -1: none */
    wefti_u32 bits; /* by token of the unit */
    wefti_u64 to; /* where the next of them goes */
    wefti_u64 pitch;
    wefti_u32 first; /* the number of the first of them among all of this rank's there */
} ep_unit;

/* Lane i has rank i + `turn`, modulo R. */
EP_DEVICE ep_unit ep_unit_of(const ep_dispatch &args, const ep_call *call, int number, int turn)
{
    ep_unit unit = {-1, 0, 0, 0, 0};
    if (ep_lane() < args.group.ranks) {
        unit.rank = (ep_lane() + turn) % args.group.ranks;
        int at = number * args.group.ranks + unit.rank;
        unit.bits = (call->alive >> unit.rank & 1) != 0 ? (wefti_u32)wefti_ld_relaxed(&args.sheet.bits[at]) : 0;
        unit.first = args.sheet.before[at];
        unit.pitch = call->pitch[unit.rank];
        unit.to = call->to[unit.rank] + (wefti_u64)(call->place[unit.rank] + unit.first) * unit.pitch;
    }
    return unit;
}

EP_DEVICE int ep_rows_of_unit(int tokens, int unit_tokens, int unit)
{
    int left = tokens - unit * unit_tokens;
    return left < unit_tokens ? left : unit_tokens;
}

/* All rows of the unit that went to this lane's rank are there. */
EP_DEVICE void ep_unit_moved(const ep_dispatch &args, const ep_call *call, int number, const ep_unit &unit)
{
    const int own = args.group.rank;
    wefti_bulk_stores_complete();
    if (unit.rank >= 0 && (call->alive >> unit.rank & 1) != 0) {
        if (!ep_tells(args)) {
            wefti_st_relaxed(ep_told(args.group, unit.rank, own) + number,
                             ep_packed(call->tag, call->place[unit.rank] + unit.first));
        }
        wefti_st_release(ep_moved(args.group, unit.rank, own) + number,
                         ep_packed(call->tag, (wefti_u32)__popc(unit.bits)));
    }
}

/* A warp that moves units, from the first piece loaded on. */
typedef struct ep_mover {
    ep_pipe pipe;
    ep_cut cut;
    ep_cursor load;
    ep_cursor store;
    int end; /* of this block's units */
} ep_mover;

/* Begin loads while there is room. */
EP_DEVICE void ep_mover_load(const ep_dispatch &args, const ep_call *call, ep_mover *mover)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    while (mover->load.unit < mover->end && ep_pipe_has_room(mover->pipe)) {
        wefti_u64 token = (wefti_u64)(mover->load.unit * unit_tokens + mover->load.row);
        ep_pipe_load(&mover->pipe, args.in + token * args.in_pitch + mover->load.at,
                     ep_cursor_bytes(mover->load, mover->cut));
        ep_cursor_advance(&mover->load, mover->cut, ep_rows_of_unit(call->tokens, unit_tokens, mover->load.unit),
                          args.blocks.movers);
    }
}

/* The first rows come while the ranks meet: it is known what is sent before it is known where to. */
EP_DEVICE ep_mover ep_mover_open(const ep_dispatch &args, const ep_call *call, unsigned char *shared)
{
    ep_mover mover;
    int first;
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &mover.end);
    mover.cut = ep_cut_of(args.row_bytes, args.blocks.stage_bytes);
    mover.pipe = ep_pipe_open(shared + ep_warp() * ep_pipe_bytes(args.blocks.stage_bytes), args.blocks.stage_bytes);
    mover.load = {first + ep_warp(), 0, 0};
    mover.store = mover.load;
    ep_mover_load(args, call, &mover);
    return mover;
}

EP_DEVICE void ep_mover_run(const ep_dispatch &args, const ep_call *call, ep_mover *mover)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const ep_cut cut = mover->cut;
    ep_cursor store = mover->store;
    ep_unit unit = {-1, 0, 0, 0, 0};
    while (store.unit < mover->end) {
        ep_mover_load(args, call, mover);
        int number = store.unit;
        if (store.row == 0 && store.at == 0) {
            unit = ep_unit_of(args, call, number, args.group.rank + number); /* not all to one rank at first */
        }
        const unsigned char *piece = ep_pipe_next(&mover->pipe);
        bool goes = (unit.bits >> store.row & 1) != 0;
        if (goes) {
            wefti_bulk_store_add((void *)(unit.to + store.at), piece, ep_cursor_bytes(store, cut));
        }
        ep_pipe_stored(&mover->pipe);
        unit.to += goes && store.at + cut.piece_bytes >= cut.row_bytes ? unit.pitch : 0;
        if (ep_cursor_advance(&store, cut, ep_rows_of_unit(call->tokens, unit_tokens, number), args.blocks.movers)) {
            ep_unit_moved(args, call, number, unit);
        }
    }
}

/* ---- telling ---- */

/* The weights of a unit's tokens, added up by rank in ascending choice: a lane takes a pair of token and rank. */
EP_DEVICE void ep_write_weights(const ep_dispatch &args, const ep_call *call, int token, int rows)
{
    const ep_group &group = args.group;
    const int experts = group.first_expert[group.ranks];
    for (int pair = ep_lane(); pair < rows * group.ranks; pair += 32) {
        const int rank = pair % group.ranks;
        const wefti_u64 first = (wefti_u64)(token + pair / group.ranks) * (wefti_u64)args.topk;
        float sum = 0.0f;
        for (int base = 0; base < args.topk; base += EP_AT_ONCE) {
            int ids[EP_AT_ONCE];
            float weights[EP_AT_ONCE];
#pragma unroll
            for (int i = 0; i < EP_AT_ONCE; i++) {
                bool is = base + i < args.topk;
                ids[i] = is ? ep_id(args.choices, first + (wefti_u64)(base + i), experts) : -1;
                weights[i] =
                    is && args.choices.weights != 0 ? args.choices.weights[first + (wefti_u64)(base + i)] : 1.0f;
            }
#pragma unroll
            for (int i = 0; i < EP_AT_ONCE; i++) {
                sum += ep_owner(group, call->alive, ids[i]) == rank ? weights[i] : 0.0f;
            }
        }
        args.sheet.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)pair] = sum;
    }
}

/* Word `word` of the record of `token` for `rank`. */
EP_DEVICE wefti_u32 ep_record_word(const ep_dispatch &args, const ep_call *call, int token, int rank, int word)
{
    if (word == 0) {
        return (wefti_u32)token;
    }
    const ep_group &group = args.group;
    const bool is_weight = word > args.topk;
    const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)(word - 1 - (is_weight ? args.topk : 0));
    const int id = ep_id(args.choices, at, group.first_expert[group.ranks]);
    const float weight = is_weight && args.choices.weights != 0 ? args.choices.weights[at] : 1.0f;
    const bool here = ep_owner(group, call->alive, id) == rank;
    return is_weight ? __float_as_uint(here ? weight : 0.0f) : (wefti_u32)(here ? id - group.first_expert[rank] : -1);
}

/* The records of a unit, which lie one behind the other at each rank. */
EP_DEVICE void ep_tell_rank(const ep_dispatch &args, const ep_call *call, int token, int rank, wefti_u32 bits,
                            wefti_u32 first)
{
    const int words = wefti_cuda_ep_record_words(args.topk);
    wefti_u32 *records = (wefti_u32 *)(args.group.area[rank] + args.group.at.records) +
                         (wefti_u64)(call->place[rank] + first) * (wefti_u64)words;
#pragma unroll 2
    for (int i = ep_lane(); i < __popc(bits) * words; i += 32) {
        wefti_u32 left = bits;
        for (int skip = i / words; skip > 0; skip--) {
            left &= left - 1;
        }
        records[i] = ep_record_word(args, call, token + __ffs((int)left) - 1, rank, i % words);
    }
}

/* The scales of a unit's rows, likewise. */
EP_DEVICE void ep_tell_scales(const ep_dispatch &args, const ep_call *call, int token, int rank, wefti_u32 bits,
                              wefti_u32 first)
{
    const int words = (int)args.scale_words;
    wefti_u32 *scales = (wefti_u32 *)(args.group.area[rank] + args.group.at.scales) +
                        (wefti_u64)(call->place[rank] + first) * (wefti_u64)words;
#pragma unroll 2
    for (int i = ep_lane(); i < __popc(bits) * words; i += 32) {
        wefti_u32 left = bits;
        for (int skip = i / words; skip > 0; skip--) {
            left &= left - 1;
        }
        wefti_u64 row = (wefti_u64)(token + __ffs((int)left) - 1);
        scales[i] =
            args.in_scales.words[row * args.in_scales.row_stride + (wefti_u64)(i % words) * args.in_scales.word_stride];
    }
}

EP_DEVICE void ep_tell_unit(const ep_dispatch &args, const ep_call *call, int number, int unit_tokens)
{
    const int rows = ep_rows_of_unit(call->tokens, unit_tokens, number);
    const int token = number * unit_tokens;
    const ep_unit unit = ep_unit_of(args, call, number, 0);
    for (int rank = 0; rank < args.group.ranks; rank++) {
        const wefti_u32 bits = __shfl_sync(~0u, unit.bits, rank);
        const wefti_u32 first = __shfl_sync(~0u, unit.first, rank);
        if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
            ep_tell_rank(args, call, token, rank, bits, first);
        }
        ep_tell_scales(args, call, token, rank, bits, first);
    }
    if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        ep_write_weights(args, call, token, rows);
    }
    __syncwarp();
    const int rank = ep_lane();
    if (rank < args.group.ranks && (call->alive >> rank & 1) != 0) {
        if (!ep_is(args, WEFTI_CUDA_EP_MOVE)) {
            wefti_st_relaxed(ep_moved(args.group, rank, args.group.rank) + number,
                             ep_packed(call->tag, (wefti_u32)__popc(unit.bits)));
        }
        wefti_st_release(ep_told(args.group, rank, args.group.rank) + number,
                         ep_packed(call->tag, call->place[rank] + unit.first));
    }
}

EP_DEVICE void ep_tell(const ep_dispatch &args, const ep_call *call)
{
    int first;
    int end;
    int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    for (int unit = first + ep_warp() - args.blocks.movers; unit < end; unit += ep_warps() - args.blocks.movers) {
        ep_tell_unit(args, call, unit, unit_tokens);
    }
}

/* ---- settling ---- */

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
    const int words = wefti_cuda_ep_record_words(args.topk);
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

/* The caller's arrays of a route that has been settled before. This block's share of each source's tokens. */
EP_DEVICE void ep_settle_again(const ep_dispatch &args, const ep_call *call)
{
    const int words = wefti_cuda_ep_record_words(args.topk);
    const int warps = ep_warps() - args.blocks.movers;
    for (int source = 0; source < args.group.ranks; source++) {
        int first;
        int end;
        ep_share((int)call->count[source], &first, &end);
        for (int i = first + ep_warp() - args.blocks.movers; i < end; i += warps) {
            const wefti_u64 place = (wefti_u64)call->from[source] + (wefti_u64)i;
            for (int word = ep_lane(); word < words; word += 32) {
                ep_spread(args, place, word, args.sheet.records[place * (wefti_u64)words + (wefti_u64)word], source);
            }
        }
    }
}

EP_DEVICE bool ep_settle_unit(const ep_dispatch &args, const ep_call *call, int source, int unit)
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
    const wefti_u32 place = __shfl_sync(~0u, value, 0);
    const wefti_u32 count = __shfl_sync(~0u, value, 1);
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

EP_DEVICE void ep_settle(const ep_dispatch &args, const ep_call *call)
{
    int ranks = args.group.ranks;
    int units = 0;
    int warps = args.blocks.settlers;
    for (int rank = 0; rank < ranks; rank++) {
        int here = wefti_cuda_ep_units(call->tokens_of[rank]);
        units = here > units ? here : units;
    }
    int mine = ep_warp() - args.blocks.movers;
    for (int i = mine < warps ? mine * (int)gridDim.x + (int)blockIdx.x : units * ranks; i < units * ranks;
         i += warps * (int)gridDim.x) {
        int source = (args.group.rank + i) % ranks;
        int unit = i / ranks;
        if (unit < wefti_cuda_ep_units(call->tokens_of[source]) && !ep_settle_unit(args, call, source, unit)) {
            return;
        }
    }
}

/* ---- the call ---- */

EP_DEVICE ep_saying ep_dispatch_saying(const ep_dispatch &args, const ep_call *call)
{
    ep_saying saying;
    saying.shape = args.shape;
    saying.route = ep_is(args, WEFTI_CUDA_EP_FRESH) ? 0 : call->route;
    saying.place = args.place;
    saying.pitch = ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.pitch : 0;
    saying.capacity = ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.capacity : ~0u;
    saying.slots = args.slots;
    return saying;
}

/* T, by one thread. */
EP_DEVICE int ep_tokens_of_call(const ep_dispatch &args, ep_call *call)
{
    call->odd_tokens = 0;
    if (!ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        return args.sheet.facts->tokens;
    }
    if (args.choices.tokens_at == 0) {
        return args.choices.tokens;
    }
    int tokens = *args.choices.tokens_at;
    call->odd_tokens = tokens < 0 || tokens > args.choices.tokens;
    return tokens < 0 ? 0 : tokens > args.choices.tokens ? args.choices.tokens : tokens;
}

/* The facts of a new routing, by one warp. */
EP_DEVICE void ep_note(const ep_dispatch &args, const ep_call *call)
{
    int rank = ep_lane();
    const ep_group &group = args.group;
    wefti_cuda_ep_facts *facts = args.sheet.facts;
    wefti_u32 dropped = ep_sum_parts(group, call, args.sheet, group.first_expert[group.ranks]);
    const wefti_u32 received = __reduce_add_sync(~0u, rank < group.ranks ? call->count[rank] : 0);
    if (rank < group.ranks) {
        args.sheet.sent[rank] = call->total[rank];
        args.sheet.place[rank] = call->place[rank];
        args.sheet.rows_of_source[rank] = (wefti_i32)call->count[rank];
        args.sheet.offset_of_source[rank] = (wefti_i32)call->from[rank];
    }
    if (rank == 0) {
        args.sheet.offset_of_source[group.ranks] = (wefti_i32)call->from[group.ranks];
        facts->tokens = call->tokens;
        facts->rows = (wefti_i32)call->from[group.ranks];
        facts->received = (wefti_i32)received;
        facts->epoch = call->status == WEFT_ERR_MISMATCH ? 0 : call->tag;
        facts->dropped = (wefti_i32)dropped;
        facts->status = call->status != WEFT_OK            ? call->status
                        : dropped != 0 || call->odd_tokens ? WEFT_ERR_RANGE
                                                           : WEFT_OK;
    }
}

/* What the other warps do. `goes`: not when the routing overflows; also then the caller learns what would have come. */
EP_DEVICE void ep_serve(const ep_dispatch &args, const ep_call *call, bool goes)
{
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const int skip = args.blocks.movers;
    if (goes && ep_tells(args)) {
        ep_tell(args, call);
    }
    if (goes && !fresh) {
        ep_settle_again(args, call);
    }
    if (fresh) {
        ep_tell_choices(args.group, call, args.sheet, skip);
        if (blockIdx.x == 0 && ep_warp() == ep_warps() - 1) {
            ep_note(args, call);
        }
    }
    if (goes) {
        ep_settle(args, call);
    }
    if (fresh) {
        ep_hear_choices(args.group, call, args.sheet, skip);
    }
}

extern "C" __global__ void __launch_bounds__(512, 1) wefti_cuda_ep_dispatch(const __grid_constant__ ep_dispatch args)
{
    __shared__ ep_call call;
    extern __shared__ __align__(128) unsigned char stages[];
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const int speakers = 2; /* the last warps of block 0 */
    const int speaker = (int)threadIdx.x - (ep_warps() - speakers) * 32;
    const bool speaks = blockIdx.x == 0 && speaker >= 0;
    if (threadIdx.x == 0) {
        call.tokens = ep_tokens_of_call(args, &call);
    }
    if (speaks) {
        wefti_fence_acq_rel();
    }
    if (!ep_begin(group, &call)) {
        return;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call.tokens), &first_unit, &end_unit);
    if (fresh) {
        ep_count(group, &call, args.sheet, args.choices, args.topk, (wefti_u32 *)stages);
        if (!ep_gather(group, &call, args.sheet, first_unit)) {
            return;
        }
    } else {
        ep_recall(group, &call, args.sheet);
    }
    const ep_saying saying = ep_dispatch_saying(args, &call);
    if (speaks) {
        __syncwarp();
        ep_say(group, &call, saying, speaker, speakers * 32);
    }
    if (fresh) {
        ep_write_before(group, &call, args.sheet, first_unit, end_unit);
    }
    const bool moves = ep_warp() < args.blocks.movers && ep_is(args, WEFTI_CUDA_EP_MOVE);
    ep_mover mover;
    if (moves) {
        mover = ep_mover_open(args, &call, stages);
    }
    if (!ep_hear(group, &call)) {
        if (moves) {
            ep_pipe_drain(&mover.pipe);
        }
        return;
    }
    if (ep_warp() == ep_warps() - 1) {
        ep_study(group, &call, saying, fresh);
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1 && ep_is(args, WEFTI_CUDA_EP_MOVE)) {
        /* This rank's own rows never land elsewhere. */
        call.to[group.rank] = (wefti_u64)args.out;
        call.pitch[group.rank] = args.out_pitch;
    }
    __syncthreads();
    if (fresh && call.status == WEFT_ERR_MISMATCH && blockIdx.x == 0 && threadIdx.x == 0) {
        args.sheet.facts->status = WEFT_ERR_MISMATCH;
        args.sheet.facts->epoch = 0; /* its words are overwritten */
    }
    if (!fresh && call.status == WEFT_ERR_OVERFLOW && blockIdx.x == 0 && threadIdx.x == 0) {
        args.sheet.facts->status = WEFT_ERR_OVERFLOW; /* some rank's buffer is too small */
    }
    const bool goes = call.status == WEFT_OK && (fresh || call.route_status != WEFT_ERR_OVERFLOW);
    if (moves) {
        if (goes) {
            ep_mover_run(args, &call, &mover);
        } else {
            ep_pipe_drain(&mover.pipe);
        }
    } else if (call.status != WEFT_ERR_MISMATCH) {
        ep_serve(args, &call, goes);
    }
}

#endif
