/* faces/nvshmem/driver.h: what the face itself asks of CUDA's driver, which is loaded when it is first needed. */
#ifndef WEFTI_NVSHMEM_DRIVER_H
#define WEFTI_NVSHMEM_DRIVER_H

#include "faces/nvshmem/face.h"

typedef unsigned long long wefti_nv_address; /* CUdeviceptr */
typedef struct CUctx_st wefti_nv_context;

/* X(FIELD, NAME in libcuda.so.1, PARAMETERS); each returns 0 or CUDA's error. */
#define WEFTI_NV_DRIVER_TABLE(X)                                                                                       \
    X(ctx_current, "cuCtxGetCurrent", (wefti_nv_context * *context))                                                   \
    X(ctx_device, "cuCtxGetDevice", (int *device))                                                                     \
    X(device_uuid, "cuDeviceGetUuid_v2", (unsigned char uuid[16], int device))                                         \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                               \
    X(ctx_set, "cuCtxSetCurrent", (wefti_nv_context * context))                                                        \
    X(ctx_push, "cuCtxPushCurrent_v2", (wefti_nv_context * context))                                                   \
    X(ctx_pop, "cuCtxPopCurrent_v2", (wefti_nv_context * *context))                                                    \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (wefti_nv_context * *context, int device))                           \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                                   \
    X(mem_alloc, "cuMemAlloc_v2", (wefti_nv_address * address, size_t bytes))                                          \
    X(mem_free, "cuMemFree_v2", (wefti_nv_address address))                                                            \
    X(mem_copy, "cuMemcpyAsync",                                                                                       \
      (wefti_nv_address to, wefti_nv_address from, size_t bytes, struct CUstream_st * stream))                         \
    X(mem_set, "cuMemsetD8Async",                                                                                      \
      (wefti_nv_address to, unsigned char value, size_t bytes, struct CUstream_st *stream))                            \
    X(host_register, "cuMemHostRegister_v2", (void *at, size_t bytes, unsigned flags))                                 \
    X(host_unregister, "cuMemHostUnregister", (void *at))                                                              \
    X(stream_create, "cuStreamCreateWithPriority", (struct CUstream_st * *stream, unsigned flags, int priority))       \
    X(stream_destroy, "cuStreamDestroy_v2", (struct CUstream_st * stream))                                             \
    X(stream_synchronize, "cuStreamSynchronize", (struct CUstream_st * stream))                                        \
    X(launch_cooperative, "cuLaunchCooperativeKernel",                                                                 \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,          \
       unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments))

/* Those that older drivers and the fake one may lack: NULL then. */
#define WEFTI_NV_DRIVER_EXTRAS(X)                                                                                      \
    X(pointer_attribute, "cuPointerGetAttribute", (void *value, int attribute, wefti_nv_address address))              \
    X(launch_config, "cuLaunchKernelEx", (const void *config, void *function, void **arguments, void **extra))         \
    X(module_global, "cuModuleGetGlobal_v2",                                                                           \
      (wefti_nv_address * address, size_t * bytes, struct CUmod_st * module, const char *name))                        \
    X(library_global, "cuLibraryGetGlobal",                                                                            \
      (wefti_nv_address * address, size_t * bytes, struct CUlib_st * library, const char *name))

typedef struct wefti_nv_driver {
#define WEFTI_NV_DRIVER_FIELD(FIELD, NAME, PARAMETERS) int(*FIELD) PARAMETERS;
    WEFTI_NV_DRIVER_TABLE(WEFTI_NV_DRIVER_FIELD)
    WEFTI_NV_DRIVER_EXTRAS(WEFTI_NV_DRIVER_FIELD)
#undef WEFTI_NV_DRIVER_FIELD
} wefti_nv_driver;

/* NULL when there is no driver, or it lacks something. Loaded once; any thread. */
HIDDEN const wefti_nv_driver *wefti_nv_driver_open(void);

#endif
