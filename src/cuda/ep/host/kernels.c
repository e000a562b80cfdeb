/* cuda/ep/host/kernels.c: the compiled .cu files of expert parallelism, as the build made them. */
#include "cuda/ep/host/kernels.h"

#define IMAGE(NAME, family)                                                                                            \
    __asm__(".section .rodata\n"                                                                                       \
            ".balign 64\n"                                                                                             \
            ".globl wefti_cuda_ep_image_" #NAME "\n"                                                                   \
            ".hidden wefti_cuda_ep_image_" #NAME "\n"                                                                  \
            ".type wefti_cuda_ep_image_" #NAME ", @object\n"                                                           \
            "wefti_cuda_ep_image_" #NAME ":\n"                                                                         \
            ".incbin \"" WEFT_CUDA_EP_FATBINS "/" #NAME ".fatbin\"\n"                                                  \
            ".byte 0\n"                                                                                                \
            ".size wefti_cuda_ep_image_" #NAME ", . - wefti_cuda_ep_image_" #NAME "\n"                                 \
            ".previous\n");                                                                                            \
    extern const unsigned char wefti_cuda_ep_image_##NAME[] __attribute__((visibility("hidden")));
WEFTI_CUDA_EP_MODULES(IMAGE)
#undef IMAGE

const void *wefti_cuda_ep_image(wefti_cuda_ep_module module)
{
    static const unsigned char *const images[] = {
#define ADDRESS(NAME, family) [WEFTI_CUDA_EP_MODULE_##NAME] = wefti_cuda_ep_image_##NAME,
        WEFTI_CUDA_EP_MODULES(ADDRESS)
#undef ADDRESS
    };
    return images[module];
}
