/* cuda/stream/launch.c: the library's kernels: found and loaded at attach, put on streams later; and users' that
 * wait. */
#include "cuda/device.h"

static const struct {
    const char *name;
    unsigned threads;
    wefti_cuda_when when;
} kernels[] = {
#define KERNEL(NAME, threads, when) {"wefti_cuda_" #NAME, threads, when},
    WEFTI_CUDA_KERNELS(KERNEL)
#undef KERNEL
};

static weft_status load(const wefti_cuda *cuda, wefti_cuda_when when)
{
    for (int i = 0; i < WEFTI_CUDA_KERNEL_COUNT; i++) {
        if (kernels[i].when == when) {
            WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuFuncLoad(cuda->kernels[i]), "cuFuncLoad"));
        }
    }
    return WEFT_OK;
}

weft_status wefti_cuda_kernels_load(wefti_cuda *cuda)
{
    const wefti_cuda_driver *driver = &cuda->driver;
    for (int i = 0; i < WEFTI_CUDA_KERNEL_COUNT; i++) {
        WEFT_TRY(wefti_cuda_check(driver, driver->cuModuleGetFunction(&cuda->kernels[i], cuda->module, kernels[i].name),
                                  "cuModuleGetFunction"));
    }
    int version; /* of the architecture that the kernels were compiled for */
    WEFT_TRY(wefti_cuda_check(
        driver,
        driver->cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, cuda->kernels[WEFTI_CUDA_KERNEL_sync]),
        "cuFuncGetAttribute"));
    cuda->can_be_early = version >= 90;
    return load(cuda, WEFTI_CUDA_AT_ATTACH);
}

weft_status wefti_cuda_far_kernels_load(const wefti_cuda *cuda)
{
    return load(cuda, WEFTI_CUDA_FOR_FAR);
}

weft_status wefti_cuda_stream_ready(wefti_device *device)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = load(cuda, WEFTI_CUDA_FOR_COLLECTIVES);
    wefti_cuda_leave(cuda);
    return status;
}

weft_status wefti_cuda_launch(const wefti_cuda *cuda, wefti_cuda_kernel kernel, int blocks, int is_early,
                              const void *args, CUstream stream)
{
    void *arguments[] = {(void *)(uintptr_t)args}; /* cuLaunchKernel reads it, and copies what it points to */
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    early.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {
        .gridDimX = (unsigned)blocks,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = kernels[kernel].threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream,
        .attrs = &early,
        .numAttrs = is_early && cuda->can_be_early,
    };
    CUresult result = cuda->driver.cuLaunchKernelEx(&config, cuda->kernels[kernel], arguments, NULL);
    return wefti_cuda_check(&cuda->driver, result, "cuLaunchKernelEx (is the stream one of this PE's GPU?)");
}

/* ---- users' kernels ---- */

static CUfunction function_of(const weft_kernel *kernel)
{
    return (CUfunction)(uintptr_t)kernel;
}

static weft_status occupancy(wefti_device *device, const weft_kernel *kernel, const weft_launch *launch,
                             int *blocks_per_sm, int *sms)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks_per_sm, function_of(kernel),
                                                                               launch->threads, launch->shared_bytes);
    wefti_cuda_leave(cuda);
    *sms = cuda->sms;
    return wefti_cuda_check(&cuda->driver, result,
                            "cuOccupancyMaxActiveBlocksPerMultiprocessor (is the kernel a CUfunction?)");
}

static weft_status launch_together(wefti_device *device, const weft_kernel *kernel, const weft_launch *launch,
                                   void *const *arguments, weft_stream *stream)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuLaunchCooperativeKernel(
        function_of(kernel), (unsigned)launch->blocks, 1, 1, (unsigned)launch->threads, 1, 1,
        (unsigned)launch->shared_bytes, (CUstream)(void *)stream, (void **)(uintptr_t)arguments);
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, "cuLaunchCooperativeKernel");
}

const wefti_device_launch_ops wefti_cuda_launches = {
    .occupancy = occupancy,
    .launch = launch_together,
};
