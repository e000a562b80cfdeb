#include "cuda/heap/window.h"

#include <string.h>

#include "base/alloc.h"

/* ---- joining and leaving ---- */

static void destroy(wefti_cuda_window *window)
{
    wefti_os_monitor_destroy(window->lock);
    wefti_cuda_driver_close(&window->driver);
    wefti_free(window);
}

static weft_status create(wefti_cuda_window **out)
{
    wefti_cuda_window *window = wefti_alloc_zeroed(1, sizeof *window);
    if (window == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the record of a device window");
    }
    weft_status status = wefti_os_random(window->key, sizeof window->key);
    if (status == WEFT_OK) {
        status = wefti_os_monitor_create(&window->lock);
    }
    if (status == WEFT_OK) {
        status = wefti_cuda_driver_open(&window->driver);
        if (status != WEFT_OK) {
            wefti_os_monitor_destroy(window->lock);
        }
    }
    if (status != WEFT_OK) {
        wefti_free(window);
        return status;
    }
    *out = window;
    return WEFT_OK;
}

static void window_free(void *window)
{
    destroy(window);
}

weft_status wefti_cuda_window_join(wefti_window *host, wefti_cuda_window **out)
{
    wefti_cuda_window *window = __atomic_load_n(&host->device, __ATOMIC_ACQUIRE);
    if (window == NULL) {
        wefti_cuda_window *mine = NULL;
        void *none = NULL;
        WEFT_TRY(create(&mine));
        __atomic_store_n(&host->device_free, window_free, __ATOMIC_RELEASE);
        if (__atomic_compare_exchange_n(&host->device, &none, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            window = mine;
        } else {
            destroy(mine);
            window = none;
        }
    }
    wefti_os_monitor_enter(window->lock);
    window->users++;
    wefti_os_monitor_leave(window->lock);
    *out = window;
    return WEFT_OK;
}

static void unmap_piece(wefti_cuda_window *window, const wefti_cuda_piece *piece)
{
    CUdeviceptr at = window->base + piece->slot * window->stride + piece->offset;
    (void)window->driver.cuMemUnmap(at, piece->bytes);
    (void)window->driver.cuMemRelease(piece->handle);
}

static void clear(wefti_cuda_window *window)
{
    for (size_t i = 0; i < window->piece_count; i++) {
        unmap_piece(window, &window->pieces[i]);
    }
    if (window->base != 0) {
        (void)window->driver.cuMemAddressFree(window->base, window->bytes);
    }
    for (size_t i = 0; i < window->allocation_count; i++) {
        (void)window->driver.cuMemFree(window->allocations[i]);
    }
    wefti_free(window->allocations);
    window->allocations = NULL;
    window->allocation_count = 0;
    for (size_t i = 0; i < window->host_range_count; i++) {
        (void)window->driver.cuMemHostUnregister(window->host_ranges[i].address);
    }
    wefti_free(window->pieces);
    wefti_free(window->extents);
    wefti_free(window->host_registered);
    wefti_free(window->host_ranges);
    window->pieces = NULL;
    window->piece_count = window->piece_capacity = 0;
    window->extents = NULL;
    window->base = 0;
    window->host_registered = NULL;
    window->host_ranges = NULL;
    window->host_range_count = window->host_range_capacity = 0;
}

void wefti_cuda_window_leave(wefti_cuda_window *window)
{
    wefti_os_monitor_enter(window->lock);
    if (--window->users == 0) {
        clear(window);
    }
    wefti_os_monitor_leave(window->lock);
}

/* ---- address space and pieces ---- */

static weft_status reserve_locked(wefti_cuda_window *window, size_t slots, uint64_t stride)
{
    uint64_t bytes = slots * stride;
    CUdeviceptr base = 0;
    if (window->extents == NULL) {
        window->extents = wefti_alloc_zeroed(slots, sizeof *window->extents);
    }
    if (window->extents == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a record of %zu slots of device memory", slots);
    }
    CUresult result = wefti_fault("cuMemAddressReserve", 0) ? CUDA_ERROR_OUT_OF_MEMORY
                                                            : window->driver.cuMemAddressReserve(&base, bytes, 0, 0, 0);
    WEFT_TRY(wefti_cuda_check(&window->driver, result, "cuMemAddressReserve"));
    window->base = base;
    window->bytes = bytes;
    window->stride = stride;
    return WEFT_OK;
}

weft_status wefti_cuda_window_reserve(wefti_cuda_window *window, size_t slots, uint64_t stride)
{
    wefti_os_monitor_enter(window->lock);
    weft_status status = window->base == 0 ? reserve_locked(window, slots, stride) : WEFT_OK;
    wefti_os_monitor_leave(window->lock);
    return status;
}

uint64_t wefti_cuda_window_extent(wefti_cuda_window *window, size_t slot)
{
    wefti_os_monitor_enter(window->lock);
    const uint64_t bytes = window->extents[slot].bytes;
    wefti_os_monitor_leave(window->lock);
    return bytes;
}

uint64_t wefti_cuda_window_sure(const wefti_cuda_window *window, size_t slot)
{
    return __atomic_load_n(&window->extents[slot].sure, __ATOMIC_ACQUIRE);
}

static weft_status make_room(wefti_cuda_window *window)
{
    if (window->piece_count < window->piece_capacity) {
        return WEFT_OK;
    }
    size_t capacity = window->piece_capacity == 0 ? 16 : 2 * window->piece_capacity;
    wefti_cuda_piece *pieces = wefti_realloc(window->pieces, capacity * sizeof *pieces);
    if (pieces == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the record of a piece of device memory");
    }
    window->pieces = pieces;
    window->piece_capacity = capacity;
    return WEFT_OK;
}

static weft_status let_access(wefti_cuda_window *window, const wefti_cuda_piece *piece, const CUdevice *devices,
                              int count)
{
    CUmemAccessDesc access[WEFTI_CUDA_DEVICES_MAX];
    memset(access, 0, sizeof access);
    for (int i = 0; i < count; i++) {
        access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access[i].location.id = devices[i];
        access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    CUdeviceptr at = window->base + piece->slot * window->stride + piece->offset;
    return wefti_cuda_check(&window->driver, window->driver.cuMemSetAccess(at, piece->bytes, access, (size_t)count),
                            "cuMemSetAccess (can these GPUs reach each other?)");
}

static weft_status map_locked(wefti_cuda_window *window, const wefti_cuda_piece *piece, const CUdevice *devices,
                              int count)
{
    CUdeviceptr at = window->base + piece->slot * window->stride + piece->offset;
    WEFT_TRY(make_room(window));
    CUresult result = wefti_fault("cuMemMap", 0) ? CUDA_ERROR_OUT_OF_MEMORY
                                                 : window->driver.cuMemMap(at, piece->bytes, 0, piece->handle, 0);
    WEFT_TRY(wefti_cuda_check(&window->driver, result, "cuMemMap"));
    weft_status status = let_access(window, piece, devices, count);
    if (status != WEFT_OK) {
        (void)window->driver.cuMemUnmap(at, piece->bytes);
        return status;
    }
    window->pieces[window->piece_count++] = *piece;
    window->extents[piece->slot].bytes = piece->offset + piece->bytes;
    return WEFT_OK;
}

weft_status wefti_cuda_window_map(wefti_cuda_window *window, const wefti_cuda_piece *piece, const CUdevice *devices,
                                  int count)
{
    wefti_os_monitor_enter(window->lock);
    const int is_there = piece->offset < window->extents[piece->slot].bytes;
    weft_status status = is_there ? WEFT_OK : map_locked(window, piece, devices, count);
    if (is_there || status != WEFT_OK) {
        (void)window->driver.cuMemRelease(piece->handle);
    }
    wefti_os_monitor_leave(window->lock);
    return status;
}

wefti_cuda_piece wefti_cuda_window_find(wefti_cuda_window *window, size_t slot, uint64_t offset)
{
    wefti_cuda_piece found = {.bytes = 0};
    wefti_os_monitor_enter(window->lock);
    for (size_t i = 0; i < window->piece_count; i++) {
        if (window->pieces[i].slot == slot && window->pieces[i].offset == offset) {
            found = window->pieces[i];
        }
    }
    wefti_os_monitor_leave(window->lock);
    return found;
}

void wefti_cuda_window_settle(wefti_cuda_window *window, size_t slot, int stays)
{
    wefti_os_monitor_enter(window->lock);
    wefti_cuda_extent *extent = &window->extents[slot];
    if (stays) {
        __atomic_store_n(&extent->sure, extent->bytes, __ATOMIC_RELEASE);
    }
    for (size_t i = window->piece_count; i-- > 0;) {
        if (window->pieces[i].slot == slot && window->pieces[i].offset >= extent->sure) {
            unmap_piece(window, &window->pieces[i]);
            window->pieces[i] = window->pieces[--window->piece_count];
        }
    }
    extent->bytes = extent->sure;
    wefti_os_monitor_leave(window->lock);
}

weft_status wefti_cuda_window_keep(wefti_cuda_window *window, CUdeviceptr memory)
{
    wefti_os_monitor_enter(window->lock);
    CUdeviceptr *allocations = wefti_realloc(window->allocations, (window->allocation_count + 1) * sizeof *allocations);
    if (allocations != NULL) {
        window->allocations = allocations;
        window->allocations[window->allocation_count++] = memory;
    } else {
        (void)window->driver.cuMemFree(memory);
    }
    wefti_os_monitor_leave(window->lock);
    return allocations != NULL ? WEFT_OK : wefti_error(WEFT_ERR_MEMORY, "no memory for the record of the device heap");
}

/* ---- the host window ---- */

/* The part of the host window at `range`, with its number among `parts`. */
static weft_status register_locked(wefti_cuda_window *window, unsigned char *range, size_t number, size_t parts,
                                   uint64_t bytes)
{
    if (window->host_registered == NULL) {
        window->host_registered = wefti_alloc_zeroed(parts, sizeof *window->host_registered);
    }
    if (window->host_range_count == window->host_range_capacity) {
        size_t capacity = window->host_range_capacity == 0 ? 16 : 2 * window->host_range_capacity;
        wefti_cuda_host_range *longer = wefti_realloc(window->host_ranges, capacity * sizeof *longer);
        if (longer != NULL) {
            window->host_ranges = longer;
            window->host_range_capacity = capacity;
        }
    }
    if (window->host_registered == NULL || window->host_range_count == window->host_range_capacity) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the record of registered host memory");
    }
    uint64_t have = window->host_registered[number];
    if (bytes <= have) {
        return WEFT_OK;
    }
    unsigned char *from = range + have;
    CUdeviceptr device = 0;
    WEFT_TRY(wefti_cuda_check(&window->driver,
                              window->driver.cuMemHostRegister(
                                  from, bytes - have, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
                              "cuMemHostRegister (of the symmetric host heap; ulimit -l?)"));
    window->host_ranges[window->host_range_count++] = (wefti_cuda_host_range){.address = from, .bytes = bytes - have};
    window->host_registered[number] = bytes;
    WEFT_TRY(wefti_cuda_check(&window->driver, window->driver.cuMemHostGetDevicePointer(&device, from, 0),
                              "cuMemHostGetDevicePointer"));
    if (device != (CUdeviceptr)(uintptr_t)from) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "kernels see host memory at other addresses than the host");
    }
    return WEFT_OK;
}

weft_status wefti_cuda_window_register(wefti_cuda_window *window, const wefti_window *host, size_t slots, size_t slot,
                                       uint64_t bytes)
{
    wefti_os_monitor_enter(window->lock);
    weft_status status =
        register_locked(window, host->memory.base + wefti_window_slot(host, slot), 1 + slot, 1 + slots, bytes);
    wefti_os_monitor_leave(window->lock);
    return status;
}

weft_status wefti_cuda_window_register_head(wefti_cuda_window *window, const wefti_window *host, size_t slots)
{
    wefti_os_monitor_enter(window->lock);
    weft_status status = register_locked(window, host->memory.base, 0, 1 + slots, wefti_os_page_bytes());
    wefti_os_monitor_leave(window->lock);
    return status;
}

size_t wefti_cuda_window_host_span(wefti_cuda_window *window, const void *address, size_t bytes)
{
    const uintptr_t first = (uintptr_t)address;
    size_t span = bytes;
    wefti_os_monitor_enter(window->lock);
    for (size_t i = 0; i < window->host_range_count; i++) {
        const uintptr_t range = (uintptr_t)window->host_ranges[i].address;
        const uintptr_t end = range + window->host_ranges[i].bytes;
        const uintptr_t border = first < range ? range : end; /* the next one after `first` */
        span = first < border && border - first < span ? border - first : span;
    }
    wefti_os_monitor_leave(window->lock);
    return span;
}
