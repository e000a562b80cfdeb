/* cuda/ep/host/rows.c: where the rows of a caller's tensor lie. */
#include "base/error.h"
#include "cuda/ep/host/calls.h"
#include "ep/check.h"

size_t wefti_cuda_ep_row_bytes(const weft_ep_rows *rows)
{
    return (size_t)rows->hidden * wefti_ep_element_bytes(rows->dtype);
}

uint64_t wefti_cuda_ep_pitch(const weft_ep_rows *rows)
{
    return rows->stride_bytes != 0 ? rows->stride_bytes : wefti_cuda_ep_row_bytes(rows);
}

weft_status wefti_cuda_ep_check_staging(const weft_ep *ep, const wefti_cuda_ep_launch_plan *plan, const char *why,
                                        const char *call)
{
    return wefti_ep_stages(ep) || plan->low_latency_slots != 0 || plan->is_eager
               ? WEFT_OK
               : wefti_error(WEFT_ERR_UNSUPPORTED,
                             "%s: %s, and the group has WEFT_EP_NO_STAGING; make it without, or call with few tokens "
                             "in slots, or to memory that all ranks reach (the device heap, registered memory, "
                             "weft_ep_window)",
                             call, why);
}

uint64_t wefti_cuda_ep_area_rows(const weft_ep *ep)
{
    const wefti_ep_device *device = ep->device;
    const uint64_t area = wefti_cuda_ep_own_area(ep, ep->bank);
    return wefti_cuda_ep_place(0, area - (uint64_t)(uintptr_t)device->cuda->base.heap + device->group[0].at.rows);
}

/* Of this rank's heap, the bytes that all ranks have mapped: what came by weft_device_team_malloc over part of the
 * group the others lack. */
static uint64_t common_heap_bytes(const weft_ep *ep)
{
    const wefti_cuda *cuda = ep->device->cuda;
    uint64_t least = __atomic_load_n(&cuda->base.heap_bytes, __ATOMIC_ACQUIRE);
    for (int rank = 0; rank < ep->ranks; rank++) {
        const uint32_t index = (uint32_t)ep->device->pe_of[rank] - cuda->near_first;
        const uint64_t bytes = wefti_cuda_heap_reach(cuda, index);
        least = bytes < least ? bytes : least;
    }
    return least;
}

/* Whether all ranks have registered it together. */
static int is_common(const weft_ep *ep, const wefti_cuda_region *region)
{
    int is_all = 1;
    for (int rank = 0; rank < ep->ranks; rank++) {
        is_all &= region->delta[(uint32_t)ep->device->pe_of[rank] - ep->device->cuda->near_first] != WEFTI_DEV_FAR;
    }
    return is_all;
}

int wefti_cuda_ep_find_place(const weft_ep *ep, const void *address, uint64_t bytes, int is_open, wefti_u64 *place,
                             uint64_t *held)
{
    const wefti_cuda *cuda = ep->device->cuda;
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)cuda->base.heap);
    const uint64_t heap_bytes = common_heap_bytes(ep);
    const int is_cut = heap_bytes < __atomic_load_n(&cuda->base.heap_bytes, __ATOMIC_ACQUIRE);
    if (offset < heap_bytes && bytes <= heap_bytes - offset && !(is_open && is_cut)) {
        *held = heap_bytes - offset;
        *place = wefti_cuda_ep_place(0, offset);
        return 1;
    }
    const wefti_cuda_region *region = wefti_cuda_region_find(cuda, address, bytes, &offset);
    if (region == NULL || !is_common(ep, region)) {
        return 0;
    }
    *held = region->bytes - offset;
    *place = wefti_cuda_ep_place(region->number + 1, offset);
    return 1;
}
