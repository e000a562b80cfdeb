/* faces/nvshmem/memory.c: memory management, of the heap that there is: of the GPUs or of the host. */
#include <stdio.h>
#include <stdlib.h>

#include "faces/nvshmem/binding.h"
#include "faces/nvshmem/pages.h"

/* Blocks of the device heap whose address was moved up for its alignment. */
typedef struct moved {
    struct moved *next;
    void *address;
    void *block;
} moved;

/* Registrations of local memory. */
typedef struct registration {
    struct registration *next;
    weft_region *region;
    int has_pages; /* locked: a GPU had been chosen */
} registration;

/* Memory of a GPU that is symmetric by a registration, which may be made again before it ends. */
typedef struct symmetric {
    struct symmetric *next;
    void *address;
    size_t bytes;
    int count; /* of registrations of it */
} symmetric;

/* The lock of setup.c guards all. */
static moved *all_moved;
static registration *registrations;
static symmetric *symmetrics;

/* What weft_device_malloc aligns to. */
#define DEVICE_ALIGNMENT 256

/* The result of an allocation: NULL if it failed; unless only memory was lacking, the failure is latched. */
static void *told(const char *call, weft_status status, void *const *block)
{
    if (status == WEFT_OK) {
        return *block;
    }
    if (status == WEFT_ERR_STATE && WORLD != NULL && wefti_nvshmem.place == WEFTI_NV_UNDECIDED) {
        wefti_nv_latch_refusal(call, NVSHMEMX_ERROR_GPU_NOT_SELECTED,
                               "no GPU is current; call cudaSetDevice before the first allocation, or set "
                               "NVSHMEM_HEAP_KIND=SYSMEM for a heap in the host's memory");
    } else if (status != WEFT_ERR_MEMORY) {
        wefti_nv_latch(call, status);
    }
    return NULL;
}

static weft_status allocate(size_t bytes, void **block)
{
    wefti_nv_units_check();
    WEFT_TRY(wefti_nv_place_decide());
    return wefti_nvshmem.place == WEFTI_NV_DEVICE ? weft_device_malloc(WORLD, bytes, block)
                                                  : weft_malloc(WORLD, bytes, block);
}

void *nvshmem_malloc(size_t size)
{
    void *block = NULL;
    return size == 0 ? NULL : told(__func__, allocate(size, &block), &block);
}

static weft_status allocate_zeroed(size_t count, size_t size, void **block)
{
    wefti_nv_units_check();
    WEFT_TRY(wefti_nv_place_decide());
    if (wefti_nvshmem.place == WEFTI_NV_HOST) {
        return weft_calloc(WORLD, count, size, block);
    }
    const size_t bytes = wefti_bytes_of(count, size);
    WEFT_TRY(weft_device_malloc(WORLD, bytes, block));
    WEFT_TRY(wefti_nv_device_zero(*block, bytes));
    return weft_barrier(WORLD);
}

void *nvshmem_calloc(size_t count, size_t size)
{
    void *block = NULL;
    return count == 0 || size == 0 ? NULL : told(__func__, allocate_zeroed(count, size, &block), &block);
}

/* The heaps of all PEs begin at multiples of what the driver maps, so that an offset that is aligned on one is on
 * all. */
static weft_status allocate_moved(size_t alignment, size_t size, void **address)
{
    void *block;
    moved *const one = malloc(sizeof *one);
    if (one == NULL) {
        return WEFT_ERR_MEMORY;
    }
    weft_status status = weft_device_malloc(WORLD, size + alignment, &block);
    if (status != WEFT_OK) {
        free(one);
        return status;
    }
    one->block = block;
    one->address = (void *)(((uintptr_t)block + alignment - 1) / alignment * alignment);
    *address = one->address;
    wefti_nv_lock();
    one->next = all_moved;
    all_moved = one;
    wefti_nv_unlock();
    return WEFT_OK;
}

static weft_status allocate_aligned(size_t alignment, size_t size, void **block)
{
    wefti_nv_units_check();
    WEFT_TRY(wefti_nv_place_decide());
    if (wefti_nvshmem.place == WEFTI_NV_HOST) {
        return weft_align(WORLD, alignment, size, block);
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > ((size_t)2 << 20) ||
        size > SIZE_MAX - alignment) {
        return WEFT_ERR_ARGUMENT;
    }
    return alignment <= DEVICE_ALIGNMENT ? weft_device_malloc(WORLD, size, block)
                                         : allocate_moved(alignment, size, block);
}

void *nvshmem_align(size_t alignment, size_t size)
{
    void *block = NULL;
    return size == 0 ? NULL : told(__func__, allocate_aligned(alignment, size, &block), &block);
}

/* The block behind an address that nvshmem_align may have moved. */
static void *take_moved(void *address)
{
    void *block = address;
    wefti_nv_lock();
    for (moved **at = &all_moved; *at != NULL; at = &(*at)->next) {
        if ((*at)->address == address) {
            moved *const found = *at;
            block = found->block;
            *at = found->next;
            free(found);
            break;
        }
    }
    wefti_nv_unlock();
    return block;
}

void nvshmem_free(void *ptr)
{
    if (ptr == NULL) {
        return;
    }
    if (wefti_nvshmem.place == WEFTI_NV_DEVICE) {
        CHECK(weft_device_free(WORLD, take_moved(ptr)), 1);
    } else {
        CHECK(weft_free(WORLD, ptr), 1);
    }
}

void *nvshmem_ptr(const void *dest, int pe)
{
    return weft_ptr(WORLD, dest, pe);
}

/* There is no multicast memory. */
void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *ptr)
{
    (void)team;
    (void)ptr;
    return NULL;
}

/* ---- registered memory ---- */

int nvshmemx_buffer_register(void *addr, size_t length)
{
    registration *const one = malloc(sizeof *one);
    if (one == NULL) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_OUT_OF_MEMORY, "no memory for the record of a registration");
    }
    weft_status status = weft_register(WORLD, addr, length, &one->region);
    if (status != WEFT_OK) {
        free(one);
        return wefti_nv_fail(__func__, status);
    }
    wefti_nv_lock();
    one->has_pages = wefti_nvshmem.place == WEFTI_NV_DEVICE;
    const int error = one->has_pages ? wefti_nv_pages_lock(addr, length) : 0;
    if (error == 0) {
        one->next = registrations;
        registrations = one;
    }
    wefti_nv_unlock();
    if (error != 0) {
        char cause[128];
        (void)snprintf(cause, sizeof cause,
                       "CUDA cannot lock the memory's pages (error %d), so no kernel would reach it", error);
        (void)weft_unregister(one->region);
        free(one);
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INTERNAL, cause);
    }
    return wefti_nv_result(__func__, WEFT_OK);
}

static void unlock_pages(const registration *one)
{
    if (one->has_pages) {
        wefti_nv_pages_unlock(weft_region_address(one->region), weft_region_bytes(one->region));
    }
}

/* The first registration of `address`, or of anything, taken out; NULL when there is none. */
static registration *take_registration(const void *address, int any)
{
    registration *found = NULL;
    wefti_nv_lock();
    for (registration **at = &registrations; *at != NULL && found == NULL;) {
        if (any || weft_region_address((*at)->region) == address) {
            found = *at;
            *at = found->next;
            unlock_pages(found);
        } else {
            at = &(*at)->next;
        }
    }
    wefti_nv_unlock();
    return found;
}

static weft_status end_registration(registration *one)
{
    weft_status status = weft_unregister(one->region);
    free(one);
    return status;
}

int nvshmemx_buffer_unregister(void *addr)
{
    registration *const one = take_registration(addr, 0);
    return one == NULL
               ? wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE, "nothing is registered at this address")
               : wefti_nv_result(__func__, end_registration(one));
}

void nvshmemx_buffer_unregister_all(void)
{
    for (registration *one = take_registration(NULL, 1); one != NULL; one = take_registration(NULL, 1)) {
        CHECK(end_registration(one), 1);
    }
}

static symmetric **find_symmetric(const void *address)
{
    symmetric **at = &symmetrics;
    while (*at != NULL && (*at)->address != address) {
        at = &(*at)->next;
    }
    return at;
}

/* 1: it is there already, and is counted once more. */
static int count_again(const void *address, size_t bytes)
{
    wefti_nv_lock();
    symmetric *const one = *find_symmetric(address);
    const int is_there = one != NULL && one->bytes == bytes;
    if (is_there) {
        one->count++;
    }
    wefti_nv_unlock();
    return is_there;
}

static weft_status make_symmetric(void *address, size_t bytes)
{
    if (count_again(address, bytes)) {
        return weft_barrier(WORLD);
    }
    symmetric *const one = malloc(sizeof *one);
    if (one == NULL) {
        return WEFT_ERR_MEMORY;
    }
    const weft_status status = weft_device_register(WORLD, address, bytes);
    if (status != WEFT_OK) {
        free(one);
        return status;
    }
    *one = (symmetric){.address = address, .bytes = bytes, .count = 1};
    wefti_nv_lock();
    one->next = symmetrics;
    symmetrics = one;
    wefti_nv_unlock();
    return WEFT_OK;
}

/* The memory keeps its address, which becomes a symmetric one. */
void *nvshmemx_buffer_register_symmetric(void *buf_ptr, size_t size, int flags)
{
    weft_status status = wefti_nv_place_decide();
    if (flags != 0) {
        wefti_nv_latch_refusal(__func__, NVSHMEMX_ERROR_INVALID_VALUE, "there are no flags; give 0");
        return NULL;
    }
    if (wefti_nvshmem.place == WEFTI_NV_HOST) {
        wefti_nv_latch_refusal(__func__, NVSHMEMX_ERROR_GPU_NOT_SELECTED,
                               "the heap is in the host's memory; only memory of GPUs can be made symmetric");
        return NULL;
    }
    status = status == WEFT_OK ? make_symmetric(buf_ptr, size) : status;
    return told(__func__, status, &buf_ptr);
}

void *nvshmemx_buffer_register_symmetric_at_preferred_address(void *buf_ptr, size_t size, void *preferred_addr,
                                                              int flags)
{
    (void)preferred_addr; /* it stays where it is */
    return nvshmemx_buffer_register_symmetric(buf_ptr, size, flags);
}

int nvshmemx_buffer_unregister_symmetric(void *mmap_ptr, size_t size)
{
    (void)size;
    wefti_nv_lock();
    symmetric **const at = find_symmetric(mmap_ptr);
    symmetric *const one = *at;
    const int is_last = one == NULL || --one->count == 0;
    if (one != NULL && is_last) {
        *at = one->next;
        free(one);
    }
    wefti_nv_unlock();
    return wefti_nv_result(__func__, is_last ? weft_device_unregister(WORLD, mmap_ptr) : weft_barrier(WORLD));
}

/* Forget moved blocks and registrations; the blocks end with the world. The caller has locked. */
void wefti_nv_memory_close(void)
{
    while (all_moved != NULL) {
        moved *const one = all_moved;
        all_moved = one->next;
        free(one);
    }
    while (symmetrics != NULL) {
        symmetric *const one = symmetrics;
        symmetrics = one->next;
        free(one);
    }
    while (registrations != NULL) {
        registration *const one = registrations;
        registrations = one->next;
        unlock_pages(one);
        (void)end_registration(one);
    }
}
