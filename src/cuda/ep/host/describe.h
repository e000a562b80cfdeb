/* cuda/ep/host/describe.h: the words for a call of expert parallelism on GPUs, by what its call header compares,
 * and for a failure. */
#ifndef WEFTI_CUDA_EP_HOST_DESCRIBE_H
#define WEFTI_CUDA_EP_HOST_DESCRIBE_H

#include <stdint.h>

#include "cuda/ep/abi.h"
#include "cuda/ep/signal.h"
#include "weft_ep.h"

#define WEFTI_CUDA_EP_CALL_BYTES 280

/* In the signature of a dispatch or a combine's backward: the type of scales of the rows received, among the flags (of
 * fp8 0 is WEFT_EP_SCALE_F32_POW2), and whether rows become fp8 on the way, beside their type. */
#define WEFTI_CUDA_EP_SCALES_SHIFT 4
#define WEFTI_CUDA_EP_SCALES_MASK 3u
#define WEFTI_CUDA_EP_TO_FP8 8u

/* The text of a call in a group of `ranks`, by its signature and its WEFTI_CUDA_EP_ROUTE. Where either differs, so do
 * the texts. */
void wefti_cuda_ep_describe(char text[WEFTI_CUDA_EP_CALL_BYTES], uint64_t signature, uint32_t route, int ranks);

/* What the failure of a group (weft_ep.dead) says where no rank was waited for in vain. */
const char *wefti_cuda_ep_describe_nobody(const weft_ep *ep);

#endif
