/* cuda/heap/memory.c: the table of device memory. */
#include "cuda/device.h"
#include "cuda/proxy/far.h"

static weft_status grow(wefti_device *device, weft_team *team, const char *name, uint64_t end)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    const uint64_t growth_min = (uint64_t)8 << 20;
    uint64_t head = wefti_cuda_head_bytes(cuda->world->view.pes);
    uint64_t wanted = end > device->heap_bytes + growth_min ? end : device->heap_bytes + growth_min;
    wanted = wanted < device->heap_max_bytes ? wanted : device->heap_max_bytes;
    if (cuda->sharing == WEFTI_CUDA_IPC) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: with cudaIpc the device heap cannot grow; raise heap_bytes", name);
    }
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = wefti_cuda_grow_slot(cuda, team, name, head + end, head + wanted);
    wefti_cuda_leave(cuda);
    return status;
}

static uint64_t backed(const wefti_device *device, const weft_team *team)
{
    const wefti_cuda *cuda = wefti_cuda_of(device);
    uint64_t least = wefti_cuda_heap_bytes_of(cuda, wefti_cuda_own_index(cuda));
    for (int member = 0; member < team->pes; member++) {
        const int pe = wefti_member(team, member);
        if (wefti_cuda_is_near(cuda, pe)) {
            const uint64_t bytes = wefti_cuda_heap_bytes_of(cuda, (uint32_t)pe - cuda->near_first);
            least = bytes < least ? bytes : least;
        }
    }
    return least;
}

static weft_status host_grown(wefti_device *device)
{
    wefti_cuda *cuda = wefti_cuda_of(device);
    WEFT_TRY(wefti_cuda_enter(cuda));
    weft_status status = wefti_cuda_reach_host(cuda);
    wefti_cuda_leave(cuda);
    return status;
}

static int is_far(const wefti_device *device, int pe)
{
    return !wefti_cuda_is_near(wefti_cuda_of(device), pe);
}

const wefti_device_memory_ops wefti_cuda_memory = {
    .backed = backed,
    .grow = grow,
    .register_memory = wefti_cuda_register,
    .deregister = wefti_cuda_deregister,
    .host_grown = host_grown,
    .locate = wefti_cuda_locate,
    .copy = wefti_cuda_copy,
    .copy_nbi = wefti_cuda_copy_nbi,
    .settle = wefti_cuda_settle,
    .amo = wefti_cuda_amo,
    .clear = wefti_cuda_clear,
    .is_far = is_far,
    .far = wefti_far_call,
    .quiet = wefti_far_settle,
};
