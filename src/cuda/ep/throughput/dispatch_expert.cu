/* cuda/ep/throughput/dispatch_expert.cu: dispatches by expert, and updates: whole, send, recv. */
#include "cuda/ep/throughput/dispatch.cuh"

EP_KERNEL(22dispatch_kernel_expert, C1, ep_dispatch, ep_dispatch_all<ep_by_expert, ep_as_they_are>)
EP_KERNEL(22dispatch_kernel_expert, C2, ep_dispatch, ep_dispatch_send<ep_by_expert>)
EP_KERNEL(22dispatch_kernel_expert, C3, ep_dispatch, ep_dispatch_recv<ep_by_expert, ep_as_they_are>)
