/* cuda/ep/throughput/combine_positions.cu: combines by source of routes of positions: whole, send (also of those with
 * options) and recv in one; with options (device/combine_options.cuh): whole and recv in one. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(24combine_kernel_positions, C1, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_ANY_PHASE>)
EP_KERNEL(24combine_kernel_positions, C4, ep_combine, ep_combine_call<ep_by_source, EP_WITH_OPTIONS, EP_FUSED_OR_RECV>)
