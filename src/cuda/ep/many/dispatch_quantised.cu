/* cuda/ep/many/dispatch_quantised.cu: dispatches where ranks are many that quantise to fp8: whole, send, recv. */
#include "cuda/ep/many/dispatch.cuh"

EP_KERNEL(33ht_dispatch_kernel_quantised_many, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_FP8>)
EP_KERNEL(40ht_dispatch_kernel_expert_quantised_many, C1, ep_dispatch, ep_many_dispatch<ep_by_expert, EP_MANY_AS_FP8>)
