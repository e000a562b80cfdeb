/* cuda/ep/throughput/combine_options.cu: combines with options (device/combine_options.cuh): whole and recv in one. */
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(17ht_combine_kernel, C4, ep_combine, ep_combine_call<ep_by_source, EP_WITH_OPTIONS, EP_FUSED_OR_RECV>)
EP_KERNEL(24ht_combine_kernel_expert, C4, ep_combine, ep_combine_call<ep_by_expert, EP_WITH_OPTIONS, EP_FUSED_OR_RECV>)
