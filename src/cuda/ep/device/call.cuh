/* cuda/ep/device/call.cuh: what the threads of a block share of a call. */
#ifndef WEFTI_CUDA_EP_DEVICE_CALL_CUH
#define WEFTI_CUDA_EP_DEVICE_CALL_CUH

#include "cuda/ep/device/base.cuh"

/* What the threads of a block share. */
typedef struct ep_call {
    wefti_u64 epoch;
    wefti_u32 tag; /* twice it, in packed words; never 0; in a second round one more */
    wefti_u32 alive; /* ranks, as bits */
    int status;
    int tokens; /* T */
    wefti_u32 route; /* of a call that makes no routing: the epoch of the one it uses */
    int route_status; /* the status of that routing */
    int odd_tokens; /* T was given out of range, and clamped */
    int failed; /* some thread of this block waited in vain */
    wefti_u32 next_push; /* throughput/combine.cuh: the block's next-push counter: how many have been taken */
    wefti_u32 headers_here; /* low_latency/low_latency.cuh: 0, or one of EP_HEADERS.. */
    wefti_u32 total[WEFTI_CUDA_EP_RANKS_MAX]; /* tokens of this rank that go to each rank */
    wefti_u32 before[WEFTI_CUDA_EP_RANKS_MAX]; /* of those, the ones before this block's tokens */
    wefti_u32 place[WEFTI_CUDA_EP_RANKS_MAX]; /* where they begin there */
    wefti_u64 to[WEFTI_CUDA_EP_RANKS_MAX]; /* the address of that row; 0: no rows go there */
    wefti_u64 pitch[WEFTI_CUDA_EP_RANKS_MAX];
    int tokens_of[WEFTI_CUDA_EP_RANKS_MAX]; /* T of each rank */
    wefti_u32 from[WEFTI_CUDA_EP_RANKS_MAX + 1]; /* the first place of each source here; at last N */
    wefti_u32 count[WEFTI_CUDA_EP_RANKS_MAX]; /* tokens from each source */
    wefti_u32 staged; /* by expert: ranks that want rows by their places, as bits */
    wefti_u32 headers[WEFTI_CUDA_EP_RANKS_MAX][WEFTI_CUDA_EP_HEADER_WORDS + WEFTI_CUDA_EP_RANKS_MAX];
    wefti_u32 wanted; /* where rows may be dropped: how many would come here, padding included, if none were */
} ep_call;

#endif
