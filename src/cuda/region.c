/* cuda/region.c: user memory made symmetric. Each PE maps every other's buffer: by its allocation's VMM handle, or by
 * cudaIpc for cudaMalloc's; in its own process a cudaMalloc buffer is where it is. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/device.h"

/* ---- what this PE offers ---- */

/* Fill in the record; *handle is the allocation's, to be released, if it is VMM's. */
static weft_status describe(wefti_cuda *cuda, const char *call, void *address, size_t bytes,
                            CUmemGenericAllocationHandle *handle)
{
    wefti_cuda_record *record = cuda->record;
    CUdeviceptr base = 0;
    size_t size = 0;
    if (bytes == 0 || address == NULL ||
        cuda->driver.cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)address) != CUDA_SUCCESS) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %p is no device memory of this process, or of 0 bytes", call,
                           address);
    }
    uint64_t offset = (CUdeviceptr)(uintptr_t)address - base;
    if (offset + bytes > size) {
        return wefti_error(WEFT_ERR_RANGE, "%s: %zu bytes at %p exceed their allocation of %zu bytes", call, bytes,
                           address, size);
    }
    record->address = (uint64_t)(uintptr_t)address;
    record->offset = offset;
    record->memory_bytes = size;
    record->is_vmm = cuda->driver.cuMemRetainAllocationHandle(handle, address) == CUDA_SUCCESS;
    if (record->is_vmm) {
        return WEFT_OK;
    }
    return wefti_cuda_check(&cuda->driver,
                            cuda->driver.cuIpcGetMemHandle(&record->ipc, (CUdeviceptr)(uintptr_t)address),
                            "cuIpcGetMemHandle (of registered memory; is it from cudaMalloc?)");
}

/* ---- mapping what others offer ---- */

static weft_status map_handle(wefti_cuda *cuda, wefti_cuda_region *region, uint32_t index,
                              CUmemGenericAllocationHandle handle)
{
    const wefti_cuda_record *record = wefti_cuda_record_of(cuda, index);
    const wefti_cuda_driver *driver = &cuda->driver;
    CUdeviceptr at = 0;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->ordinal},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = driver->cuMemAddressReserve(&at, record->memory_bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) {
        result = driver->cuMemMap(at, record->memory_bytes, 0, handle, 0);
        if (result == CUDA_SUCCESS) {
            result = driver->cuMemSetAccess(at, record->memory_bytes, &access, 1);
            if (result != CUDA_SUCCESS) {
                (void)driver->cuMemUnmap(at, record->memory_bytes);
            }
        }
        if (result != CUDA_SUCCESS) {
            (void)driver->cuMemAddressFree(at, record->memory_bytes);
        }
    }
    (void)driver->cuMemRelease(handle); /* the mapping keeps the memory */
    WEFT_TRY(wefti_cuda_check(driver, result, "mapping registered memory"));
    region->mapped[index] = at;
    region->mapped_bytes[index] = record->memory_bytes;
    region->delta[index] = (int64_t)(at + record->offset) - (int64_t)(uintptr_t)region->address;
    return WEFT_OK;
}

static weft_status take_region(wefti_cuda *cuda, uint32_t index, CUmemGenericAllocationHandle handle, void *context)
{
    return map_handle(cuda, context, index, handle);
}

static int wants_descriptor(wefti_cuda *cuda, uint32_t index)
{
    return cuda->group[index] != cuda->group[wefti_cuda_own_index(cuda)] && wefti_cuda_record_of(cuda, index)->is_vmm;
}

/* A buffer of a PE of this process. */
static weft_status reach_inside(wefti_cuda *cuda, wefti_cuda_region *region, uint32_t index)
{
    const wefti_cuda_record *record = wefti_cuda_record_of(cuda, index);
    CUmemGenericAllocationHandle handle;
    if (record->is_vmm && index != wefti_cuda_own_index(cuda)) {
        WEFT_TRY(wefti_cuda_check(&cuda->driver,
                                  cuda->driver.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)record->address),
                                  "cuMemRetainAllocationHandle"));
        return map_handle(cuda, region, index, handle);
    }
    if (record->ordinal != cuda->ordinal) {
        CUresult result = cuda->driver.cuCtxEnablePeerAccess((CUcontext)(uintptr_t)record->context, 0);
        if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
            WEFT_TRY(wefti_cuda_check(&cuda->driver, result, "cuCtxEnablePeerAccess"));
        }
    }
    region->delta[index] = (int64_t)record->address - (int64_t)(uintptr_t)region->address;
    return WEFT_OK;
}

static weft_status reach_ipc(wefti_cuda *cuda, wefti_cuda_region *region, uint32_t index)
{
    const wefti_cuda_record *record = wefti_cuda_record_of(cuda, index);
    CUdeviceptr at = 0;
    WEFT_TRY(wefti_cuda_check(&cuda->driver,
                              cuda->driver.cuIpcOpenMemHandle(&at, record->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                              "cuIpcOpenMemHandle (of registered memory)"));
    region->mapped[index] = at;
    region->delta[index] = (int64_t)(at + record->offset) - (int64_t)(uintptr_t)region->address;
    return WEFT_OK;
}

static weft_status reach_all(wefti_cuda *cuda, wefti_cuda_region *region, wefti_cuda_offer *offer)
{
    int outside = 0;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        outside += cuda->group[i] >= 0 && cuda->group[i] != cuda->group[wefti_cuda_own_index(cuda)];
    }
    const wefti_cuda_taking taking = {
        .offer = cuda->record->is_vmm ? offer : NULL,
        .takers = outside,
        .wants = wants_descriptor,
        .take = take_region,
        .context = region,
    };
    weft_status first = wefti_cuda_exchange(cuda, &taking);
    for (uint32_t i = 0; i < cuda->near_count && first == WEFT_OK; i++) {
        if (cuda->group[i] < 0) {
            region->delta[i] = WEFTI_DEV_FAR;
        } else if (cuda->group[i] == cuda->group[wefti_cuda_own_index(cuda)]) {
            first = reach_inside(cuda, region, i);
        } else if (!wefti_cuda_record_of(cuda, i)->is_vmm) {
            first = reach_ipc(cuda, region, i);
        }
    }
    return first;
}

/* ---- regions ---- */

static void region_fini(wefti_cuda *cuda, wefti_cuda_region *region)
{
    for (uint32_t i = 0; region->mapped != NULL && region->mapped_bytes != NULL && i < cuda->near_count; i++) {
        if (region->mapped[i] != 0 && region->mapped_bytes[i] != 0) {
            (void)cuda->driver.cuMemUnmap(region->mapped[i], region->mapped_bytes[i]);
            (void)cuda->driver.cuMemAddressFree(region->mapped[i], region->mapped_bytes[i]);
        } else if (region->mapped[i] != 0) {
            (void)cuda->driver.cuIpcCloseMemHandle(region->mapped[i]);
        }
    }
    wefti_free(region->delta);
    wefti_free(region->mapped);
    wefti_free(region->mapped_bytes);
    memset(region, 0, sizeof *region);
}

void wefti_cuda_regions_fini(wefti_cuda *cuda)
{
    for (size_t i = 0; i < WEFTI_DEV_REGIONS_MAX; i++) {
        region_fini(cuda, &cuda->regions[i]);
    }
}

static weft_status region_init(wefti_cuda *cuda, wefti_cuda_region *region, void *address, size_t bytes)
{
    region->delta = wefti_alloc_zeroed(cuda->near_count, sizeof *region->delta);
    region->mapped = wefti_alloc_zeroed(cuda->near_count, sizeof *region->mapped);
    region->mapped_bytes = wefti_alloc_zeroed(cuda->near_count, sizeof *region->mapped_bytes);
    if (region->delta == NULL || region->mapped == NULL || region->mapped_bytes == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the record of a registered buffer");
    }
    region->address = address;
    region->bytes = bytes;
    return WEFT_OK;
}

/* Tell the kernels. The region's bytes are written last. */
static weft_status publish(wefti_cuda *cuda, size_t index)
{
    const wefti_cuda_region *region = &cuda->regions[index];
    wefti_dev_control *control = (wefti_dev_control *)(void *)cuda->slot;
    unsigned char *table =
        cuda->slot + wefti_cuda_table(cuda->world->view.pes, WEFTI_CUDA_TABLE_REGION + (unsigned)index);
    const wefti_dev_region told = {
        .base = (uintptr_t)region->address, .bytes = region->bytes, .delta = (const wefti_i64 *)(const void *)table};
    wefti_u64 count = 0;
    for (size_t i = 0; i < WEFTI_DEV_REGIONS_MAX; i++) {
        count = cuda->regions[i].address != NULL ? i + 1 : count;
    }
    if (region->address != NULL) {
        WEFT_TRY(wefti_cuda_copy(&cuda->base, table, region->delta, cuda->near_count * sizeof *region->delta));
    }
    WEFT_TRY(wefti_cuda_copy(&cuda->base, &control->regions[index], &told, sizeof told));
    return wefti_cuda_copy(&cuda->base, &control->region_count, &count, sizeof count);
}

static wefti_cuda_region *free_region(wefti_cuda *cuda)
{
    for (size_t i = 0; i < WEFTI_DEV_REGIONS_MAX; i++) {
        if (cuda->regions[i].address == NULL) {
            return &cuda->regions[i];
        }
    }
    return NULL;
}

static weft_status enrol_entered(wefti_cuda *cuda, weft_team *team, const char *call, void *address, size_t bytes)
{
    CUmemGenericAllocationHandle handle = 0;
    wefti_cuda_offer offer = {.pass = {.listener = -1}, .descriptor = -1};
    wefti_cuda_region *region = free_region(cuda);
    cuda->record->is_vmm = 0;
    cuda->exchanges++;
    weft_status status = region == NULL ? wefti_error(WEFT_ERR_OVERFLOW, "%s: %d buffers are registered already", call,
                                                      WEFTI_DEV_REGIONS_MAX)
                                        : describe(cuda, call, address, bytes, &handle);
    if (status == WEFT_OK) {
        status = region_init(cuda, region, address, bytes);
    }
    if (status == WEFT_OK && cuda->record->is_vmm) {
        status = wefti_cuda_offer_open(cuda, handle, &offer);
    }
    status = wefti_cuda_verdict(cuda, team, call, bytes, status);
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, bytes, reach_all(cuda, region, &offer));
    }
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, bytes, publish(cuda, (size_t)(region - cuda->regions)));
    }
    wefti_cuda_offer_close(&offer);
    if (handle != 0) {
        (void)cuda->driver.cuMemRelease(handle);
    }
    if (status != WEFT_OK && region != NULL) {
        region_fini(cuda, region);
    }
    return status;
}

weft_status wefti_cuda_enrol(wefti_device *device, weft_team *team, void *address, size_t bytes)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = enrol_entered(cuda, team, "weft_device_register", address, bytes);
    wefti_cuda_leave(cuda);
    return status;
}

static size_t find_region(const wefti_cuda *cuda, const void *address)
{
    size_t i = 0;
    while (i < WEFTI_DEV_REGIONS_MAX && cuda->regions[i].address != address) {
        i++;
    }
    return i;
}

weft_status wefti_cuda_expel(wefti_device *device, weft_team *team, void *address)
{
    static const char call[] = "weft_device_unregister";
    wefti_cuda *cuda = wefti_cuda_of(device);
    size_t index = find_region(cuda, address);
    weft_status status = WEFT_OK;
    if (index == WEFTI_DEV_REGIONS_MAX) {
        status = wefti_error(WEFT_ERR_ARGUMENT, "%s: %p is not registered", call, address);
    }
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, index, status));
    WEFT_TRY(wefti_cuda_enter(cuda));
    region_fini(cuda, &cuda->regions[index]);
    status = publish(cuda, index);
    wefti_cuda_leave(cuda);
    return wefti_cuda_verdict(cuda, team, call, index, status); /* nobody uses the buffer once all have let it go */
}
