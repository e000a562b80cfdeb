/* cuda/ep/many/combine_passing.cu: combines from slots where ranks are many, that pass ranks by (call.cuh): whole,
 * send, recv, with options or without. */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/many/combine.cuh"

EP_KERNEL(27combine_kernel_many_passing, C1, ep_combine, ep_many_combine<ep_by_source>)
EP_KERNEL(34combine_kernel_expert_many_passing, C1, ep_combine, ep_many_combine<ep_by_expert>)
