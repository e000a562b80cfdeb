/* cuda/ep/masking.h: in a group with WEFT_EP_MASK_ON_TIMEOUT and two banks, before a call: whom kernels of the other
 * bank have masked is masked on this one, too. Host and kernels. */
#ifndef WEFTI_CUDA_EP_MASKING_H
#define WEFTI_CUDA_EP_MASKING_H

#include "cuda/ep/memory.h"

typedef struct wefti_cuda_ep_masking_args {
    wefti_u32 *masked; /* [words] of this bank, on which no kernel runs */
    const wefti_u32 *other;
    wefti_u64 *told; /* this bank's for the host: two of those words each */
    wefti_i32 words;
} wefti_cuda_ep_masking_args;

#endif
