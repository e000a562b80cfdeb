/* cuda/ep/many/combine_positions.cu: combines by source of routes of positions where ranks are many: whole, send, recv,
 * all with options if there are any; and the backward of a dispatch. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/many/combine.cuh"

EP_KERNEL(29combine_kernel_many_positions, C1, ep_combine, ep_many_combine<ep_by_source>)
EP_KERNEL(34dispatch_kernel_bwd_many_positions, C1, ep_combine, ep_many_combine<ep_by_source>)
