/* cuda/ep/low_latency/dispatch_passing.cu: those of dispatch.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/dispatch.cu"
