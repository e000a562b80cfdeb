/* cuda/ep/throughput/dispatch_expert_quantised.cu: dispatches by expert whose rows become fp8 on their way: whole,
 * send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(32dispatch_kernel_expert_quantised, C1, ep_dispatch, ep_dispatch_all<ep_by_expert, ep_as_fp8>)
EP_KERNEL(32dispatch_kernel_expert_quantised, C2, ep_dispatch, ep_dispatch_send<ep_by_expert>)
EP_KERNEL(32dispatch_kernel_expert_quantised, C3, ep_dispatch, ep_dispatch_recv<ep_by_expert, ep_as_fp8>)
