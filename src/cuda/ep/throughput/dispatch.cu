/* cuda/ep/throughput/dispatch.cu: dispatches by source, and updates: whole, send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(15dispatch_kernel, C1, ep_dispatch, ep_dispatch_all<false, ep_as_they_are>)
EP_KERNEL(15dispatch_kernel, C2, ep_dispatch, ep_dispatch_send<false>)
EP_KERNEL(15dispatch_kernel, C3, ep_dispatch, ep_dispatch_recv<false, ep_as_they_are>)
