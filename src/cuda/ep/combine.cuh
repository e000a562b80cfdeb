/* cuda/ep/combine.cuh: the received rows back to their sources, which add them up, in one launch; by source, or by expert.
 *
 * Blocks and warps as in dispatch.cuh: movers push rows into the staging rows of their sources' areas, the others add up.
 *
 *     block 0    its line to all ranks: staging is free
 *     all        hear all lines
 *     movers     units of received rows, ascending and of all sources in turn: to their source, then the unit's word in
 *                `moved` there
 *     others     token by token, ascending: once the units of its rows are there, the sum in ascending rank
 *
 * The staging rows of rank d's results lie behind those of the ranks before it, in the order this rank sent them. Pushed,
 * because all GPUs together store faster to each other than they load. By source a rank's own rows are read where they are;
 * by expert movers push the sums of a token's rows, and this rank's own results are staged as well.
 *
 * Bytes: by source each row is read once and written once, there, and read once more there. By expert each row is read once,
 * each sum of a token on a rank written once, there, and read there. */
#ifndef WEFTI_CUDA_EP_COMBINE_CUH
#define WEFTI_CUDA_EP_COMBINE_CUH

#include "cuda/ep/choose.cuh"
#include "cuda/ep/fold.cuh"
#include "cuda/ep/pipe.cuh"
#include "cuda/ep/values.cuh"

/* ---- pushing ---- */

/* A unit of a source, or a part of one: rows first .. first + rows - 1 of those it sent here. */
typedef struct ep_push {
    int source;
    int word; /* of `moved` */
    int part; /* of `parts` */
    int parts;
    int first;
    int rows; /* 0: there is none */
} ep_push;

/* The i-th in the order in which all movers of this rank go: units ascending, the other ranks in turn. */
template <bool BY_EXPERT> EP_DEVICE ep_push ep_push_of(const ep_combine &args, const ep_call *call, int i)
{
    const ep_group &group = args.group;
    ep_push push;
    int others = BY_EXPERT ? group.ranks : group.ranks - 1;
    push.word = i / others;
    push.source = (group.rank + 1 + i % others) % group.ranks;
    int rows = (int)call->count[push.source];
    int unit_rows = wefti_cuda_ep_push_unit(rows);
    push.parts = BY_EXPERT ? wefti_cuda_ep_push_parts(rows, group.ranks, args.row_bytes) : 1;
    push.part = push.word % push.parts;
    push.first = push.word / push.parts * unit_rows;
    push.rows = rows - push.first < unit_rows ? rows - push.first : unit_rows;
    push.rows = push.rows < 0 ? 0 : push.rows;
    return push;
}

/* The first from i on, in steps, that has rows; `end` if there is none. */
template <bool BY_EXPERT>
EP_DEVICE int ep_push_next(const ep_combine &args, const ep_call *call, int i, int step, int end)
{
    while (i < end && ep_push_of<BY_EXPERT>(args, call, i).rows == 0) {
        i += step;
    }
    return i < end ? i : end;
}

/* The words of `count` units, from `push` on, which is number i: all their rows have been stored. A warp. */
EP_DEVICE void ep_pushed(const ep_combine &args, const ep_call *call, ep_push push, int i, int step, int end, int count)
{
    wefti_bulk_stores_complete();
    __syncwarp();
    if (ep_lane() == 0) {
        wefti_fence_acq_rel();
        for (;;) {
            wefti_st_relaxed(ep_moved(args.group, push.source, args.group.rank) + push.word,
                             ep_packed(call->tag, (wefti_u32)push.rows));
            if (--count == 0) {
                break;
            }
            i = ep_push_next<false>(args, call, i + step, step, end);
            push = ep_push_of<false>(args, call, i);
        }
    }
}

/* The number behind the last. */
template <bool BY_EXPERT> EP_DEVICE int ep_push_end(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    int end = 0;
    for (int rank = 0; rank < group.ranks; rank++) {
        int rows = !BY_EXPERT && rank == group.rank ? 0 : (int)call->count[rank];
        int unit_rows = wefti_cuda_ep_push_unit(rows);
        int words = (rows + unit_rows - 1) / unit_rows;
        words *=
            !BY_EXPERT ? group.ranks - 1 : group.ranks * wefti_cuda_ep_push_parts(rows, group.ranks, args.row_bytes);
        end = words > end ? words : end;
    }
    return end;
}

/* By expert: the sums of the rows of each received token, all of a unit's by one warp, or each by the warps of its parts. */
template <bool VALUES> EP_DEVICE void ep_push_sums(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int step = args.blocks.movers * (int)gridDim.x;
    const int end = ep_push_end<true>(args, call);
    const int words = wefti_cuda_ep_record_words(args.topk, 1);
    const int vectors = (int)(args.row_bytes / 16);
    for (int i = ep_push_next<true>(args, call, ep_warp() * (int)gridDim.x + (int)blockIdx.x, step, end); i < end;
         i = ep_push_next<true>(args, call, i + step, step, end)) {
        const ep_push push = ep_push_of<true>(args, call, i);
        const int each = (vectors + push.parts - 1) / push.parts;
        const int from = push.part * each;
        const int to_end = from + each < vectors ? from + each : vectors;
        for (int row = 0; row < push.rows; row++) {
            wefti_u64 place = (wefti_u64)call->from[push.source] + (wefti_u64)(push.first + row);
            const wefti_u32 *record = args.sheet.records + place * (wefti_u64)words;
            unsigned char *to = (unsigned char *)call->to[push.source] + (wefti_u64)(push.first + row) * args.row_bytes;
            ep_fold_as(args, record, to, from, to_end);
            if (VALUES && push.part == 0) {
                ep_return_given<true>(group, args.backward.given, record, args.topk, push.source, place);
            }
        }
        __syncwarp();
        if (ep_lane() == 0) {
            wefti_st_release(ep_moved(group, push.source, group.rank) + push.word,
                             ep_packed(call->tag, (wefti_u32)push.rows));
        }
    }
}

/* By source: the gradients of weights of a unit's tokens. */
EP_DEVICE void ep_push_values(const ep_combine &args, const ep_call *call, const ep_push &push)
{
    const wefti_u64 words = (wefti_u64)wefti_cuda_ep_record_words(args.topk, 0);
    for (int i = 0; i < push.rows; i++) {
        wefti_u64 place = (wefti_u64)call->from[push.source] + (wefti_u64)(push.first + i);
        ep_return_given<false>(args.group, args.backward.given, args.sheet.records + place * words, args.topk,
                               push.source, place);
    }
}

template <bool VALUES> EP_DEVICE void ep_push_rows(const ep_combine &args, const ep_call *call, unsigned char *shared)
{
    const int step = args.blocks.movers * (int)gridDim.x;
    const ep_cut cut = ep_cut_of(args.row_bytes, args.blocks.stage_bytes);
    const int end = ep_push_end<false>(args, call);
    ep_pipe pipe = ep_pipe_open(shared + ep_warp() * ep_pipe_bytes(args.blocks.stage_bytes), args.blocks.stage_bytes);
    int begin = ep_push_next<false>(args, call, ep_warp() * (int)gridDim.x + (int)blockIdx.x, step, end);
    ep_cursor load = {begin, 0, 0};
    ep_cursor store = load;
    ep_push loading = ep_push_of<false>(args, call, begin);
    ep_push push = loading;
    ep_push untold = push; /* the first unit that has been stored, and its word has not, */
    int untold_number = begin;
    int untold_count = 0; /* and how many there are */
    while (store.unit < end) {
        while (load.unit < end && ep_pipe_has_room(pipe)) {
            wefti_u64 row = (wefti_u64)call->from[loading.source] + (wefti_u64)(loading.first + load.row);
            ep_pipe_load(&pipe, args.in + row * args.in_pitch + load.at, ep_cursor_bytes(load, cut));
            if (ep_cursor_advance(&load, cut, loading.rows, step)) {
                load.unit = ep_push_next<false>(args, call, load.unit, step, end);
                loading = ep_push_of<false>(args, call, load.unit);
            }
        }
        const unsigned char *piece = ep_pipe_next(&pipe);
        if (ep_lane() == 0) {
            wefti_u64 row = (wefti_u64)(push.first + store.row);
            wefti_bulk_store_add((void *)(call->to[push.source] + row * args.row_bytes + store.at), piece,
                                 ep_cursor_bytes(store, cut));
        }
        ep_pipe_stored(&pipe);
        if (ep_cursor_advance(&store, cut, push.rows, step)) {
            if (VALUES) {
                ep_push_values(args, call, push);
            }
            untold_count++;
            const bool tells = untold_count == args.blocks.pushes_at_once || pipe.loads == pipe.stores;
            if (tells) {
                ep_pushed(args, call, untold, untold_number, step, end, untold_count);
                untold_count = 0;
            }
            store.unit = ep_push_next<false>(args, call, store.unit, step, end);
            push = ep_push_of<false>(args, call, store.unit);
            untold = tells ? push : untold;
            untold_number = tells ? store.unit : untold_number;
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

template <bool BY_EXPERT> EP_DEVICE ep_source ep_source_of(const ep_combine &args, const ep_call *call)
{
    const int vectors = (int)(args.row_bytes / 16);
    ep_source source = {0, args.row_bytes, 1, 1, vectors, -1};
    int rank = ep_lane();
    if (!BY_EXPERT && rank == args.group.rank) {
        source.rows = (wefti_u64)(args.in + (wefti_u64)call->from[rank] * args.in_pitch);
        source.pitch = args.in_pitch;
    } else if (rank < args.group.ranks) {
        wefti_u64 first = 0;
        for (int before = 0; before < rank; before++) {
            first += !BY_EXPERT && before == args.group.rank ? 0 : call->total[before];
        }
        source.rows = args.group.area[args.group.rank] + args.group.at.rows + first * args.row_bytes;
        source.unit_rows = wefti_cuda_ep_push_unit((int)call->total[rank]);
        if (BY_EXPERT) {
            source.parts = wefti_cuda_ep_push_parts((int)call->total[rank], args.group.ranks, args.row_bytes);
            source.each = (vectors + source.parts - 1) / source.parts;
        }
    }
    return source;
}

/* Wait until vectors first .. end - 1 of the lane's rank's number `index` are here. */
template <bool BY_EXPERT>
EP_DEVICE bool ep_await_sum(const ep_combine &args, const ep_call *call, ep_source *source, int index, int first,
                            int end)
{
    const ep_group &group = args.group;
    const int unit = index / source->unit_rows * source->parts;
    const int last = unit + (BY_EXPERT ? (end - 1) / source->each : 0);
    bool well = true;
    for (int word = unit + (BY_EXPERT ? first / source->each : 0); word <= last && well; word++) {
        wefti_u32 count;
        well = word == source->word || ep_await(group, ep_moved(group, group.rank, ep_lane()) + word, call->tag,
                                                ep_lane(), args.blocks.rest_ns, &count);
        source->word = word;
    }
    return well;
}

/* Into how many parts a row is cut, so that all warps have work, each at least one look at all its lanes' vectors. */
EP_DEVICE int ep_parts(int tokens, int warps, int vectors)
{
    int most = (vectors + 32 * EP_VECTORS_AT_ONCE - 1) / (32 * EP_VECTORS_AT_ONCE);
    int parts = tokens > 0 ? (warps + tokens - 1) / tokens : 1;
    return parts < most ? parts : most;
}

/* The gradients of a token's weights, which lie here; by source those of this rank lie where the caller has them. A warp. */
template <bool BY_EXPERT>
EP_DEVICE void ep_take_gradients(const ep_combine &args, const ep_call *call, int token, wefti_u32 ranks,
                                 wefti_u32 index)
{
    const ep_group &group = args.group;
    __syncwarp();
    ep_take_values(group, args.backward.grad_weights, args.topk, token);
    if (BY_EXPERT || (ranks >> group.rank & 1) == 0) {
        return;
    }
    const wefti_u64 place = (wefti_u64)call->from[group.rank] + __shfl_sync(~0u, index, group.rank);
    const wefti_u32 *record = args.sheet.records + place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 0);
    float *to = args.backward.grad_weights + (wefti_u64)token * (wefti_u64)args.topk;
    for (int k = ep_lane(); k < args.topk; k += 32) {
        if (ep_is_here<false>(record, args.topk, k)) {
            to[k] = ep_given_value<false>(args.backward.given, record, args.topk, place, k);
        }
    }
}

template <bool BY_EXPERT, bool VALUES> EP_DEVICE void ep_add_up(const ep_combine &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int rank = ep_lane();
    const int mine = (ep_warp() - args.blocks.movers) * (int)gridDim.x + (int)blockIdx.x;
    const int step = args.blocks.settlers * (int)gridDim.x;
    const int vectors = (int)(args.row_bytes / 16);
    const bool scaled = !BY_EXPERT && (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    const int parts = ep_parts(call->tokens, step, vectors);
    const int part_vectors = (vectors + parts - 1) / parts;
    ep_source source = ep_source_of<BY_EXPERT>(args, call);
    for (int i = mine; i < call->tokens * parts; i += step) {
        int token = i / parts;
        int first = i % parts * part_vectors;
        ep_going going = {false, 0};
        float weight = 0.0f;
        bool well = true;
        if (rank < group.ranks) {
            going = ep_going_of(group, args.sheet, token, unit_tokens, rank);
            going.goes = going.goes && (call->alive >> rank & 1) != 0;
            weight = BY_EXPERT ? 0.0f : args.sheet.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank];
        }
        int end = first + part_vectors < vectors ? first + part_vectors : vectors;
        if (going.goes && (BY_EXPERT || rank != group.rank)) {
            well = ep_await_sum<BY_EXPERT>(args, call, &source, (int)going.index, first, end);
        }
        if (!__all_sync(~0u, well)) {
            return;
        }
        wefti_u32 ranks = __ballot_sync(~0u, going.goes);
        if (VALUES && first == 0) {
            ep_take_gradients<BY_EXPERT>(args, call, token, ranks, going.index);
        }
        wefti_u64 row = source.rows + going.index * source.pitch;
        unsigned char *out = args.out + (wefti_u64)token * args.out_pitch;
        ep_sum_as(args.dtype, scaled, ranks, row, weight, out, first, end);
    }
}

/* ---- the call ---- */

/* Behind what the ranks before this one sent to the source: where this rank's results begin there. */
template <bool BY_EXPERT> EP_DEVICE void ep_find_staging(const ep_combine &args, ep_call *call)
{
    int source = ep_lane();
    if (source < args.group.ranks && call->to[source] != 0) {
        wefti_u64 first = 0;
        for (int before = 0; before < args.group.rank; before++) {
            first += !BY_EXPERT && before == source ? 0 : call->line[source][WEFTI_CUDA_EP_WORDS + before];
        }
        call->to[source] += first * args.row_bytes;
    }
}

EP_DEVICE ep_saying ep_combine_saying(const ep_combine &args, const ep_call *call)
{
    ep_saying saying;
    saying.shape = args.shape;
    saying.route = call->route;
    saying.place = args.place;
    saying.pitch = args.row_bytes;
    saying.capacity = ~0u;
    saying.by_expert = false;
    saying.slots = 1; /* nothing is received that could overflow */
    return saying;
}

template <bool BY_EXPERT, bool VALUES>
EP_DEVICE void ep_push_all(const ep_combine &args, const ep_call *call, unsigned char *stages)
{
    if (BY_EXPERT) {
        ep_push_sums<VALUES>(args, call);
    } else if (args.group.ranks > 1) {
        ep_push_rows<VALUES>(args, call, stages);
    }
}

/* Once this rank's line is said: until all has been added up. All threads of all blocks. */
template <bool BY_EXPERT, bool VALUES>
EP_DEVICE void ep_finish_combine(const ep_combine &args, ep_call *call, const ep_saying &saying, unsigned char *stages)
{
    if (!ep_hear(args.group, call)) {
        return;
    }
    if (ep_warp() == 0) {
        ep_study(args.group, call, saying, false);
        __syncwarp();
        ep_find_staging<BY_EXPERT>(args, call);
    }
    __syncthreads();
    if (call->status != WEFT_OK || call->route_status == WEFT_ERR_OVERFLOW) {
        return;
    }
    if (ep_warp() < args.blocks.movers) {
        ep_push_all<BY_EXPERT, VALUES>(args, call, stages);
    } else if (ep_warp() < args.blocks.movers + args.blocks.settlers) {
        ep_add_up<BY_EXPERT, VALUES>(args, call);
    }
}

/* All threads of all blocks. */
template <bool BY_EXPERT, bool VALUES> EP_DEVICE void ep_combine_all(const ep_combine &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(stages);
    const ep_group &group = args.group;
    const bool speaks = blockIdx.x == 0 && ep_warp() < 2;
    if (threadIdx.x == blockDim.x - 1) {
        call.tokens = args.sheet.facts->tokens;
    }
    if (speaks) {
        wefti_fence_acq_rel();
    }
    if (!ep_begin(group, &call)) {
        return;
    }
    ep_recall(group, &call, args.sheet);
    const ep_saying saying = ep_combine_saying(args, &call);
    if (VALUES && blockIdx.x == 0) {
        ep_clear_values(group, &call, args.topk);
        if (speaks) {
            wefti_fence_acq_rel();
        }
    }
    if (speaks) {
        ep_say(group, &call, saying, (int)threadIdx.x, 64);
    }
    ep_finish_combine<BY_EXPERT, VALUES>(args, &call, saying, stages);
}

#define EP_COMBINE(NAME, BY_EXPERT, VALUES)                                                                            \
    extern "C" __global__ void __launch_bounds__(512, 1) wefti_cuda_ep_##NAME(const __grid_constant__ ep_combine args) \
    {                                                                                                                  \
        ep_combine_all<BY_EXPERT, VALUES>(args);                                                                       \
    }
EP_COMBINE(combine, false, false)
EP_COMBINE(dispatch_bwd, false, true)
EP_COMBINE(combine_expert, true, false)
EP_COMBINE(dispatch_expert_bwd, true, true)
#undef EP_COMBINE

#endif
