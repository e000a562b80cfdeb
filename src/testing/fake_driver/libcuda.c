/* testing/fake_driver/libcuda.c: a CUDA driver whose devices are this machine's memory: what src/cuda asks of
 * libcuda.so.1, and no more. For tests without a GPU: device memory is memory files, so that exporting, importing,
 * mapping and copying are real; a launched kernel is a function of one thread, or, of expert parallelism, a grid
 * (grid.h). Two devices (WEFT_FAKE_GPUS) of 132 multiprocessors (WEFT_FAKE_SMS) and 1 GiB a process (WEFT_FAKE_GIB),
 * one context each. WEFT_FAKE_MPS: processes share
 * the GPUs of that name by MPS. Fabric handles are those of fabric.h. */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cuda/kernels.h"
#include "testing/fake_driver/fabric.h"
#include "testing/fake_driver/grid.h"
#include "testing/fake_driver/kernels_ep.h"
#include "weft/protocol/wait.h"

#define FAKE __attribute__((visibility("default")))
#define DEVICES_MAX 16
#define STACK_MAX 16

typedef struct allocation {
    int descriptor;
    size_t bytes;
    int references;
    CUdevice device; /* -1: of another process, which counts it */
} allocation;

/* Memory of cuMemAlloc, to be found by address. */
typedef struct plain {
    unsigned char *base;
    size_t bytes;
    int descriptor;
    CUdevice device; /* as above */
    struct plain *next;
} plain;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plain *plains;
static int contexts[DEVICES_MAX];
static __thread CUcontext stack[STACK_MAX];
static __thread int depth;
static size_t used[DEVICES_MAX]; /* bytes of devices, by this process; atomic */
static __thread unsigned long waits_or_takes;

static __thread unsigned long copies;
static __thread unsigned long long copies_ns;

/* How often the calling thread has waited for a stream, or taken or given memory: what a step must not do. */
FAKE unsigned long fakeWaitsOrTakes(void);
FAKE unsigned long fakeWaitsOrTakes(void)
{
    return waits_or_takes;
}

/* How many streams the process has made and not destroyed. */
static int streams; /* atomic */
FAKE int fakeStreams(void);
FAKE int fakeStreams(void)
{
    return __atomic_load_n(&streams, __ATOMIC_RELAXED);
}

/* How often it has copied and filled, and the time of that. */
FAKE unsigned long fakeCopies(unsigned long long *ns);
FAKE unsigned long fakeCopies(unsigned long long *ns)
{
    *ns = copies_ns;
    return copies;
}

static unsigned long long now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000000u + (unsigned long long)time.tv_nsec;
}

static int count_devices(void)
{
    const char *text = getenv("WEFT_FAKE_GPUS");
    return text == NULL ? 2 : atoi(text);
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

static CUcontext context_of(CUdevice device)
{
    return (CUcontext)(void *)&contexts[device];
}

/* Whether the device has so many bytes left; then they are taken. */
static int use(CUdevice device, size_t bytes)
{
    const int fits = device < 0 || __atomic_add_fetch(&used[device], bytes, __ATOMIC_RELAXED) <= device_bytes();
    if (!fits) {
        (void)__atomic_sub_fetch(&used[device], bytes, __ATOMIC_RELAXED);
    }
    return fits;
}

static void unuse(CUdevice device, size_t bytes)
{
    if (device >= 0) {
        (void)__atomic_sub_fetch(&used[device], bytes, __ATOMIC_RELAXED);
    }
}

static int make_file(size_t bytes)
{
    int descriptor = memfd_create("fake device memory", MFD_CLOEXEC);
    if (descriptor >= 0 && ftruncate(descriptor, (off_t)bytes) != 0) {
        close(descriptor);
        descriptor = -1;
    }
    return descriptor;
}

/* ---- devices and contexts ---- */

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
    char host[FAKE_HOST_BYTES];
    uint32_t sum = 0;
    fake_host_name(host);
    for (size_t i = 0; i < sizeof host; i++) {
        sum = sum * 31 + (unsigned char)host[i];
    }
    for (const char *at = getenv("WEFT_FAKE_MPS"); at != NULL && *at != '\0'; at++) {
        sum = sum * 31 + (unsigned char)*at;
    }
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[0] = (char)(device + 1);
    memcpy(&uuid->bytes[8], &sum, sizeof sum);
    return CUDA_SUCCESS;
}

FAKE CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    (void)snprintf(text, (size_t)bytes, "0000:%02x:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

static int has_fabric_handles(void)
{
    fake_fabric fabric;
    fake_fabric_read(&fabric);
    return fabric.has_handles;
}

FAKE CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                ? count_multiprocessors()
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR          ? 9
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? block_shared_bytes()
             : which == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED      ? has_fabric_handles()
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

FAKE CUresult cuCtxPushCurrent(CUcontext context)
{
    if (depth == STACK_MAX) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack[depth++] = context;
    return CUDA_SUCCESS;
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

/* ---- virtual memory ---- */

FAKE CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint,
                                  unsigned long long flags)
{
    (void)alignment;
    (void)hint;
    (void)flags;
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *at = (CUdeviceptr)(uintptr_t)base;
    return base == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    return munmap((void *)(uintptr_t)at, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                            CUmemAllocationGranularity_flags option)
{
    (void)prop;
    (void)option;
    *bytes = (size_t)2 << 20;
    return CUDA_SUCCESS;
}

static CUresult new_allocation(CUmemGenericAllocationHandle *handle, CUdevice device, int descriptor, size_t bytes)
{
    allocation *made = malloc(sizeof *made);
    if (made == NULL || descriptor < 0) {
        free(made);
        unuse(device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (allocation){.descriptor = descriptor, .bytes = bytes, .references = 1, .device = device};
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                          unsigned long long flags)
{
    (void)flags;
    if (bytes % ((size_t)2 << 20) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC && !has_fabric_handles()) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return use(prop->location.id, bytes) ? new_allocation(handle, prop->location.id, make_file(bytes), bytes)
                                         : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    allocation *gone = (allocation *)(uintptr_t)handle;
    if (__atomic_sub_fetch(&gone->references, 1, __ATOMIC_ACQ_REL) == 0) {
        close(gone->descriptor);
        unuse(gone->device, gone->bytes);
        free(gone);
    }
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags)
{
    const allocation *mapped = (const allocation *)(uintptr_t)handle;
    (void)flags;
    void *base = mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mapped->descriptor,
                      (off_t)offset);
    return base == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    void *base =
        mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return base == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    (void)at;
    (void)bytes;
    return access != NULL && count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A fabric handle: where another process finds the file, whoever that is. */
typedef struct fabric_handle {
    int process;
    int descriptor;
    unsigned clique;
    char host[FAKE_HOST_BYTES];
} fabric_handle;
_Static_assert(sizeof(fabric_handle) <= sizeof(CUmemFabricHandle), "it is one");

static void export_fabric(CUmemFabricHandle *out, const allocation *made)
{
    fake_fabric fabric;
    fabric_handle handle = {.process = getpid(), .descriptor = made->descriptor};
    fake_fabric_read(&fabric);
    fake_host_name(handle.host);
    handle.clique = fabric.clique;
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
}

FAKE CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                           CUmemAllocationHandleType type, unsigned long long flags)
{
    (void)flags;
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
        export_fabric(out, (const allocation *)(uintptr_t)handle);
        return CUDA_SUCCESS;
    }
    int descriptor = dup(((allocation *)(uintptr_t)handle)->descriptor);
    memcpy(out, &descriptor, sizeof descriptor);
    return descriptor < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* With WEFT_FAKE_BLIND=A>B the host A imports nothing of host B. */
static int is_blind(const char *there)
{
    const char *blind = getenv("WEFT_FAKE_BLIND");
    char host[FAKE_HOST_BYTES];
    char pair[2 * FAKE_HOST_BYTES + 2];
    fake_host_name(host);
    (void)snprintf(pair, sizeof pair, "%s>%s", host, there);
    return blind != NULL && strcmp(blind, pair) == 0;
}

/* A descriptor of this process, or -1. */
static int import_fabric(const void *from)
{
    fabric_handle handle;
    fake_fabric fabric;
    char path[64];
    memcpy(&handle, from, sizeof handle);
    fake_fabric_read(&fabric);
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.descriptor);
    return fabric.clique != handle.clique || is_blind(handle.host) ? -1 : open(path, O_RDWR | O_CLOEXEC);
}

FAKE CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                             CUmemAllocationHandleType type)
{
    struct stat file;
    if (getenv("WEFT_FAKE_NO_IMPORT") != NULL) { /* a process that cannot take what others share */
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    int descriptor = type == CU_MEM_HANDLE_TYPE_FABRIC ? import_fabric(from) : dup((int)(intptr_t)from);
    if (descriptor < 0 || fstat(descriptor, &file) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return new_allocation(handle, -1, descriptor, (size_t)file.st_size);
}

FAKE CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    (void)handle;
    (void)address;
    return CUDA_ERROR_INVALID_VALUE; /* user memory is from cuMemAlloc here */
}

/* ---- plain memory ---- */

FAKE CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    CUdevice device = -1;
    waits_or_takes++;
    (void)cuCtxGetDevice(&device);
    if (getenv("WEFT_FAKE_NO_MEMORY") != NULL || !use(device, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    plain *made = malloc(sizeof *made);
    int descriptor = make_file(bytes);
    void *base = descriptor < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (made == NULL || base == MAP_FAILED) {
        unuse(device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (plain){.base = base, .bytes = bytes, .descriptor = descriptor, .device = device};
    pthread_mutex_lock(&lock);
    made->next = plains;
    plains = made;
    pthread_mutex_unlock(&lock);
    *at = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
}

static plain **find(CUdeviceptr at)
{
    plain **link = &plains;
    while (*link != NULL && at - (CUdeviceptr)(uintptr_t)(*link)->base >= (*link)->bytes) {
        link = &(*link)->next;
    }
    return link;
}

FAKE CUresult cuMemFree(CUdeviceptr at)
{
    waits_or_takes++;
    pthread_mutex_lock(&lock);
    plain **link = find(at);
    plain *gone = *link;
    if (gone != NULL) {
        *link = gone->next;
        munmap(gone->base, gone->bytes);
        close(gone->descriptor);
        unuse(gone->device, gone->bytes);
        free(gone);
    }
    pthread_mutex_unlock(&lock);
    return gone == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
    pthread_mutex_lock(&lock);
    const plain *found = *find(at);
    if (found != NULL) {
        *base = (CUdeviceptr)(uintptr_t)found->base;
        *bytes = found->bytes;
    }
    pthread_mutex_unlock(&lock);
    return found == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

typedef struct ipc_handle {
    int process;
    int descriptor;
    size_t bytes;
} ipc_handle;

FAKE CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    pthread_mutex_lock(&lock);
    const plain *found = *find(at);
    if (found != NULL) {
        const ipc_handle made = {.process = getpid(), .descriptor = found->descriptor, .bytes = found->bytes};
        memcpy(handle->reserved, &made, sizeof made);
    }
    pthread_mutex_unlock(&lock);
    return found == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE CUresult cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    ipc_handle given;
    char path[64];
    plain *made = malloc(sizeof *made);
    (void)flags;
    memcpy(&given, handle.reserved, sizeof given);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", given.process, given.descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    void *base =
        descriptor < 0 ? MAP_FAILED : mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (made == NULL || base == MAP_FAILED) {
        free(made);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *made = (plain){.base = base, .bytes = given.bytes, .descriptor = descriptor, .device = -1};
    pthread_mutex_lock(&lock);
    made->next = plains;
    plains = made;
    pthread_mutex_unlock(&lock);
    *at = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
}

FAKE CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    return cuMemFree(at);
}

FAKE CUresult cuMemAllocHost(void **at, size_t bytes)
{
    *at = malloc(bytes);
    return *at == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE CUresult cuMemFreeHost(void *at)
{
    free(at);
    return CUDA_SUCCESS;
}

/* Registered host memory. */
#define REGISTRATIONS_MAX 4096
static struct {
    uintptr_t first;
    uintptr_t end; /* 0: free */
} registrations[REGISTRATIONS_MAX];

FAKE CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags)
{
    (void)flags;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REGISTRATIONS_MAX && result != CUDA_SUCCESS; i++) {
        if (registrations[i].end == 0 && (uintptr_t)at % 4096 == 0 && bytes % 4096 == 0) {
            registrations[i].first = (uintptr_t)at;
            registrations[i].end = (uintptr_t)at + bytes;
            result = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

FAKE CUresult cuMemHostUnregister(void *at)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REGISTRATIONS_MAX; i++) {
        if (registrations[i].first == (uintptr_t)at) {
            registrations[i].first = registrations[i].end = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* The driver refuses copies of memory that is registered in part, or in two parts. */
static int is_whole(uintptr_t first, size_t bytes)
{
    int is_so = 1;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REGISTRATIONS_MAX; i++) {
        int overlaps = registrations[i].first < first + bytes && first < registrations[i].end;
        is_so &= !overlaps || (registrations[i].first <= first && first + bytes <= registrations[i].end);
    }
    pthread_mutex_unlock(&lock);
    return is_so;
}

FAKE CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *at, unsigned flags)
{
    (void)flags;
    *device = (CUdeviceptr)(uintptr_t)at;
    return (uintptr_t)at < 4096 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; /* of others it does not know */
}

/* ---- streams and kernels: everything is done at once ---- */

/* A GPU that spoils data, for tests of what finds it: with WEFT_FAKE_LOSES long copies lack their last byte. */
static int loses_bytes(void)
{
    return getenv("WEFT_FAKE_LOSES") != NULL;
}

/* A GPU as slow as a real one beside its CPU: with WEFT_FAKE_DELAY_US launches and copies begin that much later, so
 * that what nobody waits for is late, and what is read by one and written by another is not one access. */
static void be_slow(void)
{
    const char *text = getenv("WEFT_FAKE_DELAY_US");
    if (text != NULL) {
        usleep((useconds_t)atoi(text));
    }
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    be_slow();
    if (!is_whole((uintptr_t)to, bytes) || !is_whole((uintptr_t)from, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* As memory of the link domain, so that ThreadSanitizer sees ordered words. */
    if (bytes == 8 && to % 8 == 0 && from % 8 == 0) {
        wefti_st64((void *)(uintptr_t)to, wefti_ld64((const void *)(uintptr_t)from, WEFTI_ACQUIRE), WEFTI_RELEASE);
    } else if (bytes == 4 && to % 4 == 0 && from % 4 == 0) {
        wefti_st32((void *)(uintptr_t)to, wefti_ld32((const void *)(uintptr_t)from, WEFTI_ACQUIRE), WEFTI_RELEASE);
    } else {
        memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes - (loses_bytes() && bytes >= 4096));
    }
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    unsigned long long start = now_ns();
    CUresult result = copy(to, from, bytes);
    copies++;
    copies_ns += now_ns() - start;
    return result;
}

FAKE CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    unsigned long long start = now_ns();
    memset((void *)(uintptr_t)at, value, bytes);
    copies++;
    copies_ns += now_ns() - start;
    return CUDA_SUCCESS;
}

#define GREATEST_PRIORITY (-5)

FAKE CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)flags;
    if (priority > 0 || priority < GREATEST_PRIORITY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *stream = (CUstream)malloc(1);
    __atomic_fetch_add(&streams, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

FAKE CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamDestroy(CUstream stream)
{
    free(stream);
    __atomic_fetch_sub(&streams, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    waits_or_takes++;
    return CUDA_SUCCESS;
}

/* Events are times of the host. */
FAKE CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)calloc(1, sizeof(struct timespec));
    return *event == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE CUresult cuEventDestroy(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

FAKE CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)(void *)event);
    return CUDA_SUCCESS;
}

FAKE CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

/* Work of a stream has ended when its call returns, so that this is only counted: waits for events that were
 * recorded. */
static __thread unsigned long stream_waits;
FAKE unsigned long fakeStreamWaits(void);
FAKE unsigned long fakeStreamWaits(void)
{
    return stream_waits;
}

FAKE CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream;
    (void)flags;
    stream_waits += ((const struct timespec *)(const void *)event)->tv_sec != 0;
    return CUDA_SUCCESS;
}

FAKE CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    const struct timespec *from = (const struct timespec *)(const void *)start;
    const struct timespec *to = (const struct timespec *)(const void *)end;
    *ms = (float)(to->tv_sec - from->tv_sec) * 1e3f + (float)(to->tv_nsec - from->tv_nsec) * 1e-6f;
    return CUDA_SUCCESS;
}

FAKE CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

FAKE CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)(uintptr_t)image;
    return CUDA_SUCCESS;
}

FAKE CUresult cuModuleUnload(CUmodule module)
{
    (void)module;
    return CUDA_SUCCESS;
}

/* Kernels: kernels.cu compiled for the CPU, called block by block, and those of kernels_ep.h, a grid each. */
typedef void (*kernel)(const void *args, unsigned block, unsigned blocks);
#define DECLARE(NAME, threads, when) void wefti_cuda_##NAME(const void *args, unsigned block, unsigned blocks);
WEFTI_CUDA_KERNELS(DECLARE)
#undef DECLARE
static const struct {
    const char *name;
    kernel run;
} kernels[] = {
#define KERNEL(NAME, threads, when) {"wefti_cuda_" #NAME, wefti_cuda_##NAME},
    WEFTI_CUDA_KERNELS(KERNEL)
#undef KERNEL
};

/* Those of tools are exported by this library, and called block by block too: a handle no address has. */
#define EXPORTED ((uintptr_t)1 << 63)
static uintptr_t find_exported(const char *name)
{
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = self != NULL ? dlsym(self, name) : NULL;
    if (self != NULL) {
        dlclose(self);
    }
    return found != NULL ? (uintptr_t)found | EXPORTED : 0;
}

FAKE CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(name, kernels[i].name) == 0) {
            *function = (CUfunction)(uintptr_t)&kernels[i];
            return CUDA_SUCCESS;
        }
    }
    for (const fake_ep_kernel *found = fake_ep_kernels; found->name != NULL; found++) {
        if (strcmp(name, found->name) == 0) {
            *function = (CUfunction)(uintptr_t)found;
            return CUDA_SUCCESS;
        }
    }
    *function = (CUfunction)find_exported(name);
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

FAKE CUresult cuFuncLoad(CUfunction function)
{
    (void)function;
    return CUDA_SUCCESS;
}

FAKE CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)attribute, (void)function;
    *value = 0;
    return CUDA_SUCCESS;
}

FAKE CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)properties;
    *pool = (CUmemoryPool)malloc(1);
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    free(pool);
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

FAKE CUresult cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)pool, (void)stream;
    return cuMemAlloc(memory, bytes);
}

FAKE CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
    (void)stream;
    return cuMemFree(memory);
}

FAKE CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                             void **extra)
{
    (void)block_y, (void)block_z, (void)stream, (void)extra;
    if (grid_x == 0 || grid_y * grid_z != 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    be_slow();
    int is_exported = ((uintptr_t)function & EXPORTED) != 0;
    if (!is_exported && (uintptr_t)function - (uintptr_t)kernels >= sizeof kernels) {
        fake_grid_run(((const fake_ep_kernel *)(const void *)function)->body, arguments[0], grid_x, block_x, shared);
        return CUDA_SUCCESS;
    }
    kernel run = is_exported ? (kernel)((uintptr_t)function & ~EXPORTED)
                             : ((const __typeof__(*kernels) *)(const void *)function)->run;
    for (unsigned block = 0; block < grid_x; block++) {
        run(arguments[0], block, grid_x);
    }
    return CUDA_SUCCESS;
}

FAKE CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                          config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, arguments,
                          extra);
}

/* A multiprocessor has 2048 threads and 227 KiB of shared memory. */
FAKE CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                          size_t shared_bytes)
{
    (void)function;
    int by_memory = shared_bytes > 0 ? (int)(((size_t)227 << 10) / shared_bytes) : 32;
    int by_threads = threads > 1024 ? 0 : 2048 / ((threads + 31) / 32 * 32);
    *blocks = by_threads < by_memory ? by_threads : by_memory;
    *blocks = *blocks < 32 ? *blocks : 32;
    return CUDA_SUCCESS;
}

FAKE CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                        CUstream stream, void **arguments)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, NULL);
}
