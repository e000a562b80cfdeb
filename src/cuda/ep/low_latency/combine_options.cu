/* cuda/ep/low_latency/combine_options.cu: combines from slots with options (device/combine_options.cuh): whole,
 * recv. */
#include "cuda/ep/low_latency/combine.cuh"

#if defined(WEFTI_CUDA_EP_PASSING)
#define EP_LOW_LATENCY_COMBINE_WITH(NAME, LAYOUT)                                                                      \
    EP_KERNEL(NAME, C4, ep_combine, ep_low_latency_combine<LAYOUT, EP_FUSED_OR_RECV, EP_WITH_OPTIONS>)
#else
#define EP_LOW_LATENCY_COMBINE_WITH(NAME, LAYOUT)                                                                      \
    EP_KERNEL(NAME, C4, ep_combine, ep_low_latency_combine<LAYOUT, EP_FUSED, EP_WITH_OPTIONS>)                         \
    EP_KERNEL(NAME, C5, ep_combine, ep_low_latency_combine<LAYOUT, EP_RECV, EP_WITH_OPTIONS>)
#endif

EP_LOW_LATENCY_COMBINE_WITH(EP_EITHER(26combine_kernel_low_latency, 34combine_kernel_low_latency_passing), ep_by_source)
EP_LOW_LATENCY_COMBINE_WITH(EP_EITHER(33combine_kernel_expert_low_latency, 41combine_kernel_expert_low_latency_passing),
                            ep_by_expert)
