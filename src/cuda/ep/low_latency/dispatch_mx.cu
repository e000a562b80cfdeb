/* cuda/ep/low_latency/dispatch_mx.cu: dispatches into slots, by source and by expert, whose rows become MXFP8 on their
 * way: whole, send, recv. */
#include "cuda/ep/low_latency/dispatch.cuh"

EP_LOW_LATENCY_DISPATCH(EP_EITHER(40dispatch_kernel_quantised_mx_low_latency,
                                  48dispatch_kernel_quantised_mx_low_latency_passing),
                        ep_by_source, WEFTI_FP8_GROUP_MX)
EP_LOW_LATENCY_DISPATCH(EP_EITHER(47dispatch_kernel_expert_quantised_mx_low_latency,
                                  55dispatch_kernel_expert_quantised_mx_low_latency_passing),
                        ep_by_expert, WEFTI_FP8_GROUP_MX)
