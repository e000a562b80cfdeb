/* lib/kernels.c: the compiled kernels.cu, as the build made it. */
#include "tools/lib/kernels.h"

#include <stddef.h>

#ifdef TOOL_FATBIN
extern const unsigned char tool_kernels_image[];
__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl tool_kernels_image\n"
        ".hidden tool_kernels_image\n"
        ".type tool_kernels_image, @object\n"
        "tool_kernels_image:\n"
        ".incbin \"" TOOL_FATBIN "\"\n"
        ".byte 0\n"
        ".size tool_kernels_image, . - tool_kernels_image\n"
        ".previous\n");
const unsigned char *const tool_kernels = tool_kernels_image;
#else
const unsigned char *const tool_kernels = NULL;
#endif
