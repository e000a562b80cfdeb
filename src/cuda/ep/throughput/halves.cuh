/* cuda/ep/throughput/halves.cuh: a dispatch or combine in two launches, between which nothing of it runs.
 *
 * send posts this rank's call header and waits for no other rank; recv waits for the others' and does the rest, since a
 * row's place depends on all of them. Rows of slot layouts leave with send, as low_latency/low_latency.cuh says. */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_HALVES_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_HALVES_CUH

#include "cuda/ep/throughput/combine.cuh"
#include "cuda/ep/throughput/dispatch.cuh"

template <bool BY_EXPERT> EP_DEVICE void ep_dispatch_send(const ep_dispatch &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(shared);
    const ep_group &group = args.group;
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (ep_posts_header()) {
        wefti_fence_acq_rel();
    } else if (ep_in_prologue()) {
        ep_look_up(group, &call);
        ep_open(args, &call, shared);
    }
    if (!ep_begin_send(group, &call)) {
        return;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call.tokens), &first_unit, &end_unit);
    if (!ep_find_totals<BY_EXPERT>(args, &call, shared)) {
        return;
    }
    if (ep_posts_header()) {
        ep_post_header(group, &call, ep_dispatch_header<BY_EXPERT>(args, &call));
    }
    if (fresh) {
        ep_write_before(group, &call, args.tables, first_unit, end_unit);
    }
    if (BY_EXPERT && fresh) {
        ep_post_counts(args, &call);
    }
}

template <bool BY_EXPERT, ep_way WAY> EP_DEVICE void ep_dispatch_recv(const ep_dispatch &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(shared);
    const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
    if (ep_in_prologue()) {
        ep_open(args, &call, shared);
    }
    if (!ep_begin_recv(args.group, &call)) {
        return;
    }
    int first_unit;
    int end_unit;
    ep_share(wefti_cuda_ep_units(call.tokens), &first_unit, &end_unit);
    if (fresh && !ep_gather(args.group, &call, args.tables, first_unit)) {
        return;
    }
    if (!fresh) {
        ep_forget_masked(args.group, &call);
    }
    const bool moves = ep_warp() < args.blocks.sender_warps;
    ep_sender sender;
    if (moves) {
        sender = ep_sender_open<WAY == EP_QUANTISED>(args, &call, shared);
    }
    ep_finish_dispatch<BY_EXPERT, WAY>(args, &call, ep_dispatch_header<BY_EXPERT>(args, &call), &sender, moves, shared,
                                       first_unit, end_unit);
}

EP_DEVICE void ep_combine_send(const ep_combine &args)
{
    EP_SHARED(ep_call, call);
    if (ep_posts_header()) {
        wefti_fence_acq_rel();
    } else if (ep_in_prologue()) {
        ep_look_up(args.group, &call);
        ep_combine_open(args, &call);
    }
    if (!ep_begin_send(args.group, &call)) {
        return;
    }
    if (ep_posts_header()) {
        ep_post_header(args.group, &call, ep_combine_header(args, &call));
    }
}

template <bool BY_EXPERT, ep_kind KIND> EP_DEVICE void ep_combine_recv(const ep_combine &args)
{
    EP_SHARED(ep_call, call);
    EP_DYNAMIC_SHARED(shared);
    if (ep_in_prologue()) {
        ep_combine_open(args, &call);
    }
    if (!ep_begin_recv(args.group, &call)) {
        return;
    }
    ep_forget_masked(args.group, &call);
    ep_finish_combine<BY_EXPERT, KIND>(args, &call, ep_combine_header(args, &call), shared);
}

#define EP_HALF(NAME, VARIANT, ARGS, ...)                                                                              \
    extern "C" __global__ void __launch_bounds__(512, 1)                                                               \
        EP_KERNEL_NAME(NAME, VARIANT)(const __grid_constant__ ARGS args)                                               \
    {                                                                                                                  \
        __VA_ARGS__(args);                                                                                             \
    }
EP_HALF(15dispatch_kernel, C2, ep_dispatch, ep_dispatch_send<false>)
EP_HALF(25dispatch_kernel_quantised, C2, ep_dispatch, ep_dispatch_send<false>)
EP_HALF(15dispatch_kernel, C3, ep_dispatch, ep_dispatch_recv<false, EP_AS_THEY_ARE>)
EP_HALF(25dispatch_kernel_quantised, C3, ep_dispatch, ep_dispatch_recv<false, EP_QUANTISED>)
EP_HALF(22dispatch_kernel_expert, C2, ep_dispatch, ep_dispatch_send<true>)
EP_HALF(32dispatch_kernel_expert_quantised, C2, ep_dispatch, ep_dispatch_send<true>)
EP_HALF(22dispatch_kernel_expert, C3, ep_dispatch, ep_dispatch_recv<true, EP_AS_THEY_ARE>)
EP_HALF(32dispatch_kernel_expert_quantised, C3, ep_dispatch, ep_dispatch_recv<true, EP_QUANTISED>)
EP_HALF(14combine_kernel, C2, ep_combine, ep_combine_send)
EP_HALF(21combine_kernel_expert, C2, ep_combine, ep_combine_send)
EP_HALF(14combine_kernel, C3, ep_combine, ep_combine_recv<false, EP_PLAIN>)
EP_HALF(21combine_kernel_expert, C3, ep_combine, ep_combine_recv<true, EP_PLAIN>)
EP_HALF(14combine_kernel, C5, ep_combine, ep_combine_recv<false, EP_WITH_OPTIONS>)
EP_HALF(21combine_kernel_expert, C5, ep_combine, ep_combine_recv<true, EP_WITH_OPTIONS>)
#undef EP_HALF

#endif
