/* cuda/ep/low_latency/dispatch.cu: dispatches into slots by source: whole, send, recv. */
#include "cuda/ep/low_latency/dispatch.cuh"

EP_KERNEL(27dispatch_kernel_low_latency, C1, ep_dispatch, ep_low_latency_dispatch<false, 0, EP_WHOLE>)
EP_KERNEL(27dispatch_kernel_low_latency, C2, ep_dispatch, ep_low_latency_dispatch<false, 0, EP_SEND>)
EP_KERNEL(27dispatch_kernel_low_latency, C3, ep_dispatch, ep_low_latency_dispatch<false, 0, EP_RECV>)
EP_KERNEL(37dispatch_kernel_quantised_low_latency, C1, ep_dispatch,
          ep_low_latency_dispatch<false, WEFTI_FP8_GROUP, EP_WHOLE>)
EP_KERNEL(37dispatch_kernel_quantised_low_latency, C2, ep_dispatch,
          ep_low_latency_dispatch<false, WEFTI_FP8_GROUP, EP_SEND>)
EP_KERNEL(37dispatch_kernel_quantised_low_latency, C3, ep_dispatch,
          ep_low_latency_dispatch<false, WEFTI_FP8_GROUP, EP_RECV>)
