/* cuda/ep/many/dispatch_quantised.cu: dispatches where ranks are many that quantise to fp8: whole, send, recv. */
#include "cuda/ep/many/dispatch.cuh"

EP_MANY_DISPATCH(30dispatch_kernel_quantised_many, ep_by_source, EP_MANY_AS_FP8)
EP_MANY_DISPATCH(37dispatch_kernel_expert_quantised_many, ep_by_expert, EP_MANY_AS_FP8)
