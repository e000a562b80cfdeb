/* cuda/ep/backward/dispatch_bwd.cu: by expert the backward of dispatch: a combine of gradients, beside which gradients
 * of weights come back. By source it is a combine with options, which is as fast; by expert that takes 1.03 to 1.08 of
 * this (bench/gpu/ep.md). */
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(34ht_combine_kernel_expert_gradients, C1, ep_combine, ep_combine_call<ep_by_expert, EP_GRADIENTS, EP_FUSED>)
