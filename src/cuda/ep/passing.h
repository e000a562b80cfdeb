/* cuda/ep/passing.h: what groups with WEFT_EP_MASK_ON_TIMEOUT have beside cuda/ep/abi.h and cuda/ep/many.h. Host and
 * kernels. */
#ifndef WEFTI_CUDA_EP_PASSING_H
#define WEFTI_CUDA_EP_PASSING_H

#include "cuda/ep/abi.h"
#include "cuda/ep/many.h"

/* Words of `host_status` behind all others: the ranks that are masked, as bits, kernels' masks among them. */
enum {
    WEFTI_CUDA_EP_HOST_STATUS_MASKED = WEFTI_CUDA_EP_HOST_STATUS_ALL_WORDS,
    WEFTI_CUDA_EP_HOST_WORDS = WEFTI_CUDA_EP_HOST_STATUS_MASKED + WEFTI_CUDA_EP_MANY_MAX / 64
};

#endif
