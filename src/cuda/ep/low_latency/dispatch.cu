/* cuda/ep/low_latency/dispatch.cu: dispatches into slots by source: whole, send, recv. */
#include "cuda/ep/low_latency/dispatch.cuh"

EP_LOW_LATENCY_DISPATCH(EP_EITHER(27dispatch_kernel_low_latency, 35dispatch_kernel_low_latency_passing), ep_by_source,
                        0)
EP_LOW_LATENCY_DISPATCH(EP_EITHER(37dispatch_kernel_quantised_low_latency,
                                  45dispatch_kernel_quantised_low_latency_passing),
                        ep_by_source, WEFTI_FP8_GROUP)
