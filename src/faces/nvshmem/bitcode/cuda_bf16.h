/* faces/nvshmem/bitcode/cuda_bf16.h: bfloat16 as its bits, as CUDA's header passes it. */
#ifndef WEFTI_NVSHMEM_BITCODE_CUDA_BF16_H
#define WEFTI_NVSHMEM_BITCODE_CUDA_BF16_H

struct alignas(2) __nv_bfloat16 {
    unsigned short x;
};

#endif
