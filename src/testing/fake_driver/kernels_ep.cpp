/* testing/fake_driver/kernels_ep.cpp: the kernels of expert parallelism for the CPU, and their names. */
#include "testing/fake_driver/kernels_ep.h"

#include "testing/fake_driver/simt.h"

#include "cuda/ep/kernels.cu"

#define BODY(NAME, CALL)                                                                                               \
    static void body_##NAME(const void *args)                                                                          \
    {                                                                                                                  \
        wefti_cuda_ep_##NAME(*(const wefti_cuda_ep_##CALL##_args *)args);                                              \
    }
#define KERNELS(X)                                                                                                     \
    X(dispatch, dispatch)                                                                                              \
    X(dispatch_send, dispatch)                                                                                         \
    X(dispatch_recv, dispatch)                                                                                         \
    X(dispatch_quantised, dispatch)                                                                                    \
    X(dispatch_quantised_recv, dispatch)                                                                               \
    X(combine_bwd, dispatch)                                                                                           \
    X(dispatch_expert, dispatch)                                                                                       \
    X(dispatch_expert_send, dispatch)                                                                                  \
    X(dispatch_expert_recv, dispatch)                                                                                  \
    X(dispatch_expert_quantised, dispatch)                                                                             \
    X(dispatch_expert_quantised_recv, dispatch)                                                                        \
    X(destinations, dispatch)                                                                                          \
    X(combine_expert_bwd, dispatch)                                                                                    \
    X(combine, combine)                                                                                                \
    X(combine_send, combine)                                                                                           \
    X(combine_recv, combine)                                                                                           \
    X(dispatch_bwd, combine)                                                                                           \
    X(combine_expert, combine)                                                                                         \
    X(combine_expert_recv, combine)                                                                                    \
    X(combine_order, combine)                                                                                          \
    X(combine_expert_order, combine)                                                                                   \
    X(combine_with, combine)                                                                                           \
    X(combine_with_recv, combine)                                                                                      \
    X(combine_expert_with, combine)                                                                                    \
    X(combine_expert_with_recv, combine)                                                                                    \
    X(dispatch_expert_bwd, combine)                                                                                    \
    X(low_latency_dispatch, dispatch)                                                                                        \
    X(low_latency_dispatch_send, dispatch)                                                                                   \
    X(low_latency_dispatch_recv, dispatch)                                                                                   \
    X(low_latency_dispatch_quantised, dispatch)                                                                              \
    X(low_latency_dispatch_quantised_send, dispatch)                                                                         \
    X(low_latency_dispatch_quantised_recv, dispatch)                                                                         \
    X(low_latency_dispatch_expert, dispatch)                                                                                 \
    X(low_latency_dispatch_expert_send, dispatch)                                                                            \
    X(low_latency_dispatch_expert_recv, dispatch)                                                                            \
    X(low_latency_dispatch_expert_quantised, dispatch)                                                                       \
    X(low_latency_dispatch_expert_quantised_send, dispatch)                                                                  \
    X(low_latency_dispatch_expert_quantised_recv, dispatch)                                                                  \
    X(low_latency_combine, combine)                                                                                          \
    X(low_latency_combine_send, combine)                                                                                     \
    X(low_latency_combine_recv, combine)                                                                                     \
    X(low_latency_combine_expert, combine)                                                                                   \
    X(low_latency_combine_expert_send, combine)                                                                              \
    X(low_latency_combine_expert_recv, combine)                                                                              \
    X(low_latency_combine_with, combine)                                                                                     \
    X(low_latency_combine_with_recv, combine)                                                                                \
    X(low_latency_combine_expert_with, combine)                                                                              \
    X(low_latency_combine_expert_with_recv, combine)
KERNELS(BODY)
#undef BODY

extern "C" const fake_ep_kernel fake_ep_kernels[] = {
#define KERNEL(NAME, CALL) {"wefti_cuda_ep_" #NAME, body_##NAME},
    KERNELS(KERNEL)
#undef KERNEL
        {0, 0},
};
