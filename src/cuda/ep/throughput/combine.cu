/* cuda/ep/throughput/combine.cu: combines without options: whole, send (also of those with), recv. */
#include "cuda/ep/throughput/combine.cuh"

EP_KERNEL(17ht_combine_kernel, C1, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_FUSED>)
EP_KERNEL(17ht_combine_kernel, C2, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_SEND>)
EP_KERNEL(17ht_combine_kernel, C3, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_RECV>)
EP_KERNEL(24ht_combine_kernel_expert, C1, ep_combine, ep_combine_call<ep_by_expert, EP_PLAIN, EP_FUSED>)
EP_KERNEL(24ht_combine_kernel_expert, C2, ep_combine, ep_combine_call<ep_by_source, EP_PLAIN, EP_SEND>)
EP_KERNEL(24ht_combine_kernel_expert, C3, ep_combine, ep_combine_call<ep_by_expert, EP_PLAIN, EP_RECV>)
