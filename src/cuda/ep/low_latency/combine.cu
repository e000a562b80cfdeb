/* cuda/ep/low_latency/combine.cu: combines from slots, without options: whole, send (also of those with), recv. */
#include "cuda/ep/low_latency/combine.cuh"

#if defined(WEFTI_CUDA_EP_PASSING)
#define EP_LOW_LATENCY_COMBINE(NAME, LAYOUT)                                                                           \
    EP_KERNEL(NAME, C1, ep_combine, ep_low_latency_combine<LAYOUT, EP_ANY_PHASE, EP_PLAIN>)
#else
#define EP_LOW_LATENCY_COMBINE(NAME, LAYOUT)                                                                           \
    EP_KERNEL(NAME, C1, ep_combine, ep_low_latency_combine<LAYOUT, EP_FUSED, EP_PLAIN>)                                \
    EP_KERNEL(NAME, C2, ep_combine, ep_low_latency_combine<LAYOUT, EP_SEND, EP_PLAIN>)                                 \
    EP_KERNEL(NAME, C3, ep_combine, ep_low_latency_combine<LAYOUT, EP_RECV, EP_PLAIN>)
#endif

EP_LOW_LATENCY_COMBINE(EP_EITHER(26combine_kernel_low_latency, 34combine_kernel_low_latency_passing), ep_by_source)
EP_LOW_LATENCY_COMBINE(EP_EITHER(33combine_kernel_expert_low_latency, 41combine_kernel_expert_low_latency_passing),
                       ep_by_expert)
