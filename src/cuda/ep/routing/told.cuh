/* cuda/ep/routing/told.cuh: the counts of a new routing, to arrays of the caller's, while the call still runs
 * (weft_ep_route_counts_to). One warp of a call does it: by expert before it sends records, by source once all choices
 * are posted. This runs once a call, so its instructions are in no cache, and each 128 bytes of them are waited for: it
 * is kept short rather than parallel, and the warp goes through it once before, while ranks meet, to have them. */
#ifndef WEFTI_CUDA_EP_ROUTING_TOLD_CUH
#define WEFTI_CUDA_EP_ROUTING_TOLD_CUH

#include "cuda/ep/routing/count.cuh"

EP_DEVICE bool ep_tells(const ep_dispatch &args)
{
    return args.told.tells != 0;
}

/* Element `at` of an array, if there is one. */
EP_DEVICE void ep_tell(const wefti_cuda_ep_told &told, void *array, wefti_u64 at, wefti_u64 count)
{
    const wefti_u32 value = count > 0x7fffffffu ? 0x7fffffffu : (wefti_u32)count;
    if (array != 0 && told.wide != 0) {
        ((wefti_i64 *)array)[at] = (wefti_i64)value;
    } else if (array != 0) {
        ((wefti_i32 *)array)[at] = (wefti_i32)value;
    }
}

/* The routing that is being told, from 1 on; 0: the arrays have one slot and no generation. */
EP_DEVICE wefti_u64 ep_told_generation(const wefti_cuda_ep_told &told)
{
    return told.generation != 0 ? *told.counted + 1 : 0;
}

/* A local expert: its rows, what they take with padding, and the first of them. A lane. */
EP_DEVICE void ep_tell_expert(const wefti_cuda_ep_told &told, wefti_u64 generation, int expert, wefti_u64 rows,
                              wefti_u64 aligned, wefti_u64 first)
{
    const wefti_u64 at = (generation & 1) * (wefti_u64)told.experts + (wefti_u64)expert;
    ep_tell(told, told.rows_of_expert, at, rows);
    ep_tell(told, told.rows_of_expert_aligned, at, aligned);
    ep_tell(told, told.offset_of_expert, at, first);
}

/* Where the caller wants what is told: nowhere in a rehearsal, whose arrays have one slot. */
EP_DEVICE wefti_cuda_ep_told ep_told_of(const ep_dispatch &args, bool is_rehearsal)
{
    wefti_cuda_ep_told told = args.told;
    if (is_rehearsal) {
        told.generation = told.counted = 0;
        told.rows = told.rows_of_expert = told.rows_of_expert_aligned = told.rows_of_source = told.offset_of_expert = 0;
    }
    return told;
}

/* The rest, when all experts are told. `of_source`: tokens from the lane's rank. A warp. */
EP_DEVICE_SLOW void ep_tell_end(const wefti_cuda_ep_told *told, int ranks, wefti_u64 generation, wefti_u64 rows,
                                wefti_u32 of_source)
{
    const wefti_u64 slot = generation & 1;
    if (ep_lane() == 0) {
        ep_tell(*told, told->rows, slot, rows);
    }
    if (ep_lane() < ranks) {
        ep_tell(*told, told->rows_of_source, slot * (wefti_u64)ranks + (wefti_u64)ep_lane(), of_source);
    }
    if (generation == 0) {
        return;
    }
    __syncwarp();
    if (ep_lane() == 0) {
        *told->counted = generation;
        wefti_st_release(&told->generation[slot], generation);
    }
}

/* Rows of a local expert, of all sources, whose packed words lie `pitch` from source to source; NULL: 0. A lane. False:
 * they did not come in time. */
EP_DEVICE bool ep_told_rows(const ep_group &group, const ep_call *call, const wefti_u64 *words, wefti_u32 pitch,
                            wefti_u32 *rows)
{
    bool well = true;
    *rows = 0;
#pragma unroll 1
    for (int base = 0; base < group.ranks; base += EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        const wefti_u32 alive = words != 0 ? call->alive >> base : 0;
        const wefti_u64 *first = words + (wefti_u64)base * pitch;
        well = ep_await_each(
                   group, group.ranks - base, call->tag, base, 1,
                   [&](int i) { return (alive >> i & 1) != 0 ? first + (wefti_u64)i * pitch : (const wefti_u64 *)0; },
                   counts) &&
               well;
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            *rows += counts[i]; /* 0 beyond the last rank */
        }
    }
    return well;
}

/* `of_source`: tokens from the lane's rank; `words`: packed, the rows of local expert i from source s at s * pitch + i,
 * of this call's tag. NULL: a rehearsal, which tells and waits for nothing. A warp. */
EP_DEVICE_SLOW void ep_tell_counts(const ep_dispatch *args, const ep_call *call, bool by_expert, wefti_u32 of_source,
                                   const wefti_u64 *words, wefti_u32 pitch)
{
    const ep_group &group = args->group;
    const wefti_cuda_ep_told told = ep_told_of(*args, words == 0);
    const wefti_u64 generation = ep_told_generation(told);
    const wefti_u32 slots = by_expert ? args->experts.slots : args->slots;
    const wefti_u32 alignment = args->experts.alignment;
    wefti_u64 first = 0; /* the row of the first expert of those that lanes look at */
    bool well = true;
#pragma unroll 1
    for (int base = 0; base < told.experts; base += 32) {
        const int expert = base + ep_lane();
        const bool is = expert < told.experts;
        wefti_u32 rows = 0; /* no more than there are choices */
        well = (!is || told.has_no_experts != 0 ||
                ep_told_rows(group, call, words == 0 ? words : words + expert, pitch, &rows)) &&
               well;
        const wefti_u32 aligned = !by_expert   ? rows
                                  : slots != 0 ? slots
                                               : (rows + alignment - 1) / alignment * alignment;
        const wefti_u32 lies = by_expert && is ? aligned : 0;
        const wefti_u32 behind = ep_scan(lies);
        if (is) {
            ep_tell_expert(told, generation, expert, rows, aligned, first + behind - lies);
        }
        first += __shfl_sync(~0u, behind, 31);
    }
    if (!__all_sync(~0u, well)) {
        return;
    }
    const wefti_u32 takes = __reduce_add_sync(~0u, ep_lane() >= group.ranks ? 0 : slots != 0 ? slots : of_source);
    const bool drops = group.drops != 0 && slots == 0 && told.with_dropped != 0; /* slots hold all */
    ep_tell_end(&told, group.ranks, generation, drops ? call->wanted : by_expert ? first : takes, of_source);
}

#endif
