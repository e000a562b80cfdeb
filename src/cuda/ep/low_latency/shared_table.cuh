/* cuda/ep/low_latency/shared_table.cuh: all choices of a rank in the shared memory of each of its blocks: where every
 * token goes, at which place, and how often each expert is chosen. Of few tokens a block has that sooner from the ids
 * than from other blocks. */
#ifndef WEFTI_CUDA_EP_LOW_LATENCY_SHARED_TABLE_CUH
#define WEFTI_CUDA_EP_LOW_LATENCY_SHARED_TABLE_CUH

#include "cuda/ep/low_latency/low_latency.cuh"
#include "cuda/ep/routing/prefix.cuh"

typedef struct ep_shared_table {
    wefti_cuda_ep_shared_table at;
    wefti_u32 *words;
} ep_shared_table;

template <class LAYOUT> EP_DEVICE ep_shared_table ep_shared_table_of(const ep_dispatch &args, unsigned char *shared)
{
    const ep_group &group = args.group;
    ep_shared_table table;
    table.at = wefti_cuda_ep_shared_table_of((int)args.low_latency_slots, group.ranks, group.first_expert[group.ranks],
                                             LAYOUT::ROWS_OF_CHOICES);
    table.words = (wefti_u32 *)shared;
    return table;
}

EP_DEVICE wefti_u32 *ep_shared_table_ranks(const ep_shared_table &table, int rank)
{
    return table.words + table.at.ranks_at + (wefti_u32)rank * table.at.words;
}

EP_DEVICE wefti_u32 *ep_shared_table_before(const ep_shared_table &table, int rank)
{
    return table.words + table.at.before_at + (wefti_u32)rank * table.at.words;
}

EP_DEVICE wefti_u32 *ep_shared_table_expert(const ep_shared_table &table, int expert)
{
    return table.words + table.at.experts_at + (wefti_u32)expert * table.at.words;
}

/* Called by the prologue warps. */
EP_DEVICE void ep_shared_table_clear(const ep_shared_table &table)
{
    for (wefti_u32 i = threadIdx.x; i < table.at.end; i += (wefti_u32)ep_prologue_threads()) {
        table.words[i] = 0;
    }
}

/* The id of choice `i` of all, if there is one. */
EP_DEVICE int ep_shared_table_id(const ep_dispatch &args, int i, int count)
{
    return i < count ? ep_id(args.choices, (wefti_u64)i, args.group.first_expert[args.group.ranks]) : -1;
}

/* All that is read of the choices: on its way. The prologue warps. */
EP_DEVICE void ep_shared_table_prefetch(const ep_dispatch &args)
{
    const wefti_u32 count = (wefti_u32)(args.choices.tokens * args.topk);
    const unsigned char *ids = (const unsigned char *)args.choices.ids;
    const wefti_u32 bytes = count * (args.choices.wide != 0 ? 8 : 4);
    for (wefti_u32 at = threadIdx.x * 128; at < bytes; at += (wefti_u32)ep_prologue_threads() * 128) {
        wefti_prefetch(ids + at);
    }
    for (wefti_u32 at = threadIdx.x * 128; args.choices.weights != 0 && at < count * 4;
         at += (wefti_u32)ep_prologue_threads() * 128) {
        wefti_prefetch((const unsigned char *)args.choices.weights + at);
    }
}

/* The first choice that this thread writes down: the last warps come first, as those before them have rows to send. */
EP_DEVICE int ep_shared_table_start()
{
    return (int)(blockDim.x - 1 - threadIdx.x);
}

/* Its id, where T is known without a look. */
EP_DEVICE int ep_shared_table_first(const ep_dispatch &args)
{
    return ep_shared_table_id(args, ep_shared_table_start(),
                              args.choices.tokens_at == 0 ? args.choices.tokens * args.topk : 0);
}

/* Write the ids down; `id`: of ep_shared_table_first. All threads, once cleared. */
template <class LAYOUT>
EP_DEVICE void ep_shared_table_fill(const ep_dispatch &args, const ep_call *call, const ep_shared_table &table, int id)
{
    const ep_group &group = args.group;
    const int count = call->tokens * args.topk;
    if (args.choices.tokens_at != 0) {
        id = ep_shared_table_id(args, ep_shared_table_start(), count);
    }
    for (int i = ep_shared_table_start(); i < count; i += (int)blockDim.x) {
        const int next = ep_shared_table_id(args, i + (int)blockDim.x, count);
        const int rank = ep_owner(group, call->alive, id);
        const wefti_u32 token = (wefti_u32)(i / args.topk);
        if (rank >= 0) {
            atomicOr(&ep_shared_table_ranks(table, rank)[token / 32], 1u << (token % 32));
        }
        if (LAYOUT::ROWS_OF_CHOICES && rank >= 0) {
            atomicOr(&ep_shared_table_expert(table, id)[token / 32], 1u << (token % 32));
        } else if (rank >= 0) {
            atomicAdd(&table.words[table.at.choices_at + (wefti_u32)id], 1u);
        }
        if (id == -2) {
            atomicAdd(&table.words[table.at.choices_at + (wefti_u32)group.first_expert[group.ranks]], 1u);
        }
        id = next;
    }
}

/* Tokens before each word's, and all, into call->total. All threads, once all ids are written down. */
EP_DEVICE void ep_shared_table_add_up(const ep_group &group, ep_call *call, const ep_shared_table &table)
{
    for (int rank = ep_warp(); rank < group.ranks; rank += ep_warps()) {
        wefti_u32 run = 0;
        for (int base = 0; base < (int)table.at.words; base += 32) {
            const int word = base + ep_lane();
            const bool is = word < (int)table.at.words;
            const wefti_u32 count = is ? (wefti_u32)__popc(ep_shared_table_ranks(table, rank)[word]) : 0;
            const wefti_u32 sum = ep_scan(count);
            if (is) {
                ep_shared_table_before(table, rank)[word] = run + sum - count;
            }
            run += __shfl_sync(~0u, sum, 31);
        }
        if (ep_lane() == 0) {
            call->total[rank] = run;
        }
    }
    __syncthreads();
}

EP_DEVICE ep_going ep_shared_table_going(const ep_shared_table &table, int token, int rank)
{
    const wefti_u32 bits = ep_shared_table_ranks(table, rank)[token / 32];
    const wefti_u32 bit = 1u << (token % 32);
    ep_going going;
    going.goes = (bits & bit) != 0;
    going.index = ep_shared_table_before(table, rank)[token / 32] + (wefti_u32)__popc(bits & (bit - 1));
    return going;
}

/* How many tokens before `token` have chosen `expert`; of all tokens with `token` behind the last. */
EP_DEVICE wefti_u32 ep_shared_table_number(const ep_shared_table &table, int expert, int token)
{
    const wefti_u32 *words = ep_shared_table_expert(table, expert);
    wefti_u32 number = 0;
#pragma unroll 1
    for (int word = 0; word < token / 32; word++) {
        number += (wefti_u32)__popc(words[word]);
    }
    return token % 32 != 0 ? number + (wefti_u32)__popc(words[token / 32] & ((1u << (token % 32)) - 1)) : number;
}

/* The rows of this rank of each expert: to its owner, by expert to all ranks, which place rows by them. The warps that
 * do not send. */
template <class LAYOUT>
EP_DEVICE void ep_shared_table_post_counts(const ep_dispatch &args, const ep_call *call, const ep_shared_table &table)
{
    const ep_warp_group threads = ep_receiver_threads(args.blocks.sender_warps);
    const ep_group &group = args.group;
    const int experts = group.first_expert[group.ranks];
    const int readers = LAYOUT::ROWS_OF_CHOICES ? group.ranks : 1;
    for (int i = threads.number; i < experts * readers; i += threads.count) {
        const int expert = i / readers;
        const int reader = LAYOUT::ROWS_OF_CHOICES ? i % readers : ep_owner(group, ~0u, expert);
        const wefti_u32 count = LAYOUT::ROWS_OF_CHOICES
                                    ? ep_shared_table_number(table, expert, (int)table.at.words * 32)
                                    : table.words[table.at.choices_at + (wefti_u32)expert];
        if ((call->alive >> reader & 1) != 0) {
            wefti_st_relaxed(ep_counts(group, call, reader, group.rank) + expert, ep_packed(call->tag, count));
        }
    }
}

/* The owner of each choice and, by expert, the number of its row among this rank's rows of its expert. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_keep_choices(const ep_dispatch &args, const ep_call *call, const ep_shared_table &table, int token)
{
    for (int k = ep_lane(); k < args.topk; k += 32) {
        const int at = token * args.topk + k;
        const int id = ep_shared_table_id(args, at, at + 1);
        const int owner = ep_owner(args.group, call->alive, id);
        args.tables.owner[at] = (signed char)owner;
        if (LAYOUT::ROWS_OF_CHOICES) {
            args.tables.rows[at] = owner >= 0 ? ep_shared_table_number(table, id, token) : WEFTI_CUDA_EP_NO_ROW;
        }
    }
}

/* Whether this warp writes what there is once of a call. */
EP_DEVICE bool ep_writes_route_header(const ep_dispatch &args)
{
    return blockIdx.x == 0 && ep_warp() == args.blocks.sender_warps - 1;
}

/* What calls on this route are to find of it. The warps that send. */
template <class LAYOUT>
EP_DEVICE void ep_shared_table_write_route(const ep_dispatch &args, const ep_call *call, const ep_shared_table &table)
{
    const ep_warp_group warps = ep_idle_sender_warps(args.blocks.sender_warps);
    const ep_group &group = args.group;
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int pairs = wefti_cuda_ep_units(call->tokens) * group.ranks;
    for (int i = warps.number * 32 + ep_lane(); i < pairs; i += warps.count * 32) {
        const int rank = i % group.ranks;
        const int token = i / group.ranks * unit_tokens;
        const wefti_u32 here = ep_shared_table_ranks(table, rank)[token / 32] >> (token % 32);
        const wefti_u64 bits = ep_packed(call->tag, here & (~0u >> (32 - unit_tokens)));
        wefti_st_relaxed(&args.tables.bits[i], bits);
        if (group.drops != 0) {
            wefti_st_relaxed(&args.tables.goes[i], bits);
        }
        args.tables.before[i] = ep_shared_table_going(table, token, rank).index;
    }
    for (int token = warps.number; token < call->tokens; token += warps.count) {
        ep_keep_choices<LAYOUT>(args, call, table, token);
        if (!LAYOUT::ROWS_OF_CHOICES) {
            ep_write_weights(args, call, token, 1);
        }
    }
    const int rank = ep_lane();
    if (!ep_writes_route_header(args)) {
        return;
    }
    if (rank < group.ranks) {
        args.tables.sent[rank] = call->total[rank];
    }
    if (rank == 0) {
        const wefti_u32 dropped = table.words[table.at.choices_at + (wefti_u32)group.first_expert[group.ranks]];
        wefti_cuda_ep_route_header *route_header = args.tables.route_header;
        route_header->tokens = call->tokens;
        route_header->dropped = (wefti_i32)dropped;
        route_header->dropped_rows = 0;
        route_header->routed = dropped != 0 || call->odd_tokens ? WEFT_ERR_RANGE : WEFT_OK;
        route_header->status = route_header->routed;
    }
}

#endif
