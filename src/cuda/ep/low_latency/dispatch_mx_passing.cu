/* cuda/ep/low_latency/dispatch_mx_passing.cu: those of dispatch_mx.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/dispatch.cuh"

#define EP_LOW_LATENCY_MX(NAME, BY_EXPERT)                                                                             \
    EP_KERNEL(NAME, C1, ep_dispatch, ep_low_latency_dispatch<BY_EXPERT, WEFTI_FP8_GROUP_MX, EP_WHOLE>)                 \
    EP_KERNEL(NAME, C2, ep_dispatch, ep_low_latency_dispatch<BY_EXPERT, WEFTI_FP8_GROUP_MX, EP_SEND>)                  \
    EP_KERNEL(NAME, C3, ep_dispatch, ep_low_latency_dispatch<BY_EXPERT, WEFTI_FP8_GROUP_MX, EP_RECV>)

EP_LOW_LATENCY_MX(48dispatch_kernel_quantised_mx_low_latency_passing, false)
EP_LOW_LATENCY_MX(55dispatch_kernel_expert_quantised_mx_low_latency_passing, true)
