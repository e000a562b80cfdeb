/* cuda/fake/kernels_ep.cpp: the kernels of expert parallelism for the CPU, and their names. */
#include "cuda/fake/kernels_ep.h"

#include "cuda/fake/simt.h"

#include "cuda/ep/kernels.cu"

#define BODY(NAME)                                                                                                     \
    static void body_##NAME(const void *args)                                                                          \
    {                                                                                                                  \
        wefti_cuda_ep_##NAME(*(const wefti_cuda_ep_##NAME##_args *)args);                                              \
    }
BODY(dispatch)
BODY(combine)
#undef BODY

extern "C" const fake_ep_kernel fake_ep_kernels[] = {
    {"wefti_cuda_ep_dispatch", body_dispatch},
    {"wefti_cuda_ep_combine", body_combine},
    {0, 0},
};
