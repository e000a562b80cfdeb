/* cuda/ep/domains/local.cuh: what a rank does by itself: taking the caller's choices, arranging what was received,
 * adding up. These kernels wait for nothing; what one leaves the next finds by the order of the stream. The kernels:
 * local.cu.
 *
 * What is received comes in the order of the inner group. Where its rows go follows from the order of (source, token):
 * a table says of each pair where it is; blocks count the rows of tiles of pairs, by expert; one block adds the counts
 * up; and blocks place the rows of their tiles.
 *
 * Grid: a block a multiprocessor of the call, whichever run first; dispatch_scans has one. All warps do the same.
 * Shared memory: none but a word, in the first kernel of a call.
 * Flags: `failed`, this rank's and that of its inner group; none is waited for.
 *
 *     dispatch_begins   thread 0: T; all: the tables of the last routing are cleared
 *     dispatch_numbers  a block a rank: whether tokens that go there have the positions 0, 1 and so on
 *     dispatch_packs    a warp a token: its choices; its row, scales and tail as they go; its choices for the inner
 *                       group; the lists of what goes to each other domain
 *     dispatch_indexes  a thread a received row: where its (source, token) is; rows of each source and expert
 *     dispatch_counts   a warp a tile, a lane a choice: rows of each local expert there; by source a lane a pair
 *     dispatch_scans    a warp an expert: prefix over tiles; first rows of experts and sources; counts told
 *     dispatch_places   a block a tile: rows in the order of (source, token), a warp a received row: to its rows
 *     combine_chooses   (choices.cuh)
 *     combine_results   a warp a received row: the sum of its results, in ascending choice
 *     combine_totals    a warp a token: the sum of its domains, in ascending domain, and biases
 *
 * Bytes: dispatch_packs reads and writes a row a token; dispatch_places reads a row a received token and writes each of
 * its rows; dispatch_counts and _places read the table of R T words and the choices; combine_results reads each result
 * and writes a row a received token; combine_totals reads a row a (token, domain) and writes one a token. Floor: these
 * bytes over the rate of the GPU's memory. */
#ifndef WEFTI_CUDA_EP_DOMAINS_LOCAL_CUH
#define WEFTI_CUDA_EP_DOMAINS_LOCAL_CUH

#include "cuda/ep/device/arithmetic.cuh"
#include "cuda/ep/device/copy.cuh"
#include "cuda/ep/device/quantise.cuh"
#include "cuda/ep/device/reduce.cuh"
#include "cuda/ep/domains/choices.cuh"

/* ---- choices ---- */

EP_DEVICE wefti_i64 ep_domains_given_id(const wefti_cuda_ep_choices &choices, wefti_u64 at)
{
    return choices.wide != 0 ? ((const wefti_i64 *)choices.ids)[at] : ((const wefti_i32 *)choices.ids)[at];
}

/* A new routing begins. One thread. */
EP_DEVICE void ep_domains_begin_routing(const ep_domains &args)
{
    const wefti_cuda_ep_choices &choices = args.choices;
    wefti_cuda_ep_route_header *header = args.tables.route_header;
    const int given = choices.tokens_at != NULL ? *choices.tokens_at : choices.tokens;
    const int tokens = given < 0 ? 0 : given > choices.tokens ? choices.tokens : given;
    header->dropped = 0;
    header->tokens = tokens;
    header->dropped_rows = 0;
    header->routed = tokens != given ? WEFT_ERR_RANGE : WEFT_OK;
}

/* Whether the positions of the tokens that go to each rank are 0, 1 and so on, each once: whoever has a number is its
 * only one, if every token finds itself where its number says. Blocks take ranks. */
EP_DEVICE void ep_domains_number(const ep_domains &args)
{
    EP_SHARED(wefti_u32, count);
    const int tokens = args.tables.route_header->tokens;
    const wefti_u64 ranks = (wefti_u64)args.group.ranks;
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    for (int rank = (int)blockIdx.x; rank < args.group.ranks; rank += (int)gridDim.x) {
        const wefti_i32 *positions = args.positions + rank;
        wefti_i32 *holders = args.tables.row + (wefti_u64)rank * (wefti_u64)args.group.tokens_max; /* free until then */
        bool is_odd = false;
        __syncthreads(); /* the last count has been read */
        if (threadIdx.x == 0) {
            count = 0;
        }
        __syncthreads();
        for (int token = (int)threadIdx.x; token < tokens; token += (int)blockDim.x) {
            if (positions[(wefti_u64)token * ranks] >= 0) {
                atomicAdd(&count, 1u);
            }
        }
        __syncthreads();
        for (int token = (int)threadIdx.x; token < tokens; token += (int)blockDim.x) {
            const wefti_i32 position = positions[(wefti_u64)token * ranks];
            if (position >= 0 && (wefti_u32)position < count) {
                holders[position] = token;
            }
            is_odd = is_odd || (position >= 0 && (wefti_u32)position >= count);
        }
        __syncthreads();
        for (int token = (int)threadIdx.x; token < tokens; token += (int)blockDim.x) {
            const wefti_i32 position = positions[(wefti_u64)token * ranks];
            is_odd = is_odd || (position >= 0 && holders[position] != token);
        }
        if (is_odd) {
            wefti_st_relaxed(args.tables.are_odd, 1u);
        }
    }
}

/* The choices of a token of a new routing that are ranks. If any rank's positions are none, tokens keep their order. A
 * warp. */
EP_DEVICE void ep_domains_take_ranks(const ep_domains &args, int token)
{
    const wefti_cuda_ep_choices &choices = args.choices;
    const bool are_odd = wefti_ld_relaxed(args.tables.are_odd) != 0;
    for (int k = ep_lane(); k < args.topk; k += 32) {
        const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k;
        const bool goes = args.positions != NULL ? args.positions[at] >= 0 : choices.destinations[at] != 0;
        const bool is_left_out = ep_domains_is_rank_masked(args.group, k);
        args.tables.ids[at] = !goes || is_left_out                 ? -1
                              : args.positions != NULL && !are_odd ? args.positions[at]
                                                                   : token;
        args.tables.weights[at] = choices.weights != NULL ? choices.weights[at] : 1.0f;
    }
    if (are_odd && ep_lane() == 0) {
        wefti_st_relaxed((wefti_u32 *)&args.tables.route_header->routed, (wefti_u32)WEFT_ERR_RANGE);
    }
    __syncwarp();
}

/* The choices of a token of a new routing. A warp. */
EP_DEVICE void ep_domains_take_choices(const ep_domains &args, int token)
{
    const wefti_cuda_ep_choices &choices = args.choices;
    wefti_cuda_ep_route_header *header = args.tables.route_header;
    for (int k = ep_lane(); k < args.topk; k += 32) {
        const wefti_u64 at = (wefti_u64)token * (wefti_u64)args.topk + (wefti_u64)k;
        const wefti_i64 id = ep_domains_given_id(choices, at);
        const bool is_valid = id >= 0 && id < args.group.experts;
        const bool goes = is_valid && !ep_domains_is_rank_masked(args.group, args.group.rank_of[id]);
        args.tables.ids[at] = goes ? (wefti_i32)id : -1;
        args.tables.weights[at] = choices.weights != NULL ? choices.weights[at] : 1.0f;
        if (!is_valid && id != -1) {
            atomicAdd((wefti_u32 *)&header->dropped, 1u);
            wefti_st_relaxed((wefti_u32 *)&header->routed, (wefti_u32)WEFT_ERR_RANGE);
        }
    }
    __syncwarp();
}

/* A call begins: of a new routing with the caller's T, else with that of the last. All threads of the grid. */
EP_DEVICE void ep_domains_begin(const ep_domains &args)
{
    const ep_domains_group &group = args.group;
    const ep_warp_group threads = ep_domains_grid();
    if (!ep_domains_begins(group)) {
        return;
    }
    for (int i = threads.number; i < group.ranks * group.tokens_max; i += threads.count) {
        group.row_of[i] = 0;
    }
    for (int i = threads.number; i < group.local_experts * group.ranks; i += threads.count) {
        args.tables.rows_of_expert_source[i] = 0;
    }
    for (int i = threads.number; i < group.ranks; i += threads.count) {
        args.tables.rows_of_source[i] = 0;
    }
    for (int i = threads.number; i < group.domains; i += threads.count) {
        args.tables.sent_count[i] = 0;
    }
    for (int i = threads.number; i < group.lines; i += threads.count) {
        args.tables.line_count[i] = -1;
    }
    if (threads.number == 0) {
        if ((args.flags & WEFTI_CUDA_EP_FRESH) != 0) {
            ep_domains_begin_routing(args);
        }
        *args.tables.are_odd = 0;
        *args.tables.inner_tokens = args.tables.route_header->tokens;
        ep_domains_count_call(group);
    }
    const bool is_weighed = (args.flags & WEFTI_CUDA_EP_NEW_WEIGHTS) != 0;
    const int count = is_weighed ? args.tables.route_header->tokens * args.topk : 0;
    for (int i = threads.number; i < count; i += threads.count) {
        args.tables.weights[i] = args.choices.weights != NULL ? args.choices.weights[i] : 1.0f;
    }
}

/* ---- rows to send ---- */

/* A row as fp8, with its scales behind it, one of GROUP elements. A warp. */
template <int DTYPE, int GROUP>
EP_DEVICE void ep_domains_quantise_by(const ep_domains &args, unsigned char *to, const unsigned char *row)
{
    const int hidden = (int)args.row_bytes;
    const int groups = (hidden + GROUP - 1) / GROUP;
    unsigned char *scales = to + args.row_bytes;
    const bool is_ue8m0 = args.wide.scales == WEFTI_CUDA_EP_MADE_UE8M0;
    for (int base = 0; base < hidden; base += EP_STEPS * EP_STEP) {
        const int at = base + ep_lane() * EP_EIGHT;
        const int group = base / GROUP + ep_group_of_lane<GROUP>();
        ep_raw<DTYPE> raw;
        float values[EP_STEPS][EP_EIGHT];
        ep_load_steps<DTYPE>(row, at, hidden, &raw);
        ep_widen_steps<DTYPE>(raw, values);
        const ep_quantised made = ep_quantise_steps<GROUP>(values, args.wide.scales != WEFTI_CUDA_EP_MADE_F32);
        for (int i = 0; i < EP_STEPS; i++) {
            if (at + i * EP_STEP < hidden) {
                *(uint2 *)(to + at + i * EP_STEP) = made.words[i];
            }
        }
        if (ep_has_group_first<GROUP>() && group < groups && is_ue8m0) {
            scales[group] = (unsigned char)(made.scale >> 23);
        } else if (ep_has_group_first<GROUP>() && group < groups) {
            ((wefti_u32 *)scales)[group] = made.scale;
        }
    }
    for (int group = groups + ep_lane(); is_ue8m0 && group < (int)args.scale_words * 4; group += 32) {
        scales[group] = 0; /* what fills the last word up */
    }
}

template <int DTYPE>
EP_DEVICE void ep_domains_quantise(const ep_domains &args, unsigned char *to, const unsigned char *row)
{
    if (args.scale_group == WEFTI_FP8_GROUP_MX) {
        ep_domains_quantise_by<DTYPE, WEFTI_FP8_GROUP_MX>(args, to, row);
    } else {
        ep_domains_quantise_by<DTYPE, WEFTI_FP8_GROUP>(args, to, row);
    }
}

/* A row and its scales. A warp. */
EP_DEVICE void ep_domains_pack_row(const ep_domains &args, unsigned char *to, int token)
{
    const unsigned char *row = args.in + (wefti_u64)token * args.in_pitch;
    if (args.wide.row_bytes == 0) {
        ep_copy_row(to, row, args.row_bytes);
        for (wefti_u32 i = (wefti_u32)ep_lane(); i < args.scale_words; i += 32) {
            ((wefti_u32 *)(to + args.row_bytes))[i] =
                args.in_scales
                    .words[(wefti_u64)token * args.in_scales.row_stride + (wefti_u64)i * args.in_scales.word_stride];
        }
    } else if (args.wide.dtype == WEFT_EP_BF16) {
        ep_domains_quantise<WEFT_EP_BF16>(args, to, row);
    } else if (args.wide.dtype == WEFT_EP_F16) {
        ep_domains_quantise<WEFT_EP_F16>(args, to, row);
    } else {
        ep_domains_quantise<WEFT_EP_F32>(args, to, row);
    }
}

/* Note a token for each other domain with one of its experts. A warp. */
EP_DEVICE void ep_domains_list(const ep_domains &args, int token)
{
    const ep_domains_group &group = args.group;
    for (int first = 0; first < group.domains; first += 32) {
        const int domain = first + ep_lane();
        if ((ep_domains_goes(args, token, first) >> ep_lane() & 1) != 0 && domain != group.domain) {
            const wefti_u32 at = atomicAdd((wefti_u32 *)&args.tables.sent_count[domain], 1u);
            args.tables.sent_token[(wefti_u64)domain * (wefti_u64)group.tokens_max + at] = token;
        }
    }
}

/* One of this rank's own tokens: its choices, its tail as it goes, and, if it moves, its row and scales. A warp. */
EP_DEVICE void ep_domains_pack_token(const ep_domains &args, int token, bool moves)
{
    unsigned char *to = args.group.rows + (wefti_u64)token * args.wide_bytes;
    wefti_cuda_ep_domains_tail *tail = ep_domains_tail(args, to);
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)args.topk;
    if ((args.flags & WEFTI_CUDA_EP_FRESH) != 0 && args.by_rank != 0) {
        ep_domains_take_ranks(args, token);
    } else if ((args.flags & WEFTI_CUDA_EP_FRESH) != 0) {
        ep_domains_take_choices(args, token);
    }
    if (moves) {
        ep_domains_pack_row(args, to, token);
    }
    if (ep_lane() == 0) {
        tail->source = args.group.rank;
        tail->token = token;
    }
    for (int k = ep_lane(); k < args.topk; k += 32) {
        ep_domains_ids(tail)[k] = args.tables.ids[first + (wefti_u64)k];
        ep_domains_weights(args, tail)[k] = args.tables.weights[first + (wefti_u64)k];
    }
}

/* This rank's own tokens as they go, their choices for the inner group, and where they go. Warps take tokens. */
EP_DEVICE void ep_domains_pack(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    for (int token = warps.number; token < args.tables.route_header->tokens; token += warps.count) {
        ep_domains_pack_token(args, token, (args.flags & WEFTI_CUDA_EP_MOVE) != 0);
        ep_domains_choose_inner(args, ep_domains_lanes(), (wefti_u32)token,
                                args.tables.ids + (wefti_u64)token * (wefti_u64)args.topk);
        ep_domains_list(args, token);
    }
}

/* ---- what was received ---- */

EP_DEVICE unsigned char *ep_domains_received(const ep_domains &args, wefti_u32 row)
{
    return args.group.received + (wefti_u64)row * args.wide_bytes;
}

/* Whether choice k of a received token is of this rank. */
EP_DEVICE bool ep_domains_is_here(const ep_domains &args, const wefti_i32 *ids, int k)
{
    const wefti_i32 choice = ep_domains_choice(args, ids, k);
    const wefti_i32 first = args.by_rank != 0 ? args.group.rank : args.group.first_expert;
    return choice >= first && choice < first + (args.by_rank != 0 ? 1 : args.group.local_experts);
}

/* Its local expert, or -1; where choices of an expert share a row, of the first of them. Ranks are no experts. */
EP_DEVICE int ep_domains_class(const ep_domains &args, const wefti_i32 *ids, int k)
{
    bool is_here = args.by_rank == 0 && ep_domains_is_here(args, ids, k);
    for (int i = 0; is_here && args.by_expert != 0 && args.slots != 0 && i < k; i++) {
        is_here = ids[i] != ids[k];
    }
    return is_here ? ids[k] - args.group.first_expert : -1;
}

EP_DEVICE void ep_domains_index(const ep_domains &args)
{
    const ep_domains_group &group = args.group;
    const ep_warp_group threads = ep_domains_grid();
    if (!ep_domains_is_well(group)) {
        return;
    }
    for (int row = threads.number; row < *args.inner_rows; row += threads.count) {
        wefti_cuda_ep_domains_tail *tail = ep_domains_tail(args, ep_domains_received(args, (wefti_u32)row));
        const wefti_i32 number = args.by_rank != 0 ? ep_domains_ids(tail)[group.rank] : tail->token;
        group.row_of[(wefti_u64)tail->source * (wefti_u64)group.tokens_max + (wefti_u64)number] = (wefti_u32)row + 1;
        atomicAdd((wefti_u32 *)&args.tables.rows_of_source[tail->source], 1u);
        for (int k = 0; k < args.topk; k++) {
            const int expert = ep_domains_class(args, ep_domains_ids(tail), k);
            if (expert >= 0) {
                atomicAdd((wefti_u32 *)&args.tables.rows_of_expert_source[expert * group.ranks + tail->source], 1u);
            }
        }
    }
}

EP_DEVICE int ep_domains_tiles(const ep_domains_group &group)
{
    return (group.ranks * group.tokens_max + WEFTI_CUDA_EP_DOMAINS_TILE - 1) / WEFTI_CUDA_EP_DOMAINS_TILE;
}

EP_DEVICE int ep_domains_classes(const ep_domains &args)
{
    return args.by_expert != 0 ? args.group.local_experts : 1;
}

/* Where the count of class `of` is for a tile. */
EP_DEVICE wefti_u32 *ep_domains_tile_count(const ep_domains &args, int of, int tile)
{
    return &args.group.tile_counts[(wefti_u64)of * (wefti_u64)ep_domains_tiles(args.group) + (wefti_u64)tile];
}

/* Count the rows of each expert of a received token in its tile; if PLACES they are written down, from the counts as
 * they stand. Later choices of the same slot have its row. A warp. */
template <bool PLACES> EP_DEVICE void ep_domains_walk_choices(const ep_domains &args, int tile, wefti_u32 row)
{
    const wefti_i32 *ids = ep_domains_ids(ep_domains_tail(args, ep_domains_received(args, row)));
    for (int base = 0; base < args.topk; base += 32) {
        const int k = base + ep_lane();
        const bool is_here = k < args.topk && ep_domains_is_here(args, ids, k);
        const int of = is_here ? ids[k] - args.group.first_expert : -1;
        const bool is_first = is_here && ep_domains_class(args, ids, k) >= 0;
        const wefti_u32 alike = __match_any_sync(~0u, is_here ? of : -1 - ep_lane());
        const wefti_u32 rows = __ballot_sync(~0u, is_first) & alike;
        wefti_u32 *count = is_here ? ep_domains_tile_count(args, of, tile) : NULL;
        const wefti_u32 before = is_here ? *count : 0;
        if (PLACES && is_here) {
            args.tables.row[(wefti_u64)row * (wefti_u64)args.topk + (wefti_u64)k] =
                args.tables.offset_of_expert[of] +
                (wefti_i32)(before + (wefti_u32)__popc(rows & ((1u << ep_lane()) - 1))) - (is_first ? 0 : 1);
        }
        __syncwarp(); /* all have read the counts */
        if (is_here && (alike & ((1u << ep_lane()) - 1)) == 0) {
            *count = before + (wefti_u32)__popc(rows);
        }
        __syncwarp();
    }
}

/* Count the rows of a tile, or write them down. A warp. */
template <bool PLACES> EP_DEVICE void ep_domains_walk(const ep_domains &args, int tile)
{
    const ep_domains_group &group = args.group;
    const int pair = tile * WEFTI_CUDA_EP_DOMAINS_TILE + ep_lane();
    const wefti_u32 row = pair < group.ranks * group.tokens_max ? group.row_of[pair] : 0;
    const wefti_u32 here = __ballot_sync(~0u, row != 0);
    if (args.by_expert == 0 && !PLACES) {
        if (ep_lane() == 0) {
            *ep_domains_tile_count(args, 0, tile) = (wefti_u32)__popc(here);
        }
    } else if (args.by_expert == 0 && row != 0) {
        const int source = pair / group.tokens_max;
        const wefti_i32 number =
            (wefti_i32)(*ep_domains_tile_count(args, 0, tile) + (wefti_u32)__popc(here & ((1u << ep_lane()) - 1)));
        args.tables.row[(wefti_u64)(row - 1) * (wefti_u64)args.topk] =
            args.slots == 0 ? number : source * (wefti_i32)args.slots + number - args.tables.before_source[source];
    }
    for (wefti_u32 left = args.by_expert != 0 ? here : 0; left != 0; left &= left - 1) {
        ep_domains_walk_choices<PLACES>(args, tile, __shfl_sync(~0u, row, __ffs((int)left) - 1) - 1);
    }
}

/* Count the rows of each class in each tile. Warps take tiles. */
EP_DEVICE void ep_domains_count(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    if (!ep_domains_is_well(args.group)) {
        return;
    }
    for (int tile = warps.number; tile < ep_domains_tiles(args.group); tile += warps.count) {
        for (int of = ep_lane(); of < ep_domains_classes(args); of += 32) {
            *ep_domains_tile_count(args, of, tile) = 0;
        }
        __syncwarp();
        ep_domains_walk<false>(args, tile);
    }
}

/* ---- counts ---- */

EP_DEVICE wefti_i32 ep_domains_aligned(const ep_domains &args, wefti_i32 rows)
{
    const wefti_i32 by = (wefti_i32)args.alignment;
    return (rows + by - 1) / by * by;
}

EP_DEVICE void ep_domains_tell_one(const wefti_cuda_ep_told &told, void *array, wefti_u64 at, wefti_i32 value)
{
    if (array != NULL && told.wide != 0) {
        ((wefti_i64 *)array)[at] = value;
    } else if (array != NULL) {
        ((wefti_i32 *)array)[at] = value;
    }
}

/* Write the counts to the caller's arrays (weft_ep_route_counts_to). */
EP_DEVICE void ep_domains_tell(const ep_domains &args)
{
    const wefti_cuda_ep_told &told = args.told;
    const wefti_cuda_ep_domains_tables &tables = args.tables;
    const wefti_u64 generation = told.generation != NULL ? *told.counted + 1 : 0;
    const wefti_u64 slot = generation & 1;
    for (int expert = (int)threadIdx.x; expert < told.experts; expert += (int)blockDim.x) {
        const wefti_u64 at = slot * (wefti_u64)told.experts + (wefti_u64)expert;
        const wefti_i32 rows = tables.rows_of_expert[expert];
        ep_domains_tell_one(told, told.rows_of_expert, at, rows);
        ep_domains_tell_one(told, told.rows_of_expert_aligned, at,
                            args.by_expert == 0 ? rows
                            : args.slots != 0   ? (wefti_i32)args.slots
                                                : ep_domains_aligned(args, rows));
        ep_domains_tell_one(told, told.offset_of_expert, at, args.by_expert != 0 ? tables.offset_of_expert[expert] : 0);
    }
    for (int source = (int)threadIdx.x; source < args.group.ranks; source += (int)blockDim.x) {
        ep_domains_tell_one(told, told.rows_of_source, slot * (wefti_u64)args.group.ranks + (wefti_u64)source,
                            tables.rows_of_source[source]);
    }
    if (threadIdx.x == 0) {
        ep_domains_tell_one(told, told.rows, slot, tables.route_header->rows);
    }
    if (told.generation != NULL) {
        wefti_fence_acq_rel();
        __syncthreads();
        if (threadIdx.x == 0) {
            *told.counted = generation;
            wefti_st_release(&told.generation[slot], generation);
        }
    }
}

#define EP_DOMAINS_TERMS 4 /* that a lane adds up at a time */

/* The sum of value(i) over i below `count`; sums before each go to `before`. A warp. */
template <class F> EP_DEVICE wefti_i32 ep_domains_sums(int count, wefti_i32 *before, const F &value)
{
    wefti_i32 sum = 0;
    for (int base = 0; base < count; base += 32 * EP_DOMAINS_TERMS) {
        const int first = base + ep_lane() * EP_DOMAINS_TERMS;
        wefti_i32 terms[EP_DOMAINS_TERMS];
        wefti_i32 own = 0;
#pragma unroll
        for (int i = 0; i < EP_DOMAINS_TERMS; i++) {
            terms[i] = first + i < count ? value(first + i) : 0;
            own += terms[i];
        }
        const wefti_i32 end = ep_scan(own);
        wefti_i32 at = sum + end - own;
#pragma unroll
        for (int i = 0; i < EP_DOMAINS_TERMS; i++) {
            if (first + i < count) {
                before[first + i] = at;
            }
            at += terms[i];
        }
        sum += __shfl_sync(~0u, end, 31);
    }
    return sum;
}

/* First rows of experts and sources. A warp. */
EP_DEVICE void ep_domains_add_counts(const ep_domains &args)
{
    const ep_domains_group &group = args.group;
    const wefti_cuda_ep_domains_tables &tables = args.tables;
    wefti_cuda_ep_route_header *header = tables.route_header;
    const bool has_places = args.by_expert == 0 && args.slots != 0; /* a source's are its own */
    const wefti_i32 rows = ep_domains_sums(group.local_experts, tables.offset_of_expert, [&](int expert) {
        return args.by_expert == 0 ? 0
               : args.slots != 0   ? (wefti_i32)args.slots
                                   : ep_domains_aligned(args, tables.rows_of_expert[expert]);
    });
    const wefti_i32 tokens =
        ep_domains_sums(group.ranks, tables.before_source, [&](int source) { return tables.rows_of_source[source]; });
    __syncwarp();
    for (int source = ep_lane(); source < group.ranks; source += 32) {
        tables.offset_of_source[source] = has_places ? source * (wefti_i32)args.slots : tables.before_source[source];
    }
    if (ep_lane() == 0) {
        const wefti_i32 all = has_places ? group.ranks * (wefti_i32)args.slots : tokens;
        tables.offset_of_expert[group.local_experts] = rows;
        tables.offset_of_source[group.ranks] = all;
        header->received = tokens;
        header->rows = args.by_expert != 0 ? rows : all;
        header->status = header->routed;
        if ((args.flags & WEFTI_CUDA_EP_MOVE) != 0 && (wefti_u64)header->rows > args.capacity) {
            ep_domains_fail(&group, WEFT_ERR_OVERFLOW);
        }
    }
}

/* Add up the counts of the tiles. Called by one block. */
EP_DEVICE void ep_domains_scan(const ep_domains &args)
{
    const ep_domains_group &group = args.group;
    const wefti_cuda_ep_domains_tables &tables = args.tables;
    if (!ep_domains_is_well(group)) {
        return;
    }
    for (int of = ep_warp(); of < ep_domains_classes(args); of += ep_warps()) {
        wefti_i32 *counts = (wefti_i32 *)ep_domains_tile_count(args, of, 0);
        (void)ep_domains_sums(ep_domains_tiles(group), counts, [&](int tile) { return counts[tile]; });
    }
    for (int expert = (int)threadIdx.x; expert < group.local_experts; expert += (int)blockDim.x) {
        wefti_i32 rows = 0;
        for (int source = 0; source < group.ranks; source++) {
            rows += tables.rows_of_expert_source[expert * group.ranks + source];
        }
        tables.rows_of_expert[expert] = rows;
    }
    __syncthreads();
    if (ep_warp() == 0) {
        ep_domains_add_counts(args);
    }
    __syncthreads();
    if (args.told.tells != 0) {
        ep_domains_tell(args);
    }
}

/* ---- places ---- */

/* The sum of a received token's weights that row of choice k stands for: by source of all choices here. */
EP_DEVICE float ep_domains_weight_of(const ep_domains &args, const wefti_i32 *ids, const float *weights, int k)
{
    float sum = 0.0f;
    bool any = false;
    for (int i = 0; i < args.topk; i++) {
        const bool takes =
            args.by_expert == 0 ? ep_domains_is_here(args, ids, i) : i == k || (args.slots != 0 && ids[i] == ids[k]);
        if (takes) {
            sum = any ? __fadd_rn(sum, weights[i]) : weights[i];
            any = true;
        }
    }
    return sum;
}

EP_DEVICE void ep_domains_label_expert(const wefti_cuda_ep_arrays &arrays, wefti_u64 at, int expert)
{
    const wefti_i64 id = expert < 0 ? -1 : expert + arrays.first_expert;
    if (arrays.experts != NULL && arrays.wide_experts != 0) {
        ((wefti_i64 *)arrays.experts)[at] = id;
    } else if (arrays.experts != NULL) {
        arrays.experts[at] = (wefti_i32)id;
    }
}

EP_DEVICE void ep_domains_label_source(const wefti_cuda_ep_arrays &arrays, wefti_u64 row, int source, int token)
{
    if (arrays.source_rank != NULL) {
        arrays.source_rank[row] = source;
    }
    if (arrays.source_token != NULL) {
        arrays.source_token[row] = token;
    }
}

/* Where a word of a received row's scales goes; `expert`: the row's, or 0. */
EP_DEVICE wefti_u32 *ep_domains_scale(const ep_domains &args, wefti_u64 row, int expert, wefti_u32 word)
{
    return args.out_scales.words + row * args.out_scales.row_stride + (wefti_u64)expert * args.scale_group_step +
           (wefti_u64)word * args.out_scales.word_stride;
}

/* round(factor * row). A warp. */
template <int DTYPE>
EP_DEVICE void ep_domains_scale_row(const ep_domains &args, unsigned char *to, const unsigned char *from, float factor)
{
    for (wefti_u32 i = (wefti_u32)ep_lane(); i < args.row_bytes / 16; i += 32) {
        float values[ep_type<DTYPE>::ELEMENTS];
        ep_type<DTYPE>::widen(((const uint4 *)from)[i], values);
        for (int j = 0; j < ep_type<DTYPE>::ELEMENTS; j++) {
            values[j] = __fmul_rn(factor, values[j]);
        }
        ((uint4 *)to)[i] = ep_type<DTYPE>::round(values);
    }
}

/* A row to its place: as it is, or, in a backward of a combine, times what the combine multiplies it by. A warp. */
EP_DEVICE void ep_domains_put_row(const ep_domains &args, unsigned char *to, unsigned char *from, int k)
{
    wefti_cuda_ep_domains_tail *tail = ep_domains_tail(args, from);
    const wefti_i32 *ids = ep_domains_ids(tail);
    const bool weighted = (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    int times = 0; /* that it is added */
    for (int i = 0; i < args.topk; i++) {
        times += args.by_expert != 0 && args.slots != 0 ? ids[i] == ids[k] : i == k;
    }
    const float factor = weighted ? ep_domains_weight_of(args, ids, ep_domains_weights(args, tail), k) : (float)times;
    if (args.dtype == 0 || (!weighted && times == 1)) {
        ep_copy_row(to, from, args.row_bytes);
    } else if (args.dtype == WEFT_EP_F32) {
        ep_domains_scale_row<WEFT_EP_F32>(args, to, from, factor);
    } else if (args.dtype == WEFT_EP_BF16) {
        ep_domains_scale_row<WEFT_EP_BF16>(args, to, from, factor);
    } else {
        ep_domains_scale_row<WEFT_EP_F16>(args, to, from, factor);
    }
}

/* A received token's rows, to their places with their labels. A warp. */
EP_DEVICE void ep_domains_deliver(const ep_domains &args, wefti_u32 number)
{
    unsigned char *from = ep_domains_received(args, number);
    wefti_cuda_ep_domains_tail *tail = ep_domains_tail(args, from);
    const wefti_i32 *ids = ep_domains_ids(tail);
    const float *weights = ep_domains_weights(args, tail);
    const wefti_u64 at = (wefti_u64)number * (wefti_u64)args.topk;
    const bool moves = (args.flags & WEFTI_CUDA_EP_MOVE) != 0;
    for (int k = 0; k < args.topk; k++) {
        const bool is_here = ep_domains_is_here(args, ids, k);
        const int of = ep_domains_class(args, ids, k);
        if (ep_lane() == 0) {
            args.tables.row_weight[at + (wefti_u64)k] =
                args.by_expert == 0 ? (k == 0 ? ep_domains_weight_of(args, ids, weights, k) : 0.0f) : weights[k];
            if (args.by_expert != 0 && !is_here) {
                args.tables.row[at + (wefti_u64)k] = -1;
            }
            args.tables.here[at + (wefti_u64)k] = is_here;
        }
        if (!moves || (args.by_expert != 0 ? of < 0 : k > 0)) {
            continue;
        }
        const wefti_u64 row = (wefti_u64)args.tables.row[at + (wefti_u64)k];
        ep_domains_put_row(args, args.out + row * args.out_pitch, from, k);
        for (wefti_u32 i = (wefti_u32)ep_lane(); i < args.scale_words; i += 32) {
            *ep_domains_scale(args, row, args.by_expert != 0 ? of : 0, i) =
                ((const wefti_u32 *)(from + args.row_bytes))[i];
        }
        if (ep_lane() == 0) {
            ep_domains_label_source(args.arrays, row, tail->source, tail->token);
            if (args.by_expert != 0) {
                ep_domains_label_expert(args.arrays, row, of);
            }
            if (args.by_expert != 0 && args.arrays.weights != NULL) {
                args.arrays.weights[row] = ep_domains_weight_of(args, ids, weights, k);
            }
        }
        for (int i = ep_lane(); args.by_expert == 0 && i < args.topk; i += 32) {
            const wefti_u64 place = row * (wefti_u64)args.topk + (wefti_u64)i;
            const bool i_is_here = ep_domains_is_here(args, ids, i);
            ep_domains_label_expert(args.arrays, place,
                                    !i_is_here          ? -1
                                    : args.by_rank != 0 ? 0
                                                        : ids[i] - args.group.first_expert);
            if (args.arrays.weights != NULL) {
                args.arrays.weights[place] = i_is_here || args.choices.all_weights != 0 ? weights[i] : 0.0f;
            }
        }
    }
}

/* The padding of an expert. A warp. */
EP_DEVICE void ep_domains_pad(const ep_domains &args, int expert)
{
    const wefti_u64 begin = (wefti_u64)(args.tables.offset_of_expert[expert] + args.tables.rows_of_expert[expert]);
    for (wefti_u64 row = begin; row < (wefti_u64)args.tables.offset_of_expert[expert + 1]; row++) {
        for (wefti_u32 i = (wefti_u32)ep_lane(); args.zeroes != 0 && i < args.row_bytes / 16; i += 32) {
            ((uint4 *)(args.out + row * args.out_pitch))[i] = make_uint4(0, 0, 0, 0);
        }
        for (wefti_u32 i = (wefti_u32)ep_lane(); args.zeroes != 0 && i < args.scale_words; i += 32) {
            *ep_domains_scale(args, row, expert, i) = 0;
        }
        if (ep_lane() == 0) {
            wefti_cuda_ep_arrays arrays = args.arrays;
            ep_domains_label_source(arrays, row, -1, -1);
            ep_domains_label_expert(arrays, row, -1);
            if (arrays.weights != NULL) {
                arrays.weights[row] = 0.0f;
            }
        }
    }
}

/* Give each row its place. Blocks take tiles. */
EP_DEVICE void ep_domains_place(const ep_domains &args)
{
    const ep_domains_group &group = args.group;
    const ep_warp_group warps = ep_domains_warps();
    const int all = group.ranks * group.tokens_max;
    if (!ep_domains_is_well(group)) {
        return;
    }
    for (int tile = (int)blockIdx.x; tile < ep_domains_tiles(group); tile += (int)gridDim.x) {
        if (ep_warp() == 0) {
            ep_domains_walk<true>(args, tile);
        }
        __syncthreads();
        for (int i = ep_warp(); i < WEFTI_CUDA_EP_DOMAINS_TILE; i += ep_warps()) {
            const int pair = tile * WEFTI_CUDA_EP_DOMAINS_TILE + i;
            const wefti_u32 row = pair < all ? group.row_of[pair] : 0;
            if (row != 0) {
                ep_domains_deliver(args, row - 1);
            }
        }
    }
    const bool pads = args.by_expert != 0 && args.slots == 0 && (args.flags & WEFTI_CUDA_EP_MOVE) != 0;
    for (int expert = warps.number; pads && expert < group.local_experts; expert += warps.count) {
        ep_domains_pad(args, expert);
    }
}

/* ---- sums ---- */

#define EP_DOMAINS_SUMS 4

/* What a received token's choices here have given, of vector `vector` of its row; by the call's OWN weights or those of
 * the routing. A thread. */
template <int DTYPE, bool OWN>
EP_DEVICE void ep_domains_result(const ep_domains &args, wefti_u64 number, wefti_u32 vector, float *sum)
{
    const wefti_u64 at = number * (wefti_u64)args.topk;
    const bool weighted = (args.flags & WEFTI_CUDA_EP_WEIGHTED) != 0;
    const float *own = OWN ? ep_domains_own_weights(args, number) : NULL;
    for (int k = 0; k < (args.by_expert != 0 ? args.topk : 1); k++) {
        const wefti_i32 row = args.tables.row[at + (wefti_u64)k];
        bool takes = row >= 0 && (!OWN || ep_domains_takes_part(args, own, k));
        for (int i = 0; (args.flags & WEFTI_CUDA_EP_ONCE) != 0 && i < k; i++) {
            takes = takes && args.tables.row[at + (wefti_u64)i] != row; /* that of an earlier choice */
        }
        if (!takes) {
            continue;
        }
        const uint4 given = ((const uint4 *)(args.in + (wefti_u64)row * args.in_pitch))[vector];
        const float weight = OWN ? own[k] : args.tables.row_weight[at + (wefti_u64)k];
        if (weighted && args.by_expert != 0) {
            ep_fuse<DTYPE>(sum, given, weight);
        } else if (weighted) {
            ep_add_scaled<DTYPE>(sum, given, weight);
        } else {
            ep_add<DTYPE>(sum, given);
        }
    }
}

/* A vector of a token's biases. */
template <int DTYPE>
EP_DEVICE void ep_domains_add_biases(const ep_domains &args, int token, wefti_u32 vector, float *sum)
{
    for (int i = 0; i < 2; i++) {
        if (args.bias[i] != NULL) {
            ep_add<DTYPE>(sum, ((const uint4 *)(args.bias[i] + (wefti_u64)token * args.bias_pitch[i]))[vector]);
        }
    }
}

/* The sum of a token's domains, of which `goes` has the first 32, and biases. All threads of a warp. */
template <int DTYPE>
EP_DEVICE void ep_domains_total(const ep_domains &args, int token, wefti_u32 vector, wefti_u32 goes, float *sum)
{
    const ep_domains_group &group = args.group;
    const bool biases_first = (args.flags & WEFTI_CUDA_EP_BY_CHOICE) != 0;
    if (biases_first) {
        ep_domains_add_biases<DTYPE>(args, token, vector, sum);
    }
    for (int first = 0; first < group.domains; first += 32) {
        for (wefti_u32 left = first == 0 ? goes : ep_domains_goes(args, token, first); left != 0; left &= left - 1) {
            const int domain = first + __ffs((int)left) - 1;
            const wefti_u64 number = (wefti_u64)domain * (wefti_u64)group.tokens_max + (wefti_u64)token;
            const unsigned char *row = domain == group.domain ? group.sums + (wefti_u64)token * args.row_bytes
                                                              : group.domain_sums + number * args.row_bytes;
            ep_add<DTYPE>(sum, ((const uint4 *)row)[vector]);
        }
    }
    if (!biases_first) {
        ep_domains_add_biases<DTYPE>(args, token, vector, sum);
    }
}

/* Vector `vector` of a row of sums of type DTYPE, rounded: results to that, totals to what the call asks for. A
 * thread. */
template <int DTYPE, bool TOTAL>
EP_DEVICE void ep_domains_store(const ep_domains &args, unsigned char *row, wefti_u32 vector, const float *sum)
{
    const ep_in_vectors form;
    if (!TOTAL || args.out_dtype == DTYPE) {
        ((uint4 *)row)[vector] = ep_type<DTYPE>::round(sum);
    } else if (args.out_dtype == WEFT_EP_BF16) {
        form.template store_as<DTYPE, WEFT_EP_BF16>(row, (int)vector, sum);
    } else if (args.out_dtype == WEFT_EP_F16) {
        form.template store_as<DTYPE, WEFT_EP_F16>(row, (int)vector, sum);
    } else {
        form.template store_as<DTYPE, WEFT_EP_F32>(row, (int)vector, sum);
    }
}

/* Warps take rows, and of each EP_DOMAINS_SUMS vectors a lane at a time. */
template <int DTYPE, bool TOTAL, bool OWN> EP_DEVICE void ep_domains_add_all(const ep_domains &args)
{
    const ep_warp_group warps = ep_domains_warps();
    const int rows = TOTAL ? args.tables.route_header->tokens : *args.inner_rows;
    const wefti_u32 vectors = args.row_bytes / 16;
    for (int row = warps.number; row < rows; row += warps.count) {
        const wefti_u32 goes = TOTAL ? ep_domains_goes(args, row, 0) : 0;
        unsigned char *out =
            TOTAL ? args.out + (wefti_u64)row * args.out_pitch : args.group.results + (wefti_u64)row * args.row_bytes;
        if (OWN && args.by_expert == 0) {
            ep_domains_fold_own(args, (wefti_u64)row);
        }
        for (wefti_u32 first = 0; first < vectors; first += 32 * EP_DOMAINS_SUMS) {
            const wefti_u32 at = first + (wefti_u32)ep_lane();
            float sums[EP_DOMAINS_SUMS][ep_type<DTYPE>::ELEMENTS] = {};
#pragma unroll
            for (wefti_u32 i = 0; i < EP_DOMAINS_SUMS; i++) { /* without a condition, as in ep_include */
                const wefti_u32 vector = at + i * 32 < vectors ? at + i * 32 : vectors - 1;
                if (TOTAL) {
                    ep_domains_total<DTYPE>(args, row, vector, goes, sums[i]);
                } else {
                    ep_domains_result<DTYPE, OWN>(args, (wefti_u64)row, vector, sums[i]);
                }
            }
#pragma unroll
            for (wefti_u32 i = 0; i < EP_DOMAINS_SUMS; i++) {
                if (at + i * 32 < vectors) {
                    ep_domains_store<DTYPE, TOTAL>(args, out, at + i * 32, sums[i]);
                }
            }
        }
    }
}

template <bool TOTAL, bool OWN> EP_DEVICE void ep_domains_add_as(const ep_domains &args)
{
    if (args.dtype == WEFT_EP_F32) {
        ep_domains_add_all<WEFT_EP_F32, TOTAL, OWN>(args);
    } else if (args.dtype == WEFT_EP_BF16) {
        ep_domains_add_all<WEFT_EP_BF16, TOTAL, OWN>(args);
    } else {
        ep_domains_add_all<WEFT_EP_F16, TOTAL, OWN>(args);
    }
}

template <bool TOTAL> EP_DEVICE void ep_domains_add(const ep_domains &args)
{
    if (TOTAL ? !ep_domains_is_well(args.group) : !ep_domains_begins(args.group)) {
        return;
    }
    if (!TOTAL && ep_domains_grid().number == 0) {
        ep_domains_count_call(args.group);
    }
    if (!TOTAL && args.own.row_bytes != 0) {
        ep_domains_tell_inner(args);
        ep_domains_add_as<TOTAL, !TOTAL>(args);
    } else {
        ep_domains_add_as<TOTAL, false>(args);
    }
}

#endif
