/* cuda/ep/choose.cuh: from the gate's choices to the places of tokens, in one pass over the ids.
 *
 * A warp takes a unit and tells all blocks which of its tokens go to which rank, as bits. Each block adds up the bits of
 * all units before its own, so the order of tokens is that of the sequential loop whatever the number of blocks. */
#ifndef WEFTI_CUDA_EP_CHOOSE_CUH
#define WEFTI_CUDA_EP_CHOOSE_CUH

#include "cuda/ep/meet.cuh"

typedef wefti_cuda_ep_choices ep_choices;
typedef wefti_cuda_ep_sheet ep_sheet;

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

/* The ranks of a token's experts, as bits; its choices are added to `part`, those of the same expert once if `shared`. */
EP_DEVICE wefti_u32 ep_ranks_of(const ep_group &group, const ep_call *call, const ep_choices &choices, int token,
                                int topk, bool shared, wefti_u32 *part)
{
    wefti_u32 ranks = 0;
    const int experts = group.first_expert[group.ranks];
    const wefti_u64 first = (wefti_u64)token * (wefti_u64)topk;
    for (int base = 0; base < topk; base += EP_AT_ONCE) {
        int ids[EP_AT_ONCE];
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            ids[i] = base + i < topk ? ep_id(choices, first + (wefti_u64)(base + i), experts) : -1;
        }
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            int rank = ep_owner(group, call->alive, ids[i]);
            ranks |= rank >= 0 ? 1u << rank : 0;
            bool counts = rank >= 0 && !(shared && ep_is_again(choices, first, base + i, ids[i], experts));
            if (counts || ids[i] == -2) {
                atomicAdd(&part[rank >= 0 ? ids[i] : experts], 1u);
            }
        }
    }
    return ranks;
}

/* This block's share of the units: their bits, and, if it tells, how often each expert is chosen, into the sheet, where all
 * blocks wait for them. `part`: [E + 1] words of shared memory. All threads. */
EP_DEVICE void ep_count(const ep_group &group, const ep_call *call, const ep_sheet &sheet, const ep_choices &choices,
                        int topk, bool shared, bool tells, wefti_u32 *part)
{
    int first;
    int end;
    const int experts = group.first_expert[group.ranks];
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    for (int i = (int)threadIdx.x; i <= experts; i += (int)blockDim.x) {
        part[i] = 0;
    }
    __syncthreads();
    ep_share(wefti_cuda_ep_units(call->tokens), &first, &end);
    for (int unit = first + ep_warp(); unit < end; unit += ep_warps()) {
        int token = unit * unit_tokens + ep_lane();
        wefti_u32 ranks = ep_lane() < unit_tokens && token < call->tokens
                              ? ep_ranks_of(group, call, choices, token, topk, shared, part)
                              : 0;
        wefti_u32 mine = 0;
        for (int rank = 0; rank < group.ranks; rank++) {
            wefti_u32 bits = __ballot_sync(~0u, (ranks >> rank & 1) != 0);
            mine = ep_lane() == rank ? bits : mine;
        }
        if (ep_lane() < group.ranks) {
            wefti_st_relaxed(&sheet.bits[unit * group.ranks + ep_lane()], ep_packed(call->tag, mine));
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i <= experts && tells; i += (int)blockDim.x) {
        wefti_st_relaxed(&sheet.parts[(wefti_u64)blockIdx.x * (wefti_u64)(experts + 1) + (wefti_u64)i],
                         ep_packed(call->tag, part[i]));
    }
}

/* What all blocks counted of `i`, an expert or E. A warp. ~0: some block did not count in time. */
EP_DEVICE wefti_u32 ep_sum_parts(const ep_group &group, const ep_call *call, const ep_sheet &sheet, int i)
{
    wefti_u32 sum = 0;
    bool well = true;
    const int pitch = group.first_expert[group.ranks] + 1;
    for (int block = ep_lane(); block < (int)gridDim.x; block += 32 * EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        int left = ((int)gridDim.x - block + 31) / 32;
        well = well && ep_await_values(group, &sheet.parts[(wefti_u64)block * (wefti_u64)pitch + (wefti_u64)i],
                                       32 * pitch, left, call->tag, counts);
#pragma unroll
        for (int j = 0; j < EP_AT_ONCE; j++) {
            sum += j < left ? counts[j] : 0;
        }
    }
    sum = __reduce_add_sync(~0u, sum);
    return __all_sync(~0u, well) ? sum : ~0u;
}

/* Tell the owners how often their experts are chosen: this block's share of the experts. The warps from `skip` on. */
EP_DEVICE void ep_tell_choices(const ep_group &group, const ep_call *call, const ep_sheet &sheet, int skip)
{
    int experts = group.first_expert[group.ranks];
    int step = (ep_warps() - skip) * (int)gridDim.x;
    for (int expert = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x; expert < experts; expert += step) {
        wefti_u32 sum = ep_sum_parts(group, call, sheet, expert);
        int owner = 0;
        while (expert >= group.first_expert[owner + 1]) {
            owner++;
        }
        if (ep_lane() == 0 && sum != ~0u && (call->alive >> owner & 1) != 0) {
            wefti_u64 *there = (wefti_u64 *)(group.area[owner] + group.at.choices) +
                               (wefti_u64)group.rank * group.at.local_max +
                               (wefti_u64)(expert - group.first_expert[owner]);
            wefti_st_relaxed(there, ep_packed(call->tag, sum));
        }
    }
}

/* Hear how often this rank's experts are chosen: this block's share of them. The warps from `skip` on. */
EP_DEVICE void ep_hear_choices(const ep_group &group, const ep_call *call, const ep_sheet &sheet, int skip)
{
    int local = group.first_expert[group.rank + 1] - group.first_expert[group.rank];
    int step = (ep_warps() - skip) * (int)gridDim.x;
    for (int expert = (ep_warp() - skip) * (int)gridDim.x + (int)blockIdx.x; expert < local; expert += step) {
        int source = ep_lane();
        wefti_u32 count = 0;
        if (source < group.ranks) {
            const wefti_u64 *here = (const wefti_u64 *)(group.area[group.rank] + group.at.choices) +
                                    (wefti_u64)source * group.at.local_max + (wefti_u64)expert;
            if ((call->alive >> source & 1) != 0) {
                (void)ep_await_value(group, here, call->tag, source, &count);
            }
            sheet.rows_of_expert_source[expert * group.ranks + source] = (wefti_i32)count;
        }
        count = __reduce_add_sync(~0u, count);
        if (source == 0) {
            sheet.rows_of_expert[expert] = (wefti_i32)count;
        }
    }
}

/* Add up the bits of all units into call->total and, of those before `first_unit`, into call->before. All threads; a
 * thread looks at one rank only. False: a block of this rank did not count in time. */
EP_DEVICE bool ep_gather(const ep_group &group, ep_call *call, const ep_sheet &sheet, int first_unit)
{
    const int count = wefti_cuda_ep_units(call->tokens) * group.ranks;
    const int threads = (int)blockDim.x / group.ranks * group.ranks;
    wefti_u32 total = 0;
    wefti_u32 before = 0;
    bool well = true;
    for (int i = (int)threadIdx.x; i < count && (int)threadIdx.x < threads; i += threads * EP_AT_ONCE) {
        wefti_u32 bits[EP_AT_ONCE];
        int left = (count - i + threads - 1) / threads;
        well = well && ep_await_values(group, &sheet.bits[i], threads, left, call->tag, bits);
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
EP_DEVICE void ep_write_before(const ep_group &group, const ep_call *call, const ep_sheet &sheet, int first, int end)
{
    for (int rank = ep_warp(); rank < group.ranks; rank += ep_warps()) {
        wefti_u32 run = call->before[rank];
        for (int base = first; base < end; base += 32) {
            int unit = base + ep_lane();
            wefti_u32 count =
                unit < end ? (wefti_u32)__popc((wefti_u32)wefti_ld_relaxed(&sheet.bits[unit * group.ranks + rank])) : 0;
            wefti_u32 sum = count;
            for (int step = 1; step < 32; step *= 2) {
                wefti_u32 below = __shfl_up_sync(~0u, sum, (unsigned)step);
                sum += ep_lane() >= step ? below : 0;
            }
            if (unit < end) {
                sheet.before[unit * group.ranks + rank] = run + sum - count;
            }
            run += __shfl_sync(~0u, sum, 31);
        }
    }
}

/* The routing of the last update, for a call that makes none. */
EP_DEVICE void ep_recall(const ep_group &group, ep_call *call, const ep_sheet &sheet)
{
    int i = (int)threadIdx.x;
    if (i < group.ranks) {
        call->total[i] = sheet.sent[i];
        call->place[i] = sheet.place[i];
        call->count[i] = (call->alive >> i & 1) != 0 ? (wefti_u32)sheet.rows_of_source[i] : 0;
    }
    if (i <= group.ranks) {
        call->from[i] = (wefti_u32)sheet.offset_of_source[i];
    }
    if (i == 64) {
        call->route = sheet.facts->epoch;
        call->route_status = sheet.facts->routed;
    }
    __syncthreads();
}

/* Where a token goes. */
typedef struct ep_going {
    bool goes;
    wefti_u32 index; /* its number among those that go to that rank */
} ep_going;

EP_DEVICE ep_going ep_going_of(const ep_group &group, const ep_sheet &sheet, int token, int unit_tokens, int rank)
{
    int at = token / unit_tokens * group.ranks + rank;
    wefti_u32 bits = (wefti_u32)wefti_ld_relaxed(&sheet.goes[at]);
    wefti_u32 bit = 1u << (token % unit_tokens);
    ep_going going;
    going.goes = (bits & bit) != 0;
    going.index = sheet.before[at] + (wefti_u32)__popc(bits & (bit - 1));
    return going;
}

#endif
