/* cuda/ep/throughput/dispatch_expert_quantised.cu: dispatches by expert whose rows become fp8 on their way: whole,
 * send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(35ht_dispatch_kernel_expert_quantised, C1, ep_dispatch, ep_dispatch_call<ep_by_expert, ep_as_fp8, EP_FUSED>)
EP_KERNEL(35ht_dispatch_kernel_expert_quantised, C2, ep_dispatch,
          ep_dispatch_call<ep_by_expert, ep_as_they_are, EP_SEND>)
EP_KERNEL(35ht_dispatch_kernel_expert_quantised, C3, ep_dispatch, ep_dispatch_call<ep_by_expert, ep_as_fp8, EP_RECV>)
