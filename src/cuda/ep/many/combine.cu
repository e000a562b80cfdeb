/* cuda/ep/many/combine.cu: combines where ranks are many: whole, send, recv, all with options if there are any; and the
 * backward of a dispatch. */
#include "cuda/ep/many/combine.cuh"

EP_KERNEL(19combine_kernel_many, C1, ep_combine, ep_many_combine<ep_by_source>)
EP_KERNEL(26combine_kernel_expert_many, C1, ep_combine, ep_many_combine<ep_by_expert>)
EP_KERNEL(24dispatch_kernel_bwd_many, C1, ep_combine, ep_many_combine<ep_by_source>)
EP_KERNEL(31dispatch_kernel_expert_bwd_many, C1, ep_combine, ep_many_combine<ep_by_expert>)
