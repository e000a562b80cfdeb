/* cuda/ep/throughput/combine_positions.cu: combines by source of routes of positions: whole, send, recv; with options
 * (device/combine_options.cuh): whole, recv. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(24combine_kernel_positions, C1, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_FUSED>)
EP_KERNEL(24combine_kernel_positions, C2, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_SEND>)
EP_KERNEL(24combine_kernel_positions, C3, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_RECV>)
EP_KERNEL(24combine_kernel_positions, C4, ep_combine, ep_combine_call<ep_by_source, EP_WITH_OPTIONS, EP_FUSED>)
EP_KERNEL(24combine_kernel_positions, C5, ep_combine, ep_combine_call<ep_by_source, EP_WITH_OPTIONS, EP_RECV>)
