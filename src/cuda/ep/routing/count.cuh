/* cuda/ep/routing/count.cuh: from the gate's choices to the places of tokens, in one pass over the ids.
 *
 * A block takes its share of the units and tells all blocks which of its tokens go to which rank, as bits. Each adds up
 * the bits of all units before its own, so the order of tokens is that of the sequential loop whatever the number of
 * blocks. */
#ifndef WEFTI_CUDA_EP_ROUTING_COUNT_CUH
#define WEFTI_CUDA_EP_ROUTING_COUNT_CUH

#include "cuda/ep/routing/header.cuh"

/* The id at index i: 0 .. experts - 1, else negative: -1 for none, -2 for one out of range. */
EP_DEVICE int ep_id(const ep_choices &choices, wefti_u64 i, int experts)
{
    if (choices.wide != 0) {
        wefti_i64 id = ((const wefti_i64 *)choices.ids)[i];
        return id >= 0 && id < experts ? (int)id : id == -1 ? -1 : -2;
    }
    int id = ((const wefti_i32 *)choices.ids)[i];
    return id >= 0 && id < experts ? id : id == -1 ? -1 : -2;
}

/* The rank of expert `id`, or -1: none, or a rank that takes no part. */
EP_DEVICE int ep_owner(const ep_group &group, wefti_u32 alive, int id)
{
    int rank = 0;
    while (rank + 1 < group.ranks && id >= group.first_expert[rank + 1]) {
        rank++;
    }
    return id >= 0 && (alive >> rank & 1) != 0 ? rank : -1;
}

/* Whether a choice of the same token before choice `k` is of the same expert. */
EP_DEVICE bool ep_is_again(const ep_choices &choices, wefti_u64 first, int k, int id, int experts)
{
    bool again = false;
    for (int before = 0; before < k; before++) {
        again = again || ep_id(choices, first + (wefti_u64)before, experts) == id;
    }
    return again;
}

/* [E + 1] words of shared memory, before ep_begin. The prologue warps. */
EP_DEVICE void ep_clear_partial(const ep_group &group, wefti_u32 *partial)
{
    const int experts = group.first_expert[group.ranks];
    for (int i = (int)threadIdx.x; i <= experts; i += ep_prologue_threads()) {
        partial[i] = 0;
    }
}

/* How often each expert is chosen in this block's units, into the route tables, where all blocks wait for it. All
 * threads. */
EP_DEVICE void ep_post_partial(const ep_group &group, const ep_call *call, const ep_tables &tables,
                               const wefti_u32 *partial)
{
    const int experts = group.first_expert[group.ranks];
    for (int i = (int)threadIdx.x; i <= experts; i += (int)blockDim.x) {
        wefti_st_relaxed(&tables.partials[(wefti_u64)blockIdx.x * (wefti_u64)(experts + 1) + (wefti_u64)i],
                         ep_packed(call->tag, partial[i]));
    }
}

/* This block's part of `bytes` bytes: on its way. The later prologue warps. */
EP_DEVICE void ep_prefetch_share(const void *from, wefti_u64 bytes)
{
    const wefti_u32 lines = (wefti_u32)((bytes + 127) / 128);
    const wefti_u32 each = lines / gridDim.x + 2; /* a share may begin and end within a line */
    const wefti_u32 first = lines / gridDim.x * blockIdx.x;
    for (wefti_u32 i = threadIdx.x - 256; i < each && first + i < lines; i += (wefti_u32)ep_prologue_threads() - 256) {
        wefti_prefetch((const unsigned char *)from + (wefti_u64)(first + i) * 128);
    }
}

/* What this block reads of the choices, about. The prologue warps. */
EP_DEVICE void ep_prefetch_choices(const ep_choices &choices, int topk)
{
    const wefti_u64 count = (wefti_u64)choices.tokens * (wefti_u64)topk;
    if (threadIdx.x >= 256 && count > 0) {
        ep_prefetch_share(choices.ids, count * (choices.wide != 0 ? 8 : 4));
        if (choices.weights != 0) {
            ep_prefetch_share(choices.weights, count * 4);
        }
    }
}

/* A choice: its rank, its token's bit among those of its unit that go there, and one more of its expert, those of a
 * token of the same expert once if `shared`. A thread. */
EP_DEVICE void ep_count_choice(const ep_group &group, const ep_call *call, const ep_tables &tables,
                               const ep_choices &choices, int topk, int at, int first_unit, bool shared,
                               wefti_u32 *bits, wefti_u32 *partial)
{
    const int experts = group.first_expert[group.ranks];
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int token = at / topk;
    const int id = ep_id(choices, (wefti_u64)at, experts);
    const int rank = ep_owner(group, call->alive, id);
    tables.owner[at] = (signed char)rank;
    if (rank >= 0) {
        atomicOr(&bits[(token / unit_tokens - first_unit) * group.ranks + rank], 1u << (token % unit_tokens));
    }
    if (id == -2 || (rank >= 0 && !(shared && ep_is_again(choices, (wefti_u64)token * (wefti_u64)topk,
                                                          at - token * topk, id, experts)))) {
        atomicAdd(&partial[id == -2 ? experts : id], 1u);
    }
}

/* This block's share of the units: their bits into the route tables, where all blocks wait for them, and how often each
 * expert is chosen into `partial`, which is cleared. A thread takes a choice. Bits are gathered where call headers will
 * be. All threads. */
EP_DEVICE void ep_count_share(const ep_group &group, ep_call *call, const ep_tables &tables, const ep_choices &choices,
                              int topk, bool shared, wefti_u32 *partial)
{
    enum { WORDS = sizeof call->headers / sizeof call->headers[0][0] };
    int first;
    int end;
    wefti_u32 *bits = &call->headers[0][0];
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int at_once = WORDS / group.ranks; /* units */
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    for (; first < end; first += at_once) {
        const int units = end - first < at_once ? end - first : at_once;
        const int left = call->tokens - first * unit_tokens;
        const int tokens = units * unit_tokens < left ? units * unit_tokens : left;
        for (int i = (int)threadIdx.x; i < units * group.ranks; i += (int)blockDim.x) {
            bits[i] = 0;
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < tokens * topk; i += (int)blockDim.x) {
            ep_count_choice(group, call, tables, choices, topk, first * unit_tokens * topk + i, first, shared, bits,
                            partial);
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < units * group.ranks; i += (int)blockDim.x) {
            wefti_st_relaxed(&tables.bits[first * group.ranks + i], ep_packed(call->tag, bits[i]));
        }
        __syncthreads();
    }
}

/* What all blocks counted of `i`, an expert or E. A warp. ~0: some block did not count in time. */
EP_DEVICE wefti_u32 ep_sum_partials(const ep_group &group, const ep_call *call, const ep_tables &tables, int i)
{
    wefti_u32 sum = 0;
    bool well = true;
    const int pitch = group.first_expert[group.ranks] + 1;
    for (int block = ep_lane(); block < (int)gridDim.x; block += 32 * EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        int left = ((int)gridDim.x - block + 31) / 32;
        well = well && ep_await_values(group, &tables.partials[(wefti_u64)block * (wefti_u64)pitch + (wefti_u64)i],
                                       32 * pitch, left, call->tag, counts);
#pragma unroll
        for (int j = 0; j < EP_AT_ONCE; j++) {
            sum += j < left ? counts[j] : 0;
        }
    }
    sum = __reduce_add_sync(~0u, sum);
    return __all_sync(~0u, well) ? sum : ~0u;
}

/* Tell the owners how often their experts are chosen: this block's share of the experts. `choices`: where, in an area;
 * so it is below. The warps from `skip` on. */
EP_DEVICE void ep_post_choices(const ep_group &group, const ep_call *call, const ep_tables &tables, wefti_u64 choices,
                               int skip)
{
    int experts = group.first_expert[group.ranks];
    int step = (ep_warps() - skip) * (int)gridDim.x;
    for (int expert = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x; expert < experts; expert += step) {
        wefti_u32 sum = ep_sum_partials(group, call, tables, expert);
        int owner = 0;
        while (expert >= group.first_expert[owner + 1]) {
            owner++;
        }
        if (ep_lane() == 0 && sum != ~0u && (call->alive >> owner & 1) != 0) {
            wefti_u64 *there = (wefti_u64 *)(group.area[owner] + choices) + (wefti_u64)group.rank * group.at.local_max +
                               (wefti_u64)(expert - group.first_expert[owner]);
            wefti_st_relaxed(there, ep_packed(call->tag, sum));
        }
    }
}

/* The first of this rank's experts. */
EP_DEVICE int ep_first_own(const ep_group &group)
{
    return group.first_expert[group.rank];
}

/* Where `source` says how often they are chosen. */
EP_DEVICE const wefti_u64 *ep_choices_from(const ep_group &group, wefti_u64 choices, int source)
{
    return (const wefti_u64 *)(group.area[group.rank] + choices) + (wefti_u64)source * group.at.local_max;
}

/* Hear how often this rank's experts are chosen: this block's share of them. The warps from `skip` on. */
EP_DEVICE void ep_wait_choices(const ep_group &group, const ep_call *call, const ep_tables &tables, wefti_u64 choices,
                               int skip)
{
    int local = group.first_expert[group.rank + 1] - group.first_expert[group.rank];
    int step = (ep_warps() - skip) * (int)gridDim.x;
    for (int expert = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x; expert < local; expert += step) {
        int source = ep_lane();
        wefti_u32 count = 0;
        if (source < group.ranks) {
            const wefti_u64 *here = ep_choices_from(group, choices, source) + expert;
            if ((call->alive >> source & 1) != 0) {
                (void)ep_await_value(group, here, call->tag, source, &count);
            }
            tables.rows_of_expert_source[expert * group.ranks + source] = (wefti_i32)count;
        }
        count = __reduce_add_sync(~0u, count);
        if (source == 0) {
            tables.rows_of_expert[expert] = (wefti_i32)count;
        }
    }
}

/* Add up the bits of all units into call->total and, of those before `first_unit`, into call->before. All threads; a
 * thread looks at one rank only. False: a block of this rank did not count in time. */
EP_DEVICE bool ep_gather(const ep_group &group, ep_call *call, const ep_tables &tables, int first_unit)
{
    const int count = wefti_cuda_ep_units(call->tokens) * group.ranks;
    const int threads = (int)blockDim.x / group.ranks * group.ranks;
    wefti_u32 total = 0;
    wefti_u32 before = 0;
    bool well = true;
    for (int i = (int)threadIdx.x; i < count && (int)threadIdx.x < threads; i += threads * EP_AT_ONCE) {
        wefti_u32 bits[EP_AT_ONCE];
        int left = (count - i + threads - 1) / threads;
        well = well && ep_await_values(group, &tables.bits[i], threads, left, call->tag, bits);
#pragma unroll
        for (int j = 0; j < EP_AT_ONCE; j++) {
            wefti_u32 tokens = j < left ? (wefti_u32)__popc(bits[j]) : 0;
            total += tokens;
            before += i + j * threads < first_unit * group.ranks ? tokens : 0;
        }
    }
    if (total != 0) {
        int rank = (int)threadIdx.x % group.ranks;
        atomicAdd(&call->total[rank], total);
        if (before != 0) {
            atomicAdd(&call->before[rank], before);
        }
    }
    if (!well) {
        call->failed = 1;
    }
    __syncthreads();
    return call->failed == 0;
}

/* Write down how many tokens went to each rank before each of the units first .. end - 1, this block's. A warp takes a
 * rank. */
EP_DEVICE void ep_write_before(const ep_group &group, const ep_call *call, const ep_tables &tables, int first, int end)
{
    for (int rank = ep_warp(); rank < group.ranks; rank += ep_warps()) {
        wefti_u32 run = call->before[rank];
        for (int base = first; base < end; base += 32) {
            int unit = base + ep_lane();
            wefti_u32 count =
                unit < end ? (wefti_u32)__popc((wefti_u32)wefti_ld_relaxed(&tables.bits[unit * group.ranks + rank]))
                           : 0;
            const wefti_u32 sum = ep_scan(count);
            if (unit < end) {
                tables.before[unit * group.ranks + rank] = run + sum - count;
            }
            run += __shfl_sync(~0u, sum, 31);
        }
    }
}

/* From the choices to call->total and call->before, each unit's bits and, if `posts`, each block's counts of experts.
 * `partial` is cleared. All threads. False: a block of this rank did not count in time. */
EP_DEVICE bool ep_count(const ep_group &group, ep_call *call, const ep_tables &tables, const ep_choices &choices,
                        int topk, bool shared, bool posts, wefti_u32 *partial)
{
    int first;
    int end;
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    ep_count_share(group, call, tables, choices, topk, shared, partial);
    if (posts) {
        ep_post_partial(group, call, tables, partial);
    }
    return ep_gather(group, call, tables, first);
}

/* The routing of the last update, for a call that makes none: before ep_begin, which it does not wait for. The prologue
 * warps, or all threads. */
EP_DEVICE void ep_recall(const ep_group &group, ep_call *call, const ep_tables &tables)
{
    const int i = (int)threadIdx.x - 32;
    if (i >= 0 && i < group.ranks) {
        call->total[i] = tables.sent[i];
        call->place[i] = tables.place[i];
        call->count[i] = (wefti_u32)tables.rows_of_source[i];
    }
    if (i >= 0 && i <= group.ranks) {
        call->from[i] = (wefti_u32)tables.offset_of_source[i];
    }
    if (i == 64) {
        call->route = tables.route_header->tag;
        call->route_status = tables.route_header->routed;
    }
}

/* There is no routing, some words of the last one being overwritten: calls on this route send and await nothing. A
 * warp. */
EP_DEVICE void ep_forget_routing(const ep_group &group, const ep_tables &tables)
{
    const int rank = ep_lane();
    if (rank < group.ranks) {
        tables.sent[rank] = 0;
        tables.rows_of_source[rank] = 0;
    }
    if (rank == 0) {
        tables.route_header->tokens = 0;
        tables.route_header->status = tables.route_header->routed = WEFT_ERR_MISMATCH;
        tables.route_header->tag = 0;
    }
}

/* Nothing comes from ranks that take no part. After ep_begin. All threads. */
EP_DEVICE void ep_forget_masked(const ep_group &group, ep_call *call)
{
    if (call->alive != (wefti_u32)((1ull << group.ranks) - 1)) {
        if (threadIdx.x < (unsigned)group.ranks && (call->alive >> threadIdx.x & 1) == 0) {
            call->count[threadIdx.x] = 0;
        }
        __syncthreads();
    }
}

/* Where a token goes. */
typedef struct ep_going {
    bool goes;
    wefti_u32 index; /* its number among those that go to that rank */
} ep_going;

EP_DEVICE ep_going ep_going_of(const ep_group &group, const ep_tables &tables, int token, int unit_tokens, int rank)
{
    int at = token / unit_tokens * group.ranks + rank;
    wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&tables.goes[at]);
    wefti_u32 bit = 1u << (token % unit_tokens);
    ep_going going;
    going.goes = (bits & bit) != 0;
    if (EP_BY_POSITION) {
        going.index = tables.target[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)rank];
    } else {
        going.index = tables.before[at] + (wefti_u32)__popc(bits & (bit - 1));
    }
    return going;
}

/* ---- weights ---- */

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
        args.tables.weights[(wefti_u64)token * (wefti_u64)group.ranks + (wefti_u64)pair] = sum;
    }
}

#endif
