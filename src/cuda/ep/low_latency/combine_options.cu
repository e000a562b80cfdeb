/* cuda/ep/low_latency/combine_options.cu: combines from slots with options (device/combine_options.cuh): whole,
 * recv. */
#include "cuda/ep/low_latency/combine.cuh"

EP_KERNEL(26combine_kernel_low_latency, C4, ep_combine, ep_low_latency_combine<false, EP_WHOLE, EP_WITH_OPTIONS>)
EP_KERNEL(26combine_kernel_low_latency, C5, ep_combine, ep_low_latency_combine<false, EP_RECV, EP_WITH_OPTIONS>)
EP_KERNEL(33combine_kernel_expert_low_latency, C4, ep_combine, ep_low_latency_combine<true, EP_WHOLE, EP_WITH_OPTIONS>)
EP_KERNEL(33combine_kernel_expert_low_latency, C5, ep_combine, ep_low_latency_combine<true, EP_RECV, EP_WITH_OPTIONS>)
