/* testing/fake_driver/memory.c: device memory: allocations that are mapped, plain memory, pools, and host memory. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/fake_driver/fabric.h"
#include "testing/fake_driver/grid.h"
#include "testing/fake_driver/libcuda.h"

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
    struct ipc_handle *opened; /* what was opened by cuIpcOpenMemHandle; NULL: of this process */
    struct plain *next;
} plain;

/* Where an allocation is mapped, which keeps it. */
typedef struct mapping {
    unsigned char *base;
    size_t bytes;
    allocation *of;
    struct mapping *next;
} mapping;

/* Reserved addresses. */
typedef struct reservation {
    CUdeviceptr base;
    size_t bytes;
    struct reservation *next;
} reservation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plain *plains;
static mapping *mappings;
static reservation *reservations;

static unsigned freeing; /* threads in wait_for_kernels */

/* With WEFT_FAKE_FREE_WAITS, memory is not given back while a kernel of the process runs, as with CUDA. */
static void wait_for_kernels(void)
{
    (void)__atomic_add_fetch(&freeing, 1, __ATOMIC_ACQ_REL);
    while (getenv("WEFT_FAKE_FREE_WAITS") != NULL && fake_kernels_running() != 0) {
        sched_yield();
    }
    (void)__atomic_sub_fetch(&freeing, 1, __ATOMIC_ACQ_REL);
}

void fake_wait_for_freeing(void)
{
    while (getenv("WEFT_FAKE_FREE_WAITS") != NULL && __atomic_load_n(&freeing, __ATOMIC_ACQUIRE) != 0) {
        sched_yield();
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

/* ---- virtual memory ---- */

FAKE CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint,
                                  unsigned long long flags)
{
    (void)alignment;
    (void)hint;
    (void)flags;
    reservation *made = malloc(sizeof *made);
    void *base =
        made == NULL ? MAP_FAILED : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *at = (CUdeviceptr)(uintptr_t)base;
    *made = (reservation){.base = *at, .bytes = bytes};
    pthread_mutex_lock(&lock);
    made->next = reservations;
    reservations = made;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* The link to the reservation that `at` lies in, or to NULL. With the lock. */
static reservation **find_reservation(CUdeviceptr at)
{
    reservation **link = &reservations;
    while (*link != NULL && at - (*link)->base >= (*link)->bytes) {
        link = &(*link)->next;
    }
    return link;
}

/* Give back exactly what was reserved; the library asks for nothing else. */
FAKE CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    pthread_mutex_lock(&lock);
    reservation **link = find_reservation(at);
    reservation *gone = *link;
    const int is_all = gone != NULL && gone->base == at && gone->bytes == bytes;
    if (is_all) {
        *link = gone->next;
    }
    pthread_mutex_unlock(&lock);
    if (!is_all) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    free(gone);
    return munmap((void *)(uintptr_t)at, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Of addresses that are reserved, where the reservation begins and how long it is. */
FAKE CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    const reservation *found = *find_reservation(at);
    if (found == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
        memcpy(value, &found->base, sizeof found->base);
    } else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
        memcpy(value, &found->bytes, sizeof found->bytes);
    } else {
        result = CUDA_ERROR_NOT_SUPPORTED;
    }
    pthread_mutex_unlock(&lock);
    return result;
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
        fake_memory_give(device, bytes);
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
    if (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC && !fake_has_fabric_handles()) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return fake_memory_take(prop->location.id, bytes)
               ? new_allocation(handle, prop->location.id, make_file(bytes), bytes)
               : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    allocation *gone = (allocation *)(uintptr_t)handle;
    if (__atomic_sub_fetch(&gone->references, 1, __ATOMIC_ACQ_REL) == 0) {
        close(gone->descriptor);
        fake_memory_give(gone->device, gone->bytes);
        free(gone);
    }
    return CUDA_SUCCESS;
}

/* The link to the mapping that `at` lies in, or to NULL. With the lock. */
static mapping **find_mapping(CUdeviceptr at)
{
    mapping **link = &mappings;
    while (*link != NULL && at - (CUdeviceptr)(uintptr_t)(*link)->base >= (*link)->bytes) {
        link = &(*link)->next;
    }
    return link;
}

FAKE CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags)
{
    allocation *of = (allocation *)(uintptr_t)handle;
    mapping *made = malloc(sizeof *made);
    (void)flags;
    void *base = made == NULL ? MAP_FAILED
                              : mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                     of->descriptor, (off_t)offset);
    if (base == MAP_FAILED) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    __atomic_add_fetch(&of->references, 1, __ATOMIC_ACQ_REL);
    *made = (mapping){.base = base, .bytes = bytes, .of = of};
    pthread_mutex_lock(&lock);
    made->next = mappings;
    mappings = made;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Unmap exactly one whole mapping; the library asks for nothing else. */
FAKE CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    wait_for_kernels();
    pthread_mutex_lock(&lock);
    mapping **link = find_mapping(at);
    mapping *gone = *link;
    const int is_all = gone != NULL && (CUdeviceptr)(uintptr_t)gone->base == at && gone->bytes == bytes;
    if (is_all) {
        *link = gone->next;
    }
    pthread_mutex_unlock(&lock);
    if (!is_all) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    void *base = mmap(gone->base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    (void)cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)gone->of);
    free(gone);
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
    pthread_mutex_lock(&lock);
    const mapping *found = *find_mapping((CUdeviceptr)(uintptr_t)address);
    if (found != NULL) {
        __atomic_add_fetch(&found->of->references, 1, __ATOMIC_ACQ_REL);
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)found->of;
    }
    pthread_mutex_unlock(&lock);
    return found == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- plain memory ---- */

FAKE CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    CUdevice device = -1;
    fake_count_wait_or_take();
    if (!fake_has_context()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    (void)cuCtxGetDevice(&device);
    if (getenv("WEFT_FAKE_NO_MEMORY") != NULL || !fake_memory_take(device, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    plain *made = malloc(sizeof *made);
    int descriptor = make_file(bytes);
    void *base = descriptor < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (made == NULL || base == MAP_FAILED) {
        fake_memory_give(device, bytes);
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
    fake_count_wait_or_take();
    pthread_mutex_lock(&lock);
    plain **link = find(at);
    plain *gone = *link;
    if (gone != NULL) {
        *link = gone->next;
        munmap(gone->base, gone->bytes);
        close(gone->descriptor);
        fake_memory_give(gone->device, gone->bytes);
        free(gone->opened);
        free(gone);
    }
    pthread_mutex_unlock(&lock);
    return gone == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
    pthread_mutex_lock(&lock);
    const plain *found = *find(at);
    const mapping *mapped = *find_mapping(at);
    if (found != NULL || mapped != NULL) {
        *base = (CUdeviceptr)(uintptr_t)(found != NULL ? found->base : mapped->base);
        *bytes = found != NULL ? found->bytes : mapped->bytes;
    }
    pthread_mutex_unlock(&lock);
    return found == NULL && mapped == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

typedef struct ipc_handle {
    int process;
    int descriptor;
    unsigned char *base; /* in that process */
    size_t bytes;
    ino_t file;
} ipc_handle;

FAKE CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    pthread_mutex_lock(&lock);
    const plain *found = *find(at);
    struct stat file;
    const int is_there = found != NULL && fstat(found->descriptor, &file) == 0;
    if (is_there) {
        const ipc_handle made = {.process = getpid(),
                                 .descriptor = found->descriptor,
                                 .base = found->base,
                                 .bytes = found->bytes,
                                 .file = file.st_ino};
        memcpy(handle->reserved, &made, sizeof made);
    }
    pthread_mutex_unlock(&lock);
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whether what lay there before in that process is still open here. With the lock. */
static int is_stale(const ipc_handle *given)
{
    int stale = 0;
    for (const plain *open = plains; open != NULL; open = open->next) {
        const ipc_handle *other = open->opened;
        stale |= other != NULL && other->process == given->process && other->file != given->file &&
                 other->base < given->base + given->bytes && given->base < other->base + other->bytes;
    }
    return stale;
}

FAKE CUresult cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    ipc_handle given;
    char path[64];
    plain *made = malloc(sizeof *made);
    ipc_handle *opened = malloc(sizeof *opened);
    (void)flags;
    memcpy(&given, handle.reserved, sizeof given);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", given.process, given.descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    void *base =
        descriptor < 0 ? MAP_FAILED : mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (made == NULL || opened == NULL || base == MAP_FAILED) {
        free(made);
        free(opened);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *opened = given;
    *made = (plain){.base = base, .bytes = given.bytes, .descriptor = descriptor, .device = -1, .opened = opened};
    pthread_mutex_lock(&lock);
    const int stale = is_stale(&given);
    made->next = plains;
    plains = made;
    pthread_mutex_unlock(&lock);
    *at = (CUdeviceptr)(uintptr_t)base;
    if (stale) {
        (void)cuMemFree(*at);
    }
    return stale ? CUDA_ERROR_ALREADY_MAPPED : CUDA_SUCCESS;
}

FAKE CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    return cuMemFree(at);
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

/* ---- host memory ---- */

FAKE CUresult cuMemAllocHost(void **at, size_t bytes)
{
    *at = malloc(bytes);
    return *at == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE CUresult cuMemFreeHost(void *at)
{
    wait_for_kernels();
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

int fake_is_one_registration(CUdeviceptr first, size_t bytes)
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
