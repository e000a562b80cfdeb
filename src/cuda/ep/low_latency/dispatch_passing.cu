/* cuda/ep/low_latency/dispatch_passing.cu: those of dispatch.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/dispatch.cuh"

EP_KERNEL(35dispatch_kernel_low_latency_passing, C1, ep_dispatch, ep_low_latency_dispatch<false, 0, EP_WHOLE>)
EP_KERNEL(35dispatch_kernel_low_latency_passing, C2, ep_dispatch, ep_low_latency_dispatch<false, 0, EP_SEND>)
EP_KERNEL(35dispatch_kernel_low_latency_passing, C3, ep_dispatch, ep_low_latency_dispatch<false, 0, EP_RECV>)
EP_KERNEL(45dispatch_kernel_quantised_low_latency_passing, C1, ep_dispatch,
          ep_low_latency_dispatch<false, WEFTI_FP8_GROUP, EP_WHOLE>)
EP_KERNEL(45dispatch_kernel_quantised_low_latency_passing, C2, ep_dispatch,
          ep_low_latency_dispatch<false, WEFTI_FP8_GROUP, EP_SEND>)
EP_KERNEL(45dispatch_kernel_quantised_low_latency_passing, C3, ep_dispatch,
          ep_low_latency_dispatch<false, WEFTI_FP8_GROUP, EP_RECV>)
