/* cuda/heap/region.c: user memory made symmetric. Each PE maps every other's buffer: by its allocation's VMM handle, or
 * by cudaIpc for cudaMalloc's; in its own process a cudaMalloc buffer is where it is, and what the caller has mapped
 * (weft_device_register_mapped) is where it says. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cuda/device.h"

/* ---- what this PE offers ---- */

/* The range that the caller has mapped; offsets in it have WEFTI_DEV_OFFSET_BITS bits. */
static weft_status check_mapped(const wefti_cuda *cuda, const wefti_registration *what)
{
    const uint64_t base = (uintptr_t)what->address;
    if (what->peers == NULL || base == 0) {
        return wefti_error_null(what->call, base == 0 ? "address" : "peers");
    }
    if (what->bytes == 0 || what->bytes >> WEFTI_DEV_OFFSET_BITS != 0 || what->bytes > UINT64_MAX - base) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'bytes' is %zu; give 1 to 2^%d - 1, up to the last address",
                           what->call, what->bytes, WEFTI_DEV_OFFSET_BITS);
    }
    if (cuda->near_count != cuda->world->view.pes) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "%s: the world has GPUs of several link domains: use weft_device_register", what->call);
    }
    for (uint32_t pe = 0; pe < cuda->world->view.pes; pe++) {
        const int is_own = pe == (uint32_t)cuda->world->view.pe;
        if (what->peers[pe] == NULL || (is_own && what->peers[pe] != what->address)) {
            return wefti_error(WEFT_ERR_ARGUMENT, "%s: peers[%u] is %p%s", what->call, (unsigned)pe, what->peers[pe],
                               is_own ? ", this PE's own; give 'address'" : "");
        }
    }
    cuda->record->address = base;
    return WEFT_OK;
}

/* Fill in the record; *handle is the allocation's, to be released, if it is VMM's. */
static weft_status describe(wefti_cuda *cuda, const wefti_registration *what, CUmemGenericAllocationHandle *handle)
{
    const char *call = what->call;
    void *address = what->address;
    const size_t bytes = what->bytes;
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
    region->delta[index] = (int64_t)(at + record->offset) - (int64_t)cuda->record->address;
    return WEFT_OK;
}

/* What is mapped, and whose. */
typedef struct reach {
    wefti_cuda_region *region;
    const weft_team *team;
} reach;

/* A near PE that registers, too. */
static int is_member(const wefti_cuda *cuda, const weft_team *team, uint32_t index)
{
    for (int member = 0; member < team->pes; member++) {
        if (wefti_member(team, member) == (int)(cuda->near_first + index)) {
            return cuda->group[index] >= 0;
        }
    }
    return 0;
}

static weft_status take_region(wefti_cuda *cuda, uint32_t index, CUmemGenericAllocationHandle handle, void *context)
{
    const reach *of = context;
    return map_handle(cuda, of->region, index, handle);
}

static int wants_descriptor(wefti_cuda *cuda, uint32_t index, void *context)
{
    const reach *of = context;
    return is_member(cuda, of->team, index) && cuda->group[index] != cuda->group[wefti_cuda_own_index(cuda)] &&
           wefti_cuda_record_of(cuda, index)->is_vmm;
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
    region->delta[index] = (int64_t)record->address - (int64_t)cuda->record->address;
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
    region->delta[index] = (int64_t)(at + record->offset) - (int64_t)cuda->record->address;
    return WEFT_OK;
}

/* Near members in other processes: each takes for itself. */
static int count_outside(const wefti_cuda *cuda, const weft_team *team)
{
    int outside = 0;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        outside += is_member(cuda, team, i) && cuda->group[i] != cuda->group[wefti_cuda_own_index(cuda)];
    }
    return outside;
}

static weft_status reach_all(wefti_cuda *cuda, const weft_team *team, wefti_cuda_region *region,
                             wefti_cuda_offer *offer)
{
    reach of = {region, team};
    const wefti_cuda_taking taking = {.offer = offer, .wants = wants_descriptor, .take = take_region, .context = &of};
    weft_status first = wefti_cuda_exchange(cuda, &taking);
    for (uint32_t i = 0; i < cuda->near_count && first == WEFT_OK; i++) {
        if (!is_member(cuda, team, i)) {
            region->delta[i] = WEFTI_DEV_FAR;
        } else if (cuda->group[i] == cuda->group[wefti_cuda_own_index(cuda)]) {
            first = reach_inside(cuda, region, i);
        } else if (!wefti_cuda_record_of(cuda, i)->is_vmm) {
            first = reach_ipc(cuda, region, i);
        }
    }
    return first;
}

/* Each PE's part is where the caller says. */
static weft_status reach_mapped(const wefti_cuda *cuda, wefti_cuda_region *region, const wefti_registration *what)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        region->delta[i] = (int64_t)((uintptr_t)what->peers[cuda->near_first + i] - (uintptr_t)what->address);
    }
    return WEFT_OK;
}

/* ---- regions ---- */

/* Its buffer is let go; the record stays. */
static void region_fini(wefti_cuda *cuda, wefti_cuda_region *region)
{
    __atomic_store_n(&region->address, NULL, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (region->mapped[i] != 0 && region->mapped_bytes[i] != 0) {
            (void)cuda->driver.cuMemUnmap(region->mapped[i], region->mapped_bytes[i]);
            (void)cuda->driver.cuMemAddressFree(region->mapped[i], region->mapped_bytes[i]);
        } else if (region->mapped[i] != 0) {
            (void)cuda->driver.cuIpcCloseMemHandle(region->mapped[i]);
        }
        region->mapped[i] = 0;
        region->mapped_bytes[i] = 0;
    }
}

void wefti_cuda_regions_fini(wefti_cuda *cuda)
{
    while (cuda->regions != NULL) {
        wefti_cuda_region *gone = cuda->regions;
        cuda->regions = gone->next;
        region_fini(cuda, gone);
        wefti_free(gone);
    }
    for (size_t i = 0; i < 2; i++) {
        if (cuda->region_tables[i] != 0) {
            (void)cuda->driver.cuMemFree(cuda->region_tables[i]);
        }
    }
    for (size_t i = 0; i < cuda->region_old_count; i++) {
        (void)cuda->driver.cuMemFree(cuda->region_old_tables[i]);
    }
    wefti_free(cuda->region_old_tables);
}

const wefti_cuda_region *wefti_cuda_region_find(const wefti_cuda *cuda, const void *address, uint64_t bytes,
                                                uint64_t *offset)
{
    const wefti_cuda_region *region = NULL;
    while ((region = wefti_cuda_region_after(cuda, region)) != NULL) {
        const unsigned char *base = __atomic_load_n(&region->address, __ATOMIC_ACQUIRE);
        *offset = (uint64_t)((uintptr_t)address - (uintptr_t)base);
        if (base != NULL && *offset < region->bytes && bytes <= region->bytes - *offset) {
            return region;
        }
    }
    return NULL;
}

static weft_status check_overlap(const wefti_cuda *cuda, const char *call, size_t bytes)
{
    const uint64_t first = cuda->record->address;
    for (const wefti_cuda_region *other = cuda->regions; other != NULL; other = other->next) {
        const uint64_t base = (uint64_t)(uintptr_t)other->address;
        if (base != 0 && base < first + bytes && first < base + other->bytes) {
            return wefti_error(WEFT_ERR_ARGUMENT,
                               "%s: %zu bytes at %p overlap the %llu registered at %p; register them "
                               "once, together",
                               call, bytes, (void *)(uintptr_t)first, (unsigned long long)other->bytes,
                               (void *)other->address);
        }
    }
    return WEFT_OK;
}

/* The first number from `lowest` on that nothing here has. */
static uint64_t free_number(const wefti_cuda *cuda, uint64_t lowest)
{
    uint64_t number = 0;
    for (const wefti_cuda_region *region = cuda->regions; region != NULL; region = region->next, number++) {
        if (number >= lowest && region->address == NULL) {
            return number;
        }
    }
    return number > lowest ? number : lowest;
}

/* The lowest number that is free on all members, who may have others in different teams; and that all went well. */
static weft_status agree_number(wefti_cuda *cuda, weft_team *team, const char *call, size_t bytes, weft_status mine,
                                uint64_t *number)
{
    uint64_t lowest = 0;
    for (;;) {
        const uint64_t own = free_number(cuda, lowest);
        wefti_vote vote = wefti_vote_init(team, call, bytes, lowest);
        vote.status = mine;
        if (mine == WEFT_OK && own >= WEFTI_DEV_REGIONS_MAX) {
            vote.status =
                wefti_error(WEFT_ERR_OVERFLOW, "%s: %d buffers are registered already", call, WEFTI_DEV_REGIONS_MAX);
        }
        vote.offset_low = own;
        vote.offset_high = own;
        WEFT_TRY(wefti_cuda_agree(cuda, team, call, &vote));
        *number = lowest = vote.offset_high;
        if (vote.offset_low == vote.offset_high) {
            return WEFT_OK;
        }
    }
}

static wefti_cuda_region *make_record(const wefti_cuda *cuda, uint32_t number)
{
    wefti_cuda_region *region;
    const size_t each = sizeof *region->delta + sizeof *region->mapped + sizeof *region->mapped_bytes;
    region = wefti_alloc_zeroed(1, sizeof *region + cuda->near_count * each);
    if (region != NULL) {
        region->number = number;
        region->delta = (int64_t *)(void *)(region + 1);
        region->mapped = (CUdeviceptr *)(void *)(region->delta + cuda->near_count);
        region->mapped_bytes = (uint64_t *)(void *)(region->mapped + cuda->near_count);
    }
    return region;
}

/* The record of that number, which is free, and those before it that are not there. */
static weft_status region_init(wefti_cuda *cuda, const weft_team *team, const char *call, uint64_t number, size_t bytes,
                               wefti_cuda_region **out)
{
    wefti_cuda_region **link = &cuda->regions;
    for (uint32_t i = 0; i <= number; i++) {
        link = i > 0 ? &(*link)->next : link;
        wefti_cuda_region *region = *link != NULL ? *link : make_record(cuda, i);
        if (region == NULL) {
            return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for the record of a registered buffer", call);
        }
        __atomic_store_n(link, region, __ATOMIC_RELEASE);
    }
    (*link)->bytes = bytes;
    (*link)->team = team;
    *out = *link;
    return WEFT_OK;
}

/* ---- what kernels are told ---- */

/* Device memory of `bytes` bytes for the table of the next version. */
static weft_status make_room(wefti_cuda *cuda, size_t which, uint64_t bytes)
{
    CUdeviceptr made = 0;
    const uint64_t twice = 2 * cuda->region_table_bytes[which];
    bytes = bytes > twice ? bytes : twice;
    CUdeviceptr *old =
        wefti_realloc(cuda->region_old_tables, (cuda->region_old_count + 1) * sizeof *cuda->region_old_tables);
    if (old == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the record of a table of registered buffers");
    }
    cuda->region_old_tables = old;
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuMemAlloc(&made, bytes),
                              "cuMemAlloc (of the table of registered buffers)"));
    if (cuda->region_tables[which] != 0) {
        old[cuda->region_old_count++] = cuda->region_tables[which];
    }
    cuda->region_tables[which] = made;
    cuda->region_table_bytes[which] = bytes;
    return WEFT_OK;
}

static int by_base(const void *a, const void *b)
{
    const wefti_cuda_region *const *left = a;
    const wefti_cuda_region *const *right = b;
    return (uintptr_t)(*left)->address < (uintptr_t)(*right)->address   ? -1
           : (uintptr_t)(*left)->address > (uintptr_t)(*right)->address ? 1
                                                                        : 0;
}

/* Fill in a table of wefti_dev_regions, for device memory at `at`. */
static void fill_table(const wefti_cuda *cuda, unsigned char *image, CUdeviceptr at, uint64_t used, uint64_t numbers,
                       const wefti_cuda_region **sorted)
{
    const wefti_dev_regions head = {.used = used};
    wefti_dev_region *regions = (wefti_dev_region *)(void *)(image + sizeof head);
    wefti_u64 *bases = (wefti_u64 *)(void *)(regions + 1 + used);
    wefti_i64 *delta = (wefti_i64 *)(void *)(bases + numbers);
    size_t count = 0;
    memcpy(image, &head, sizeof head);
    for (const wefti_cuda_region *region = cuda->regions; region != NULL; region = region->next) {
        bases[region->number] = (uintptr_t)region->address;
        if (region->address != NULL) {
            sorted[count++] = region;
        }
    }
    qsort(sorted, count, sizeof *sorted, by_base);
    for (size_t i = 0; i < count; i++, delta += cuda->near_count) {
        regions[1 + i] = (wefti_dev_region){
            .base = (uintptr_t)sorted[i]->address,
            .bytes = sorted[i]->bytes,
            .delta = (const wefti_i64 *)(uintptr_t)(at + (uint64_t)((unsigned char *)delta - image)),
            .number = sorted[i]->number,
        };
        memcpy(delta, sorted[i]->delta, cuda->near_count * sizeof *delta);
    }
}

/* The next version: its table, where it lies, then the number that makes it the one to look at. */
static weft_status publish(wefti_cuda *cuda)
{
    wefti_dev_control *control = (wefti_dev_control *)(void *)cuda->slot;
    const wefti_u64 version = cuda->region_version + 1;
    const size_t which = version & 1;
    uint64_t used = 0;
    uint64_t numbers = 0;
    for (const wefti_cuda_region *region = cuda->regions; region != NULL; region = region->next) {
        numbers++;
        used += region->address != NULL;
    }
    const uint64_t bytes = sizeof(wefti_dev_regions) + (1 + used) * sizeof(wefti_dev_region) +
                           numbers * sizeof(wefti_u64) + used * cuda->near_count * sizeof(wefti_i64);
    if (bytes > cuda->region_table_bytes[which]) {
        WEFT_TRY(make_room(cuda, which, bytes));
    }
    unsigned char *image = wefti_alloc_zeroed(1, bytes);
    const wefti_cuda_region **sorted = wefti_alloc_zeroed(used + 1, sizeof *sorted);
    weft_status status = WEFT_OK;
    if (image == NULL || sorted == NULL) {
        status =
            wefti_error(WEFT_ERR_MEMORY, "no memory for a table of %llu registered buffers", (unsigned long long)used);
    } else {
        const wefti_u64 at = cuda->region_tables[which];
        fill_table(cuda, image, cuda->region_tables[which], used, numbers, sorted);
        status = wefti_cuda_copy(&cuda->base, (void *)(uintptr_t)at, image, bytes);
        if (status == WEFT_OK) {
            status = wefti_cuda_copy(&cuda->base, &control->region_tables[which], &at, sizeof at);
        }
        if (status == WEFT_OK) {
            status = wefti_cuda_copy(&cuda->base, &control->region_version, &version, sizeof version);
        }
    }
    wefti_free(sorted);
    wefti_free(image);
    cuda->region_version += status == WEFT_OK;
    return status;
}

/* ---- the calls ---- */

/* From here on this PE and its kernels find the buffer. */
static weft_status open_region(wefti_cuda *cuda, wefti_cuda_region *region, void *address)
{
    __atomic_store_n(&region->address, address, __ATOMIC_RELEASE);
    return publish(cuda);
}

static weft_status register_entered(wefti_cuda *cuda, weft_team *team, const wefti_registration *what)
{
    const char *call = what->call;
    const size_t bytes = what->bytes;
    CUmemGenericAllocationHandle handle = 0;
    wefti_cuda_offer offer = wefti_cuda_offer_init(team, count_outside(cuda, team));
    wefti_cuda_region *region = NULL;
    uint64_t number;
    cuda->record->is_vmm = 0;
    weft_status status = what->is_mapped ? check_mapped(cuda, what) : describe(cuda, what, &handle);
    if (status == WEFT_OK) {
        status = check_overlap(cuda, call, bytes);
    }
    status = agree_number(cuda, team, call, bytes, status, &number);
    if (status == WEFT_OK) {
        status = region_init(cuda, team, call, number, bytes, &region);
    }
    if (status == WEFT_OK && cuda->record->is_vmm) {
        status = wefti_cuda_offer_open(cuda, handle, &offer);
    }
    status = wefti_cuda_verdict(cuda, team, call, bytes, status);
    if (status == WEFT_OK) {
        status = wefti_cuda_fetch_records(cuda, team);
    }
    if (status == WEFT_OK) {
        status = what->is_mapped ? reach_mapped(cuda, region, what) : reach_all(cuda, team, region, &offer);
        status = wefti_cuda_verdict(cuda, team, call, bytes, status);
    }
    if (status == WEFT_OK) {
        status = wefti_cuda_verdict(cuda, team, call, bytes, open_region(cuda, region, what->address));
    }
    wefti_cuda_offer_close(&offer);
    if (handle != 0) {
        (void)cuda->driver.cuMemRelease(handle);
    }
    if (status != WEFT_OK && region != NULL) {
        const int is_told = region->address != NULL;
        region_fini(cuda, region);
        if (is_told) {
            (void)publish(cuda); /* what it says of the region is not used: the call has failed on all PEs */
        }
    }
    return status;
}

/* A far PE names a buffer by its number. Registrations of part of the PEs may number buffers differently on others, so
 * where PEs are far all PEs of the world register together. */
static weft_status check_team(const wefti_cuda *cuda, const weft_team *team, const char *call)
{
    int all_are_near = cuda->near_count == cuda->world->view.pes;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        all_are_near &= cuda->group[i] >= 0;
    }
    return all_are_near || (uint32_t)team->pes == cuda->world->view.pes
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNSUPPORTED,
                             "%s: the world has GPUs of several link domains: register over all its PEs", call);
}

weft_status wefti_cuda_register(wefti_device *device, weft_team *team, const wefti_registration *what)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(check_team(cuda, team, what->call));
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = register_entered(cuda, team, what);
    wefti_cuda_leave(cuda);
    return status;
}

weft_status wefti_cuda_deregister(wefti_device *device, weft_team *team, void *address)
{
    static const char call[] = "weft_device_unregister";
    wefti_cuda *cuda = wefti_cuda_of(device);
    wefti_cuda_region *region = cuda->regions;
    weft_status status = WEFT_OK;
    while (region != NULL && region->address != address) {
        region = region->next;
    }
    if (region == NULL) {
        status = wefti_error(WEFT_ERR_ARGUMENT, "%s: %p is not registered", call, address);
    } else if (region->team != team) {
        status = wefti_error(WEFT_ERR_ARGUMENT, "%s: %p is registered over another team; name that", call, address);
    }
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, region == NULL ? 0 : region->number, status));
    WEFT_TRY(wefti_cuda_enter(cuda));
    region_fini(cuda, region);
    status = publish(cuda);
    wefti_cuda_leave(cuda);
    return wefti_cuda_verdict(cuda, team, call, region->number,
                              status); /* nobody uses the buffer once all have let it go */
}
