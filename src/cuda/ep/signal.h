/* cuda/ep/signal.h: what the words say by which ranks tell each other of a call: call headers, the words of units, what
 * is called, and what kernels tell the host. */
#ifndef WEFTI_CUDA_EP_SIGNAL_H
#define WEFTI_CUDA_EP_SIGNAL_H

#include "weft/device/dev.h"

#ifdef __CUDACC__
#define WEFTI_CUDA_EP_FN static inline __host__ __device__
#else
#define WEFTI_CUDA_EP_FN static inline
#endif

/* The words of a call header before its counts. */
enum {
    WEFTI_CUDA_EP_SIGNATURE_LOW, /* what is called: equal on all ranks */
    WEFTI_CUDA_EP_SIGNATURE_HIGH,
    WEFTI_CUDA_EP_ROUTE, /* tag of the route's last update; in a call that updates it the alignment, or Tmax */
    WEFTI_CUDA_EP_BUFFER_LOW, /* where rows go: wefti_cuda_ep_place */
    WEFTI_CUDA_EP_BUFFER_HIGH,
    WEFTI_CUDA_EP_PITCH, /* from row to row there, in 16 bytes */
    WEFTI_CUDA_EP_CAPACITY, /* rows it holds */
    WEFTI_CUDA_EP_TOKENS, /* T */
    WEFTI_CUDA_EP_HEADER_WORDS
};

/* Where a buffer lies, the same on all ranks: the number of the registered region that has it, 0 for the heap, above an
 * offset of 46 bits. */
#define WEFTI_CUDA_EP_OFFSET_BITS WEFTI_DEV_OFFSET_BITS
#define WEFTI_CUDA_EP_STAGED ((wefti_u64)1 << 63) /* by expert: rows are wanted there by their places, not by expert */
WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_place(unsigned region, wefti_u64 offset)
{
    return (wefti_u64)region << WEFTI_CUDA_EP_OFFSET_BITS | offset;
}

/* A unit, or a grain, at its receiver: the place of its first token, and how many it has. */
#define WEFTI_CUDA_EP_COUNT_BITS 6
#define WEFTI_CUDA_EP_PLACES_MAX (UINT32_C(1) << (32 - WEFTI_CUDA_EP_COUNT_BITS))
WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_unit_value(wefti_u32 place, wefti_u32 count)
{
    return place << WEFTI_CUDA_EP_COUNT_BITS | count;
}

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_place_of(wefti_u32 value)
{
    return value >> WEFTI_CUDA_EP_COUNT_BITS;
}

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_count_of(wefti_u32 value)
{
    return value & ((1u << WEFTI_CUDA_EP_COUNT_BITS) - 1);
}

/* What is called, in 64 bits: equal on all ranks. */
typedef enum wefti_cuda_ep_call {
    WEFTI_CUDA_EP_DISPATCH = 1,
    WEFTI_CUDA_EP_COMBINE,
    WEFTI_CUDA_EP_DISPATCH_BWD,
    WEFTI_CUDA_EP_COMBINE_BWD,
    WEFTI_CUDA_EP_DISPATCH_HALVES,
    WEFTI_CUDA_EP_COMBINE_HALVES
} wefti_cuda_ep_call;

/* Its flags are 8 bits, those of arguments (abi.h) but where they say something else here:
 *
 *   bit    update, dispatch                  combine, backward of dispatch   backward of combine
 *   0      FRESH                             COMBINE_WEIGHTS
 *   1      MOVE                              COMBINE_IDS                     MOVE
 *   2      WITH_NEW_WEIGHTS: NEW_WEIGHTS     ONCE
 *   3                                        WEIGHTED                        WEIGHTED
 *   4, 5   type of scales (host/describe.h)  VALUES, BY_CHOICE               VALUES
 *   6, 7   layout                            layout                          layout */
#define WEFTI_CUDA_EP_WITH_NEW_WEIGHTS 4u
#define WEFTI_CUDA_EP_LAYOUT_SHIFT 6

WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_signature(wefti_cuda_ep_call call, unsigned flags, unsigned dtype,
                                                   unsigned hidden, unsigned topk)
{
    return (wefti_u64)call | (wefti_u64)flags << 4 | (wefti_u64)dtype << 12 | (wefti_u64)topk << 16 |
           (wefti_u64)hidden << 32;
}

typedef struct wefti_cuda_ep_signature_fields {
    unsigned call; /* a wefti_cuda_ep_call */
    unsigned flags;
    unsigned dtype;
    unsigned topk;
    unsigned hidden;
} wefti_cuda_ep_signature_fields;

WEFTI_CUDA_EP_FN wefti_cuda_ep_signature_fields wefti_cuda_ep_signature_split(wefti_u64 signature)
{
    wefti_cuda_ep_signature_fields fields;
    fields.call = (unsigned)(signature & 0xf);
    fields.flags = (unsigned)(signature >> 4 & 0xff);
    fields.dtype = (unsigned)(signature >> 12 & 0xf);
    fields.topk = (unsigned)(signature >> 16 & 0xffff);
    fields.hidden = (unsigned)(signature >> 32);
    return fields;
}

/* Beside the hidden of a dispatch: the route is of destinations, and these are positions. */
#define WEFTI_CUDA_EP_TO_RANKS (1u << 31)
#define WEFTI_CUDA_EP_BY_POSITION (1u << 30)
/* Of an update: it makes no routing; ranks count what WEFT_EP_OVERFLOW_DROP_ROWS drops. */
#define WEFTI_CUDA_EP_COUNTING (1u << 29)

/* Words of `host_status`, in pinned host memory. */
enum {
    WEFTI_CUDA_EP_HOST_STATUS_FAILED, /* 0, or {ranks waited for in vain, -status}: no call works any more */
    /* 0, or {1 + a rank that called something else, tag of the call}: the last such call. Written after the signatures
     * of what that rank called and what this one did, and {that rank's, this one's} WEFTI_CUDA_EP_ROUTE. */
    WEFTI_CUDA_EP_HOST_STATUS_MISMATCH,
    WEFTI_CUDA_EP_HOST_STATUS_THEIR_CALL,
    WEFTI_CUDA_EP_HOST_STATUS_OWN_CALL,
    WEFTI_CUDA_EP_HOST_STATUS_ROUTES,
    WEFTI_CUDA_EP_HOST_STATUS_OVERFLOW, /* 0, or wefti_cuda_ep_overflow of the last call to which too many rows came */
    WEFTI_CUDA_EP_HOST_STATUS_WORDS
};

/* In one word, since nothing orders two calls' words against the host's reading: the first rank to which too many rows
 * came, how many it has room for, and enough of the call's tag that two overflows differ. */
#define WEFTI_CUDA_EP_OVERFLOW_RANK_BITS 10

WEFTI_CUDA_EP_FN wefti_u64 wefti_cuda_ep_overflow(int rank, wefti_u32 limit, wefti_u32 tag)
{
    return (wefti_u64)limit << 32 | (wefti_u32)(tag << WEFTI_CUDA_EP_OVERFLOW_RANK_BITS) | (wefti_u32)(rank + 1);
}

WEFTI_CUDA_EP_FN int wefti_cuda_ep_overflow_rank(wefti_u64 overflow)
{
    return (int)(overflow & ((1u << WEFTI_CUDA_EP_OVERFLOW_RANK_BITS) - 1)) - 1;
}

WEFTI_CUDA_EP_FN wefti_u32 wefti_cuda_ep_overflow_limit(wefti_u64 overflow)
{
    return (wefti_u32)(overflow >> 32);
}

#endif
