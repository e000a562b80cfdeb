/* cuda/ep/low_latency/combine_options_passing.cu: those of combine_options.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/combine.cuh"

EP_KERNEL(34combine_kernel_low_latency_passing, C4, ep_combine,
          ep_low_latency_combine<false, EP_WHOLE, EP_WITH_OPTIONS>)
EP_KERNEL(34combine_kernel_low_latency_passing, C5, ep_combine, ep_low_latency_combine<false, EP_RECV, EP_WITH_OPTIONS>)
EP_KERNEL(41combine_kernel_expert_low_latency_passing, C4, ep_combine,
          ep_low_latency_combine<true, EP_WHOLE, EP_WITH_OPTIONS>)
EP_KERNEL(41combine_kernel_expert_low_latency_passing, C5, ep_combine,
          ep_low_latency_combine<true, EP_RECV, EP_WITH_OPTIONS>)
