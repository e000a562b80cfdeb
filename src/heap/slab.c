/* Pieces of a block: the heap's records (heap/blocks.h), behind a lock, of the process that made the slab. */
#include "weft/slab.h"

#include "base/alloc.h"
#include "base/error.h"
#include "heap/blocks.h"
#include "os/os.h"

struct weft_slab {
    int owner; /* the process that made it; NOBODY once it is destroyed */
    unsigned char *base; /* a multiple of WEFTI_BLOCK_ALIGNMENT */
    wefti_os_monitor *monitor;
    wefti_blocks blocks;
};

#define NOBODY (-1)

/* A forked process has a copy of the records, which knows nothing of what the parent takes from then on. */
static weft_status check_slab(const weft_slab *slab, const char *call)
{
    if (slab == NULL || slab->owner == NOBODY) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'slab' is NULL or destroyed", call);
    }
    return slab->owner == wefti_os_owner_number()
               ? WEFT_OK
               : wefti_error(WEFT_ERR_STATE,
                             "%s: this process was forked from the one that made the slab; make the call there, or a "
                             "slab of memory of this process",
                             call);
}

weft_status weft_slab_create(void *block, size_t bytes, weft_slab **out)
{
    static const char call[] = "weft_slab_create";
    if (block == NULL || out == NULL) {
        return wefti_error_null(call, block == NULL ? "block" : "slab");
    }
    if (bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)block) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: bytes is %zu; give 1 up to the end of the address space", call,
                           bytes);
    }
    const size_t shift = -(uintptr_t)block % WEFTI_BLOCK_ALIGNMENT;
    weft_slab *slab = wefti_alloc_zeroed(1, sizeof *slab);
    if (slab == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for the slab", call);
    }
    weft_status status = wefti_os_monitor_create(&slab->monitor);
    if (status != WEFT_OK) {
        wefti_free(slab);
        return status;
    }
    slab->owner = wefti_os_owner_number();
    slab->base = (unsigned char *)block + shift;
    wefti_blocks_init(&slab->blocks, bytes > shift ? bytes - shift : 0);
    slab->blocks.lead = (uintptr_t)slab->base;
    *out = slab;
    return WEFT_OK;
}

static weft_status take(weft_slab *slab, size_t bytes, size_t alignment, void **piece)
{
    const uint64_t offset = wefti_blocks_fit(&slab->blocks, bytes, alignment, 0);
    if (offset == WEFTI_BLOCK_NONE) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_blocks_take(&slab->blocks, offset, bytes, 0));
    *piece = slab->base + offset;
    return WEFT_OK;
}

weft_status weft_slab_alloc(weft_slab *slab, size_t bytes, size_t alignment, void **piece)
{
    static const char call[] = "weft_slab_alloc";
    WEFT_TRY(check_slab(slab, call));
    if (piece == NULL) {
        return wefti_error_null(call, "piece");
    }
    if ((alignment & (alignment - 1)) != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: alignment is %zu; give a power of two, or 0", call, alignment);
    }
    *piece = NULL;
    if (bytes == 0) {
        return WEFT_OK;
    }
    alignment = alignment > WEFTI_BLOCK_ALIGNMENT ? alignment : WEFTI_BLOCK_ALIGNMENT;
    wefti_os_monitor_enter(slab->monitor);
    weft_status status = take(slab, bytes, alignment, piece);
    wefti_os_monitor_leave(slab->monitor);
    return status;
}

int weft_slab_contains(const weft_slab *slab, const void *address)
{
    return slab != NULL && (uintptr_t)address - (uintptr_t)slab->base < slab->blocks.limit;
}

weft_status weft_slab_free(weft_slab *slab, void *piece)
{
    static const char call[] = "weft_slab_free";
    WEFT_TRY(check_slab(slab, call));
    if (piece == NULL) {
        return WEFT_OK;
    }
    const uint64_t offset = (uintptr_t)piece - (uintptr_t)slab->base;
    wefti_os_monitor_enter(slab->monitor);
    const int is_piece = weft_slab_contains(slab, piece) && wefti_blocks_find(&slab->blocks, offset) != NULL;
    if (is_piece) {
        wefti_blocks_drop(&slab->blocks, offset);
    }
    wefti_os_monitor_leave(slab->monitor);
    return is_piece ? WEFT_OK
                    : wefti_error(WEFT_ERR_ARGUMENT, "%s: %p is no piece of the slab; give what weft_slab_alloc gave",
                                  call, piece);
}

weft_status weft_slab_query(weft_slab *slab, weft_slab_use *use)
{
    static const char call[] = "weft_slab_query";
    WEFT_TRY(check_slab(slab, call));
    if (use == NULL || use->size < sizeof *use) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           use == NULL ? "argument 'use' is NULL" : "use is too small; start from WEFT_SLAB_USE_INIT");
    }
    wefti_os_monitor_enter(slab->monitor);
    use->bytes = slab->blocks.limit;
    use->bytes_used = slab->blocks.bytes_used;
    use->pieces = slab->blocks.count;
    wefti_os_monitor_leave(slab->monitor);
    return WEFT_OK;
}

weft_status weft_slab_destroy(weft_slab *slab)
{
    static const char call[] = "weft_slab_destroy";
    if (slab == NULL || (slab->owner != NOBODY && slab->owner != wefti_os_owner_number())) {
        return WEFT_OK;
    }
    WEFT_TRY(check_slab(slab, call));
    if (slab->blocks.count != 0) {
        return wefti_error(WEFT_ERR_STATE, "%s: the slab has %zu pieces; give them back first", call,
                           slab->blocks.count);
    }
    wefti_blocks_fini(&slab->blocks);
    wefti_os_monitor_destroy(slab->monitor);
    slab->owner = NOBODY;
    wefti_free_late(slab);
    return WEFT_OK;
}
