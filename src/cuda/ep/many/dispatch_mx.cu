/* cuda/ep/many/dispatch_mx.cu: dispatches where ranks are many that quantise to MXFP8: whole, send, recv. */
#include "cuda/ep/many/dispatch.cuh"

EP_KERNEL(36ht_dispatch_kernel_quantised_mx_many, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_MXFP8>)
EP_KERNEL(43ht_dispatch_kernel_expert_quantised_mx_many, C1, ep_dispatch,
          ep_many_dispatch<ep_by_expert, EP_MANY_AS_MXFP8>)
