/* faces/nvshmem/bitcode/cuda_fp16.h: half as its bits, as CUDA's header passes it. */
#ifndef WEFTI_NVSHMEM_BITCODE_CUDA_FP16_H
#define WEFTI_NVSHMEM_BITCODE_CUDA_FP16_H

struct alignas(2) half {
    unsigned short x;
};

#endif
