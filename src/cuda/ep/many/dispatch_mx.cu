/* cuda/ep/many/dispatch_mx.cu: dispatches where ranks are many that quantise to MXFP8: whole, send, recv. */
#include "cuda/ep/many/dispatch.cuh"

EP_MANY_DISPATCH(33dispatch_kernel_quantised_mx_many, ep_by_source, EP_MANY_AS_MXFP8)
EP_MANY_DISPATCH(40dispatch_kernel_expert_quantised_mx_many, ep_by_expert, EP_MANY_AS_MXFP8)
