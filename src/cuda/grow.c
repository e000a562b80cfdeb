/* cuda/grow.c: memory for the heap: each PE allocates a piece of equal size on its device, one PE of every other process
 * takes it, and it is mapped at the same offset of its owner's slot everywhere. */
#include <string.h>

#include "base/alloc.h"
#include "cuda/device.h"

/* Map a piece of a PE's slot for the PEs of this process. */
static weft_status map_piece(wefti_cuda *cuda, uint32_t index, const wefti_cuda_piece *part)
{
    wefti_cuda_piece piece = *part;
    CUdevice devices[WEFTI_CUDA_DEVICES_MAX];
    const int count = wefti_cuda_near_devices(cuda, devices);
    piece.slot = wefti_cuda_slot_of(cuda, index);
    return wefti_cuda_window_map(cuda->window, &piece, devices, count);
}

/* The first PE of a process takes for all of it. */
static int takes(const wefti_cuda *cuda)
{
    return cuda->group[wefti_cuda_own_index(cuda)] == (int)wefti_cuda_own_index(cuda);
}

static int wants(wefti_cuda *cuda, uint32_t index)
{
    return takes(cuda) && cuda->group[index] != cuda->group[wefti_cuda_own_index(cuda)];
}

static weft_status take_piece(wefti_cuda *cuda, uint32_t index, CUmemGenericAllocationHandle handle, void *context)
{
    const wefti_cuda_piece *part = context;
    const wefti_cuda_piece theirs = {.offset = part->offset, .bytes = part->bytes, .handle = handle};
    return map_piece(cuda, index, &theirs);
}

/* Allocate and map this PE's own piece and open the door for it. */
static weft_status make_piece(wefti_cuda *cuda, const wefti_cuda_piece *part, wefti_cuda_offer *offer)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = cuda->ordinal;
    prop.requestedHandleTypes =
        cuda->sharing == WEFTI_CUDA_FABRIC ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUresult result = wefti_fault("cuMemCreate", 0) ? CUDA_ERROR_OUT_OF_MEMORY
                                                    : cuda->driver.cuMemCreate(&handle, part->bytes, &prop, 0);
    WEFT_TRY(wefti_cuda_check(&cuda->driver, result, "cuMemCreate (of the device heap)"));
    weft_status status = wefti_cuda_offer_open(cuda, handle, offer);
    if (status != WEFT_OK) {
        (void)cuda->driver.cuMemRelease(handle);
        return status;
    }
    const wefti_cuda_piece mine = {.offset = part->offset, .bytes = part->bytes, .handle = handle};
    return map_piece(cuda, wefti_cuda_own_index(cuda), &mine);
}

static void undo(wefti_cuda *cuda, const wefti_cuda_piece *part)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] >= 0 && (i == wefti_cuda_own_index(cuda) || wants(cuda, i))) {
            wefti_cuda_window_unmap(cuda->window, wefti_cuda_slot_of(cuda, i), part->offset);
        }
    }
}

weft_status wefti_cuda_grow_slot(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t slot_bytes)
{
    wefti_cuda_piece part = {.offset = cuda->slot_bytes};
    part.bytes = (slot_bytes - cuda->slot_bytes + cuda->granularity - 1) / cuda->granularity * cuda->granularity;
    wefti_cuda_offer offer = {.pass = {.listener = -1}, .descriptor = -1};
    cuda->exchanges++;
    weft_status status = wefti_cuda_verdict(cuda, team, call, cuda->exchanges, make_piece(cuda, &part, &offer));
    if (status == WEFT_OK) {
        const wefti_cuda_taking taking = {
            .offer = &offer,
            .takers = cuda->processes - 1,
            .wants = wants,
            .take = take_piece,
            .context = &part,
        };
        status = wefti_cuda_verdict(cuda, team, call, cuda->exchanges, wefti_cuda_exchange(cuda, &taking));
    }
    wefti_cuda_offer_close(&offer);
    if (status != WEFT_OK) {
        undo(cuda, &part);
        return status;
    }
    cuda->slot_bytes = part.offset + part.bytes;
    return WEFT_OK;
}

/* ---- without VMM ---- */

/* Memory of another PE, by a handle or, in this process, as it is. */
static weft_status open_peer(wefti_cuda *cuda, uint32_t index)
{
    const wefti_cuda_record *record = wefti_cuda_record_of(cuda, index);
    CUdeviceptr at = (CUdeviceptr)record->address;
    if (cuda->group[index] == cuda->group[wefti_cuda_own_index(cuda)]) {
        if (record->ordinal != cuda->ordinal) {
            CUresult result = cuda->driver.cuCtxEnablePeerAccess((CUcontext)(uintptr_t)record->context, 0);
            if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
                WEFT_TRY(wefti_cuda_check(&cuda->driver, result, "cuCtxEnablePeerAccess"));
            }
        }
    } else {
        WEFT_TRY(wefti_cuda_check(&cuda->driver,
                                  cuda->driver.cuIpcOpenMemHandle(&at, record->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                                  "cuIpcOpenMemHandle"));
        cuda->ipc_opened[index] = at;
    }
    cuda->delta[index] = (int64_t)(at - cuda->ipc_own);
    return WEFT_OK;
}

static weft_status open_peers(wefti_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] >= 0 && i != wefti_cuda_own_index(cuda)) {
            WEFT_TRY(open_peer(cuda, i));
        }
    }
    return WEFT_OK;
}

static weft_status make_ipc(wefti_cuda *cuda, uint64_t bytes)
{
    WEFT_TRY(wefti_cuda_check(&cuda->driver, cuda->driver.cuMemAlloc(&cuda->ipc_own, bytes),
                              "cuMemAlloc (of the device heap)"));
    WEFT_TRY(wefti_cuda_window_keep(cuda->window, cuda->ipc_own));
    cuda->record->address = cuda->ipc_own;
    return wefti_cuda_check(&cuda->driver, cuda->driver.cuIpcGetMemHandle(&cuda->record->ipc, cuda->ipc_own),
                            "cuIpcGetMemHandle");
}

weft_status wefti_cuda_share_by_ipc(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t slot_bytes)
{
    cuda->exchanges++;
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, cuda->exchanges, make_ipc(cuda, slot_bytes)));
    WEFT_TRY(wefti_cuda_verdict(cuda, team, call, cuda->exchanges, open_peers(cuda)));
    cuda->slot_bytes = slot_bytes;
    return WEFT_OK;
}
