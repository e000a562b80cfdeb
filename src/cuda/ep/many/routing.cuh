/* cuda/ep/many/routing.cuh: from the gate's choices to the places of tokens and rows where ranks are many.
 *
 *     count    each block its tokens: bits of each unit and rank, choices of each expert
 *     prefix   a thread a rank, or an expert: what the units, or blocks, before each have; what all have goes to the
 *              owner, beside the call header
 *     owner    block 0: adds up what all sources have here, and answers each: where its tokens and rows begin
 *     places   of a token at a rank: place + before + bits, or + its position; the row of a choice: base + ahead +
 *              number in the block
 *
 * Where an owner is full and rows are dropped, each source works out how many of its tokens are accepted there, and
 * count to places are done again with those, in a second round of odd tags. */
#ifndef WEFTI_CUDA_EP_MANY_ROUTING_CUH
#define WEFTI_CUDA_EP_MANY_ROUTING_CUH

#include "cuda/ep/many/call.cuh"
#include "cuda/ep/routing/count.cuh"

/* The first expert of each rank, [R + 1], of a call that makes a routing. */
EP_DEVICE const wefti_i32 *ep_many_first(const ep_dispatch &args)
{
    const ep_directory *directory = ep_directory_of(args.group);
    return args.choices.destinations != 0 ? directory->itself : directory->first_expert;
}

EP_DEVICE int ep_many_experts(const ep_dispatch &args)
{
    return ep_many_first(args)[args.group.ranks];
}

EP_DEVICE int ep_many_local(const ep_dispatch &args)
{
    const wefti_i32 *first = ep_many_first(args) + args.group.rank;
    return first[1] - first[0];
}

/* The rank of an expert. */
EP_DEVICE int ep_many_rank_of(const wefti_i32 *first, int ranks, int id)
{
    int low = 0; /* the last whose first expert is at most `id` */
    for (int high = ranks; high - low > 1;) {
        const int middle = (low + high) / 2;
        low = first[middle] <= id ? middle : low;
        high = first[middle] <= id ? high : middle;
    }
    return low;
}

/* The rank of each choice, or -1: none, or a rank that takes no part: [T][K]. */
EP_DEVICE short *ep_many_owners(const ep_tables &tables)
{
    return (short *)tables.owner;
}

/* This block's tokens and units. */
typedef struct ep_many_share {
    int unit_tokens;
    int first_unit;
    int end_unit;
    int first;
    int end;
} ep_many_share;

EP_DEVICE ep_many_share ep_many_share_of(const ep_many_call *call)
{
    ep_many_share share;
    share.unit_tokens = wefti_cuda_ep_unit(call->tokens);
    ep_share(wefti_cuda_ep_units(call->tokens), &share.first_unit, &share.end_unit);
    share.first = share.first_unit * share.unit_tokens;
    share.end = share.end_unit * share.unit_tokens;
    share.end = share.end < call->tokens ? share.end : call->tokens;
    share.first = share.first < share.end ? share.first : share.end;
    return share;
}

/* Where a token goes, `rank` being one of its ranks. */
EP_DEVICE ep_going ep_many_going(const ep_group &group, const ep_tables &tables, int token, int unit_tokens, int rank)
{
    const wefti_u64 at = (wefti_u64)(token / unit_tokens) * (wefti_u64)group.ranks + (wefti_u64)rank;
    const wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&tables.goes[at]);
    const wefti_u32 bit = 1u << (token % unit_tokens);
    ep_going going;
    going.goes = (bits & bit) != 0;
    if constexpr (EP_BY_POSITION) {
        going.index = going.goes ? tables.target[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank] : 0;
    } else {
        going.index = tables.before[at] + (wefti_u32)__popc(bits & (bit - 1));
    }
    return going;
}

EP_DEVICE wefti_u64 *ep_many_partials(const ep_dispatch &args, int block)
{
    return args.tables.partials + (wefti_u64)block * (wefti_u64)(ep_many_experts(args) + 1);
}

/* ---- count ---- */

/* Read T, the tokens of the call. Called by one thread. */
EP_DEVICE void ep_many_find_tokens(const ep_dispatch &args, ep_many_call *call)
{
    call->odd_tokens = 0;
    call->tokens = ep_is(args, WEFTI_CUDA_EP_FRESH) ? args.choices.tokens : args.tables.route_header->tokens;
    if (EP_BY_POSITION && ep_is(args, WEFTI_CUDA_EP_FRESH)) {
        call->odd_tokens = args.tables.unpadded[1] != 0;
    }
    if (ep_is(args, WEFTI_CUDA_EP_FRESH) && args.choices.tokens_at != 0) {
        const int told = *args.choices.tokens_at;
        call->odd_tokens = (EP_BY_POSITION && call->odd_tokens) || told < 0 || told > call->tokens;
        call->tokens = told < 0 ? 0 : told > call->tokens ? call->tokens : told;
    }
}

/* The choices of this block's tokens, by expert, those that share a slot once; with `again` what is accepted. All
 * threads. */
EP_DEVICE void ep_many_count_choices(const ep_dispatch &args, const ep_many_call *call, const ep_many_share &share,
                                     bool again)
{
    const ep_group &group = args.group;
    const int experts = ep_many_experts(args);
    const wefti_i32 *first = ep_many_first(args);
    wefti_u64 *partials = ep_many_partials(args, (int)blockIdx.x);
    for (int i = (int)threadIdx.x; i <= experts; i += (int)blockDim.x) {
        partials[i] = 0;
    }
    __syncthreads();
    const int end = share.end * args.topk;
    for (int at = share.first * args.topk + (int)threadIdx.x; at < end; at += (int)blockDim.x) {
        const int token = at / args.topk;
        const int id = ep_id(args.choices, (wefti_u64)at, experts);
        int owner = id >= 0 ? ep_many_rank_of(first, group.ranks, id) : -1;
        owner = owner >= 0 && ep_many_is_alive(call, owner) ? owner : -1;
        if (!again) {
            ep_many_owners(args.tables)[at] = (short)owner;
        }
        if (owner >= 0 && !again) {
            const wefti_u64 word = (wefti_u64)(token / share.unit_tokens) * (wefti_u64)group.ranks + (wefti_u64)owner;
            atomicOr((wefti_u32 *)&args.tables.bits[word], 1u << (token % share.unit_tokens));
        }
        const bool shares =
            args.experts.slots != 0 && owner >= 0 &&
            ep_is_again(args.choices, (wefti_u64)(token * args.topk), at - token * args.topk, id, experts);
        const bool counts = owner >= 0 && !shares &&
                            (!again || ep_many_going(group, args.tables, token, share.unit_tokens, owner).goes);
        if (id == -2 || counts) {
            atomicAdd((wefti_u32 *)&partials[id == -2 ? experts : id], 1u);
        }
    }
}

EP_DEVICE void ep_many_count(const ep_dispatch &args, const ep_many_call *call)
{
    const ep_many_share share = ep_many_share_of(call);
    const int ranks = args.group.ranks;
    for (int i = share.first_unit * ranks + (int)threadIdx.x; i < share.end_unit * ranks; i += (int)blockDim.x) {
        args.tables.bits[i] = 0;
    }
    ep_many_count_choices(args, call, share, false);
}

/* ---- prefix ---- */

/* Where this rank tells `owner` what it has for it: [1 + L]; in the second round apart from the call header. */
EP_DEVICE void ep_many_tell_owner(const ep_dispatch &args, const ep_many_call *call, int owner, int word,
                                  wefti_u32 value)
{
    const ep_group &group = args.group;
    if ((call->tag & 1) == 0) {
        ep_many_post_word(group, call, owner, WEFTI_CUDA_EP_HEADER_WORDS + word, value);
    } else if (ep_many_is_alive(call, owner)) {
        wefti_u64 *there = (wefti_u64 *)(ep_directory_of(group)->area[owner] + group.at.choices) +
                           (wefti_u64)group.rank * (1 + (wefti_u64)group.at.local_max);
        wefti_st_relaxed(there + word, ep_packed(call->tag, value));
    }
}

/* Where `source` has stored its counts: behind its call header; in the second round in `choices`. */
EP_DEVICE const wefti_u64 *ep_many_told(const ep_dispatch &args, const ep_many_call *call, int source)
{
    const ep_group &group = args.group;
    return (call->tag & 1) == 0 ? ep_many_header_words(group, call, group.rank, source) + WEFTI_CUDA_EP_HEADER_WORDS
                                : (const wefti_u64 *)(group.area[0] + group.at.choices) +
                                      (wefti_u64)source * (1 + (wefti_u64)group.at.local_max);
}

/* All threads of the grid, each of which has fenced. */
template <class LAYOUT> EP_DEVICE void ep_many_prefix(const ep_dispatch &args, const ep_many_call *call)
{
    const ep_group &group = args.group;
    const ep_warp_group threads = ep_many_threads();
    const int units = wefti_cuda_ep_units(call->tokens);
    const int experts = ep_many_experts(args);
    const wefti_i32 *first = ep_many_first(args);
    for (int rank = threads.number; rank < group.ranks; rank += threads.count) {
        wefti_u32 run = 0;
        for (int unit = 0; unit < units; unit++) {
            const wefti_u64 at = (wefti_u64)unit * (wefti_u64)group.ranks + (wefti_u64)rank;
            if ((call->tag & 1) == 0) {
                args.tables.before[at] = run;
            }
            run += (wefti_u32)__popc((wefti_u32)wefti_ld_relaxed(&args.tables.goes[at]));
        }
        args.tables.sent[rank] = run;
        ep_many_tell_owner(args, call, rank, 0, run);
    }
    for (int expert = threads.number; expert <= experts; expert += threads.count) {
        wefti_u32 run = 0;
        for (int block = 0; block < (int)gridDim.x; block++) {
            const wefti_u32 count = (wefti_u32)wefti_ld_relaxed(&ep_many_partials(args, block)[expert]);
            if (LAYOUT::ROWS_OF_CHOICES && expert < experts) {
                args.tables.ahead[(wefti_u64)block * (wefti_u64)experts + (wefti_u64)expert] = run;
            }
            run += count;
        }
        if (expert == experts) {
            args.tables.route_header->dropped = (wefti_i32)run;
            continue;
        }
        const int owner = ep_many_rank_of(first, group.ranks, expert);
        ep_many_tell_owner(args, call, owner, 1 + expert - first[owner], run);
    }
}

/* ---- the owner ---- */

EP_DEVICE wefti_u64 *ep_many_reply(const ep_group &group, int reader, int owner)
{
    return (wefti_u64 *)(ep_directory_of(group)->area[reader] + group.at.counts) +
           (wefti_u64)owner * (WEFTI_CUDA_EP_REPLY_WORDS + (wefti_u64)group.at.local_max);
}

EP_DEVICE void ep_many_answer(const ep_group &group, const ep_many_call *call, int source, int word, wefti_u32 value)
{
    if (ep_many_is_alive(call, source)) {
        wefti_st_relaxed(ep_many_reply(group, source, group.rank) + word, ep_packed(call->tag, value));
    }
}

EP_DEVICE wefti_u32 ep_many_at_most_int(wefti_u64 rows)
{
    return rows > 0x7fffffffu ? 0x7fffffffu : (wefti_u32)rows;
}

/* The rows that a rank may receive. */
EP_DEVICE wefti_u32 ep_many_limit(const ep_dispatch &args, wefti_u32 capacity)
{
    return args.group.rows_limit < capacity ? args.group.rows_limit : capacity;
}

EP_DEVICE wefti_u64 ep_many_aligned(const ep_dispatch &args, wefti_u64 rows)
{
    return (rows + args.experts.alignment - 1) / args.experts.alignment * args.experts.alignment;
}

/* By expert: the rows, padding included, of the sources before `end`. A thread. */
EP_DEVICE wefti_u64 ep_many_rows_before(const ep_dispatch &args, int local, int end)
{
    wefti_u64 rows = 0;
    for (int expert = 0; expert < local; expert++) {
        wefti_u64 sum = 0;
        for (int source = 0; source < end; source++) {
            sum += (wefti_u32)args.tables.rows_of_expert_source[expert * args.group.ranks + source];
        }
        rows += ep_many_aligned(args, sum);
    }
    return rows;
}

/* What all sources have here, into the route tables. Block 0. */
EP_DEVICE void ep_many_await_sources(const ep_dispatch &args, ep_many_call *call, int local)
{
    const ep_group &group = args.group;
    const ep_tables &tables = args.tables;
    for (int i = (int)threadIdx.x; i < group.ranks * (1 + local); i += (int)blockDim.x) {
        const int source = i % group.ranks;
        const int word = i / group.ranks;
        wefti_u32 count = 0;
        if (ep_many_is_alive(call, source)) {
            count = ep_many_await(&group, call, ep_many_told(args, call, source) + word, source);
        }
        (word == 0 ? tables.rows_of_source : tables.rows_of_expert_source + (word - 1) * group.ranks)[source] =
            (wefti_i32)count;
    }
    __syncthreads();
    if (ep_warp() == 0) {
        wefti_u32 run = 0;
        for (int base = 0; base < group.ranks; base += 32) {
            const int source = base + ep_lane();
            const wefti_u32 count = source < group.ranks ? (wefti_u32)tables.rows_of_source[source] : 0;
            const wefti_u32 takes = source >= group.ranks ? 0 : args.slots != 0 ? args.slots : count;
            const wefti_u32 behind = ep_scan(takes);
            if (source < group.ranks) {
                tables.offset_of_source[source] = (wefti_i32)(run + behind - takes);
            }
            run += __shfl_sync(~0u, behind, 31);
        }
        if (ep_lane() == 0) {
            tables.offset_of_source[group.ranks] = (wefti_i32)run;
        }
    }
    for (int expert = ep_warp(); expert < local; expert += ep_warps()) {
        wefti_u32 sum = 0;
        for (int source = ep_lane(); source < group.ranks; source += 32) {
            sum += (wefti_u32)tables.rows_of_expert_source[expert * group.ranks + source];
        }
        sum = __reduce_add_sync(~0u, sum);
        if (ep_lane() == 0) {
            tables.rows_of_expert[expert] = (wefti_i32)sum;
        }
    }
    __syncthreads();
}

/* By expert: where each local expert begins and ends. Returns all rows, padding included. One thread. */
EP_DEVICE wefti_u64 ep_many_lay_experts(const ep_dispatch &args, const ep_many_call *call, int local)
{
    const ep_tables &tables = args.tables;
    wefti_u64 begin = 0;
    wefti_u64 total = 0;
    for (int expert = 0; expert < local; expert++) {
        const wefti_u32 rows = (wefti_u32)tables.rows_of_expert[expert];
        tables.offset_of_expert[expert] = (wefti_i32)ep_many_at_most_int(begin);
        tables.begin[expert] = ep_many_at_most_int(begin);
        tables.end[expert] = ep_many_at_most_int(begin + rows);
        begin += args.experts.slots != 0 ? args.experts.slots : ep_many_aligned(args, rows);
        total += rows;
    }
    tables.offset_of_expert[local] = (wefti_i32)ep_many_at_most_int(begin);
    tables.begin[local] = ep_many_at_most_int(begin);
    tables.unpadded[call->tag & 1] = total;
    return begin;
}

/* How many experts the sources tell their rows of. */
template <class LAYOUT> EP_DEVICE int ep_many_counted(const ep_dispatch &args)
{
    return args.choices.destinations == 0 || LAYOUT::ROWS_OF_CHOICES ? ep_many_local(args) : 0;
}

/* Add up what all sources have here, and answer them. All threads of block 0. */
template <class LAYOUT> EP_DEVICE void ep_many_own(const ep_dispatch &args, ep_many_call *call)
{
    const ep_group &group = args.group;
    const ep_tables &tables = args.tables;
    wefti_cuda_ep_route_header *route_header = tables.route_header;
    const int local = ep_many_counted<LAYOUT>(args);
    const wefti_u32 limit = ep_many_limit(args, ep_is(args, WEFTI_CUDA_EP_MOVE) ? args.capacity : ~0u);
    ep_many_await_sources(args, call, local);
    if (threadIdx.x == 0) {
        const wefti_u32 all = (wefti_u32)tables.offset_of_source[group.ranks];
        wefti_u32 received = 0;
        for (int source = 0; source < group.ranks; source++) {
            received += (wefti_u32)tables.rows_of_source[source];
        }
        const wefti_u64 rows = LAYOUT::ROWS_OF_CHOICES ? ep_many_lay_experts(args, call, local) : all;
        const bool has_slots = LAYOUT::ROWS_OF_CHOICES ? args.experts.slots != 0 : args.slots != 0;
        call->found = !has_slots && rows > limit;
        route_header->rows = (wefti_i32)ep_many_at_most_int(rows);
        route_header->dropped_rows = 0;
        if ((call->tag & 1) == 0) {
            call->wanted = (wefti_u32)route_header->rows;
        } else {
            route_header->dropped_rows = LAYOUT::ROWS_OF_CHOICES ? (wefti_i32)(tables.unpadded[0] - tables.unpadded[1])
                                         : has_slots             ? 0
                                                     : (wefti_i32)((wefti_u32)route_header->received - received);
        }
        if (LAYOUT::ROWS_OF_CHOICES && tables.asked != 0) {
            route_header->dropped_rows = (wefti_i32)(*tables.asked - tables.unpadded[call->tag & 1]);
        }
        route_header->received = (wefti_i32)received;
    }
    __syncthreads();
    for (int expert = ep_warp(); LAYOUT::ROWS_OF_CHOICES && expert < local; expert += ep_warps()) {
        wefti_u32 run = (wefti_u32)tables.begin[expert];
        for (int base = 0; base < group.ranks; base += 32) {
            const int source = base + ep_lane();
            const wefti_u32 count =
                source < group.ranks ? (wefti_u32)tables.rows_of_expert_source[expert * group.ranks + source] : 0;
            const wefti_u32 behind = ep_scan(count);
            if (source < group.ranks) {
                const wefti_u32 before = run + behind - count;
                const bool counts = call->found != 0 && group.drops != 0; /* the source walks on from there */
                ep_many_answer(group, call, source, WEFTI_CUDA_EP_REPLY_WORDS + expert,
                               before - (counts ? (wefti_u32)tables.begin[expert] : 0));
            }
            run += __shfl_sync(~0u, behind, 31);
        }
    }
    for (int source = (int)threadIdx.x; source < group.ranks; source += (int)blockDim.x) {
        const bool walks = LAYOUT::ROWS_OF_CHOICES && call->found != 0 && group.drops != 0;
        ep_many_answer(group, call, source, WEFTI_CUDA_EP_REPLY_FULL, call->found);
        ep_many_answer(group, call, source, WEFTI_CUDA_EP_REPLY_PLACE, (wefti_u32)tables.offset_of_source[source]);
        ep_many_answer(group, call, source, WEFTI_CUDA_EP_REPLY_BEFORE,
                       walks ? ep_many_at_most_int(ep_many_rows_before(args, local, source)) : 0);
        ep_many_answer(group, call, source, WEFTI_CUDA_EP_REPLY_UNTIL,
                       walks ? ep_many_at_most_int(ep_many_rows_before(args, local, source + 1)) : 0);
    }
}

/* The same of a dispatch on the routing that is there: whether its rows fit. */
template <class LAYOUT> EP_DEVICE void ep_many_own_cached(const ep_dispatch &args, ep_many_call *call)
{
    const ep_group &group = args.group;
    if (threadIdx.x == 0) {
        wefti_u64 rows = LAYOUT::ROWS_OF_CHOICES ? (wefti_u32)args.tables.route_header->rows : 0;
        for (int source = 0; source < group.ranks && !LAYOUT::ROWS_OF_CHOICES; source++) {
            rows += ep_many_is_alive(call, source) ? (wefti_u32)args.tables.rows_of_source[source] : 0;
        }
        const bool has_slots = LAYOUT::ROWS_OF_CHOICES ? args.experts.slots != 0 : args.slots != 0;
        call->found = ep_is(args, WEFTI_CUDA_EP_MOVE) && !has_slots && rows > ep_many_limit(args, args.capacity);
    }
    __syncthreads();
    for (int source = (int)threadIdx.x; source < group.ranks; source += (int)blockDim.x) {
        ep_many_answer(group, call, source, WEFTI_CUDA_EP_REPLY_FULL, call->found);
    }
}

/* Hear the owners. All threads of the grid. */
template <class LAYOUT> EP_DEVICE void ep_many_await_owners(const ep_dispatch &args, ep_many_call *call)
{
    const ep_group &group = args.group;
    ep_directory *directory = ep_directory_of(group);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    const ep_warp_group threads = ep_many_threads();
    for (int i = threads.number; i < WEFTI_CUDA_EP_REPLY_WORDS * group.ranks; i += threads.count) {
        const int owner = i % group.ranks;
        const int word = i / group.ranks;
        if (word != WEFTI_CUDA_EP_REPLY_FULL && !fresh) {
            break;
        }
        if (!ep_many_is_alive(call, owner)) {
            continue;
        }
        const wefti_u32 value =
            ep_many_await_in(group, call, ep_many_reply(group, group.rank, owner) + word, owner, EP_MANY_IN_ANSWERS);
        if (word == WEFTI_CUDA_EP_REPLY_PLACE) {
            args.tables.place[owner] = value;
        } else {
            wefti_st_relaxed(&(word == WEFTI_CUDA_EP_REPLY_FULL     ? directory->full
                               : word == WEFTI_CUDA_EP_REPLY_BEFORE ? directory->ahead
                                                                    : directory->until)[owner],
                             value);
        }
    }
    if (!LAYOUT::ROWS_OF_CHOICES || !fresh) {
        return;
    }
    const wefti_i32 *first = ep_many_first(args);
    for (int expert = threads.number; expert < ep_many_experts(args); expert += threads.count) {
        const int owner = ep_many_rank_of(first, group.ranks, expert);
        if (ep_many_is_alive(call, owner)) {
            args.tables.base[expert] = ep_many_await_in(group, call,
                                                        ep_many_reply(group, group.rank, owner) +
                                                            WEFTI_CUDA_EP_REPLY_WORDS + expert - first[owner],
                                                        owner, EP_MANY_IN_ANSWERS);
        }
    }
}

/* ---- drops ---- */

/* By expert: the first of this rank's tokens with rows at `rank`, which is full within them, that do not all fit. One
 * thread. */
EP_DEVICE int ep_many_find_cut(const ep_dispatch &args, const ep_many_call *call, int rank, wefti_u64 rows,
                               wefti_u32 limit)
{
    const int experts = ep_many_experts(args);
    for (int at = 0; at < call->tokens * args.topk; at++) {
        if (ep_many_owners(args.tables)[at] != rank) {
            continue;
        }
        wefti_u64 *count = &args.tables.base[ep_id(args.choices, (wefti_u64)at, experts)];
        rows += *count % args.experts.alignment == 0 ? args.experts.alignment : 0;
        if (rows > limit) {
            return at / args.topk;
        }
        *count += 1;
    }
    return call->tokens;
}

/* How many of this rank's tokens before `token` go to `rank`. */
EP_DEVICE wefti_u32 ep_many_tokens_before(const ep_dispatch &args, const ep_many_call *call, int rank, int token)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    if (token >= call->tokens) {
        return args.tables.sent[rank];
    }
    const wefti_u64 at = (wefti_u64)(token / unit_tokens) * (wefti_u64)args.group.ranks + (wefti_u64)rank;
    const wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&args.tables.bits[at]);
    return args.tables.before[at] + (wefti_u32)__popc(bits & ((1u << (token % unit_tokens)) - 1));
}

/* How many of this rank's tokens each rank accepts, in place of `sent`. All threads of the grid. */
template <class LAYOUT> EP_DEVICE void ep_many_cut(const ep_dispatch &args, const ep_many_call *call)
{
    const ep_group &group = args.group;
    const ep_directory *directory = ep_directory_of(group);
    const ep_warp_group threads = ep_many_threads();
    for (int rank = threads.number; rank < group.ranks; rank += threads.count) {
        if (!ep_many_is_alive(call, rank) || wefti_ld_relaxed(&directory->full[rank]) == 0) {
            continue;
        }
        const wefti_u32 limit = ep_many_limit(args, wefti_ld_relaxed(&directory->capacity[rank]));
        const wefti_u32 sent = args.tables.sent[rank];
        if (!LAYOUT::ROWS_OF_CHOICES) {
            const wefti_u32 place = args.tables.place[rank];
            const wefti_u32 left = place < limit ? limit - place : 0;
            args.tables.sent[rank] = sent < left ? sent : left;
        } else if (wefti_ld_relaxed(&directory->until[rank]) > limit) {
            const wefti_u32 rows = wefti_ld_relaxed(&directory->ahead[rank]);
            args.tables.sent[rank] =
                rows > limit ? 0
                             : ep_many_tokens_before(args, call, rank, ep_many_find_cut(args, call, rank, rows, limit));
        }
    }
}

/* By position: of the tokens of a unit, whose first is `first`, those whose numbers at `rank` are below `accepted`. */
EP_DEVICE wefti_u32 ep_many_accepted_by_position(const ep_dispatch &args, int first, int rank, wefti_u32 bits,
                                                 wefti_u32 accepted)
{
    for (wefti_u32 left = bits; left != 0; left &= left - 1) {
        const int token = first + __ffs((int)left) - 1;
        if (args.tables.target[(wefti_u64)token * (wefti_u64)args.group.ranks + (wefti_u64)rank] >= accepted) {
            bits &= ~(left & -left);
        }
    }
    return bits;
}

/* The bits of what is accepted, of this block's units. All threads. */
EP_DEVICE void ep_many_accept(const ep_dispatch &args, const ep_many_call *call)
{
    const ep_many_share share = ep_many_share_of(call);
    const int ranks = args.group.ranks;
    for (int i = share.first_unit * ranks + (int)threadIdx.x; i < share.end_unit * ranks; i += (int)blockDim.x) {
        wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&args.tables.bits[i]);
        const wefti_u32 accepted = args.tables.sent[i % ranks];
        if (EP_BY_POSITION) {
            bits = ep_many_accepted_by_position(args, i / ranks * share.unit_tokens, i % ranks, bits, accepted);
        }
        while (!EP_BY_POSITION && bits != 0 && args.tables.before[i] + (wefti_u32)__popc(bits) > accepted) {
            bits &= ~(0x80000000u >> __clz((int)bits)); /* the last of them */
        }
        args.tables.goes[i] = bits;
    }
    __syncthreads();
}

/* ---- a new routing ---- */

/* From the blocks' counts to the call header's words. `call->tokens` is known. All threads of all blocks. */
template <class LAYOUT> EP_DEVICE bool ep_many_open_routing(const ep_dispatch &args, ep_many_call *call)
{
    ep_many_count(args, call);
    if (args.tables.goes != args.tables.bits) {
        const ep_many_share share = ep_many_share_of(call);
        const int ranks = args.group.ranks;
        __syncthreads();
        for (int i = share.first_unit * ranks + (int)threadIdx.x; i < share.end_unit * ranks; i += (int)blockDim.x) {
            args.tables.goes[i] = args.tables.bits[i];
        }
    }
    if (!ep_many_meet(&args.group, &args.tables, call)) {
        return false;
    }
    wefti_fence_acq_rel();
    __syncthreads();
    ep_many_prefix<LAYOUT>(args, call);
    return true;
}

/* Tell the host of the first rank to which more rows would come than it has room for. One thread. */
EP_DEVICE void ep_many_report_overflow(const ep_dispatch &args, const ep_many_call *call)
{
    const ep_group &group = args.group;
    const ep_directory *directory = ep_directory_of(group);
    int rank = 0;
    while (rank < group.ranks - 1 && (!ep_many_is_alive(call, rank) || wefti_ld_relaxed(&directory->full[rank]) == 0)) {
        rank++;
    }
    const wefti_u32 limit = ep_many_limit(args, wefti_ld_relaxed(&directory->capacity[rank]));
    wefti_st_release(&group.host_status[WEFTI_CUDA_EP_HOST_STATUS_OVERFLOW],
                     wefti_cuda_ep_overflow(rank, limit, call->tag));
}

/* The routes of ranks that call the same: everywhere whether rows fit, and of a new routing where they go. All threads
 * of all blocks. False: a rank or block did not come. */
template <class LAYOUT> EP_DEVICE bool ep_many_route(const ep_dispatch &args, ep_many_call *call)
{
    const ep_group &group = args.group;
    const ep_directory *directory = ep_directory_of(group);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (blockIdx.x == 0 && fresh) {
        ep_many_own<LAYOUT>(args, call);
    } else if (blockIdx.x == 0) {
        ep_many_own_cached<LAYOUT>(args, call);
    }
    ep_many_await_owners<LAYOUT>(args, call);
    if (!ep_many_meet(&group, &args.tables, call)) {
        return false;
    }
    const bool full = ep_many_any(group, call, directory->full);
    if (!full || !fresh || group.drops == 0) {
        if (threadIdx.x == 0 && full) {
            call->status = WEFT_ERR_OVERFLOW;
        }
        if (threadIdx.x == 0 && full && blockIdx.x == 0 && !ep_is(args, WEFTI_CUDA_EP_COUNTS)) {
            ep_many_report_overflow(args, call);
        }
        __syncthreads();
        return true;
    }
    ep_many_cut<LAYOUT>(args, call);
    if (!ep_many_meet(&group, &args.tables, call)) {
        return false;
    }
    ep_many_accept(args, call);
    ep_many_count_choices(args, call, ep_many_share_of(call), true);
    if (!ep_many_meet(&group, &args.tables, call)) {
        return false;
    }
    if (threadIdx.x == 0) {
        call->tag |= 1; /* the second round */
    }
    __syncthreads();
    ep_many_prefix<LAYOUT>(args, call);
    if (blockIdx.x == 0) {
        ep_many_own<LAYOUT>(args, call);
    }
    ep_many_await_owners<LAYOUT>(args, call);
    return ep_many_meet(&group, &args.tables, call);
}

/* ---- what is noted ---- */

/* There is no routing any more, as ep_forget_routing. Block 0. */
EP_DEVICE void ep_many_forget(const ep_group &group, const ep_tables &tables)
{
    for (int rank = (int)threadIdx.x; rank < group.ranks; rank += (int)blockDim.x) {
        tables.sent[rank] = 0;
        tables.rows_of_source[rank] = 0;
    }
    if (threadIdx.x == 0) {
        tables.route_header->tokens = 0;
        tables.route_header->status = tables.route_header->routed = WEFT_ERR_MISMATCH;
        tables.route_header->tag = 0;
    }
}

/* What else the route header has of a new routing. One thread. */
EP_DEVICE void ep_many_note(const ep_dispatch &args, const ep_many_call *call)
{
    wefti_cuda_ep_route_header *route_header = args.tables.route_header;
    route_header->tokens = call->tokens;
    route_header->tag = call->tag;
    route_header->routed = call->status != WEFT_OK                               ? call->status
                           : route_header->dropped != 0 || call->odd_tokens != 0 ? WEFT_ERR_RANGE
                                                                                 : WEFT_OK;
    route_header->status = route_header->routed;
}

/* Element `at` of an array of the caller's, if there is one. */
EP_DEVICE void ep_many_tell_one(const wefti_cuda_ep_told &told, void *array, wefti_u64 at, wefti_u64 count)
{
    const wefti_u32 value = ep_many_at_most_int(count);
    if (array != 0 && told.wide != 0) {
        ((wefti_i64 *)array)[at] = (wefti_i64)value;
    } else if (array != 0) {
        ((wefti_i32 *)array)[at] = (wefti_i32)value;
    }
}

/* The counts to the caller's arrays, from the route tables. Block 0. */
template <class LAYOUT> EP_DEVICE void ep_many_tell(const ep_dispatch &args, const ep_many_call *call)
{
    const ep_group &group = args.group;
    const wefti_cuda_ep_told &told = args.told;
    const wefti_u64 generation = told.generation != 0 ? *told.counted + 1 : 0;
    const wefti_u64 slot = generation & 1;
    for (int expert = (int)threadIdx.x; expert < told.experts; expert += (int)blockDim.x) {
        const wefti_u64 at = slot * (wefti_u64)told.experts + (wefti_u64)expert;
        const wefti_u64 rows = told.has_no_experts != 0 ? 0 : (wefti_u32)args.tables.rows_of_expert[expert];
        ep_many_tell_one(told, told.rows_of_expert, at, rows);
        ep_many_tell_one(told, told.rows_of_expert_aligned, at,
                         !LAYOUT::ROWS_OF_CHOICES  ? rows
                         : args.experts.slots != 0 ? args.experts.slots
                                                   : ep_many_aligned(args, rows));
        ep_many_tell_one(told, told.offset_of_expert, at,
                         LAYOUT::ROWS_OF_CHOICES ? (wefti_u32)args.tables.offset_of_expert[expert] : 0);
    }
    for (int source = (int)threadIdx.x; source < group.ranks; source += (int)blockDim.x) {
        ep_many_tell_one(told, told.rows_of_source, slot * (wefti_u64)group.ranks + (wefti_u64)source,
                         (wefti_u32)args.tables.rows_of_source[source]);
    }
    if (threadIdx.x == 0) {
        const wefti_u32 rows = (wefti_u32)args.tables.route_header->rows;
        ep_many_tell_one(told, told.rows, slot, told.with_dropped != 0 ? call->wanted : rows);
    }
    if (told.generation == 0) {
        return;
    }
    wefti_fence_acq_rel();
    __syncthreads();
    if (threadIdx.x == 0) {
        *told.counted = generation;
        wefti_st_release(&told.generation[slot], generation);
    }
}

#endif
