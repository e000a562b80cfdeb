/* cuda/ep/backward/positions.cu: the backwards of combine and of dispatch of routes of positions. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/backward/gradients.cuh"
#include "cuda/ep/throughput/combine.cuh"
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(28combine_kernel_bwd_positions, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_backward_way, EP_FUSED>)
EP_KERNEL(29dispatch_kernel_bwd_positions, C1, ep_combine, ep_combine_call<ep_by_source, EP_GRADIENTS, EP_FUSED>)
