/* faces/nccl_ep/driver.c: the CUDA driver and NCCL, loaded at run time. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "faces/nccl_ep/face.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nep_cuda cuda;
static nep_nccl nccl;

/* A function pointer from dlsym, which C has no cast for. */
static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int find_cuda(void *library)
{
    return find(library, "cuCtxGetDevice", (void *)&cuda.ctx_get_device) &&
           find(library, "cuCtxGetCurrent", (void *)&cuda.ctx_get_current) &&
           find(library, "cuCtxSetCurrent", (void *)&cuda.ctx_set_current) &&
           find(library, "cuCtxSynchronize", (void *)&cuda.ctx_synchronize) &&
           find(library, "cuDevicePrimaryCtxRetain", (void *)&cuda.primary_ctx_retain) &&
           find(library, "cuDeviceGetAttribute", (void *)&cuda.device_get_attribute) &&
           find(library, "cuPointerGetAttribute", (void *)&cuda.pointer_get_attribute) &&
           find(library, "cuMemAlloc_v2", (void *)&cuda.mem_alloc) &&
           find(library, "cuMemFree_v2", (void *)&cuda.mem_free) &&
           find(library, "cuThreadExchangeStreamCaptureMode", (void *)&cuda.exchange_capture_mode) &&
           find(library, "cuMemcpyAsync", (void *)&cuda.memcpy_async) &&
           find(library, "cuMemsetD8Async", (void *)&cuda.memset_async) &&
           find(library, "cuStreamCreateWithPriority", (void *)&cuda.stream_create) &&
           find(library, "cuStreamSynchronize", (void *)&cuda.stream_synchronize) &&
           find(library, "cuStreamDestroy_v2", (void *)&cuda.stream_destroy);
}

static int find_nccl(void *library)
{
    (void)find(library, "ncclWinGetUserPtr", (void *)&nccl.window_pointer);
    (void)find(library, "ncclCommCuDevice", (void *)&nccl.comm_device);
    nccl.has_windows = find(library, "ncclMemAlloc", (void *)&nccl.mem_alloc) &&
                       find(library, "ncclMemFree", (void *)&nccl.mem_free) &&
                       find(library, "ncclCommWindowRegister", (void *)&nccl.window_register) &&
                       find(library, "ncclCommWindowDeregister", (void *)&nccl.window_deregister) &&
                       find(library, "ncclGetLsaDevicePointer", (void *)&nccl.lsa_pointer) &&
                       nccl.window_pointer != NULL;
    return find(library, "ncclCommCount", (void *)&nccl.comm_count) &&
           find(library, "ncclCommUserRank", (void *)&nccl.comm_rank) &&
           find(library, "ncclAllGather", (void *)&nccl.all_gather);
}

const nep_cuda *nep_load_cuda(const char *call)
{
    static int is_loaded;
    (void)pthread_mutex_lock(&lock);
    if (!is_loaded) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        is_loaded = library != NULL && find_cuda(library);
    }
    int found = is_loaded;
    (void)pthread_mutex_unlock(&lock);
    if (!found) {
        (void)nep_fail(ncclSystemError, "%s: the CUDA driver (libcuda.so.1) cannot be loaded, so there is no group",
                       call);
    }
    return found ? &cuda : NULL;
}

const nep_nccl *nep_load_nccl(const char *call)
{
    static int is_loaded;
    (void)pthread_mutex_lock(&lock);
    if (!is_loaded) { /* the program's own, which made its communicator, comes first */
        is_loaded = find_nccl(RTLD_DEFAULT);
    }
    if (!is_loaded) {
        void *library = dlopen("libnccl.so.2", RTLD_NOW);
        is_loaded = library != NULL && find_nccl(library);
    }
    int found = is_loaded;
    (void)pthread_mutex_unlock(&lock);
    if (!found) {
        (void)nep_fail(ncclSystemError, "%s: NCCL (libnccl.so.2) cannot be loaded, so there is no group", call);
    }
    return found ? &nccl : NULL;
}
