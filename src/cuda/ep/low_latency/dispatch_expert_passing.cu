/* cuda/ep/low_latency/dispatch_expert_passing.cu: those of dispatch_expert.cu that pass ranks by (passing.cuh). */
#define WEFTI_CUDA_EP_PASSING
#include "cuda/ep/low_latency/dispatch_expert.cu"
