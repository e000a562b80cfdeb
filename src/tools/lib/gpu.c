/* lib/gpu.c: the CUDA driver, as far as measuring needs it. Its functions are declared here, by the types that they
 * have where the library and this program meet: handles are pointers, device addresses 64-bit numbers. */
#include "tools/lib/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/kernels.h"

#define LIBRARY "libcuda.so.1"
#define NOT_SUPPORTED 801
#define NOT_FOUND 500
#define OUT_OF_MEMORY 2
#define MULTIPROCESSORS 16 /* values of CUdevice_attribute, CUstream_flags, CUevent_flags, CUstreamCaptureMode ... */
#define L2_CACHE_BYTES 38
#define NON_BLOCKING 1
#define RECORD_EXTERNAL 1
#define RECORD_DEFAULT 0
#define DISABLE_TIMING 2
#define CAPTURE_THREAD_LOCAL 1
#define MAX_DYNAMIC_SHARED_BYTES 8

/* X(name, parameters): what every driver for weft has, and, looked at before they are called, what not every one has.
 * */
#define NEEDED_FUNCTIONS(X)                                                                                            \
    X(cuInit, (unsigned))                                                                                              \
    X(cuGetErrorString, (int, const char **))                                                                          \
    X(cuDeviceGetCount, (int *))                                                                                       \
    X(cuDeviceGet, (int *, int))                                                                                       \
    X(cuDeviceGetAttribute, (int *, int, int))                                                                         \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    X(cuDevicePrimaryCtxRelease, (int))                                                                                \
    X(cuCtxPushCurrent, (void *))                                                                                      \
    X(cuCtxPopCurrent, (void **))                                                                                      \
    X(cuCtxGetStreamPriorityRange, (int *, int *))                                                                     \
    X(cuStreamCreateWithPriority, (void **, unsigned, int))                                                            \
    X(cuStreamDestroy, (void *))                                                                                       \
    X(cuStreamSynchronize, (void *))                                                                                   \
    X(cuMemAlloc, (uint64_t *, size_t))                                                                                \
    X(cuMemFree, (uint64_t))                                                                                           \
    X(cuMemAllocHost, (void **, size_t))                                                                               \
    X(cuMemFreeHost, (void *))                                                                                         \
    X(cuMemcpyAsync, (uint64_t, uint64_t, size_t, void *))                                                             \
    X(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                                                      \
    X(cuModuleLoadData, (void **, const void *))                                                                       \
    X(cuModuleUnload, (void *))                                                                                        \
    X(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    X(cuFuncLoad, (void *))                                                                                            \
    X(cuFuncSetAttribute, (void *, int, int))                                                                          \
    X(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
#define OTHER_FUNCTIONS(X)                                                                                             \
    X(cuEventCreate, (void **, unsigned))                                                                              \
    X(cuStreamWaitEvent, (void *, void *, unsigned))                                                                   \
    X(cuEventDestroy, (void *))                                                                                        \
    X(cuEventRecordWithFlags, (void *, void *, unsigned))                                                              \
    X(cuEventElapsedTime, (float *, void *, void *))                                                                   \
    X(cuStreamBeginCapture, (void *, int))                                                                             \
    X(cuStreamEndCapture, (void *, void **))                                                                           \
    X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                              \
    X(cuGraphLaunch, (void *, void *))                                                                                 \
    X(cuGraphExecDestroy, (void *))                                                                                    \
    X(cuGraphDestroy, (void *))                                                                                        \
    X(cuMemGetInfo, (size_t *, size_t *))

static struct {
    void *library;
    int count;
#define FIELD(name, parameters) int(*name) parameters;
    NEEDED_FUNCTIONS(FIELD)
    OTHER_FUNCTIONS(FIELD)
#undef FIELD
} driver;

struct tool_gpu {
    int number;
    void *context;
    void *stream;
    void *begun;
    void *ended;
    void *beside; /* the second stream, and the event by which each waits for the other; made when first needed */
    void *order;
    int is_capturing;
    int multiprocessors;
    int cache_bytes;
    void *module;
};

static weft_status check(int result, const char *call)
{
    const char *text = NULL;
    if (result == 0) {
        return WEFT_OK;
    }
    if (result == NOT_SUPPORTED) {
        return WEFT_ERR_UNSUPPORTED;
    }
    (void)driver.cuGetErrorString(result, &text);
    fprintf(stderr, "%s: %s: %s (CUDA error %d)\n", program_invocation_short_name, call, text != NULL ? text : "?",
            result);
    return result == OUT_OF_MEMORY ? WEFT_ERR_MEMORY : WEFT_ERR_SYSTEM;
}

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        weft_status try_status = check(driver.call, #call);                                                            \
        if (try_status != WEFT_OK) {                                                                                   \
            return try_status;                                                                                         \
        }                                                                                                              \
    } while (0)

/* A function's newest form: names with _v2 have the parameters of today's headers. */
static void *find(const char *name)
{
    char newest[64];
    snprintf(newest, sizeof newest, "%s_v2", name);
    void *function = dlsym(driver.library, newest);
    return function != NULL ? function : dlsym(driver.library, name);
}

int tool_gpu_count(void)
{
    if (driver.library != NULL) {
        return driver.count;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch must not wait for running kernels */
    driver.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (driver.library == NULL) {
        return 0;
    }
    int missing = 0;
    void *function;
#define FIND(name, parameters)                                                                                         \
    function = find(#name);                                                                                            \
    memcpy(&driver.name, &function, sizeof function);                                                                  \
    missing += function == NULL;
    OTHER_FUNCTIONS(FIND)
    missing = 0;
    NEEDED_FUNCTIONS(FIND)
#undef FIND
    int devices = 0;
    if (missing == 0 && driver.cuInit(0) == 0 && driver.cuDeviceGetCount(&devices) == 0) {
        driver.count = devices;
    }
    return driver.count;
}

static weft_status create_stream(void **stream)
{
    int least = 0;
    int greatest = 0;
    TRY(cuCtxGetStreamPriorityRange(&least, &greatest));
    TRY(cuStreamCreateWithPriority(stream, NON_BLOCKING, greatest));
    return WEFT_OK;
}

static weft_status open_in(tool_gpu *gpu)
{
    int device;
    TRY(cuDeviceGet(&device, gpu->number));
    TRY(cuDevicePrimaryCtxRetain(&gpu->context, device));
    TRY(cuCtxPushCurrent(gpu->context));
    TRY(cuDeviceGetAttribute(&gpu->multiprocessors, MULTIPROCESSORS, device));
    TRY(cuDeviceGetAttribute(&gpu->cache_bytes, L2_CACHE_BYTES, device));
    if (driver.cuEventCreate != NULL && driver.cuEventRecordWithFlags != NULL && driver.cuEventElapsedTime != NULL) {
        TRY(cuEventCreate(&gpu->begun, 0));
        TRY(cuEventCreate(&gpu->ended, 0));
    }
    if (tool_kernels != NULL) { /* loaded now, since loading later might wait for kernels that run */
        TRY(cuModuleLoadData(&gpu->module, tool_kernels));
    }
    return create_stream(&gpu->stream);
}

weft_status tool_gpu_open(int number, tool_gpu **gpu)
{
    if (number >= tool_gpu_count()) {
        fprintf(stderr, "%s: no GPU here, or no CUDA driver\n", program_invocation_short_name);
        return WEFT_ERR_UNSUPPORTED;
    }
    tool_gpu *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return WEFT_ERR_MEMORY;
    }
    made->number = number;
    weft_status status = open_in(made);
    if (status != WEFT_OK) {
        tool_gpu_close(made);
        return status;
    }
    *gpu = made;
    return WEFT_OK;
}

void tool_gpu_close(tool_gpu *gpu)
{
    void *popped;
    if (gpu == NULL) {
        return;
    }
    if (gpu->module != NULL) {
        (void)driver.cuModuleUnload(gpu->module);
    }
    void *const streams[] = {gpu->stream, gpu->beside};
    for (int i = 0; i < 2; i++) {
        if (streams[i] != NULL) {
            (void)driver.cuStreamDestroy(streams[i]);
        }
    }
    void *const events[] = {gpu->begun, gpu->ended, gpu->order};
    for (int i = 0; i < 3; i++) {
        if (events[i] != NULL && driver.cuEventDestroy != NULL) {
            (void)driver.cuEventDestroy(events[i]);
        }
    }
    if (gpu->context != NULL) {
        (void)driver.cuCtxPopCurrent(&popped);
        (void)driver.cuDevicePrimaryCtxRelease(gpu->number);
    }
    free(gpu);
}

weft_stream *tool_gpu_stream(const tool_gpu *gpu)
{
    return (weft_stream *)gpu->stream;
}

int tool_gpu_multiprocessors(const tool_gpu *gpu)
{
    return gpu->multiprocessors;
}

size_t tool_gpu_cache_bytes(const tool_gpu *gpu)
{
    return gpu->cache_bytes > 0 ? (size_t)gpu->cache_bytes : 1;
}

/* ---- memory ---- */

weft_status tool_gpu_malloc(tool_gpu *gpu, size_t bytes, void **at)
{
    uint64_t address;
    (void)gpu;
    TRY(cuMemAlloc(&address, bytes > 0 ? bytes : 1));
    *at = (void *)(uintptr_t)address;
    return WEFT_OK;
}

weft_status tool_gpu_free(tool_gpu *gpu, void *at)
{
    (void)gpu;
    TRY(cuMemFree((uintptr_t)at));
    return WEFT_OK;
}

weft_status tool_gpu_host_malloc(tool_gpu *gpu, size_t bytes, void **at)
{
    (void)gpu;
    TRY(cuMemAllocHost(at, bytes));
    return WEFT_OK;
}

weft_status tool_gpu_host_free(tool_gpu *gpu, void *at)
{
    (void)gpu;
    TRY(cuMemFreeHost(at));
    return WEFT_OK;
}

weft_status tool_gpu_free_bytes(tool_gpu *gpu, size_t *bytes)
{
    size_t all;
    (void)gpu;
    if (driver.cuMemGetInfo == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    TRY(cuMemGetInfo(bytes, &all));
    return WEFT_OK;
}

weft_status tool_gpu_copy(tool_gpu *gpu, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        TRY(cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, bytes, gpu->stream));
    }
    return tool_gpu_synchronise(gpu);
}

weft_status tool_gpu_fill(tool_gpu *gpu, void *at, unsigned char value, size_t bytes)
{
    TRY(cuMemsetD8Async((uintptr_t)at, value, bytes, gpu->stream));
    return WEFT_OK;
}

weft_status tool_gpu_synchronise(tool_gpu *gpu)
{
    TRY(cuStreamSynchronize(gpu->stream));
    return WEFT_OK;
}

/* ---- a second stream ---- */

static weft_status go_behind(const tool_gpu *gpu, void *later, void *earlier)
{
    TRY(cuEventRecordWithFlags(gpu->order, earlier, RECORD_DEFAULT));
    TRY(cuStreamWaitEvent(later, gpu->order, 0));
    return WEFT_OK;
}

weft_status tool_gpu_fork(tool_gpu *gpu, weft_stream **beside)
{
    if (gpu->begun == NULL || driver.cuStreamWaitEvent == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    if (gpu->order == NULL) {
        TRY(cuEventCreate(&gpu->order, DISABLE_TIMING));
    }
    if (gpu->beside == NULL) {
        weft_status status = create_stream(&gpu->beside);
        if (status != WEFT_OK) {
            return status;
        }
    }
    *beside = (weft_stream *)gpu->beside;
    return go_behind(gpu, gpu->beside, gpu->stream);
}

weft_status tool_gpu_join(tool_gpu *gpu)
{
    return go_behind(gpu, gpu->stream, gpu->beside);
}

/* ---- time ---- */

static weft_status mark(tool_gpu *gpu, void *event)
{
    if (event == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    TRY(cuEventRecordWithFlags(event, gpu->stream, gpu->is_capturing ? RECORD_EXTERNAL : RECORD_DEFAULT));
    return WEFT_OK;
}

weft_status tool_gpu_begin(tool_gpu *gpu)
{
    return mark(gpu, gpu->begun);
}

weft_status tool_gpu_end(tool_gpu *gpu)
{
    return mark(gpu, gpu->ended);
}

weft_status tool_gpu_elapsed(tool_gpu *gpu, double *us)
{
    float ms = 0;
    TRY(cuEventElapsedTime(&ms, gpu->begun, gpu->ended));
    *us = (double)ms * 1000;
    return WEFT_OK;
}

/* ---- graphs ---- */

weft_status tool_gpu_capture_begin(tool_gpu *gpu)
{
    if (driver.cuStreamBeginCapture == NULL || driver.cuGraphInstantiateWithFlags == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    TRY(cuStreamBeginCapture(gpu->stream, CAPTURE_THREAD_LOCAL));
    gpu->is_capturing = 1;
    return WEFT_OK;
}

weft_status tool_gpu_capture_end(tool_gpu *gpu, void **graph)
{
    void *captured = NULL;
    gpu->is_capturing = 0;
    TRY(cuStreamEndCapture(gpu->stream, &captured));
    weft_status status = check(driver.cuGraphInstantiateWithFlags(graph, captured, 0), "cuGraphInstantiateWithFlags");
    (void)driver.cuGraphDestroy(captured);
    return status;
}

weft_status tool_gpu_graph_launch(tool_gpu *gpu, void *graph)
{
    TRY(cuGraphLaunch(graph, gpu->stream));
    return WEFT_OK;
}

void tool_gpu_graph_free(tool_gpu *gpu, void *graph)
{
    (void)gpu;
    if (graph != NULL) {
        (void)driver.cuGraphExecDestroy(graph);
    }
}

/* ---- kernels ---- */

weft_status tool_gpu_kernel(tool_gpu *gpu, const char *name, unsigned shared_bytes, void **kernel)
{
    if (gpu->module == NULL) {
        return WEFT_ERR_UNSUPPORTED;
    }
    int result = driver.cuModuleGetFunction(kernel, gpu->module, name);
    if (result == NOT_FOUND) {
        return WEFT_ERR_UNSUPPORTED;
    }
    weft_status status = check(result, "cuModuleGetFunction");
    if (status != WEFT_OK) {
        return status;
    }
    TRY(cuFuncLoad(*kernel));
    if (shared_bytes > 0) {
        TRY(cuFuncSetAttribute(*kernel, MAX_DYNAMIC_SHARED_BYTES, (int)shared_bytes));
    }
    return WEFT_OK;
}

static weft_status launch(void *stream, void *kernel, int blocks, int threads, unsigned shared_bytes, const void *args)
{
    void *arguments[] = {(void *)(uintptr_t)args}; /* read, and copied by the launch */
    TRY(cuLaunchKernel(kernel, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, shared_bytes, stream, arguments, NULL));
    return WEFT_OK;
}

weft_status tool_gpu_launch(tool_gpu *gpu, void *kernel, int blocks, int threads, unsigned shared_bytes,
                            const void *args)
{
    return launch(gpu->stream, kernel, blocks, threads, shared_bytes, args);
}

weft_status tool_gpu_launch_beside(tool_gpu *gpu, void *kernel, int threads, const void *args)
{
    return launch(gpu->beside, kernel, 1, threads, 0, args);
}
