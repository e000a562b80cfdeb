/* cuda/ep/host/kernels.h: the kernels of expert parallelism as the library carries them: a fat binary for each .cu. */
#ifndef WEFTI_CUDA_EP_HOST_KERNELS_H
#define WEFTI_CUDA_EP_HOST_KERNELS_H

/* X(FOLDER_NAME, family), for src/cuda/ep/FOLDER/NAME.cu. A group loads those of the families that it may launch. */
#define WEFTI_CUDA_EP_MODULES(X)                                                                                       \
    X(routing_before, WEFTI_CUDA_EP_FOR_ALL)                                                                           \
    X(routing_after, WEFTI_CUDA_EP_FOR_ALL)                                                                            \
    X(throughput_dispatch, WEFTI_CUDA_EP_FOR_FEW)                                                                      \
    X(throughput_dispatch_quantised, WEFTI_CUDA_EP_FOR_FEW)                                                            \
    X(throughput_dispatch_expert, WEFTI_CUDA_EP_FOR_FEW)                                                               \
    X(throughput_dispatch_expert_quantised, WEFTI_CUDA_EP_FOR_FEW)                                                     \
    X(throughput_dispatch_mx, WEFTI_CUDA_EP_FOR_FEW)                                                                   \
    X(throughput_combine, WEFTI_CUDA_EP_FOR_FEW)                                                                       \
    X(throughput_combine_piped, WEFTI_CUDA_EP_FOR_FEW)                                                                 \
    X(throughput_combine_options, WEFTI_CUDA_EP_FOR_FEW)                                                               \
    X(backward_combine_bwd, WEFTI_CUDA_EP_FOR_FEW)                                                                     \
    X(backward_dispatch_bwd, WEFTI_CUDA_EP_FOR_FEW)                                                                    \
    X(throughput_dispatch_positions, WEFTI_CUDA_EP_FOR_POSITIONS)                                                      \
    X(throughput_combine_positions, WEFTI_CUDA_EP_FOR_POSITIONS)                                                       \
    X(backward_positions, WEFTI_CUDA_EP_FOR_POSITIONS)                                                                 \
    X(throughput_dispatch_eager, WEFTI_CUDA_EP_FOR_EAGER)                                                              \
    X(throughput_combine_eager, WEFTI_CUDA_EP_FOR_EAGER)                                                               \
    X(low_latency_dispatch, WEFTI_CUDA_EP_FOR_LOW_LATENCY)                                                             \
    X(low_latency_dispatch_expert, WEFTI_CUDA_EP_FOR_LOW_LATENCY)                                                      \
    X(low_latency_dispatch_mx, WEFTI_CUDA_EP_FOR_LOW_LATENCY)                                                          \
    X(low_latency_combine, WEFTI_CUDA_EP_FOR_LOW_LATENCY)                                                              \
    X(low_latency_combine_options, WEFTI_CUDA_EP_FOR_LOW_LATENCY)                                                      \
    X(low_latency_dispatch_passing, WEFTI_CUDA_EP_FOR_PASSING)                                                         \
    X(low_latency_dispatch_expert_passing, WEFTI_CUDA_EP_FOR_PASSING)                                                  \
    X(low_latency_dispatch_mx_passing, WEFTI_CUDA_EP_FOR_PASSING)                                                      \
    X(low_latency_combine_passing, WEFTI_CUDA_EP_FOR_PASSING)                                                          \
    X(low_latency_combine_options_passing, WEFTI_CUDA_EP_FOR_PASSING)                                                  \
    X(many_dispatch, WEFTI_CUDA_EP_FOR_MANY)                                                                           \
    X(many_dispatch_quantised, WEFTI_CUDA_EP_FOR_MANY)                                                                 \
    X(many_dispatch_mx, WEFTI_CUDA_EP_FOR_MANY)                                                                        \
    X(many_combine, WEFTI_CUDA_EP_FOR_MANY)                                                                            \
    X(many_dispatch_positions, WEFTI_CUDA_EP_FOR_MANY_POSITIONS)                                                       \
    X(many_combine_positions, WEFTI_CUDA_EP_FOR_MANY_POSITIONS)                                                        \
    X(many_dispatch_passing, WEFTI_CUDA_EP_FOR_MANY_PASSING)                                                           \
    X(many_combine_passing, WEFTI_CUDA_EP_FOR_MANY_PASSING)                                                            \
    X(domains_crossing, WEFTI_CUDA_EP_FOR_DOMAINS)                                                                     \
    X(domains_direct, WEFTI_CUDA_EP_FOR_DOMAINS)                                                                       \
    X(domains_local, WEFTI_CUDA_EP_FOR_DOMAINS)                                                                        \
    X(domains_values, WEFTI_CUDA_EP_FOR_DOMAINS)

typedef enum wefti_cuda_ep_family {
    WEFTI_CUDA_EP_FOR_ALL,
    WEFTI_CUDA_EP_FOR_FEW, /* groups of no more ranks than a warp has lanes */
    WEFTI_CUDA_EP_FOR_POSITIONS, /* beside those, with a route of WEFT_EP_DESTINATIONS */
    WEFTI_CUDA_EP_FOR_EAGER, /* those with WEFT_EP_ROWS_WITH_SEND */
    WEFTI_CUDA_EP_FOR_LOW_LATENCY, /* those of FOR_FEW with memory for slots of few tokens */
    WEFTI_CUDA_EP_FOR_PASSING, /* in place of those, with WEFT_EP_MASK_ON_TIMEOUT */
    WEFTI_CUDA_EP_FOR_MANY, /* groups of more ranks */
    WEFTI_CUDA_EP_FOR_MANY_POSITIONS, /* beside those, with a route of WEFT_EP_DESTINATIONS */
    WEFTI_CUDA_EP_FOR_MANY_PASSING, /* beside those, with WEFT_EP_MASK_ON_TIMEOUT */
    WEFTI_CUDA_EP_FOR_DOMAINS /* groups of several domains, beside those of the groups inside them */
} wefti_cuda_ep_family;

typedef enum wefti_cuda_ep_module {
#define WEFTI_CUDA_EP_MODULE(NAME, family) WEFTI_CUDA_EP_MODULE_##NAME,
    WEFTI_CUDA_EP_MODULES(WEFTI_CUDA_EP_MODULE)
#undef WEFTI_CUDA_EP_MODULE
        WEFTI_CUDA_EP_MODULE_COUNT
} wefti_cuda_ep_module;

/* The fat binary of a module. */
const void *wefti_cuda_ep_image(wefti_cuda_ep_module module);

#endif
