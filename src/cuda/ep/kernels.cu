/* cuda/ep/kernels.cu: the kernels of expert parallelism, sm_90 and later. */
#include "cuda/ep/low_latency/combine.cuh"
#include "cuda/ep/low_latency/dispatch.cuh"
