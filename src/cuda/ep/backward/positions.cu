/* cuda/ep/backward/positions.cu: the backward of combine of routes of positions. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/backward/gradients.cuh"
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(28combine_kernel_bwd_positions, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_backward_way, EP_FUSED>)
