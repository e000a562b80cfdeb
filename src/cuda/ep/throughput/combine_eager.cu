/* cuda/ep/throughput/combine_eager.cu: combines whose rows leave with send: behind send the rows; recv, without options
 * and with. */
#include "cuda/ep/throughput/combine.cuh"

typedef wefti_cuda_ep_eager_combine_args ep_eager_combine;

#define EP_EAGER_COMBINE(NAME, LAYOUT)                                                                                 \
    EP_KERNEL(NAME, C2, ep_eager_combine, ep_combine_rows<LAYOUT>)                                                     \
    EP_KERNEL(NAME, C3, ep_eager_combine, ep_combine_recv_eager<LAYOUT, EP_PLAIN>)                                     \
    EP_KERNEL(NAME, C5, ep_eager_combine, ep_combine_recv_eager<LAYOUT, EP_WITH_OPTIONS>)

EP_EAGER_COMBINE(20combine_kernel_eager, ep_by_source)
EP_EAGER_COMBINE(27combine_kernel_expert_eager, ep_by_expert)
