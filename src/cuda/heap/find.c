/* cuda/heap/find.c: this PE's device and context, and what it tells of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "cuda/device.h"

#define GRANULE_MIN ((uint64_t)2 << 20)

/* ---- this PE ---- */

int wefti_cuda_attribute(const wefti_cuda *cuda, CUdevice_attribute which)
{
    int value = 0;
    return cuda->driver.cuDeviceGetAttribute(&value, which, cuda->ordinal) == CUDA_SUCCESS ? value : 0;
}

static weft_status retain_primary(wefti_cuda *cuda)
{
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->ordinal),
                              "cuDevicePrimaryCtxRetain"));
    cuda->retained = 1;
    return WEFT_OK;
}

static weft_status find_named(wefti_cuda *cuda, int ordinal)
{
    int count = 0;
    (void)cuda->driver.cuDeviceGetCount(&count);
    if (ordinal < 0 || ordinal >= count) {
        return wefti_error(count == 0 ? WEFT_ERR_UNSUPPORTED : WEFT_ERR_ARGUMENT,
                           "weft_device_attach: there is no GPU %d: this process sees %d, numbered from 0 "
                           "(CUDA_VISIBLE_DEVICES says which)",
                           ordinal, count);
    }
    cuda->ordinal = ordinal; /* a CUdevice is its ordinal */
    return retain_primary(cuda);
}

static weft_status find_current(wefti_cuda *cuda)
{
    CUcontext current = NULL;
    unsigned flags = 0;
    int active = 0;
    (void)cuda->driver.cuCtxGetCurrent(&current);
    if (current == NULL) {
        return wefti_error(
            WEFT_ERR_STATE,
            "weft_device_attach: no CUDA context is current in the calling thread; choose a device first "
            "(cudaSetDevice, then any CUDA call), or name one with WEFT_DEVICE_ORDINAL");
    }
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuCtxGetDevice(&cuda->ordinal), "cuCtxGetDevice"));
    /* The primary context is kept alive as long as the world; one that the user made is the user's. */
    if (cuda->driver.cuDevicePrimaryCtxGetState(cuda->ordinal, &flags, &active) == CUDA_SUCCESS && active) {
        WEFT_TRY(retain_primary(cuda));
        if (cuda->context != current) {
            (void)cuda->driver.cuDevicePrimaryCtxRelease(cuda->ordinal);
            cuda->retained = 0;
        }
    }
    cuda->context = current;
    return WEFT_OK;
}

CUmemAllocationProp wefti_cuda_properties(const wefti_cuda *cuda, wefti_cuda_sharing sharing)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = cuda->ordinal;
    prop.requestedHandleTypes =
        sharing == WEFTI_CUDA_FABRIC ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
}

/* Between PEs of one node. */
static weft_status choose_sharing(wefti_cuda *cuda)
{
    uint64_t vmm;
    WEFT_TRY(wefti_env_count(WEFTI_ENV_CUDA_VMM, &vmm));
    int supported = wefti_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
                    wefti_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    cuda->sharing = vmm == 0 || !supported ? WEFTI_CUDA_IPC : WEFTI_CUDA_POSIX;
    return WEFT_OK;
}

weft_status wefti_cuda_find_granularity(wefti_cuda *cuda)
{
    size_t granularity = GRANULE_MIN;
    if (cuda->sharing != WEFTI_CUDA_IPC) {
        const CUmemAllocationProp prop = wefti_cuda_properties(cuda, cuda->sharing);
        WEFT_TRY(wefti_cuda_check(
            &cuda->driver,
            cuda->driver.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "cuMemGetAllocationGranularity"));
    }
    cuda->granularity = granularity;
    return WEFT_OK;
}

static weft_status fill_record(wefti_cuda *cuda)
{
    wefti_cuda_record *record = cuda->record;
    size_t total = 0;
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuDeviceTotalMem(&total, cuda->ordinal), "cuDeviceTotalMem"));
    WEFT_TRY(
        wefti_cuda_check(&cuda->driver, cuda->driver.cuDeviceGetUuid(&record->uuid, cuda->ordinal), "cuDeviceGetUuid"));
    WEFT_TRY(wefti_os_random(record->nonce, sizeof record->nonce));
    memcpy(record->process, cuda->window->key, sizeof record->process);
    record->memory_bytes = total;
    record->ordinal = cuda->ordinal;
    record->context = (uint64_t)(uintptr_t)cuda->context;
    return WEFT_OK;
}

/* A stream is bound to one of the GPU's hardware queues, in which its launches wait behind those of other streams. */
#define QUEUES_DEFAULT 8

static void warn_of_queues(const wefti_cuda *cuda, int pes)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const long queues = text != NULL ? strtol(text, NULL, 10) : QUEUES_DEFAULT;
    if (pes == queues - WEFTI_CUDA_STREAM_USES + 1) { /* each PE has a stream of its user's, all have the library's */
        wefti_log(
            WEFTI_LOG_WARN,
            "%d PEs of this process share GPU %d, which has %ld hardware queues: a kernel that waits for another PE "
            "may hold that one's launches up; set CUDA_DEVICE_MAX_CONNECTIONS=32 before CUDA starts",
            pes, cuda->ordinal, queues);
    }
}

#define ATTRIBUTE_MPS_ENABLED ((CUdevice_attribute)133) /* CUDA 12's headers have no name for it */

static void name_shared(const wefti_cuda *cuda, char name[64])
{
    int used = snprintf(name, 64, "gpu-");
    for (size_t i = 0; i < sizeof cuda->record->uuid.bytes; i++) {
        used += snprintf(name + used, 64 - (size_t)used, "%02x", (unsigned char)cuda->record->uuid.bytes[i]);
    }
}

/* With MPS the processes of a user run on a GPU at the same time. */
static weft_status join_budget(wefti_cuda *cuda)
{
    char name[64];
    int pes;
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    const int percent = text != NULL ? atoi(text) : 0;
    const int has_mps = wefti_cuda_attribute(cuda, ATTRIBUTE_MPS_ENABLED);
    name_shared(cuda, name);
    const wefti_cuda_gpu gpu = {
        .device = cuda->ordinal,
        .sms = cuda->sms,
        .all_sms = has_mps && percent > 0 && percent < 100 ? cuda->sms * 100 / percent : cuda->sms,
        .name = has_mps ? name : NULL,
    };
    WEFT_TRY(wefti_cuda_budget_join(&cuda->budget, &gpu, &pes));
    warn_of_queues(cuda, pes);
    return WEFT_OK;
}

weft_status wefti_cuda_find(wefti_cuda *cuda, const weft_device_config *config)
{
    WEFT_TRY(wefti_cuda_driver_open(&cuda->driver));
    WEFT_TRY(config->choice == WEFT_DEVICE_ORDINAL ? find_named(cuda, config->ordinal) : find_current(cuda));
    if (!wefti_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "weft_device_attach: GPU %d has no unified addressing", cuda->ordinal);
    }
    cuda->sms = wefti_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    cuda->host_atomics = wefti_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
    WEFT_TRY(choose_sharing(cuda));
    WEFT_TRY(wefti_cuda_window_join(cuda->world->window, &cuda->window));
    WEFT_TRY(fill_record(cuda));
    return join_budget(cuda);
}
