/* cuda/ep/kernels.cu: the kernels of expert parallelism, sm_90 and later. */
#include "cuda/ep/early_combine.cuh"
#include "cuda/ep/early_dispatch.cuh"
