/* cuda/ep/backward/dispatch_bwd.cu: the backward of dispatch: a combine of gradients, beside which gradients of weights
 * come back. */
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(19dispatch_kernel_bwd, C1, ep_combine, ep_combine_call<ep_by_source, EP_GRADIENTS, EP_FUSED>)
EP_KERNEL(26dispatch_kernel_expert_bwd, C1, ep_combine, ep_combine_call<ep_by_expert, EP_GRADIENTS, EP_FUSED>)
