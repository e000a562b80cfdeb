/* cuda/ep/pad.h: the arguments of the kernel of weft_ep_route_pad (routing/after.cu). */
#ifndef WEFTI_CUDA_EP_PAD_H
#define WEFTI_CUDA_EP_PAD_H

#include "cuda/ep/abi.h"

#define WEFTI_CUDA_EP_PAD_BLOCKS 64 /* at most: enough for the memory's rate */

typedef struct wefti_cuda_ep_pad_args {
    const wefti_i32 *rows; /* of the route's counts: N */
    const wefti_i32 *status;
    wefti_u64 *mark; /* or NULL. While the kernel runs the upper half counts the blocks that have read it */
    unsigned char *out;
    wefti_u64 pitch;
    wefti_u32 row_bytes;
    wefti_u32 capacity; /* rows */
    wefti_cuda_ep_scales scales;
    wefti_u32 scale_words; /* of a row */
    wefti_u32 places; /* of a row in the arrays of weights and experts */
    wefti_cuda_ep_arrays arrays;
} wefti_cuda_ep_pad_args;

#endif
