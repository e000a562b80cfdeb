/* cuda/ep/many/combine.cu: combines where ranks are many: whole, send, recv, all with options if there are any; and the
 * backward of a dispatch. */
#include "cuda/ep/many/combine.cuh"

#define EP_MANY_COMBINE(NAME, LAYOUT)                                                                                  \
    EP_KERNEL(NAME, C1, ep_combine, ep_many_combine<LAYOUT, EP_MANY_FUSED>)                                            \
    EP_KERNEL(NAME, C2, ep_combine, ep_many_combine<LAYOUT, EP_MANY_SEND>)                                             \
    EP_KERNEL(NAME, C3, ep_combine, ep_many_combine<LAYOUT, EP_MANY_RECV>)

EP_MANY_COMBINE(19combine_kernel_many, ep_by_source)
EP_MANY_COMBINE(26combine_kernel_expert_many, ep_by_expert)
EP_KERNEL(24dispatch_kernel_bwd_many, C1, ep_combine, ep_many_combine<ep_by_source, EP_MANY_FUSED>)
EP_KERNEL(31dispatch_kernel_expert_bwd_many, C1, ep_combine, ep_many_combine<ep_by_expert, EP_MANY_FUSED>)
