/* cuda/ep/host/kernels.c: the compiled kernels.cu, as the build made it. */
#include "cuda/ep/host/kernels.h"

__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl wefti_cuda_ep_kernels\n"
        ".hidden wefti_cuda_ep_kernels\n"
        ".type wefti_cuda_ep_kernels, @object\n"
        "wefti_cuda_ep_kernels:\n"
        ".incbin \"" WEFT_CUDA_EP_FATBIN "\"\n"
        ".byte 0\n"
        ".size wefti_cuda_ep_kernels, . - wefti_cuda_ep_kernels\n"
        ".previous\n");
