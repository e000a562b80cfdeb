/* faces/nvshmem/regions.c: regions, which give hints for the calls in them. The hints have no effect here, where puts
 * are issued at once; only the handle and the hints are kept. Also signals that count bytes. */
#include "faces/nvshmem/binding.h"

static struct {
    nvshmemx_region_handle_t handle; /* 0: none */
    uint32_t hints;
} region;

static nvshmemx_region_handle_t count;

void wefti_nv_regions_close(void)
{
    region.handle = 0;
}

static int check_hints(const char *call, uint32_t hints)
{
    return hints <= NVSHMEMX_REGION_HINT_BATCH_RMA
               ? NVSHMEMX_SUCCESS
               : wefti_nv_refuse(
                     call, NVSHMEMX_ERROR_INVALID_VALUE,
                     "there is no such hint; give NVSHMEMX_REGION_HINT_NONE or NVSHMEMX_REGION_HINT_BATCH_RMA");
}

int nvshmemx_region_start(nvshmemx_region_handle_t *handle, const nvshmemx_region_attrs_t *attrs)
{
    const uint32_t hints = attrs == NULL ? NVSHMEMX_REGION_HINT_NONE : attrs->hints;
    if (WORLD == NULL) {
        return wefti_nv_fail(__func__, WEFT_ERR_STATE);
    }
    if (handle == NULL || region.handle != 0) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               handle == NULL ? "argument 'handle' is NULL"
                                              : "a region is open; call nvshmemx_region_stop first");
    }
    const int result = check_hints(__func__, hints);
    if (result == NVSHMEMX_SUCCESS) {
        region.hints = hints;
        region.handle = *handle = ++count;
    }
    return result;
}

int nvshmemx_region_stop(nvshmemx_region_handle_t handle)
{
    if (handle == 0 || handle != region.handle) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               "argument 'handle' is none of an open region; give that of nvshmemx_region_start");
    }
    region.handle = 0;
    return wefti_nv_result(__func__, WEFT_OK);
}

int nvshmemx_region_is_active(uint32_t hint, int *active)
{
    if (active == NULL) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE, "argument 'active' is NULL");
    }
    const int result = check_hints(__func__, hint);
    if (result == NVSHMEMX_SUCCESS) {
        *active = region.handle != 0 && (region.hints & hint) == hint;
    }
    return result;
}

/* This PE's own, when nobody writes to it. */
void nvshmemx_signal_counted_reset(uint64_t *signal_addr)
{
    CHECK(weft_uint64_atomic_set(WORLD, signal_addr, 0, weft_world_pe(WORLD)), 1);
}
