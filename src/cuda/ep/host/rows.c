/* cuda/ep/host/rows.c: where the rows of a caller's tensor lie. */
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

uint64_t wefti_cuda_ep_area_rows(const weft_ep *ep)
{
    const wefti_ep_device *device = ep->device;
    const wefti_cuda_ep_group *group = wefti_cuda_ep_group_of(ep);
    return wefti_cuda_ep_place(0,
                               group->area[ep->rank] - (uint64_t)(uintptr_t)device->cuda->base.heap + group->at.rows);
}

int wefti_cuda_ep_find_place(const wefti_cuda *cuda, const void *address, uint64_t bytes, wefti_u64 *place,
                             uint64_t *held)
{
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)cuda->base.heap);
    const uint64_t heap_bytes = __atomic_load_n(&cuda->base.heap_bytes, __ATOMIC_ACQUIRE);
    if (offset < heap_bytes && bytes <= heap_bytes - offset) {
        *held = heap_bytes - offset;
        *place = wefti_cuda_ep_place(0, offset);
        return 1;
    }
    const wefti_cuda_region *region = wefti_cuda_region_find(cuda, address, bytes, &offset);
    if (region == NULL) {
        return 0;
    }
    *held = region->bytes - offset;
    *place = wefti_cuda_ep_place(region->number + 1, offset);
    return 1;
}
