/* cuda/ep/routing/told.cuh: the counts of a new routing, to arrays of the caller's, while the call still runs
 * (weft_ep_route_counts_to). One warp of a call does it, once it has posted what others wait for. */
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

/* Rows of a local expert, of all sources, whose packed words lie `pitch` from source to source. A lane. False: they did
 * not come in time. */
EP_DEVICE bool ep_told_rows(const ep_group &group, const ep_call *call, const wefti_u64 *words, wefti_u32 pitch,
                            wefti_u64 *rows)
{
    bool well = true;
    *rows = 0;
    for (int base = 0; base < group.ranks; base += EP_AT_ONCE) {
        wefti_u32 counts[EP_AT_ONCE];
        const wefti_u32 alive = call->alive >> base;
        const wefti_u64 *first = words + (wefti_u64)base * pitch;
        well = ep_await_each(
                   group, group.ranks - base, call->tag, base, 1,
                   [&](int i) { return (alive >> i & 1) != 0 ? first + (wefti_u64)i * pitch : (const wefti_u64 *)0; },
                   counts) &&
               well;
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            *rows += base + i < group.ranks ? counts[i] : 0;
        }
    }
    return well;
}

/* The sum of a number of each lane. */
EP_DEVICE wefti_u64 ep_sum_lanes(wefti_u64 number)
{
    for (int step = 16; step > 0; step /= 2) {
        number += __shfl_xor_sync(~0u, number, step);
    }
    return number;
}

/* The sum of the numbers of the lanes before. */
EP_DEVICE wefti_u64 ep_sum_before(wefti_u64 number)
{
    wefti_u64 sum = number;
    for (int step = 1; step < 32; step *= 2) {
        const wefti_u64 other = __shfl_up_sync(~0u, sum, step);
        sum += ep_lane() >= step ? other : 0;
    }
    return sum - number;
}

/* `of_source`: tokens from the lane's rank; `words`: packed, the rows of local expert i from source s at s * pitch + i,
 * of this call's tag. A warp. */
EP_DEVICE_SLOW void ep_tell_counts(const ep_dispatch *args, const ep_call *call, bool by_expert, wefti_u32 of_source,
                                   const wefti_u64 *words, wefti_u32 pitch)
{
    const ep_group &group = args->group;
    const wefti_cuda_ep_told &told = args->told;
    const wefti_u64 generation = told.generation != 0 ? *told.counted + 1 : 0;
    const wefti_u64 slot = generation & 1;
    wefti_u64 first = 0; /* the row of the first expert of those that lanes look at */
    wefti_u64 takes = by_expert          ? 0
                      : args->slots != 0 ? (wefti_u64)args->slots
                                         : of_source; /* of the lane's expert, or rank */
    takes = !by_expert && ep_lane() >= group.ranks ? 0 : takes;
    bool well = true;
    for (int base = 0; base < told.experts; base += 32) {
        const int expert = base + ep_lane();
        const bool is = expert < told.experts;
        wefti_u64 rows = 0;
        well = (!is || told.has_no_experts != 0 || ep_told_rows(group, call, words + expert, pitch, &rows)) && well;
        const wefti_u64 alignment = args->experts.alignment;
        const wefti_u64 aligned = !by_expert                 ? rows
                                  : args->experts.slots != 0 ? args->experts.slots
                                                             : (rows + alignment - 1) / alignment * alignment;
        const wefti_u64 lies = by_expert && is ? aligned : 0;
        const wefti_u64 before = ep_sum_before(lies);
        takes += lies;
        if (is) {
            const wefti_u64 at = slot * (wefti_u64)told.experts + (wefti_u64)expert;
            ep_tell(told, told.rows_of_expert, at, rows);
            ep_tell(told, told.rows_of_expert_aligned, at, aligned);
            ep_tell(told, told.offset_of_expert, at, first + before);
        }
        first += __shfl_sync(~0u, before + lies, 31);
    }
    if (!__all_sync(~0u, well)) {
        return;
    }
    const wefti_u64 all = ep_sum_lanes(takes);
    const bool drops = group.drops != 0 && args->slots == 0 && args->experts.slots == 0; /* slots hold all */
    if (ep_lane() == 0) {
        ep_tell(told, told.rows, slot, drops && told.with_dropped != 0 ? call->wanted : all);
    }
    if (ep_lane() < group.ranks) {
        ep_tell(told, told.rows_of_source, slot * (wefti_u64)group.ranks + (wefti_u64)ep_lane(), of_source);
    }
    if (told.generation == 0) {
        return;
    }
    wefti_fence_acq_rel();
    __syncwarp();
    if (ep_lane() == 0) {
        *told.counted = generation;
        wefti_st_release(&told.generation[slot], generation);
    }
}

#endif
