/* cuda/ep/many/dispatch_positions.cu: dispatches by source of routes of positions, and updates, where ranks are many:
 * whole, send, recv; as they are, to fp8, to MXFP8; the backward of a combine. */
#define WEFTI_CUDA_EP_POSITIONS
#include "cuda/ep/many/dispatch.cuh"

EP_KERNEL(30dispatch_kernel_many_positions, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_THEY_ARE>)
EP_KERNEL(40dispatch_kernel_quantised_many_positions, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_FP8>)
EP_KERNEL(43dispatch_kernel_quantised_mx_many_positions, C1, ep_dispatch,
          ep_many_dispatch<ep_by_source, EP_MANY_AS_MXFP8>)
EP_KERNEL(33combine_kernel_bwd_many_positions, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_BACKWARD>)
