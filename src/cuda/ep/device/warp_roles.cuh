/* cuda/ep/device/warp_roles.cuh: which warps of a grid do what.
 *
 *     prologue warps   all but the last two of a block: read what a call opens with
 *     header warps     the last two, those of block 0: post the call header
 *     sender warps     the first `sender_warps` of a block (wefti_cuda_ep_blocks): move rows out
 *     receiver warps   behind them: take in what has come, and send what is small
 *
 * A warp has one role at a time: the header warps are receiver warps once the header is posted, and in low-latency
 * calls sender warps take in what comes when they have nothing left to send. */
#ifndef WEFTI_CUDA_EP_DEVICE_WARP_ROLES_CUH
#define WEFTI_CUDA_EP_DEVICE_WARP_ROLES_CUH

#include "cuda/ep/device/base.cuh"

/* The last warps of a block: the header warps; those of block 0 post its call header. Their fence takes longer than all
 * that a call opens with, so in no block do they take part in that prologue; the threads before them, the prologue
 * warps, do. */
#define EP_HEADER_WARPS 2
EP_DEVICE int ep_prologue_threads()
{
    return (int)blockDim.x - EP_HEADER_WARPS * 32;
}

EP_DEVICE bool ep_in_prologue()
{
    return (int)threadIdx.x < ep_prologue_threads();
}

EP_DEVICE bool ep_posts_header()
{
    return blockIdx.x == 0 && !ep_in_prologue();
}

/* Which call this is. All else waits for it, so it is the first thing that is read, by a warp that neither sends rows
 * nor posts the call header. */
EP_DEVICE bool ep_looks_up()
{
    return (int)threadIdx.x == ep_prologue_threads() - 32;
}

/* ---- shares ---- */

/* A block's share of `count` things: first .. end - 1. */
EP_DEVICE void ep_share_of(int count, int block, int blocks, int *first, int *end)
{
    const unsigned each = (unsigned)count / (unsigned)blocks;
    const unsigned left = (unsigned)count % (unsigned)blocks; /* count * block / blocks, in 32 bits */
    *first = (int)(each * (unsigned)block + left * (unsigned)block / (unsigned)blocks);
    *end = (int)(each * (unsigned)(block + 1) + left * (unsigned)(block + 1) / (unsigned)blocks);
}

/* This block's share of `count` items: first .. end - 1. */
EP_DEVICE void ep_share(int count, int *first, int *end)
{
    ep_share_of(count, (int)blockIdx.x, (int)gridDim.x, first, end);
}

/* A share of the warps, or threads, of a grid: its number among them, neighbours in different blocks, and how many
 * there are. */
typedef struct ep_warp_group {
    int number;
    int count;
} ep_warp_group;

/* This warp among all; the last come first, as they have nothing else to do. */
EP_DEVICE ep_warp_group ep_all_warps()
{
    const int blocks = (int)gridDim.x;
    ep_warp_group members = {(ep_warps() - 1 - ep_warp()) * blocks + (int)blockIdx.x, ep_warps() * blocks};
    return members;
}

/* Among the first `senders` warps of each block, which send. */
EP_DEVICE ep_warp_group ep_sender_warps(int senders)
{
    const int blocks = (int)gridDim.x;
    ep_warp_group members = {ep_warp() * blocks + (int)blockIdx.x, senders * blocks};
    return members;
}

/* The same for what need not be soon: those that have the least to send come first. */
EP_DEVICE ep_warp_group ep_idle_sender_warps(int senders)
{
    ep_warp_group members = ep_sender_warps(senders);
    members.number = members.count - 1 - members.number;
    return members;
}

/* This thread among those of the warps from `senders` on. */
EP_DEVICE ep_warp_group ep_receiver_threads(int senders)
{
    const int blocks = (int)gridDim.x;
    ep_warp_group members = {((int)threadIdx.x - senders * 32) * blocks + (int)blockIdx.x,
                             (ep_warps() - senders) * 32 * blocks};
    return members;
}

#endif
