/* cuda/proxy/latch.c: a failure that nobody waits for. */
#include "cuda/proxy/far.h"

void wefti_far_latch(wefti_cuda_far *far, weft_status status, int culprit)
{
    const wefti_cuda *cuda = far->cuda;
    const wefti_dev_control *control = (const wefti_dev_control *)(const void *)cuda->slot;
    const wefti_cuda_word_args args = {
        .what = WEFTI_CUDA_AMO,
        .op = WEFTI_AMO_COMPARE_SWAP,
        .bits = 64,
        .at = (uintptr_t)&control->fault,
        .value = WEFTI_DEV_FAULT_SET | (uint64_t)(uint32_t)(culprit + 1) << 32 | (uint32_t)-status,
    };
    wefti_world_latch(cuda->world, status, culprit);
    if (wefti_cuda_launch(cuda, WEFTI_CUDA_KERNEL_word, 1, 0, &args, far->asked.stream) == WEFT_OK) {
        (void)cuda->driver.cuStreamSynchronize(far->asked.stream);
    }
}
