/* cuda/ep/host_status.c: what kernels have told the host of a group since it looked last. */
#include <stdio.h>

#include "cuda/ep/group.h"

weft_status wefti_cuda_ep_host_status(weft_ep *ep, const char *call)
{
    wefti_ep_device *device = ep->device;
    uint64_t failed = __atomic_load_n(&device->host_status[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
    uint64_t mismatch = __atomic_load_n(&device->host_status[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH], __ATOMIC_ACQUIRE);
    if (failed != 0) {
        char ranks[128] = "";
        size_t at = 0;
        for (int rank = 0; rank < ep->ranks && at + 8 < sizeof ranks; rank++) {
            if ((failed >> 32 >> rank & 1) != 0) {
                ep->late[rank] = 1;
                at += (size_t)snprintf(ranks + at, sizeof ranks - at, " %d", rank);
            }
        }
        ep->dead = (weft_status) - (int)(uint32_t)failed;
        wefti_ep_close_halves(ep); /* whose recv cannot be called any more */
        return wefti_error(ep->dead, "%s: a call of the group failed on the GPU%s%s", call,
                           at > 0 ? "; it waited in vain for rank" : "", ranks);
    }
    if (mismatch != device->mismatch_seen) {
        device->mismatch_seen = mismatch;
        return wefti_error(
            WEFT_ERR_MISMATCH,
            "%s: in an earlier call, epoch %u, rank %d made another call, or one of another route, type, "
            "width or flags; nothing was moved",
            call, (unsigned)(uint32_t)mismatch / 2, (int)(mismatch >> 32) - 1);
    }
    return WEFT_OK;
}
