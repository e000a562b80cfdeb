/* cuda/ep/throughput/combine.cuh: the received rows back to their sources, which add them up, in one launch or as
 * halves; by source, or by expert. The kernels: combine.cu, combine_piped.cu, combine_options.cu and
 * backward/dispatch_bwd.cu.
 *
 * Grid, blocks and warps as in throughput/dispatch.cuh: sender warps push rows into the staging rows of their sources'
 *     areas, the receiver warps add up.
 * Shared memory: what the block knows of the call; by source, and of sums that are piped, a pipe a sender warp.
 * Flags: call header, rows_ready; values and own choices lie beside what these announce.
 *
 *     block 0    its call header to all ranks: staging is free
 *     all        wait for all call headers
 *     senders    units of received rows, ascending and of all sources in turn: to their source, then the unit's
 *                word in `rows_ready` there
 *     receivers  token by token, ascending: once the units of its rows are there, the sum in ascending rank
 *
 * The staging rows of rank d's results lie behind those of the ranks before it, in the order this rank sent them.
 * Pushed, because all GPUs together store faster to each other than they load. By source a rank's own rows are read
 * where they are; by expert sender warps push the sums of a token's rows, and this rank's own results are staged as
 * well.
 *
 * Halves: send posts this rank's call header; recv does the rest. Where rows leave with send (combine_eager.cu;
 * eager.cuh) a kernel behind that of send, ep_combine_rows, pushes them, or their sums, to where their sources have
 * memory for this rank's, and recv adds up. Grid: that of send; waits for nobody. Warps: sender warps, the others end;
 * of recv all are receiver warps. Flags: the words beside the rows (cuda/ep/eager.h). Bytes and floor as below.
 *
 * Bytes: by source each row is read once and written once, there, and read once more there. By expert each row is read
 * once, each sum of a token on a rank written once, there, and read there. Floor: as of a dispatch. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_COMBINE_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_COMBINE_CUH

#include "cuda/ep/device/combine_options.cuh"
#include "cuda/ep/device/layout.cuh"
#include "cuda/ep/device/pipe.cuh"
#include "cuda/ep/routing/count.cuh"
#include "cuda/ep/throughput/eager.cuh"

/* ---- pushing ---- */

/* The words at `reader` of the rows of `writer`. IS_EAGER, here and below: they leave, or have left, with send. */
template <bool IS_EAGER>
EP_DEVICE wefti_u64 *ep_pushed_words(const ep_combine &args, const ep_call *call, int reader, int writer)
{
    if constexpr (IS_EAGER) {
        return ep_eager_words(args, call, reader, writer);
    } else {
        return ep_rows_ready(args.group, reader, writer);
    }
}

/* A unit of a source, or a part of one: rows first .. first + rows - 1 of those it sent here. */
typedef struct ep_push {
    int source;
    int word; /* of `rows_ready` */
    int part; /* of `parts` */
    int parts;
    int first;
    int rows; /* 0: there is none */
} ep_push;

/* The i-th in the order in which all sender warps of this rank go: units ascending, the other ranks in turn. */
template <class LAYOUT> EP_DEVICE ep_push ep_push_of(const ep_combine &args, const ep_call *call, int i)
{
    const ep_group &group = args.group;
    ep_push push;
    int others = LAYOUT::receivers(group);
    push.word = i / others;
    push.source = (group.rank + 1 + i % others) % group.ranks;
    int rows = (int)call->count[push.source];
    int unit_rows = wefti_cuda_ep_push_unit(rows);
    push.parts = LAYOUT::push_parts(rows, group.ranks, args.row_bytes);
    push.part = push.word % push.parts;
    push.first = push.word / push.parts * unit_rows;
    push.rows = rows - push.first < unit_rows ? rows - push.first : unit_rows;
    push.rows = push.rows < 0 ? 0 : push.rows;
    return push;
}

/* The first from i on, in steps, that has rows; `end` if there is none. */
template <class LAYOUT>
EP_DEVICE int ep_push_next(const ep_combine &args, const ep_call *call, int i, int step, int end)
{
    while (i < end && ep_push_of<LAYOUT>(args, call, i).rows == 0) {
        i += step;
    }
    return i < end ? i : end;
}

/* The number behind the last. */
template <class LAYOUT> EP_DEVICE int ep_push_end(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    int end = 0;
    for (int rank = 0; rank < group.ranks; rank++) {
        int rows = LAYOUT::returns(group.rank, rank) ? (int)call->count[rank] : 0;
        int unit_rows = wefti_cuda_ep_push_unit(rows);
        int words = (rows + unit_rows - 1) / unit_rows;
        words *= LAYOUT::receivers(group) * LAYOUT::push_parts(rows, group.ranks, args.row_bytes);
        end = words > end ? words : end;
    }
    return end;
}

/* By expert: the sums of the rows of each received token, all of a unit's by one warp, or each by the warps of its
 * parts. */
template <ep_kind KIND, bool IS_EAGER> EP_DEVICE void ep_push_sums(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int step = args.blocks.sender_warps * (int)gridDim.x;
    const int end = ep_push_end<ep_by_expert>(args, call);
    const int words = wefti_cuda_ep_record_words(args.topk, 1);
    const int vectors = (int)(args.row_bytes / 16);
    for (int i = ep_push_next<ep_by_expert>(args, call, ep_warp() * (int)gridDim.x + (int)blockIdx.x, step, end);
         i < end; i = ep_push_next<ep_by_expert>(args, call, i + step, step, end)) {
        const ep_push push = ep_push_of<ep_by_expert>(args, call, i);
        const int each = (vectors + push.parts - 1) / push.parts;
        const int from = push.part * each;
        const int to_end = from + each < vectors ? from + each : vectors;
        for (int row = 0; row < push.rows; row++) {
            wefti_u64 place = (wefti_u64)call->from[push.source] + (wefti_u64)(push.first + row);
            const wefti_u32 *record = args.tables.records + place * (wefti_u64)words;
            unsigned char *to = (unsigned char *)call->to[push.source] + (wefti_u64)(push.first + row) * args.row_bytes;
            ep_fold_any<KIND>(ep_in_vectors(), args, call, place, to, from, to_end);
            if (KIND == EP_GRADIENTS && push.part == 0) {
                ep_return_given<ep_by_expert>(group, args.backward.given, record, args.topk, push.source, place);
            }
            if (KIND == EP_WITH_OPTIONS && args.options.values_in != 0 && push.part == 0) {
                ep_return_given<ep_by_expert>(group, args.options.values_in, record, args.topk, push.source, place);
            }
        }
        __syncwarp();
        if (ep_lane() == 0) {
            wefti_st_release(ep_pushed_words<IS_EAGER>(args, call, push.source, group.rank) + push.word,
                             ep_packed(call->tag, (wefti_u32)push.rows));
        }
    }
}

/* By expert, of up to 32 choices and without options: the same sums, of rows that come through shared memory. What a
 * warp has room for in registers is too little on its way, and comes at once, not one behind the other. Where a warp
 * has but a row or two its first one comes later so: kernels of their own (combine_piped.cu), which the host
 * chooses. */

/* A token whose rows are added up, and those of its bytes that this push is of. */
typedef struct ep_summed {
    int i; /* of the pushes; the end: there is none */
    ep_push push;
    int row; /* of the push */
    wefti_u32 from;
    wefti_u32 to;
    ep_addend addend;
} ep_summed;

EP_DEVICE wefti_u64 ep_summed_place(const ep_call *call, const ep_summed &token)
{
    return (wefti_u64)call->from[token.push.source] + (wefti_u64)(token.push.first + token.row);
}

EP_DEVICE const wefti_u32 *ep_summed_record(const ep_combine &args, const ep_call *call, const ep_summed &token)
{
    return args.tables.records + ep_summed_place(call, token) * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 1);
}

/* The first token of push i. */
EP_DEVICE void ep_summed_open(const ep_combine &args, const ep_call *call, ep_summed *token, int i, int end)
{
    token->i = i;
    if (i < end) {
        const int vectors = (int)(args.row_bytes / 16);
        token->push = ep_push_of<ep_by_expert>(args, call, i);
        const int each = (vectors + token->push.parts - 1) / token->push.parts;
        const int first = token->push.part * each;
        token->row = 0;
        token->from = (wefti_u32)first * 16;
        token->to = (wefti_u32)(first + each < vectors ? first + each : vectors) * 16;
        token->addend = ep_addend_of<false>(args, ep_summed_record(args, call, *token), 0, 0);
    }
}

/* 1: to the next one of its push; 0: it was the last one. */
EP_DEVICE bool ep_summed_advance(const ep_combine &args, const ep_call *call, ep_summed *token)
{
    token->row++;
    if (token->row == token->push.rows) {
        return false;
    }
    token->addend = ep_addend_of<false>(args, ep_summed_record(args, call, *token), 0, 0);
    return true;
}

/* What is loaded next: of a token at `at` the rows of `left`. */
typedef struct ep_sum_load {
    ep_summed token;
    wefti_u32 at;
    wefti_u32 left;
} ep_sum_load;

/* The rows of a new piece; none of what is no token, or of a part that has no bytes. */
EP_DEVICE wefti_u32 ep_sum_left(const ep_sum_load &load, int end)
{
    return load.token.i < end && load.at < load.token.to ? load.token.addend.lanes : 0;
}

/* How a warp goes through the pushes. */
typedef struct ep_sum_way {
    int step;
    int end;
    wefti_u32 piece; /* bytes */
} ep_sum_way;

EP_DEVICE void ep_sum_load_open(const ep_combine &args, const ep_call *call, ep_sum_load *load, int i, int end)
{
    ep_summed_open(args, call, &load->token, i, end);
    load->at = load->token.from;
    load->left = ep_sum_left(*load, end);
}

/* To the next piece, or token, or push. */
EP_DEVICE void ep_sum_load_advance(const ep_combine &args, const ep_call *call, const ep_sum_way &way,
                                   ep_sum_load *load)
{
    load->at += way.piece;
    if (load->at >= load->token.to) {
        if (!ep_summed_advance(args, call, &load->token)) {
            const int next = ep_push_next<ep_by_expert>(args, call, load->token.i + way.step, way.step, way.end);
            ep_summed_open(args, call, &load->token, next, way.end);
        }
        load->at = load->token.from;
    }
    load->left = ep_sum_left(*load, way.end);
}

EP_DEVICE wefti_u32 ep_sum_bytes(const ep_summed &token, const ep_sum_way &way, wefti_u32 at)
{
    return token.to - at < way.piece ? token.to - at : way.piece;
}

/* Begin loads while there is room. */
EP_DEVICE void ep_sum_load_rows(const ep_combine &args, const ep_call *call, const ep_sum_way &way, ep_sum_load *load,
                                ep_pipe *pipe)
{
    while (load->token.i < way.end && ep_pipe_has_stage(*pipe)) {
        if (load->left == 0) {
            ep_sum_load_advance(args, call, way, load);
            continue;
        }
        const wefti_u64 row = __shfl_sync(~0u, load->token.addend.row, __ffs((int)load->left) - 1);
        ep_pipe_begin(pipe, (const unsigned char *)row + load->at, ep_sum_bytes(load->token, way, load->at));
        load->left &= load->left - 1;
    }
}

#define EP_SUM_VECTORS 7 /* of a piece, a lane: as many sums as there are registers for */
#define EP_SUM_BYTES_MAX (EP_SUM_VECTORS * 32u * 16u)

/* The sum of a token's pieces at `at`, in ascending choice, stored at its source. */
template <int DTYPE>
EP_DEVICE void ep_sum_pieces(const ep_combine &args, const ep_call *call, const ep_sum_way &way, ep_sum_load *load,
                             ep_pipe *pipe, const ep_summed &token, wefti_u32 at)
{
    float sum[EP_SUM_VECTORS][ep_type<DTYPE>::ELEMENTS] = {};
    const int vectors = (int)(ep_sum_bytes(token, way, at) / 16);
    for (wefti_u32 left = token.addend.lanes; left != 0; left &= left - 1) {
        const float weight = __shfl_sync(~0u, token.addend.weight, __ffs((int)left) - 1);
        ep_sum_load_rows(args, call, way, load, pipe);
        const uint4 *piece = (const uint4 *)ep_pipe_next(pipe);
#pragma unroll
        for (int v = 0; v < EP_SUM_VECTORS; v++) {
            if (ep_lane() + 32 * v < vectors) {
                ep_fuse<DTYPE>(sum[v], piece[ep_lane() + 32 * v], weight);
            }
        }
        ep_pipe_read(pipe);
    }
    unsigned char *to =
        (unsigned char *)call->to[token.push.source] + (wefti_u64)(token.push.first + token.row) * args.row_bytes + at;
#pragma unroll
    for (int v = 0; v < EP_SUM_VECTORS; v++) {
        if (ep_lane() + 32 * v < vectors) {
            ((uint4 *)to)[ep_lane() + 32 * v] = ep_type<DTYPE>::round(sum[v]);
        }
    }
}

template <ep_kind KIND, int DTYPE>
EP_DEVICE void ep_push_piped_sums(const ep_combine &args, const ep_call *call, unsigned char *shared)
{
    const wefti_u32 stage = args.blocks.stage_bytes;
    const ep_sum_way way = {args.blocks.sender_warps * (int)gridDim.x, ep_push_end<ep_by_expert>(args, call),
                            ep_cut_of(args.row_bytes, stage < EP_SUM_BYTES_MAX ? stage : EP_SUM_BYTES_MAX).piece_bytes};
    ep_pipe pipe = ep_pipe_open(shared + ep_warp() * ep_pipe_bytes(stage), stage);
    ep_sum_load load;
    ep_summed token;
    const int first =
        ep_push_next<ep_by_expert>(args, call, ep_warp() * (int)gridDim.x + (int)blockIdx.x, way.step, way.end);
    ep_sum_load_open(args, call, &load, first, way.end);
    ep_summed_open(args, call, &token, first, way.end);
    while (token.i < way.end) {
        do {
            for (wefti_u32 at = token.from; at < token.to; at += way.piece) {
                ep_sum_pieces<DTYPE>(args, call, way, &load, &pipe, token, at);
            }
            if (KIND == EP_GRADIENTS && token.push.part == 0) {
                ep_return_given<ep_by_expert>(args.group, args.backward.given, ep_summed_record(args, call, token),
                                              args.topk, token.push.source, ep_summed_place(call, token));
            }
        } while (ep_summed_advance(args, call, &token));
        __syncwarp();
        if (ep_lane() == 0) {
            wefti_st_release(ep_pushed_words<false>(args, call, token.push.source, args.group.rank) + token.push.word,
                             ep_packed(call->tag, (wefti_u32)token.push.rows));
        }
        const int next = ep_push_next<ep_by_expert>(args, call, token.i + way.step, way.step, way.end);
        ep_summed_open(args, call, &token, next, way.end);
    }
}

template <ep_kind KIND>
EP_DEVICE void ep_push_piped_sums_as(const ep_combine &args, const ep_call *call, unsigned char *shared)
{
    if (args.dtype == WEFT_EP_BF16) {
        ep_push_piped_sums<KIND, WEFT_EP_BF16>(args, call, shared);
    } else if (args.dtype == WEFT_EP_F16) {
        ep_push_piped_sums<KIND, WEFT_EP_F16>(args, call, shared);
    } else {
        ep_push_piped_sums<KIND, WEFT_EP_F32>(args, call, shared);
    }
}

/* By source: the values of a unit's tokens. */
EP_DEVICE void ep_push_values(const ep_combine &args, const ep_call *call, const ep_push &push)
{
    for (int i = 0; i < push.rows; i++) {
        ep_send_values(args, push.source, (wefti_u64)call->from[push.source] + (wefti_u64)(push.first + i));
    }
}

/* The next push of this block's, which are every gridDim.x-th, or the number `end`: its sender warps take them one by
 * one. A warp. */
EP_DEVICE int ep_next_push(const ep_combine &args, ep_call *call, int end)
{
    int i = end;
    if (ep_lane() == 0) {
        do {
            i = (int)blockIdx.x + (int)atomicAdd(&call->next_push, 1u) * (int)gridDim.x;
        } while (i < end && ep_push_of<ep_by_source>(args, call, i).rows == 0);
    }
    i = __shfl_sync(~0u, i, 0);
    return i < end ? i : end;
}

/* A warp that pushes units, from the first piece loaded on. */
typedef struct ep_pusher {
    ep_pipe pipe;
    ep_cut cut;
    ep_cursor load;
    ep_push loading;
    int pushes; /* in lane i: the i-th push of this warp, modulo 32 */
    int begun; /* so many of them */
    int end; /* in place of a push: there are no more */
} ep_pusher;

EP_DEVICE void ep_pusher_next(const ep_combine &args, ep_call *call, ep_pusher *pusher)
{
    pusher->load.unit = ep_next_push(args, call, pusher->end);
    pusher->loading = ep_push_of<ep_by_source>(args, call, pusher->load.unit);
    pusher->pushes = ep_lane() == pusher->begun % 32 ? pusher->load.unit : pusher->pushes;
    pusher->begun++;
}

/* Begin loads while there is room. */
EP_DEVICE void ep_pusher_load(const ep_combine &args, ep_call *call, ep_pusher *pusher)
{
    while (pusher->load.unit < pusher->end && ep_pipe_has_room(pusher->pipe)) {
        const ep_push &push = pusher->loading;
        wefti_u64 row = (wefti_u64)call->from[push.source] + (wefti_u64)(push.first + pusher->load.row);
        ep_pipe_load(&pusher->pipe, args.in + row * args.in_pitch + pusher->load.at,
                     ep_cursor_bytes(pusher->load, pusher->cut));
        if (ep_cursor_advance(&pusher->load, pusher->cut, push.rows, 0)) {
            ep_pusher_next(args, call, pusher);
        }
    }
}

/* The first rows come while the ranks meet; none of a routing that overflows, whose rows are more than there are. */
EP_DEVICE ep_pusher ep_pusher_open(const ep_combine &args, ep_call *call, unsigned char *shared)
{
    ep_pusher pusher;
    pusher.end = call->route_status == WEFT_ERR_OVERFLOW ? 0 : ep_push_end<ep_by_source>(args, call);
    pusher.cut = ep_cut_of(args.row_bytes, args.blocks.stage_bytes);
    pusher.pipe = ep_pipe_open(shared + ep_warp() * ep_pipe_bytes(args.blocks.stage_bytes), args.blocks.stage_bytes);
    pusher.load = {0, 0, 0};
    pusher.pushes = 0;
    pusher.begun = 0;
    ep_pusher_next(args, call, &pusher);
    ep_pusher_load(args, call, &pusher);
    return pusher;
}

/* The words of this warp's pushes from the `posted`-th to that before the `stored`-th: all their rows have been
 * stored. */
template <bool IS_EAGER>
EP_DEVICE void ep_pushed(const ep_combine &args, const ep_call *call, const ep_pusher &pusher, int posted, int stored)
{
    wefti_bulk_stores_complete();
    __syncwarp();
    if (ep_lane() == 0) {
        wefti_fence_acq_rel();
    }
    for (; posted < stored; posted++) {
        const ep_push push = ep_push_of<ep_by_source>(args, call, __shfl_sync(~0u, pusher.pushes, posted % 32));
        if (ep_lane() == 0) {
            wefti_st_relaxed(ep_pushed_words<IS_EAGER>(args, call, push.source, args.group.rank) + push.word,
                             ep_packed(call->tag, (wefti_u32)push.rows));
        }
    }
}

template <ep_kind KIND, bool IS_EAGER>
EP_DEVICE void ep_push_rows(const ep_combine &args, ep_call *call, ep_pusher *pusher)
{
    const ep_cut cut = pusher->cut;
    int posted = 0; /* pushes of this warp */
    for (int stored = 0;;) {
        ep_cursor store = {__shfl_sync(~0u, pusher->pushes, stored % 32), 0, 0};
        const ep_push push = ep_push_of<ep_by_source>(args, call, store.unit);
        if (store.unit == pusher->end) {
            return;
        }
        do {
            ep_pusher_load(args, call, pusher);
            const unsigned char *piece = ep_pipe_next(&pusher->pipe);
            if (ep_lane() == 0) {
                wefti_u64 row = (wefti_u64)(push.first + store.row);
                wefti_bulk_store_add((void *)(call->to[push.source] + row * args.row_bytes + store.at), piece,
                                     ep_cursor_bytes(store, cut));
            }
            ep_pipe_stored(&pusher->pipe);
        } while (!ep_cursor_advance(&store, cut, push.rows, 0));
        if (KIND == EP_WITH_OPTIONS && args.options.values_in != 0) {
            ep_push_values(args, call, push);
        }
        stored++;
        if (stored - posted == args.blocks.pushes_at_once || pusher->pipe.loads == pusher->pipe.stores) {
            ep_pushed<IS_EAGER>(args, call, *pusher, posted, stored);
            posted = stored;
        }
    }
}

/* ---- adding up ---- */

/* What lane r knows of rank r. */
typedef struct ep_source {
    wefti_u64 rows; /* the address of the first of its results */
    wefti_u64 pitch;
    int unit_rows;
    int parts; /* of each row */
    int each; /* vectors of a part */
    int word; /* the last that is known to be here */
} ep_source;

template <class LAYOUT, bool IS_EAGER> EP_DEVICE ep_source ep_source_of(const ep_combine &args, const ep_call *call)
{
    const int vectors = (int)(args.row_bytes / 16);
    ep_source source = {0, args.row_bytes, 1, 1, vectors, -1};
    int rank = ep_lane();
    if (!LAYOUT::returns(args.group.rank, rank)) {
        source.rows = (wefti_u64)(args.in + (wefti_u64)call->from[rank] * args.in_pitch);
        source.pitch = args.in_pitch;
    } else if (rank < args.group.ranks) {
        wefti_u64 first = 0;
        for (int before = 0; before < rank; before++) {
            first += LAYOUT::returns(before, args.group.rank) ? call->total[before] : 0;
        }
        if constexpr (IS_EAGER) {
            source.rows = ep_eager_rows(args, call, args.group.rank, rank);
        } else {
            source.rows = args.group.area[args.group.rank] + args.group.at.rows + first * args.row_bytes;
        }
        source.unit_rows = wefti_cuda_ep_push_unit((int)call->total[rank]);
        if (LAYOUT::SUMS_AT_OWNER) {
            source.parts = wefti_cuda_ep_push_parts((int)call->total[rank], args.group.ranks, args.row_bytes);
            source.each = (vectors + source.parts - 1) / source.parts;
        }
    }
    return source;
}

/* Wait until vectors first .. end - 1 of the lane's rank's number `index` are here. */
template <class LAYOUT, bool IS_EAGER>
EP_DEVICE bool ep_await_sum(const ep_combine &args, const ep_call *call, ep_source *source, int index, int first,
                            int end)
{
    const ep_group &group = args.group;
    const int unit = index / source->unit_rows * source->parts;
    const int last = unit + (LAYOUT::SUMS_AT_OWNER ? (end - 1) / source->each : 0);
    bool well = true;
    for (int word = unit + (LAYOUT::SUMS_AT_OWNER ? first / source->each : 0); word <= last && well; word++) {
        wefti_u32 count;
        well =
            word == source->word || ep_await(group, ep_pushed_words<IS_EAGER>(args, call, group.rank, ep_lane()) + word,
                                             call->tag, ep_lane(), args.blocks.rest_ns, &count);
        source->word = word;
    }
    return well;
}

/* Each warp has several parts, so that what it does once the last rows have come is short. */
#define EP_PARTS_A_WARP 8

/* The sum of a token's results, whose addresses and weights the lanes of `ranks` have. A warp. */
template <class LAYOUT, ep_kind KIND>
EP_DEVICE void ep_sum_token(const ep_combine &args, const ep_call *call, int token, wefti_u32 ranks, ep_going going,
                            wefti_u64 row, float weight, int first, int end)
{
    const bool scaled = LAYOUT::KEEPS_WEIGHTS && (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    unsigned char *out = args.out + (wefti_u64)token * args.out_pitch;
    if constexpr (KIND == EP_WITH_OPTIONS) {
        if (args.options.values_in != 0 && first == 0) {
            const int own = args.group.rank;
            const wefti_u64 place = (wefti_u64)call->from[own] + (wefti_u64)__shfl_sync(~0u, going.index, own);
            ep_take_values_with<LAYOUT>(args, token, ranks, place);
        }
        const ep_lineup line = ep_line_up(args, token, ranks, row, weight);
        ep_sum_as(ep_in_vectors(), args.dtype, scaled, line.lanes, line.row, line.weight, out, first, end,
                  ep_biases_of(args, token));
    } else {
        ep_sum_as(ep_in_vectors(), args.dtype, scaled, ranks, row, weight, out, first, end, ep_no_biases());
    }
}

template <class LAYOUT, ep_kind KIND, bool IS_EAGER>
EP_DEVICE void ep_add_up(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int rank = ep_lane();
    const int mine = (ep_warp() - args.blocks.sender_warps) * (int)gridDim.x + (int)blockIdx.x;
    const int step = args.blocks.receiver_warps * (int)gridDim.x;
    const int vectors = (int)(args.row_bytes / 16);
    const int parts = ep_parts<ep_in_vectors>(call->tokens, EP_PARTS_A_WARP * step, vectors);
    const int part_vectors = (vectors + parts - 1) / parts;
    ep_source source = ep_source_of<LAYOUT, IS_EAGER>(args, call);
    for (int i = mine; i < call->tokens * parts; i += step) {
        int token = i / parts;
        int first = i % parts * part_vectors;
        ep_going going = {false, 0};
        float weight = 0.0f;
        bool well = true;
        if (rank < group.ranks) {
            going = ep_going_of(group, args.tables, token, unit_tokens, rank);
            going.goes = going.goes && (call->alive >> rank & 1) != 0;
            weight = !LAYOUT::KEEPS_WEIGHTS ? 0.0f
                     : KIND == EP_WITH_OPTIONS
                         ? ep_weight_of_rank(args, token, rank)
                         : args.tables.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank];
        }
        int end = first + part_vectors < vectors ? first + part_vectors : vectors;
        if (going.goes && LAYOUT::returns(group.rank, rank)) {
            well = ep_await_sum<LAYOUT, IS_EAGER>(args, call, &source, (int)going.index, first, end);
        }
        if (!__all_sync(~0u, well)) {
            return;
        }
        __syncwarp(); /* what a lane has acquired is every lane's; before the vote it takes more instructions */
        wefti_u32 ranks = __ballot_sync(~0u, going.goes);
        if (KIND == EP_GRADIENTS && first == 0) {
            __syncwarp();
            ep_take_values(group, args.backward.grad_weights, args.topk, token);
        }
        wefti_u64 row = source.rows + going.index * source.pitch;
        ep_sum_token<LAYOUT, KIND>(args, call, token, ranks, going, row, weight, first, end);
    }
}

/* ---- the call ---- */

/* Behind what the ranks before this one sent to the source: where this rank's results begin there. */
template <class LAYOUT> EP_DEVICE void ep_find_staging(const ep_combine &args, ep_call *call)
{
    int source = ep_lane();
    if (source < args.group.ranks && call->to[source] != 0) {
        wefti_u64 first = 0;
        for (int before = 0; before < args.group.rank; before++) {
            first += LAYOUT::returns(before, source) ? call->headers[source][WEFTI_CUDA_EP_HEADER_WORDS + before] : 0;
        }
        call->to[source] += first * args.row_bytes;
    }
}

/* Whether this warp pushes rows as they are. */
template <class LAYOUT, bool HAS_LEFT = false> EP_DEVICE bool ep_pushes(const ep_combine &args)
{
    return !HAS_LEFT && !LAYOUT::SUMS_AT_OWNER && args.group.ranks > 1 && ep_warp() < args.blocks.sender_warps;
}

/* Once this rank's call header is posted: until all has been added up. IS_PIPED, here and below: rows that are added up
 * by expert come through shared memory. All threads of all blocks. */
template <class LAYOUT, ep_kind KIND, bool IS_EAGER = false, bool IS_PIPED = false>
EP_DEVICE void ep_finish_combine(const ep_combine &args, ep_call *call, const ep_call_header &header,
                                 unsigned char *stages)
{
    ep_pusher pusher;
    if (ep_pushes<LAYOUT, IS_EAGER>(args)) {
        pusher = ep_pusher_open(args, call, stages);
    }
    const bool headers_here = ep_wait_headers(args.group, call);
    if (KIND == EP_WITH_OPTIONS && LAYOUT::SUMS_AT_OWNER) {
        wefti_fence_acq_rel(); /* own choices came before the call headers, and any thread may read them */
        __syncthreads();
    }
    if (headers_here && ep_warp() == ep_warps() - 1) {
        ep_study_calls(args.group, call, header, false);
    } else if (headers_here && ep_warp() == ep_warps() - 2) {
        ep_study_buffers(args.group, call, header);
        ep_find_staging<LAYOUT>(args, call);
    }
    __syncthreads();
    if (!headers_here || call->status != WEFT_OK || call->route_status == WEFT_ERR_OVERFLOW) {
        if (ep_pushes<LAYOUT, IS_EAGER>(args)) {
            ep_pipe_drain(&pusher.pipe);
        }
    } else if (ep_pushes<LAYOUT, IS_EAGER>(args)) {
        ep_push_rows<KIND, IS_EAGER>(args, call, &pusher);
    } else if (!IS_EAGER && LAYOUT::SUMS_AT_OWNER && ep_warp() < args.blocks.sender_warps) {
        if constexpr (IS_PIPED) {
            ep_push_piped_sums_as<KIND>(args, call, stages);
        } else {
            ep_push_sums<KIND, IS_EAGER>(args, call);
        }
    } else if (ep_warp() >= args.blocks.sender_warps &&
               ep_warp() < args.blocks.sender_warps + args.blocks.receiver_warps) {
        ep_add_up<LAYOUT, KIND, IS_EAGER>(args, call);
    }
}

/* What is read before it is known which call this is. Before ep_begin. The prologue warps. */
EP_DEVICE void ep_combine_open(const ep_combine &args, ep_call *call)
{
    if (threadIdx.x == 32 * 4) {
        call->tokens = args.tables.route_header->tokens;
    }
    if (threadIdx.x == 32 * 5) {
        call->next_push = 0;
    }
    ep_recall(args.group, call, args.tables);
}

/* A call begins. False: it ends here. All threads of all blocks. */
template <ep_phase PHASE> EP_DEVICE bool ep_combine_begins(const ep_combine &args, ep_call *call)
{
    if (ep_posts_header()) {
        wefti_fence_acq_rel();
    } else if (ep_in_prologue()) {
        ep_look_up(args.group, call);
        if (PHASE != EP_SEND) {
            ep_touch(args);
        }
        ep_combine_open(args, call);
    }
    if (!ep_begin(args.group, call)) {
        return false;
    }
    ep_note_half<PHASE>(args, call);
    return true;
}

/* This rank's call header leaves, when the call has begun. All threads of all blocks. */
template <ep_kind KIND>
EP_DEVICE void ep_combine_posts(const ep_combine &args, const ep_call *call, const ep_call_header &header)
{
    if (KIND == EP_GRADIENTS && blockIdx.x == 0) {
        ep_clear_values(args.group, call, args.topk);
        if (ep_posts_header()) {
            wefti_fence_acq_rel();
        }
    }
    if (ep_posts_header()) {
        ep_post_header(args.group, call, header);
    }
}

/* As ep_combine_begins, of a recv. All threads of all blocks. */
EP_DEVICE bool ep_combine_goes_on(const ep_combine &args, ep_call *call)
{
    if (ep_in_prologue()) {
        ep_combine_open(args, call);
    }
    return ep_begin_recv(args.group, call);
}

/* All threads of all blocks. */
template <class LAYOUT, ep_kind KIND, ep_phase PHASE, bool IS_EAGER = false, bool IS_PIPED = false>
EP_DEVICE void ep_combine_call(const ep_combine &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(stages);
    const bool is_recv = ep_does<PHASE, EP_RECV>(args);
    if (is_recv ? !ep_combine_goes_on(args, &call) : !ep_combine_begins<PHASE>(args, &call)) {
        return;
    }
    if (PHASE != EP_SEND) {
        ep_forget_masked(args.group, &call);
    }
    const ep_call_header header = ep_combine_header(args, &call);
    if (!is_recv) {
        ep_combine_posts<KIND>(args, &call, header);
    }
    if (!ep_does<PHASE, EP_SEND>(args)) {
        ep_finish_combine<LAYOUT, KIND, IS_EAGER, IS_PIPED>(args, &call, header, stages);
    }
}

/* ---- rows that leave with send ---- */

/* Behind send, also that of a combine with options: the rows leave, or their sums. All threads of all blocks. */
template <class LAYOUT> EP_DEVICE void ep_combine_rows(const wefti_cuda_ep_eager_combine_args &all)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(stages);
    const ep_combine &args = all.call;
    const ep_group &group = args.group;
    if (ep_in_prologue()) {
        ep_combine_open(args, &call);
    }
    if (!ep_begin_recv(group, &call)) {
        return;
    }
    ep_forget_masked(group, &call);
    if (call.route_status == WEFT_ERR_OVERFLOW) {
        return;
    }
    if (threadIdx.x < (unsigned)group.ranks) {
        call.to[threadIdx.x] = ep_eager_rows(args, &call, (int)threadIdx.x, group.rank);
    }
    __syncthreads();
    if (ep_pushes<LAYOUT>(args)) {
        ep_pusher pusher = ep_pusher_open(args, &call, stages);
        ep_push_rows<EP_PLAIN, true>(args, &call, &pusher);
    } else if (LAYOUT::SUMS_AT_OWNER && ep_warp() < args.blocks.sender_warps) {
        ep_push_sums<EP_PLAIN, true>(args, &call);
    }
}

/* The recv to it. All threads of all blocks. */
template <class LAYOUT, ep_kind KIND> EP_DEVICE void ep_combine_recv_eager(const wefti_cuda_ep_eager_combine_args &all)
{
    ep_combine_call<LAYOUT, KIND, EP_RECV, true>(all.call);
}

#endif
