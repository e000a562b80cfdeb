/* cuda/ep/many/dispatch.cu: dispatches and updates where ranks are many, of rows as they are: whole, send, recv; the
 * backward of a combine. */
#include "cuda/ep/many/dispatch.cuh"

EP_KERNEL(23ht_dispatch_kernel_many, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_AS_THEY_ARE>)
EP_KERNEL(30ht_dispatch_kernel_expert_many, C1, ep_dispatch, ep_many_dispatch<ep_by_expert, EP_MANY_AS_THEY_ARE>)
EP_KERNEL(26ht_combine_kernel_bwd_many, C1, ep_dispatch, ep_many_dispatch<ep_by_source, EP_MANY_BACKWARD>)
EP_KERNEL(33ht_combine_kernel_expert_bwd_many, C1, ep_dispatch, ep_many_dispatch<ep_by_expert, EP_MANY_BACKWARD>)
