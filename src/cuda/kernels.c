/* cuda/kernels.c: the compiled kernels.cu, as the build made it. */
#include "cuda/kernels.h"

__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl wefti_cuda_kernels\n"
        ".hidden wefti_cuda_kernels\n"
        ".type wefti_cuda_kernels, @object\n"
        "wefti_cuda_kernels:\n"
        ".incbin \"" WEFT_CUDA_FATBIN "\"\n"
        ".byte 0\n"
        ".size wefti_cuda_kernels, . - wefti_cuda_kernels\n"
        ".previous\n");
