/* cuda/ep/throughput/dispatch_eager.cu: dispatches whose rows leave with send: behind send the rows, as they are or
 * made fp8, of both layouts; recv. */
#include "cuda/ep/throughput/dispatch.cuh"

typedef wefti_cuda_ep_eager_dispatch_args ep_eager_dispatch;

EP_KERNEL(21dispatch_kernel_eager, C2, ep_eager_dispatch, ep_dispatch_rows<ep_eager<ep_as_they_are>>)
EP_KERNEL(31dispatch_kernel_quantised_eager, C2, ep_eager_dispatch, ep_dispatch_rows<ep_eager<ep_as_fp8>>)
EP_KERNEL(34dispatch_kernel_quantised_mx_eager, C2, ep_eager_dispatch, ep_dispatch_rows<ep_eager<ep_as_mxfp8>>)
EP_KERNEL(21dispatch_kernel_eager, C3, ep_eager_dispatch, ep_dispatch_recv_eager<ep_by_source>)
EP_KERNEL(28dispatch_kernel_expert_eager, C3, ep_eager_dispatch, ep_dispatch_recv_eager<ep_by_expert>)
