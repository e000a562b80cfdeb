/* cuda/ep/throughput/dispatch_mx.cu: dispatches whose rows become MXFP8 on their way, by source and by expert: whole,
 * send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(28dispatch_kernel_quantised_mx, C1, ep_dispatch, ep_dispatch_all<ep_by_source, ep_as_mxfp8>)
EP_KERNEL(28dispatch_kernel_quantised_mx, C2, ep_dispatch, ep_dispatch_send<ep_by_source>)
EP_KERNEL(28dispatch_kernel_quantised_mx, C3, ep_dispatch, ep_dispatch_recv<ep_by_source, ep_as_mxfp8>)
EP_KERNEL(35dispatch_kernel_expert_quantised_mx, C1, ep_dispatch, ep_dispatch_all<ep_by_expert, ep_as_mxfp8>)
EP_KERNEL(35dispatch_kernel_expert_quantised_mx, C2, ep_dispatch, ep_dispatch_send<ep_by_expert>)
EP_KERNEL(35dispatch_kernel_expert_quantised_mx, C3, ep_dispatch, ep_dispatch_recv<ep_by_expert, ep_as_mxfp8>)
