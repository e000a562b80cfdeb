/* cuda/ep/backward/combine_bwd.cu: the backward of combine: a dispatch of gradients on the route that is there. */
#include "cuda/ep/backward/gradients.cuh"
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(21ht_combine_kernel_bwd, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_backward_way, EP_FUSED>)
EP_KERNEL(28ht_combine_kernel_expert_bwd, C1, ep_dispatch, ep_dispatch_call<ep_by_expert, ep_backward_way, EP_FUSED>)
