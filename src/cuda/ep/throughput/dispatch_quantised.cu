/* cuda/ep/throughput/dispatch_quantised.cu: dispatches by source whose rows become fp8 on their way: whole, send,
 * recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(28ht_dispatch_kernel_quantised, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_fp8, EP_FUSED>)
EP_KERNEL(28ht_dispatch_kernel_quantised, C2, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_they_are, EP_SEND>)
EP_KERNEL(28ht_dispatch_kernel_quantised, C3, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_fp8, EP_RECV>)
