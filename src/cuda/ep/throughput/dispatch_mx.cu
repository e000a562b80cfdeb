/* cuda/ep/throughput/dispatch_mx.cu: dispatches whose rows become MXFP8 on their way, by source and by expert: whole,
 * send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(31ht_dispatch_kernel_quantised_mx, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_mxfp8, EP_FUSED>)
EP_KERNEL(31ht_dispatch_kernel_quantised_mx, C2, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_they_are, EP_SEND>)
EP_KERNEL(31ht_dispatch_kernel_quantised_mx, C3, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_mxfp8, EP_RECV>)
EP_KERNEL(38ht_dispatch_kernel_expert_quantised_mx, C1, ep_dispatch,
          ep_dispatch_call<ep_by_expert, ep_as_mxfp8, EP_FUSED>)
EP_KERNEL(38ht_dispatch_kernel_expert_quantised_mx, C2, ep_dispatch,
          ep_dispatch_call<ep_by_expert, ep_as_they_are, EP_SEND>)
EP_KERNEL(38ht_dispatch_kernel_expert_quantised_mx, C3, ep_dispatch,
          ep_dispatch_call<ep_by_expert, ep_as_mxfp8, EP_RECV>)
