/* cuda/ep/many/combine_positions.cu: as combine.cu, by source, of routes of positions. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/many/combine.cuh"

EP_KERNEL(29combine_kernel_many_positions, C1, ep_combine, ep_many_combine<ep_by_source>)
