/* cuda/ep/domains/call.cuh: what kernels of groups of several domains have in common: failures, choices, tails,
 * copies. */
#ifndef WEFTI_CUDA_EP_DOMAINS_CALL_CUH
#define WEFTI_CUDA_EP_DOMAINS_CALL_CUH

#include "cuda/ep/device/base.cuh"
#include "cuda/ep/device/warp_roles.cuh"
#include "cuda/ep/domains.h"

typedef wefti_cuda_ep_domains_args ep_domains;
typedef wefti_cuda_ep_domains_group ep_domains_group;

/* 64 ranks that were waited for in vain, as bits. */
EP_DEVICE wefti_u64 ep_domains_missing(const wefti_cuda_ep_domains_control *control, int pair)
{
    return (wefti_u64)wefti_ld_relaxed(&control->missing[2 * pair + 1]) << 32 |
           wefti_ld_relaxed(&control->missing[2 * pair]);
}

/* The call has failed: this rank's kernels do nothing more, those of its domain neither, and the host is told, of the
 * first failure. None of the inner group's calls is under way, so all that have begun are complete. One thread, behind
 * what it has noted as missing. */
EP_DEVICE_SLOW void ep_domains_fail(const ep_domains_group *group, int status)
{
    wefti_cuda_ep_domains_control *control = group->control;
    wefti_cuda_ep_control *inner = group->inner_control;
    const wefti_u32 before = atomicCAS(&inner->failed, 0u, (wefti_u32)-status);
    const wefti_u32 first = before != 0 ? before : (wefti_u32)-status;
    if (before == 0) {
        wefti_st_relaxed(&inner->failed_epoch, wefti_ld_relaxed(&inner->epoch) + 1);
    }
    atomicCAS(&control->failed, 0u, first);
    for (int i = 0; i < WEFTI_CUDA_EP_MANY_WORDS / 2; i++) {
        wefti_u64 told;
        do { /* until what was stored last is all of it, whoever stores at the same time */
            told = ep_domains_missing(control, i);
            wefti_st_relaxed(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_MISSING + i], told);
            wefti_fence_sc();
        } while (ep_domains_missing(control, i) != told);
    }
    wefti_st_release(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_FAILED], (wefti_u64)first);
}

/* Whether all that came before on the stream is well. The same to all threads of a kernel that does not fail itself. */
EP_DEVICE bool ep_domains_is_well(const ep_domains_group &group)
{
    return wefti_ld_relaxed(&group.control->failed) == 0 && wefti_ld_relaxed(&group.inner_control->failed) == 0;
}

/* Whether the group goes on without a domain. */
EP_DEVICE bool ep_domains_is_masked(const ep_domains_group &group, int domain)
{
    return (wefti_ld_relaxed(&group.control->masked[domain >> 5]) >> (domain & 31) & 1) != 0;
}

/* Whether the group goes on without a rank. */
EP_DEVICE bool ep_domains_is_rank_masked(const ep_domains_group &group, int rank)
{
    return (wefti_ld_relaxed(&group.control->masked_ranks[rank >> 5]) >> (rank & 31) & 1) != 0;
}

/* The call has a number of its own. One thread of its first kernel. */
EP_DEVICE void ep_domains_count_call(const ep_domains_group &group)
{
    group.control->calls = wefti_cuda_ep_domains_next_call(group.control->calls);
}

/* A call begins, in its first kernel; not on a PE whose kernels have a fault latched, as ep_begin_at says. The same to
 * all threads of a block; false: the group has failed. All threads. */
EP_DEVICE bool ep_domains_begins(const ep_domains_group &group)
{
    EP_SHARED(bool, begins);
    if (threadIdx.x == 0) {
        const wefti_u64 fault = wefti_ld_relaxed(&group.dev.control->fault);
        begins = fault == 0 && ep_domains_is_well(group);
        if (fault != 0) {
            ep_domains_fail(&group, wefti_dev_fault_status(fault));
        }
    }
    __syncthreads();
    return begins;
}

/* The expert of choice k, or the rank that it stands for, or -1. */
EP_DEVICE wefti_i32 ep_domains_choice(const ep_domains &args, const wefti_i32 *ids, int k)
{
    return args.by_rank != 0 && ids[k] >= 0 ? k : ids[k];
}

/* The domain of an expert or rank. */
EP_DEVICE wefti_i32 ep_domains_domain(const ep_domains &args, wefti_i32 choice)
{
    return (args.by_rank != 0 ? args.group.domain_of_rank : args.group.domain_of)[choice];
}

/* Which of the 32 domains from `first` on have an expert of a token of this rank. A warp. */
EP_DEVICE wefti_u32 ep_domains_goes(const ep_domains &args, int token, int first)
{
    const wefti_i32 *ids = args.tables.ids + (wefti_u64)token * (wefti_u64)args.topk;
    bool goes = false;
    for (int k = 0; k < args.topk; k++) {
        const wefti_i32 choice = ep_domains_choice(args, ids, k);
        goes = goes || (choice >= 0 && ep_domains_domain(args, choice) == first + ep_lane());
    }
    return __ballot_sync(~0u, goes);
}

EP_DEVICE wefti_cuda_ep_domains_tail *ep_domains_tail(const ep_domains &args, unsigned char *row)
{
    return (wefti_cuda_ep_domains_tail *)(row + args.data_bytes);
}

/* The choices of a token, in the tail of its row. */
EP_DEVICE wefti_i32 *ep_domains_ids(wefti_cuda_ep_domains_tail *tail)
{
    return (wefti_i32 *)(tail + 1);
}

EP_DEVICE float *ep_domains_weights(const ep_domains &args, wefti_cuda_ep_domains_tail *tail)
{
    return (float *)(ep_domains_ids(tail) + args.topk);
}

EP_DEVICE ep_warp_group ep_domains_lanes()
{
    ep_warp_group threads = {ep_lane(), 32};
    return threads;
}

EP_DEVICE ep_warp_group ep_domains_warps()
{
    ep_warp_group warps = {ep_warp() * (int)gridDim.x + (int)blockIdx.x, ep_warps() * (int)gridDim.x};
    return warps;
}

EP_DEVICE ep_warp_group ep_domains_grid()
{
    ep_warp_group threads = {(int)(blockIdx.x * blockDim.x + threadIdx.x), (int)(gridDim.x * blockDim.x)};
    return threads;
}

/* The choices of row `row` of `rows`, for the inner group. The threads named. */
EP_DEVICE void ep_domains_choose_inner(const ep_domains &args, ep_warp_group threads, wefti_u32 row,
                                       const wefti_i32 *ids)
{
    unsigned char *ranks = (unsigned char *)args.tables.inner_ids + (wefti_u64)row * (wefti_u64)args.inner_ranks;
    for (int k = threads.number; k < args.topk; k += threads.count) {
        if (args.by_rank != 0) {
            if (args.group.domain_of_rank[k] == args.group.domain) {
                ranks[args.group.inner_rank[k]] = ids[k] >= 0;
            }
            continue;
        }
        const bool here = ids[k] >= 0 && args.group.domain_of[ids[k]] == args.group.domain;
        args.tables.inner_ids[(wefti_u64)row * (wefti_u64)args.topk + (wefti_u64)k] =
            here ? args.group.inner_expert[ids[k]] : -1;
    }
}

#endif
