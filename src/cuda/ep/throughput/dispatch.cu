/* cuda/ep/throughput/dispatch.cu: dispatches by source, and updates: whole, send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(18ht_dispatch_kernel, C1, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_they_are, EP_FUSED>)
EP_KERNEL(18ht_dispatch_kernel, C2, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_they_are, EP_SEND>)
EP_KERNEL(18ht_dispatch_kernel, C3, ep_dispatch, ep_dispatch_call<ep_by_source, ep_as_they_are, EP_RECV>)
