/* cuda/heap/find.c: this PE's device and context, and what the PEs of the node told each other about theirs. */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "cuda/device.h"

#define GRANULE_MIN ((uint64_t)2 << 20)

/* ---- this PE ---- */

static int attribute(const wefti_cuda *cuda, CUdevice_attribute which)
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
        return wefti_error(
            WEFT_ERR_UNSUPPORTED,
            "weft_device_attach: config.ordinal %d, but this process sees %d GPUs (CUDA_VISIBLE_DEVICES?)", ordinal,
            count);
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

static CUmemAllocationProp properties(const wefti_cuda *cuda)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = cuda->ordinal;
    prop.requestedHandleTypes =
        cuda->sharing == WEFTI_CUDA_FABRIC ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
}

/* Whether the driver can really make a fabric handle: the attribute alone does not tell. */
static int fabric_works(const wefti_cuda *cuda)
{
    wefti_cuda probe = *cuda;
    CUmemGenericAllocationHandle handle;
    CUmemFabricHandle fabric;
    probe.sharing = WEFTI_CUDA_FABRIC;
    CUmemAllocationProp prop = properties(&probe);
    if (!attribute(cuda, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) ||
        cuda->driver.cuMemCreate(&handle, GRANULE_MIN, &prop, 0) != CUDA_SUCCESS) {
        return 0;
    }
    int works =
        cuda->driver.cuMemExportToShareableHandle(&fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0) == CUDA_SUCCESS;
    (void)cuda->driver.cuMemRelease(handle);
    return works;
}

static weft_status choose_sharing(wefti_cuda *cuda)
{
    uint64_t vmm;
    uint64_t fabric;
    WEFT_TRY(wefti_env_count(WEFTI_ENV_CUDA_VMM, &vmm));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_CUDA_FABRIC, &fabric));
    int supported = attribute(cuda, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
                    attribute(cuda, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    cuda->sharing = vmm == 0 || !supported ? WEFTI_CUDA_IPC : WEFTI_CUDA_POSIX;
    if (cuda->sharing == WEFTI_CUDA_POSIX && fabric != 0 && fabric_works(cuda)) {
        cuda->sharing = WEFTI_CUDA_FABRIC;
    }
    return WEFT_OK;
}

static weft_status find_granularity(wefti_cuda *cuda)
{
    size_t granularity = GRANULE_MIN;
    if (cuda->sharing != WEFTI_CUDA_IPC) {
        CUmemAllocationProp prop = properties(cuda);
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
    record->granularity = cuda->granularity;
    record->ordinal = cuda->ordinal;
    record->sharing = (int32_t)cuda->sharing;
    record->context = (uint64_t)(uintptr_t)cuda->context;
    return WEFT_OK;
}

/* A stream is bound to one of the GPU's hardware queues, in which its launches wait behind those of other streams. */
#define QUEUES_DEFAULT 8
#define STREAMS_A_PE 2 /* the user's, and that of the host's copies */

static void warn_of_queues(const wefti_cuda *cuda, int pes)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const long queues = text != NULL ? strtol(text, NULL, 10) : QUEUES_DEFAULT;
    if (pes == queues / STREAMS_A_PE + 1) {
        wefti_log(
            WEFTI_LOG_WARN,
            "%d PEs of this process share GPU %d, which has %ld hardware queues: a kernel that waits for another PE "
            "may hold that one's launches up; set CUDA_DEVICE_MAX_CONNECTIONS=32 before CUDA starts",
            pes, cuda->ordinal, queues);
    }
}

weft_status wefti_cuda_find(wefti_cuda *cuda, const weft_device_config *config)
{
    WEFT_TRY(wefti_cuda_driver_open(&cuda->driver));
    WEFT_TRY(config->choice == WEFT_DEVICE_ORDINAL ? find_named(cuda, config->ordinal) : find_current(cuda));
    if (!attribute(cuda, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "weft_device_attach: GPU %d has no unified addressing", cuda->ordinal);
    }
    cuda->sms = attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    cuda->host_atomics = attribute(cuda, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
    WEFT_TRY(choose_sharing(cuda));
    WEFT_TRY(find_granularity(cuda));
    WEFT_TRY(wefti_cuda_window_join(cuda->world->window, &cuda->window));
    int pes;
    WEFT_TRY(wefti_cuda_budget_join(&cuda->budget, cuda->ordinal, cuda->sms, &pes));
    warn_of_queues(cuda, pes);
    return fill_record(cuda);
}

/* ---- the others ---- */

/* Slots belong to the node's PEs in ascending order. */
static uint32_t pe_of_slot(const wefti_cuda *cuda, size_t slot)
{
    const wefti_view *view = &cuda->world->view;
    uint32_t pe = view->near_first;
    for (size_t before = slot; !wefti_pe_is_near(view, (int)pe) || before-- > 0; pe++) {
    }
    return pe;
}

void wefti_cuda_find_domain(wefti_cuda *cuda, uint64_t pes)
{
    const size_t node_pes = (size_t)cuda->world->team_node.pes;
    pes = pes == 0 || pes > node_pes ? node_pes : pes;
    cuda->first_slot = cuda->world->slot / pes * pes;
    const size_t count = node_pes - cuda->first_slot < pes ? node_pes - cuda->first_slot : pes;
    cuda->near_first = pe_of_slot(cuda, cuda->first_slot);
    cuda->near_count = pe_of_slot(cuda, cuda->first_slot + count - 1) + 1 - cuda->near_first;
    cuda->base.far_count = cuda->world->view.pes - (uint32_t)count;
}

/* Flags and the atomics of users need read-modify-writes on each other's memory that are atomic against the owner's. */
static int has_atomics(const wefti_cuda *cuda, CUdevice other)
{
    int value = 0;
    return cuda->driver.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, cuda->ordinal,
                                                other) != CUDA_SUCCESS ||
           value != 0;
}

/* A device that this process sees too must be reachable from this PE's; one that it does not see shows when its memory
 * is mapped. */
static weft_status check_peer(const wefti_cuda *cuda, uint32_t index)
{
    const wefti_cuda_record *record = wefti_cuda_record_of(cuda, index);
    int count = 0;
    (void)cuda->driver.cuDeviceGetCount(&count);
    for (CUdevice other = 0; other < count; other++) {
        CUuuid uuid;
        int can = 0;
        if (other == cuda->ordinal || cuda->driver.cuDeviceGetUuid(&uuid, other) != CUDA_SUCCESS ||
            memcmp(&uuid, &record->uuid, sizeof uuid) != 0) {
            continue;
        }
        if (cuda->driver.cuDeviceCanAccessPeer(&can, cuda->ordinal, other) == CUDA_SUCCESS && can &&
            !has_atomics(cuda, other)) {
            return wefti_error(WEFT_ERR_UNREACHABLE,
                               "weft_device_attach: GPU %d of PE %u can load and store on GPU %d of PE %u, but has no "
                               "atomics there (PCIe "
                               "has none between GPUs); WEFT_CUDA_DOMAIN=1 does without, through host memory",
                               cuda->ordinal, cuda->world->view.pe, other, cuda->near_first + index);
        }
        if (!can) {
            return wefti_error(
                WEFT_ERR_UNREACHABLE,
                "weft_device_attach: GPU %d of PE %u cannot access GPU %d of PE %u; peer access needs NVLink "
                "or a common PCIe root; WEFT_CUDA_DOMAIN=1 does without, through host memory",
                cuda->ordinal, cuda->world->view.pe, other, cuda->near_first + index);
        }
    }
    return WEFT_OK;
}

static int same_process(const wefti_cuda_record *a, const wefti_cuda_record *b)
{
    return a->process[0] == b->process[0] && a->process[1] == b->process[1];
}

static void find_groups(wefti_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        cuda->group[i] = -1;
        if (!wefti_pe_is_near(&cuda->world->view, (int)(cuda->near_first + i))) {
            continue;
        }
        for (uint32_t j = 0; j <= i && cuda->group[i] < 0; j++) {
            if ((j == i || cuda->group[j] >= 0) &&
                same_process(wefti_cuda_record_of(cuda, i), wefti_cuda_record_of(cuda, j))) {
                cuda->group[i] = (int)j;
            }
        }
    }
}

int wefti_cuda_near_devices(const wefti_cuda *cuda, CUdevice devices[WEFTI_CUDA_DEVICES_MAX])
{
    int count = 0;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        const int is_here = cuda->group[i] >= 0 && cuda->group[i] == cuda->group[wefti_cuda_own_index(cuda)];
        const CUdevice device = is_here ? wefti_cuda_record_of(cuda, i)->ordinal : -1;
        int known = 0;
        while (known < count && devices[known] != device) {
            known++;
        }
        if (is_here && known == count) {
            devices[count++] = device; /* the window has refused more than there is room for */
        }
    }
    return count;
}

/* What differs between PEs that must not. */
static weft_status check_equal(const wefti_cuda *cuda, uint32_t index)
{
    const wefti_cuda_record *other = wefti_cuda_record_of(cuda, index);
    if (other->sharing != cuda->record->sharing) {
        return wefti_error(
            WEFT_ERR_MISMATCH,
            "weft_device_attach: PE %u shares device memory in another way than PE %u; set WEFT_CUDA_VMM "
            "and WEFT_CUDA_FABRIC equally, or take GPUs of one kind",
            cuda->near_first + index, cuda->world->view.pe);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_study_peers(wefti_cuda *cuda)
{
    find_groups(cuda);
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] >= 0) {
            WEFT_TRY(check_equal(cuda, i));
            WEFT_TRY(check_peer(cuda, i));
        }
    }
    return WEFT_OK;
}
