/* cuda/fake/kernels_ep.cpp: the kernels of expert parallelism for the CPU, and their names. */
#include "cuda/fake/kernels_ep.h"

#include "cuda/fake/simt.h"

#include "cuda/ep/kernels.cu"

#define BODY(NAME, CALL)                                                                                               \
    static void body_##NAME(const void *args)                                                                          \
    {                                                                                                                  \
        wefti_cuda_ep_##NAME(*(const wefti_cuda_ep_##CALL##_args *)args);                                              \
    }
BODY(dispatch, dispatch)
BODY(dispatch_quantised, dispatch)
BODY(combine_bwd, dispatch)
BODY(dispatch_expert, dispatch)
BODY(dispatch_expert_quantised, dispatch)
BODY(combine_expert_bwd, dispatch)
BODY(combine, combine)
BODY(dispatch_bwd, combine)
BODY(combine_expert, combine)
BODY(dispatch_expert_bwd, combine)
#undef BODY

extern "C" const fake_ep_kernel fake_ep_kernels[] = {
    {"wefti_cuda_ep_dispatch", body_dispatch},
    {"wefti_cuda_ep_dispatch_quantised", body_dispatch_quantised},
    {"wefti_cuda_ep_combine_bwd", body_combine_bwd},
    {"wefti_cuda_ep_dispatch_expert", body_dispatch_expert},
    {"wefti_cuda_ep_dispatch_expert_quantised", body_dispatch_expert_quantised},
    {"wefti_cuda_ep_combine_expert_bwd", body_combine_expert_bwd},
    {"wefti_cuda_ep_combine", body_combine},
    {"wefti_cuda_ep_dispatch_bwd", body_dispatch_bwd},
    {"wefti_cuda_ep_combine_expert", body_combine_expert},
    {"wefti_cuda_ep_dispatch_expert_bwd", body_dispatch_expert_bwd},
    {0, 0},
};
