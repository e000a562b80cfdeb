/* cuda/ep/many/dispatch_passing.cu: dispatches into slots where ranks are many, that pass ranks by (call.cuh): whole,
 * send, recv, of rows as they are, to fp8 and to MXFP8. */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/many/dispatch.cuh"

EP_KERNEL(28dispatch_kernel_many_passing, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_THEY_ARE>)
EP_KERNEL(35dispatch_kernel_expert_many_passing, C1, ep_dispatch, ep_many_dispatch<ep_by_expert, EP_MANY_AS_THEY_ARE>)
EP_KERNEL(38dispatch_kernel_quantised_many_passing, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_FP8>)
EP_KERNEL(45dispatch_kernel_expert_quantised_many_passing, C1, ep_dispatch,
          ep_many_dispatch<ep_by_expert, EP_MANY_AS_FP8>)
EP_KERNEL(41dispatch_kernel_quantised_mx_many_passing, C1, ep_dispatch,
          ep_many_dispatch<ep_by_source, EP_MANY_AS_MXFP8>)
EP_KERNEL(48dispatch_kernel_expert_quantised_mx_many_passing, C1, ep_dispatch,
          ep_many_dispatch<ep_by_expert, EP_MANY_AS_MXFP8>)
