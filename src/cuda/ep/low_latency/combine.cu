/* cuda/ep/low_latency/combine.cu: combines from slots, without options: whole, send (also of those with), recv. */
#include "cuda/ep/low_latency/combine.cuh"

EP_KERNEL(26combine_kernel_low_latency, C1, ep_combine, ep_low_latency_combine<false, EP_WHOLE, EP_PLAIN>)
EP_KERNEL(26combine_kernel_low_latency, C2, ep_combine, ep_low_latency_combine<false, EP_SEND, EP_PLAIN>)
EP_KERNEL(26combine_kernel_low_latency, C3, ep_combine, ep_low_latency_combine<false, EP_RECV, EP_PLAIN>)
EP_KERNEL(33combine_kernel_expert_low_latency, C1, ep_combine, ep_low_latency_combine<true, EP_WHOLE, EP_PLAIN>)
EP_KERNEL(33combine_kernel_expert_low_latency, C2, ep_combine, ep_low_latency_combine<true, EP_SEND, EP_PLAIN>)
EP_KERNEL(33combine_kernel_expert_low_latency, C3, ep_combine, ep_low_latency_combine<true, EP_RECV, EP_PLAIN>)
