/* Registered memory. No transport of this build pins any, so that a region is a record and its checks. */
#include "weft/region.h"
#include "base/alloc.h"
#include "base/error.h"
#include "world/world.h"

struct weft_region {
    wefti_attachment attachment;
    weft_world *world;
    void *address;
    size_t bytes;
};

static void end_with_world(wefti_attachment *attachment)
{
    wefti_free(attachment);
}

/* Whether any of the bytes belong to the slot of a PE of this node, which its heap is part of. */
static int is_symmetric(const weft_world *world, const void *address, size_t bytes)
{
    const wefti_os_memory *window = &world->window->memory;
    uintptr_t first = (uintptr_t)address;
    uintptr_t start = (uintptr_t)window->base;
    return first < start + window->bytes && start < first + bytes;
}

weft_status weft_register(weft_world *world, void *address, size_t bytes, weft_region **out)
{
    static const char call[] = "weft_register";
    WEFT_TRY(wefti_world_expect(world, call));
    if (address == NULL || out == NULL) {
        return wefti_error_null(call, address == NULL ? "address" : "region");
    }
    if (bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)address) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: bytes is %zu, from %p on; give 1 or more, inside the address space",
                           call, bytes, address);
    }
    if (is_symmetric(world, address, bytes)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %zu bytes at %p are symmetric memory, which is registered already",
                           call, bytes, address);
    }
    weft_region *region = wefti_alloc(sizeof *region);
    if (region == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a region", call);
    }
    *region = (weft_region){.attachment.end = end_with_world, .world = world, .address = address, .bytes = bytes};
    wefti_world_attach(world, &region->attachment);
    *out = region;
    return WEFT_OK;
}

weft_status weft_unregister(weft_region *region)
{
    if (region == NULL) {
        return WEFT_OK;
    }
    if (region->bytes == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_unregister: the region has been unregistered already");
    }
    if (wefti_world_is_forked(region->world)) {
        return WEFT_OK;
    }
    wefti_world_detach(region->world, &region->attachment);
    region->address = NULL;
    region->bytes = 0;
    wefti_world_free_late(region->world, region); /* so that who still uses it is told */
    return WEFT_OK;
}

void *weft_region_address(const weft_region *region)
{
    return region == NULL || wefti_world_is_forked(region->world) ? NULL : region->address;
}

size_t weft_region_bytes(const weft_region *region)
{
    return region == NULL || wefti_world_is_forked(region->world) ? 0 : region->bytes;
}
