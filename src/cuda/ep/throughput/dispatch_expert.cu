/* cuda/ep/throughput/dispatch_expert.cu: dispatches by expert, and updates: whole, send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(25ht_dispatch_kernel_expert, C1, ep_dispatch, ep_dispatch_call<ep_by_expert, ep_as_they_are, EP_FUSED>)
EP_KERNEL(25ht_dispatch_kernel_expert, C2, ep_dispatch, ep_dispatch_call<ep_by_expert, ep_as_they_are, EP_SEND>)
EP_KERNEL(25ht_dispatch_kernel_expert, C3, ep_dispatch, ep_dispatch_call<ep_by_expert, ep_as_they_are, EP_RECV>)
