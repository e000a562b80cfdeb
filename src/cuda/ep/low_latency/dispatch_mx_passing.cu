/* cuda/ep/low_latency/dispatch_mx_passing.cu: those of dispatch_mx.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/dispatch_mx.cu"
