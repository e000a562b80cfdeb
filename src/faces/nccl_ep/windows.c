/* faces/nccl_ep/windows.c: memory in NCCL's windows, in which rows move in place.
 *
 * NCCL maps all windows of a communicator into one range of addresses a rank, equally on all, and the ranges of the
 * ranks one behind the other (ncclGetLsaDevicePointer, NCCL's device API, "LSA"): what the own range is to a peer's is
 * the same for every window, of now and later. So the group learns it once, from a window of its own that it gives back
 * at once, and tells its world of the whole range; a call then but asks NCCL where in it the tensor's window is. */
#include <stdlib.h>

#include "faces/nccl_ep/face.h"

#define WINDOW_BYTES 4096
#define RANGE_START 11 /* CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: of the reserved addresses, not of what is mapped */
#define RANGE_SIZE 12 /* CU_POINTER_ATTRIBUTE_RANGE_SIZE */

/* Where the ranks' windows begin here, of which each has `bytes` addresses. */
typedef struct lsa {
    char *base; /* of rank 0 */
    size_t bytes;
    void **peers; /* [ranks] */
} lsa;

/* Whether all ranks can go on. */
static int all_can(nep_meeting *at, int can)
{
    const char mine = (char)can;
    char *all = malloc((size_t)at->ranks);
    int are = all != NULL && nep_allgather(at, &mine, all, 1) == 0;
    for (int rank = 0; are && rank < at->ranks; rank++) {
        are = all[rank] != 0;
    }
    free(all);
    return are;
}

/* What the window tells; 0: it is not of all ranks, or lies otherwise. */
static int read_lsa(const nep_meeting *at, int me, ncclWindow_t window, lsa *to)
{
    void *own = NULL;
    uint64_t start = 0;
    size_t size = 0;
    if (at->nccl->lsa_pointer(window, 0, me, &own) != ncclSuccess || own == NULL ||
        at->cuda->pointer_get_attribute(&start, RANGE_START, (uintptr_t)own) != 0 ||
        at->cuda->pointer_get_attribute(&size, RANGE_SIZE, (uintptr_t)own) != 0 || size % (size_t)at->ranks != 0) {
        return 0;
    }
    to->base = (char *)(uintptr_t)start;
    to->bytes = size / (size_t)at->ranks;
    const size_t offset = (size_t)((uintptr_t)own - start) - (size_t)me * to->bytes;
    for (int rank = at->ranks - 1; rank >= 0; rank--) { /* NCCL warns of one that is not there: the last one first */
        void *theirs = NULL;
        to->peers[rank] = to->base + (size_t)rank * to->bytes;
        if (at->nccl->lsa_pointer(window, 0, rank, &theirs) != ncclSuccess ||
            theirs != (char *)to->peers[rank] + offset) {
            return 0;
        }
    }
    return offset < to->bytes;
}

/* Make a window of all ranks, read it, and give it back. */
static int find_lsa(nep_meeting *at, int me, lsa *to)
{
    void *memory = NULL;
    ncclWindow_t window = NULL;
    const int has_memory =
        to->peers != NULL && at->nccl->has_windows && at->nccl->mem_alloc(&memory, WINDOW_BYTES) == ncclSuccess;
    int is_found = 0;
    if (all_can(at, has_memory)) {
        is_found = at->nccl->window_register(at->comm, memory, WINDOW_BYTES, &window, 0) == ncclSuccess &&
                   window != NULL && read_lsa(at, me, window, to);
        is_found = all_can(at, is_found);
    }
    if (window != NULL) {
        (void)at->nccl->window_deregister(at->comm, window);
    }
    if (memory != NULL) {
        (void)at->nccl->mem_free(memory);
    }
    return is_found;
}

weft_status nep_windows_open(struct ncclEpGroup *group, nep_meeting *at)
{
    lsa found = {.peers = calloc((size_t)group->ranks, sizeof *found.peers)};
    weft_status status = WEFT_OK;
    if (group->config.zero_copy != NCCL_EP_ZERO_COPY_OFF && find_lsa(at, group->rank, &found)) {
        char *own = found.peers[group->rank];
        status = weft_device_register_mapped(group->world, own, found.bytes, found.peers);
        group->windows = (nep_windows){.base = status == WEFT_OK ? own : NULL, .bytes = found.bytes};
        status = status == WEFT_ERR_UNSUPPORTED ? WEFT_OK : status; /* GPUs of several link domains */
    }
    free(found.peers);
    return status;
}

void *nep_window_place(const struct ncclEpGroup *group, const nep_nccl *nccl, const ncclEpTensor_t *tensor)
{
    void *place = NULL;
    if (group->windows.base == NULL ||
        nccl->lsa_pointer(tensor->win_hdl, tensor->win_offset, group->rank, &place) != ncclSuccess) {
        return NULL;
    }
    return (uintptr_t)place - (uintptr_t)group->windows.base < group->windows.bytes ? place : NULL;
}
