/* cuda/ep/many/combine.cu: combines where ranks are many, of results and of gradients: whole, send, recv, all with
 * options if there are any. */
#include "cuda/ep/many/combine.cuh"

EP_KERNEL(22ht_combine_kernel_many, C1, ep_combine, ep_many_combine<ep_by_source>)
EP_KERNEL(29ht_combine_kernel_expert_many, C1, ep_combine, ep_many_combine<ep_by_expert>)
