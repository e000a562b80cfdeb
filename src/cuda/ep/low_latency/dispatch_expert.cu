/* cuda/ep/low_latency/dispatch_expert.cu: dispatches into slots by expert: whole, send, recv. */
#include "cuda/ep/low_latency/dispatch.cuh"

EP_LOW_LATENCY_DISPATCH(EP_EITHER(34dispatch_kernel_expert_low_latency, 42dispatch_kernel_expert_low_latency_passing),
                        ep_by_expert, 0)
EP_LOW_LATENCY_DISPATCH(EP_EITHER(44dispatch_kernel_expert_quantised_low_latency,
                                  52dispatch_kernel_expert_quantised_low_latency_passing),
                        ep_by_expert, WEFTI_FP8_GROUP)
