/* cuda/ep/direct.h: groups of several domains: calls of few tokens in slots that go directly, each row from its source
 * to each rank with one of its experts, and its result straight back. What lies where, and the kernels' arguments. Host
 * and kernels.
 *
 * Each rank has a ring (weft/protocol/ep_ring.h) from each other one, by which the rows of dispatches and the results
 * of combines come, in the order of the calls. Rings from ranks of its own domain are symmetric device memory, those
 * from others are in its host heap. Chunks are counted through all calls, and have the header, the flag and the credit
 * of those between domains (cuda/ep/domains.h). */
#ifndef WEFTI_CUDA_EP_DIRECT_H
#define WEFTI_CUDA_EP_DIRECT_H

#include "cuda/ep/abi.h"
#include "cuda/ep/many.h"

#define WEFTI_CUDA_EP_DIRECT_ROWS 4 /* of a chunk, at most, of the widest */
#define WEFTI_CUDA_EP_DIRECT_SLOTS 8 /* of a ring, at most; two at least */
#define WEFTI_CUDA_EP_DIRECT_RING_BYTES ((wefti_u64)8 << 20) /* of all rings of a rank, unless the least are more */

/* The memory in which a rank has rings: from ranks of its own domain, from others. */
enum { WEFTI_CUDA_EP_DIRECT_INSIDE, WEFTI_CUDA_EP_DIRECT_OUTSIDE, WEFTI_CUDA_EP_DIRECT_BLOCKS };

/* Another rank, and the two rings between it and this one. */
typedef struct wefti_cuda_ep_direct_end {
    wefti_i32 pe;
    wefti_u32 block; /* INSIDE, OUTSIDE */
    wefti_u32 line_here; /* its ring among those of this rank */
    wefti_u32 line_there; /* this rank's among those that it has */
    wefti_u32 is_mapped; /* kernels here store to it */
    wefti_u64 here; /* this rank's block */
    wefti_u64 there; /* the other's, as kernels here address it; if it is mapped */
} wefti_cuda_ep_direct_end;

/* Offsets in a block. */
typedef struct wefti_cuda_ep_direct_rings {
    wefti_u64 flags; /* [lines][slots]; written by senders */
    wefti_u64 credits; /* [lines]: of what this rank sends to the rank of that line; written by that */
    wefti_u64 cleared_bytes; /* must be zero before first use */
    wefti_u64 in; /* [lines][slots] chunks */
    wefti_u64 out; /* OUTSIDE: where those for the proxy are filled, as `in` */
    wefti_u64 bytes;
} wefti_cuda_ep_direct_rings;

WEFTI_CUDA_EP_FN wefti_cuda_ep_direct_rings wefti_cuda_ep_direct_rings_of(wefti_u64 lines, wefti_u64 slots,
                                                                          wefti_u64 chunk_bytes, int block)
{
    wefti_cuda_ep_direct_rings at;
    wefti_u64 end = 0;
    at.flags = wefti_cuda_ep_take(&end, lines * slots * 8);
    at.credits = wefti_cuda_ep_take(&end, lines * 8);
    at.cleared_bytes = end;
    at.in = wefti_cuda_ep_take(&end, lines * slots * chunk_bytes);
    at.out = wefti_cuda_ep_take(&end, block == WEFTI_CUDA_EP_DIRECT_OUTSIDE ? lines * slots * chunk_bytes : 0);
    at.bytes = end;
    return at;
}

/* In device memory of this rank alone. */
typedef struct wefti_cuda_ep_direct_control {
    wefti_u32 came; /* blocks of the running kernel that have come to where they meet */
    wefti_u32 met; /* how often all have, ever */
    wefti_u32 sent[WEFTI_CUDA_EP_MANY_MAX]; /* chunks to each rank, ever */
    wefti_u32 taken[WEFTI_CUDA_EP_MANY_MAX]; /* and from each */
    wefti_i32 left[WEFTI_CUDA_EP_MANY_MAX]; /* chunks of the call whose recv is to come, that its send has sent to each
                                               rank; of this rank itself, whether its own rows are in their places */
} wefti_cuda_ep_direct_control;

/* What kernels of direct calls have beside what the group has. Of a route of such calls `sent_count` and `sent_token`
 * of the tables (cuda/ep/domains.h) are by rank, and so are `line_count` and `line_row`: of a row received the place in
 * `received`. `inner_tokens` is how many have been received. */
typedef struct wefti_cuda_ep_direct {
    wefti_cuda_ep_direct_rings at[WEFTI_CUDA_EP_DIRECT_BLOCKS];
    wefti_u64 chunk_bytes;
    wefti_u32 slots; /* of a ring */
    wefti_i32 only_back; /* of a combine: `results` are there */
    wefti_i32 phase; /* a wefti_cuda_ep_phase */
    wefti_i32 by_choice; /* of a combine: ranks of a domain are added by their last choices */
    const wefti_cuda_ep_direct_end *ends; /* [R]; not of this rank itself */
    const wefti_i32 *order; /* [R] the ranks in ascending domain, in that in ascending rank */
    wefti_cuda_ep_direct_control *control;
} wefti_cuda_ep_direct;

#endif
