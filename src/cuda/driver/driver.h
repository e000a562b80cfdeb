/* cuda/driver/driver.h: the CUDA driver, loaded when a world attaches a device: a table of its functions, one a world's
 * PE. The header cuda.h gives their types; nothing is linked. */
#ifndef WEFTI_CUDA_DRIVER_H
#define WEFTI_CUDA_DRIVER_H

#include <cuda.h>

#include "base/error.h"

/* cuda.h renames some of these to their current version (cuMemAlloc to cuMemAlloc_v2): the table gets the new name. */
#define WEFTI_CUDA_FUNCTIONS(X)                                                                                        \
    X(cuInit)                                                                                                          \
    X(cuGetErrorString)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGetUuid)                                                                                                 \
    X(cuDeviceGetPCIBusId)                                                                                             \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceTotalMem)                                                                                                \
    X(cuDeviceCanAccessPeer)                                                                                           \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuDevicePrimaryCtxGetState)                                                                                      \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxGetDevice)                                                                                                  \
    X(cuCtxGetId)                                                                                                      \
    X(cuCtxPushCurrent)                                                                                                \
    X(cuCtxPopCurrent)                                                                                                 \
    X(cuCtxEnablePeerAccess)                                                                                           \
    X(cuDeviceGetP2PAttribute)                                                                                         \
    X(cuMemAddressReserve)                                                                                             \
    X(cuMemAddressFree)                                                                                                \
    X(cuMemGetAllocationGranularity)                                                                                   \
    X(cuMemCreate)                                                                                                     \
    X(cuMemRelease)                                                                                                    \
    X(cuMemMap)                                                                                                        \
    X(cuMemUnmap)                                                                                                      \
    X(cuMemSetAccess)                                                                                                  \
    X(cuMemExportToShareableHandle)                                                                                    \
    X(cuMemImportFromShareableHandle)                                                                                  \
    X(cuMemRetainAllocationHandle)                                                                                     \
    X(cuMemGetAddressRange)                                                                                            \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuIpcGetMemHandle)                                                                                               \
    X(cuIpcOpenMemHandle)                                                                                              \
    X(cuIpcCloseMemHandle)                                                                                             \
    X(cuMemAllocHost)                                                                                                  \
    X(cuMemFreeHost)                                                                                                   \
    X(cuMemPoolCreate)                                                                                                 \
    X(cuMemPoolDestroy)                                                                                                \
    X(cuMemPoolSetAttribute)                                                                                           \
    X(cuMemAllocFromPoolAsync)                                                                                         \
    X(cuMemFreeAsync)                                                                                                  \
    X(cuMemHostRegister)                                                                                               \
    X(cuMemHostUnregister)                                                                                             \
    X(cuMemHostGetDevicePointer)                                                                                       \
    X(cuMemcpyAsync)                                                                                                   \
    X(cuMemcpyDtoDAsync)                                                                                               \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuCtxGetStreamPriorityRange)                                                                                     \
    X(cuStreamCreateWithPriority)                                                                                      \
    X(cuThreadExchangeStreamCaptureMode)                                                                               \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamSynchronize)                                                                                             \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy)                                                                                                  \
    X(cuEventRecord)                                                                                                   \
    X(cuEventQuery)                                                                                                    \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleGetFunction)                                                                                             \
    X(cuFuncLoad)                                                                                                      \
    X(cuFuncGetAttribute)                                                                                              \
    X(cuFuncSetAttribute)                                                                                              \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                     \
    X(cuLaunchCooperativeKernel)                                                                                       \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuLaunchKernel)

#define WEFTI_CUDA_LIBRARY "libcuda.so.1"

typedef struct wefti_cuda_driver {
    void *library;
#define WEFTI_CUDA_FIELD(function) __typeof__(&function) function;
    WEFTI_CUDA_FUNCTIONS(WEFTI_CUDA_FIELD)
#undef WEFTI_CUDA_FIELD
} wefti_cuda_driver;

/* Load libcuda.so.1 and start it. WEFT_ERR_UNSUPPORTED: no driver, too old a driver, no GPU. */
weft_status wefti_cuda_driver_open(wefti_cuda_driver *driver);
void wefti_cuda_driver_close(wefti_cuda_driver *driver); /* safe on zeroed memory */

/* WEFT_OK, or the failure of `call` as an error of the calling thread: CUDA_ERROR_OUT_OF_MEMORY is WEFT_ERR_MEMORY, the
 * others are WEFT_ERR_SYSTEM. */
weft_status wefti_cuda_check(const wefti_cuda_driver *driver, CUresult result, const char *call);

#endif
