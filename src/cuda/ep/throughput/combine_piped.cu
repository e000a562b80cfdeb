/* cuda/ep/throughput/combine_piped.cu: combines without options by expert, whole and recv, and the backward of dispatch
 * with gradients of weights, of so many rows that those that are added up come through shared memory. */
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(30ht_combine_kernel_expert_piped, C1, ep_combine,
          ep_combine_call<ep_by_expert, EP_PLAIN, EP_FUSED, false, true>)
EP_KERNEL(30ht_combine_kernel_expert_piped, C3, ep_combine,
          ep_combine_call<ep_by_expert, EP_PLAIN, EP_RECV, false, true>)
EP_KERNEL(40ht_combine_kernel_expert_gradients_piped, C1, ep_combine,
          ep_combine_call<ep_by_expert, EP_GRADIENTS, EP_FUSED, false, true>)
