/* cuda/ep/low_latency/dispatch_expert_passing.cu: those of dispatch_expert.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/dispatch.cuh"

EP_KERNEL(42dispatch_kernel_expert_low_latency_passing, C1, ep_dispatch, ep_low_latency_dispatch<true, 0, EP_WHOLE>)
EP_KERNEL(42dispatch_kernel_expert_low_latency_passing, C2, ep_dispatch, ep_low_latency_dispatch<true, 0, EP_SEND>)
EP_KERNEL(42dispatch_kernel_expert_low_latency_passing, C3, ep_dispatch, ep_low_latency_dispatch<true, 0, EP_RECV>)
EP_KERNEL(52dispatch_kernel_expert_quantised_low_latency_passing, C1, ep_dispatch,
          ep_low_latency_dispatch<true, WEFTI_FP8_GROUP, EP_WHOLE>)
EP_KERNEL(52dispatch_kernel_expert_quantised_low_latency_passing, C2, ep_dispatch,
          ep_low_latency_dispatch<true, WEFTI_FP8_GROUP, EP_SEND>)
EP_KERNEL(52dispatch_kernel_expert_quantised_low_latency_passing, C3, ep_dispatch,
          ep_low_latency_dispatch<true, WEFTI_FP8_GROUP, EP_RECV>)
