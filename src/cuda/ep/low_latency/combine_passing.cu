/* cuda/ep/low_latency/combine_passing.cu: those of combine.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/combine.cu"
