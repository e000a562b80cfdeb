/* cuda/driver/context.c: the context of a PE's device, and streams in it. */
#include "cuda/device.h"

weft_status wefti_cuda_enter(const wefti_cuda *cuda)
{
    return wefti_cuda_check(&cuda->driver, cuda->driver.cuCtxPushCurrent(cuda->context), "cuCtxPushCurrent");
}

void wefti_cuda_leave(const wefti_cuda *cuda)
{
    CUcontext gone;
    (void)cuda->driver.cuCtxPopCurrent(&gone);
}

weft_status wefti_cuda_stream_create(const wefti_cuda *cuda, CUstream *stream)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    int least = 0;
    int greatest = 0;
    WEFT_TRY(wefti_cuda_check(driver, driver->cuCtxGetStreamPriorityRange(&least, &greatest),
                              "cuCtxGetStreamPriorityRange"));
    return wefti_cuda_check(driver, driver->cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, greatest),
                            "cuStreamCreateWithPriority");
}
