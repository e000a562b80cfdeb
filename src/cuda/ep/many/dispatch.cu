/* cuda/ep/many/dispatch.cu: dispatches and updates where ranks are many: whole, send, recv; as they are, to fp8, the
 * backward of a combine. */
#include "cuda/ep/many/dispatch.cuh"

#define EP_MANY_DISPATCH(NAME, BY_EXPERT, WAY)                                                                         \
    EP_KERNEL(NAME, C1, ep_dispatch, ep_many_dispatch<BY_EXPERT, WAY, EP_MANY_WHOLE>)                                  \
    EP_KERNEL(NAME, C2, ep_dispatch, ep_many_dispatch<BY_EXPERT, WAY, EP_MANY_SEND>)                                   \
    EP_KERNEL(NAME, C3, ep_dispatch, ep_many_dispatch<BY_EXPERT, WAY, EP_MANY_RECV>)

EP_MANY_DISPATCH(20dispatch_kernel_many, false, EP_MANY_AS_THEY_ARE)
EP_MANY_DISPATCH(27dispatch_kernel_expert_many, true, EP_MANY_AS_THEY_ARE)
EP_MANY_DISPATCH(30dispatch_kernel_quantised_many, false, EP_MANY_AS_FP8)
EP_MANY_DISPATCH(37dispatch_kernel_expert_quantised_many, true, EP_MANY_AS_FP8)
EP_MANY_DISPATCH(33dispatch_kernel_quantised_mx_many, false, EP_MANY_AS_MXFP8)
EP_MANY_DISPATCH(40dispatch_kernel_expert_quantised_mx_many, true, EP_MANY_AS_MXFP8)
EP_KERNEL(23combine_kernel_bwd_many, C1, ep_dispatch, ep_many_dispatch<false, EP_MANY_BACKWARD, EP_MANY_WHOLE>)
EP_KERNEL(30combine_kernel_expert_bwd_many, C1, ep_dispatch, ep_many_dispatch<true, EP_MANY_BACKWARD, EP_MANY_WHOLE>)
