/* cuda/ep/throughput/dispatch_positions.cu: dispatches by source of routes of positions, and updates: whole, send and
 * recv in one; as they are, to fp8, to MXFP8. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(25dispatch_kernel_positions, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_they_are, EP_ANY_PHASE>)
EP_KERNEL(35dispatch_kernel_quantised_positions, C1, ep_dispatch,
          ep_dispatch_call<ep_by_source, ep_as_fp8, EP_ANY_PHASE>)
EP_KERNEL(38dispatch_kernel_quantised_mx_positions, C1, ep_dispatch,
          ep_dispatch_call<ep_by_source, ep_as_mxfp8, EP_ANY_PHASE>)
