/* cuda/ep/throughput/dispatch_mx.cu: dispatches whose rows become MXFP8 on their way, by source and by expert: whole,
 * send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(28dispatch_kernel_quantised_mx, C1, ep_dispatch, ep_dispatch_all<false, ep_as_mxfp8>)
EP_KERNEL(28dispatch_kernel_quantised_mx, C2, ep_dispatch, ep_dispatch_send<false>)
EP_KERNEL(28dispatch_kernel_quantised_mx, C3, ep_dispatch, ep_dispatch_recv<false, ep_as_mxfp8>)
EP_KERNEL(35dispatch_kernel_expert_quantised_mx, C1, ep_dispatch, ep_dispatch_all<true, ep_as_mxfp8>)
EP_KERNEL(35dispatch_kernel_expert_quantised_mx, C2, ep_dispatch, ep_dispatch_send<true>)
EP_KERNEL(35dispatch_kernel_expert_quantised_mx, C3, ep_dispatch, ep_dispatch_recv<true, ep_as_mxfp8>)
