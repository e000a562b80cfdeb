/* cuda/ep/halves.cuh: a dispatch or combine in two launches, between which nothing of it runs.
 *
 * send says this rank's line and waits for no other rank; recv hears the others' and does the rest. Of slot layouts rows,
 * and what is told of them, leave with send, to where `early` (shape.h) has room for them by the parity of the epoch: their
 * place needs no counts, and that it is free needs no word. Then recv waits for no rank's recv, only for their sends. Of
 * other layouts a row's place depends on all lines, so that rows leave with recv.
 *
 * A half works on a copy of its arguments, in which the offsets of the area are those of what it uses. */
#ifndef WEFTI_CUDA_EP_HALVES_CUH
#define WEFTI_CUDA_EP_HALVES_CUH

#include "cuda/ep/combine.cuh"
#include "cuda/ep/dispatch.cuh"

/* What the threads of a half's block share. */
template <class ARGS> struct ep_half {
    ep_call call;
    ARGS args;
};

/* Take the arguments over, with the parts of the area that this epoch uses. All threads. */
template <class ARGS> EP_DEVICE void ep_take_args(ep_half<ARGS> *half, const ARGS &given)
{
    const wefti_u32 *from = (const wefti_u32 *)&given;
    wefti_u32 *to = (wefti_u32 *)&half->args;
    for (unsigned i = threadIdx.x; i < sizeof(ARGS) / 4; i += blockDim.x) {
        to[i] = from[i];
    }
    __syncthreads();
    if (threadIdx.x == 0 && given.early_slots != 0) {
        const wefti_cuda_ep_early &early = given.group.at.early[half->call.epoch & 1];
        wefti_cuda_ep_layout &at = half->args.group.at;
        at.told = early.told;
        at.moved = early.moved;
        at.choices = early.choices;
        at.records = early.records;
        at.scales = early.scales;
        at.rows = early.rows;
    }
    __syncthreads();
}

/* The first half begins: as every call. False: the group has failed. All threads. */
template <class ARGS> EP_DEVICE bool ep_begin_send(ep_half<ARGS> *half, const ARGS &given)
{
    if (!ep_begin(given.group, &half->call)) {
        return false;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        ep_own(given.group)->half_epoch = half->call.epoch;
    }
    ep_take_args(half, given);
    return true;
}

/* The second goes on. */
template <class ARGS> EP_DEVICE bool ep_begin_recv(ep_half<ARGS> *half, const ARGS &given)
{
    ep_call *call = &half->call;
    if (threadIdx.x == 0) {
        wefti_cuda_ep_own *own = ep_own(given.group);
        ep_begin_at(given.group, call, own->half_epoch);
    }
    ep_clear_totals(call);
    __syncthreads();
    if (call->failed != 0) {
        return false;
    }
    ep_take_args(half, given);
    return true;
}

/* Where what leaves early goes: behind what the ranks before this one put there. By a thread a rank. */
template <class ARGS> EP_DEVICE void ep_aim_early(const ARGS &args, ep_call *call, wefti_u32 place)
{
    const ep_group &group = args.group;
    const int rank = (int)threadIdx.x;
    if (rank < group.ranks) {
        call->to[rank] = group.area[rank] + group.at.rows;
        call->pitch[rank] = args.row_bytes;
        call->place[rank] = place;
    }
}

/* ---- dispatch ---- */

/* By expert: the number of each choice's row among this rank's rows of its expert. All threads. False: a block did not
 * count in time. */
EP_DEVICE bool ep_number_early(const ep_dispatch &args, ep_call *call, unsigned char *shared, int first_unit,
                               int end_unit)
{
    const int unit_tokens = wefti_cuda_ep_unit(call->tokens);
    const int end = end_unit * unit_tokens < call->tokens ? end_unit * unit_tokens : call->tokens;
    wefti_u32 *starts = (wefti_u32 *)(shared + args.experts.starts_at);
    ep_find_starts<false>(args, call, starts);
    __syncthreads();
    if (call->failed != 0) {
        return false;
    }
    if (ep_warp() == ep_warps() - 1) {
        ep_number_rows(args, call, first_unit * unit_tokens, end, starts);
    }
    __syncthreads();
    return true;
}

/* Rows, records, scales and counts of slot layouts, to everybody. All threads. */
template <bool BY_EXPERT, ep_way WAY>
EP_DEVICE void ep_send_early(const ep_dispatch &args, ep_call *call, unsigned char *shared, int first_unit,
                             int end_unit)
{
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    ep_aim_early(args, call, (wefti_u32)group.rank * args.early_slots);
    if (threadIdx.x == 0) {
        call->lands = ~0u;
    }
    __syncthreads();
    if (fresh && group.drops != 0) {
        ep_keep_bits(args, call, first_unit, end_unit); /* all: slots have room for them */
    }
    if (BY_EXPERT && fresh && !ep_number_early(args, call, shared, first_unit, end_unit)) {
        return;
    }
    if (ep_warp() < args.blocks.movers) {
        ep_mover mover = ep_mover_open<WAY == EP_QUANTISED>(args, call, shared);
        ep_mover_run<BY_EXPERT, WAY == EP_QUANTISED>(args, call, &mover);
        return;
    }
    if (ep_tells(args)) {
        ep_tell<BY_EXPERT>(args, call);
    }
    if (fresh && !BY_EXPERT) {
        ep_tell_choices(group, call, args.sheet, args.blocks.movers);
    }
}

template <bool BY_EXPERT, ep_way WAY> EP_DEVICE void ep_dispatch_send(const ep_dispatch &given)
{
    EP_SHARED(ep_half<ep_dispatch>, half);
    EP_DYNAMIC_SHARED(shared);
    ep_call *call = &half.call;
    const ep_dispatch &args = half.args;
    const ep_group &group = args.group;
    const bool fresh = ep_is(given, WEFTI_CUDA_EP_FRESH);
    const bool speaks = blockIdx.x == 0 && ep_warp() < 2;
    if (threadIdx.x == 0) {
        call->tokens = ep_tokens_of_call(given, call);
    }
    if (speaks) {
        wefti_fence_acq_rel();
    }
    if (!ep_begin_send(&half, given)) {
        return;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call->tokens), &first_unit, &end_unit);
    if (fresh) {
        ep_count(group, call, args.sheet, args.choices, args.topk, BY_EXPERT && args.experts.slots != 0,
                 BY_EXPERT || group.drops == 0 || args.early_slots != 0, (wefti_u32 *)shared);
        if (!ep_gather(group, call, args.sheet, first_unit)) {
            return;
        }
    } else {
        ep_recall(group, call, args.sheet);
    }
    if (speaks) {
        ep_say(group, call, ep_dispatch_saying<BY_EXPERT>(args, call), (int)threadIdx.x, 64);
    }
    if (fresh) {
        ep_write_before(group, call, args.sheet, first_unit, end_unit);
    }
    if (BY_EXPERT && fresh) {
        ep_tell_counts(args, call);
    }
    if (args.early_slots != 0 && (fresh || call->route_status != WEFT_ERR_OVERFLOW)) {
        __syncthreads();
        ep_send_early<BY_EXPERT, WAY>(args, call, shared, first_unit, end_unit);
    }
}

template <bool BY_EXPERT, ep_way WAY> EP_DEVICE void ep_dispatch_recv(const ep_dispatch &given)
{
    EP_SHARED(ep_half<ep_dispatch>, half);
    EP_DYNAMIC_SHARED(shared);
    ep_call *call = &half.call;
    const ep_dispatch &args = half.args;
    const bool fresh = ep_is(given, WEFTI_CUDA_EP_FRESH);
    if (threadIdx.x == 0) {
        call->tokens = ep_tokens_of_call(given, call);
    }
    if (!ep_begin_recv(&half, given)) {
        return;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call->tokens), &first_unit, &end_unit);
    if (fresh && !ep_gather(args.group, call, args.sheet, first_unit)) {
        return;
    }
    if (!fresh) {
        ep_recall(args.group, call, args.sheet);
    }
    const bool moves = ep_warp() < args.blocks.movers;
    ep_mover mover;
    if (moves) {
        mover = ep_mover_open<WAY == EP_QUANTISED>(args, call, shared);
    }
    ep_finish_dispatch<BY_EXPERT, WAY, true>(args, call, ep_dispatch_saying<BY_EXPERT>(args, call), &mover, moves,
                                             shared, first_unit, end_unit);
}

/* ---- combine ---- */

template <bool BY_EXPERT> EP_DEVICE void ep_combine_send(const ep_combine &given)
{
    EP_SHARED(ep_half<ep_combine>, half);
    EP_DYNAMIC_SHARED(shared);
    ep_call *call = &half.call;
    const ep_combine &args = half.args;
    const bool speaks = blockIdx.x == 0 && ep_warp() < 2;
    if (threadIdx.x == 0) {
        call->tokens = given.sheet.facts->tokens;
    }
    if (speaks) {
        wefti_fence_acq_rel();
    }
    if (!ep_begin_send(&half, given)) {
        return;
    }
    ep_recall(args.group, call, args.sheet);
    if (speaks) {
        ep_say(args.group, call, ep_combine_saying(args, call), (int)threadIdx.x, 64);
    }
    if (args.early_slots == 0 || call->route_status == WEFT_ERR_OVERFLOW) {
        return;
    }
    ep_aim_early(args, call, 0);
    if ((int)threadIdx.x < args.group.ranks) {
        call->to[threadIdx.x] += (wefti_u64)args.group.rank * args.early_slots * args.row_bytes;
    }
    __syncthreads();
    if (ep_warp() < args.blocks.movers) {
        ep_push_all<BY_EXPERT, false>(args, call, shared);
    }
}

template <bool BY_EXPERT> EP_DEVICE void ep_combine_recv(const ep_combine &given)
{
    EP_SHARED(ep_half<ep_combine>, half);
    EP_DYNAMIC_SHARED(shared);
    ep_call *call = &half.call;
    const ep_combine &args = half.args;
    if (threadIdx.x == 0) {
        call->tokens = given.sheet.facts->tokens;
    }
    if (!ep_begin_recv(&half, given)) {
        return;
    }
    ep_recall(args.group, call, args.sheet);
    ep_finish_combine<BY_EXPERT, false, true>(args, call, ep_combine_saying(args, call), shared);
}

#define EP_HALF(NAME, ARGS, ...)                                                                                       \
    extern "C" __global__ void __launch_bounds__(512, 1) wefti_cuda_ep_##NAME(const __grid_constant__ ARGS args)       \
    {                                                                                                                  \
        __VA_ARGS__(args);                                                                                             \
    }
EP_HALF(dispatch_send, ep_dispatch, ep_dispatch_send<false, EP_AS_THEY_ARE>)
EP_HALF(dispatch_recv, ep_dispatch, ep_dispatch_recv<false, EP_AS_THEY_ARE>)
EP_HALF(dispatch_quantised_send, ep_dispatch, ep_dispatch_send<false, EP_QUANTISED>)
EP_HALF(dispatch_quantised_recv, ep_dispatch, ep_dispatch_recv<false, EP_QUANTISED>)
EP_HALF(dispatch_expert_send, ep_dispatch, ep_dispatch_send<true, EP_AS_THEY_ARE>)
EP_HALF(dispatch_expert_recv, ep_dispatch, ep_dispatch_recv<true, EP_AS_THEY_ARE>)
EP_HALF(dispatch_expert_quantised_send, ep_dispatch, ep_dispatch_send<true, EP_QUANTISED>)
EP_HALF(dispatch_expert_quantised_recv, ep_dispatch, ep_dispatch_recv<true, EP_QUANTISED>)
EP_HALF(combine_send, ep_combine, ep_combine_send<false>)
EP_HALF(combine_recv, ep_combine, ep_combine_recv<false>)
EP_HALF(combine_expert_send, ep_combine, ep_combine_send<true>)
EP_HALF(combine_expert_recv, ep_combine, ep_combine_recv<true>)
#undef EP_HALF

#endif
