/* cuda/kernels.h: the library's own kernels, a fat binary inside it; see kernels.cu. */
#ifndef WEFTI_CUDA_KERNELS_H
#define WEFTI_CUDA_KERNELS_H

#include <stdint.h>

extern const unsigned char wefti_cuda_kernels[];

/* The arguments of the kernel "wefti_cuda_amo". */
typedef struct wefti_cuda_amo_args {
    int32_t op;
    int32_t bits;
    uint64_t word;
    uint64_t value;
    uint64_t cond;
    uint64_t old; /* address of the word that gets the value before */
} wefti_cuda_amo_args;

#endif
