/* testing/fake_driver/devices.c: devices, their memory as a number of bytes, and contexts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/fake_driver/fabric.h"
#include "testing/fake_driver/libcuda.h"

#define DEVICES_MAX 16
#define STACK_MAX 16

static int contexts[DEVICES_MAX];
static __thread CUcontext stack[STACK_MAX];
static __thread int depth;
static size_t used[DEVICES_MAX]; /* bytes of devices, by this process; atomic */
static __thread unsigned long waits_or_takes;

/* How often the calling thread has waited for a stream, or allocated or freed memory, which a step must not do. */
FAKE unsigned long fakeWaitsOrTakes(void);
FAKE unsigned long fakeWaitsOrTakes(void)
{
    return waits_or_takes;
}

void fake_count_wait_or_take(void)
{
    waits_or_takes++;
}

/* ---- what the environment says ---- */

/* Of the host. */
static int count_gpus(void)
{
    const char *text = getenv("WEFT_FAKE_GPUS");
    return text == NULL ? 2 : atoi(text);
}

/* The GPU of the host that an entry of CUDA_VISIBLE_DEVICES means: its number, or how its UUID begins; else -1. */
static int find_gpu(const char *entry, size_t bytes)
{
    for (int gpu = 0; gpu < count_gpus(); gpu++) {
        char text[FAKE_UUID_TEXT_BYTES];
        fake_uuid_text(gpu, text);
        if (bytes > 4 && bytes < sizeof text && strncmp(text, entry, bytes) == 0) {
            return gpu;
        }
        (void)snprintf(text, sizeof text, "%d", gpu);
        if (strlen(text) == bytes && strncmp(text, entry, bytes) == 0) {
            return gpu;
        }
    }
    return -1;
}

/* What this process sees: all GPUs, or those that CUDA_VISIBLE_DEVICES lists, up to the first that is none. */
static int see_gpus(int seen[DEVICES_MAX])
{
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    for (; at == NULL && count < count_gpus() && count < DEVICES_MAX; count++) {
        seen[count] = count;
    }
    while (at != NULL && count < DEVICES_MAX) {
        const size_t bytes = strcspn(at, ",");
        seen[count] = find_gpu(at, bytes);
        if (seen[count] < 0) {
            break;
        }
        count++;
        at = at[bytes] == ',' ? at + bytes + 1 : NULL;
    }
    return count;
}

static int count_devices(void)
{
    int seen[DEVICES_MAX];
    return see_gpus(seen);
}

static int gpu_of(CUdevice device)
{
    int seen[DEVICES_MAX];
    return device >= 0 && device < see_gpus(seen) ? seen[device] : -1;
}

static int count_multiprocessors(void)
{
    const char *text = getenv("WEFT_FAKE_SMS");
    return text == NULL ? 132 : atoi(text);
}

static size_t device_bytes(void)
{
    const char *text = getenv("WEFT_FAKE_GIB");
    return (size_t)(text == NULL ? 1 : atoi(text)) << 30;
}

static int block_shared_bytes(void)
{
    const char *text = getenv("WEFT_FAKE_SHARED");
    return text == NULL ? 232448 : atoi(text);
}

static int capability_major(void)
{
    const char *text = getenv("WEFT_FAKE_CAPABILITY");
    return text == NULL ? 9 : atoi(text);
}

int fake_has_fabric_handles(void)
{
    fake_fabric fabric;
    fake_fabric_read(&fabric);
    return fabric.has_handles;
}

/* ---- devices ---- */

int fake_memory_take(CUdevice device, size_t bytes)
{
    const int fits = device < 0 || __atomic_add_fetch(&used[device], bytes, __ATOMIC_RELAXED) <= device_bytes();
    if (!fits) {
        (void)__atomic_sub_fetch(&used[device], bytes, __ATOMIC_RELAXED);
    }
    return fits;
}

void fake_memory_give(CUdevice device, size_t bytes)
{
    if (device >= 0) {
        (void)__atomic_sub_fetch(&used[device], bytes, __ATOMIC_RELAXED);
    }
}

FAKE CUresult cuInit(unsigned flags)
{
    return flags == 0 && count_devices() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

FAKE CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_NO_DEVICE ? "no device" : error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "fake";
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceGetCount(int *count)
{
    *count = count_devices();
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const int gpu = gpu_of(device);
    fake_uuid(gpu, (unsigned char *)uuid->bytes);
    return gpu >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

FAKE CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    const int gpu = gpu_of(device);
    (void)snprintf(text, (size_t)bytes, "0000:%02x:00.0", (unsigned)gpu + 1);
    return gpu >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

FAKE CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                ? count_multiprocessors()
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR          ? capability_major()
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? block_shared_bytes()
             : which == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED      ? fake_has_fabric_handles()
             : which == CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED      ? 0
             : which == CU_DEVICE_ATTRIBUTE_MPS_ENABLED                       ? getenv("WEFT_FAKE_MPS") != NULL
                                                                              : 1;
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = device_bytes();
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    (void)device;
    (void)peer;
    *can = getenv("WEFT_FAKE_NO_PEERS") == NULL;
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice device, CUdevice peer)
{
    (void)which, (void)device, (void)peer;
    *value = getenv("WEFT_FAKE_NO_PEER_ATOMICS") == NULL;
    return CUDA_SUCCESS;
}

/* ---- contexts ---- */

static CUcontext context_of(CUdevice device)
{
    return (CUcontext)(void *)&contexts[device];
}

FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = context_of(device);
    return CUDA_SUCCESS;
}

FAKE CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

FAKE CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
}

int fake_has_context(void)
{
    return depth != 0 || getenv("WEFT_FAKE_CONTEXTS") == NULL;
}

FAKE CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = depth == 0 ? NULL : stack[depth - 1];
    return CUDA_SUCCESS;
}

FAKE CUresult cuCtxGetDevice(CUdevice *device)
{
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *device = (CUdevice)((int *)(void *)stack[depth - 1] - contexts);
    return CUDA_SUCCESS;
}

FAKE CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    *id = (unsigned long long)((int *)(void *)context - contexts) + 1;
    return CUDA_SUCCESS;
}

FAKE CUresult cuCtxPushCurrent(CUcontext context)
{
    if (depth == STACK_MAX) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

FAKE CUresult cuCtxSetCurrent(CUcontext context)
{
    depth -= depth > 0;
    return context == NULL ? CUDA_SUCCESS : cuCtxPushCurrent(context);
}

FAKE CUresult cuCtxPopCurrent(CUcontext *context)
{
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

FAKE CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    (void)peer;
    (void)flags;
    return CUDA_SUCCESS;
}
