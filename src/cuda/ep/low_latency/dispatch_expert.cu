/* cuda/ep/low_latency/dispatch_expert.cu: dispatches into slots by expert: whole, send, recv. */
#include "cuda/ep/low_latency/dispatch.cuh"

EP_KERNEL(34dispatch_kernel_expert_low_latency, C1, ep_dispatch, ep_low_latency_dispatch<true, 0, EP_WHOLE>)
EP_KERNEL(34dispatch_kernel_expert_low_latency, C2, ep_dispatch, ep_low_latency_dispatch<true, 0, EP_SEND>)
EP_KERNEL(34dispatch_kernel_expert_low_latency, C3, ep_dispatch, ep_low_latency_dispatch<true, 0, EP_RECV>)
EP_KERNEL(44dispatch_kernel_expert_quantised_low_latency, C1, ep_dispatch,
          ep_low_latency_dispatch<true, WEFTI_FP8_GROUP, EP_WHOLE>)
EP_KERNEL(44dispatch_kernel_expert_quantised_low_latency, C2, ep_dispatch,
          ep_low_latency_dispatch<true, WEFTI_FP8_GROUP, EP_SEND>)
EP_KERNEL(44dispatch_kernel_expert_quantised_low_latency, C3, ep_dispatch,
          ep_low_latency_dispatch<true, WEFTI_FP8_GROUP, EP_RECV>)
