/* cuda/ep/many/combine.cu: combines where ranks are many: whole, send, recv, all with options if there are any; and the
 * backward of a dispatch. */
#include "cuda/ep/many/combine.cuh"

#define EP_MANY_COMBINE(NAME, BY_EXPERT)                                                                               \
    EP_KERNEL(NAME, C1, ep_combine, ep_many_combine<BY_EXPERT, EP_MANY_WHOLE>)                                         \
    EP_KERNEL(NAME, C2, ep_combine, ep_many_combine<BY_EXPERT, EP_MANY_SEND>)                                          \
    EP_KERNEL(NAME, C3, ep_combine, ep_many_combine<BY_EXPERT, EP_MANY_RECV>)

EP_MANY_COMBINE(19combine_kernel_many, false)
EP_MANY_COMBINE(26combine_kernel_expert_many, true)
EP_KERNEL(24dispatch_kernel_bwd_many, C1, ep_combine, ep_many_combine<false, EP_MANY_WHOLE>)
EP_KERNEL(31dispatch_kernel_expert_bwd_many, C1, ep_combine, ep_many_combine<true, EP_MANY_WHOLE>)
