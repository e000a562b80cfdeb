/* cuda/stream/coll_copy.c: broadcast, fcollect and alltoall of large blocks on a stream by copy engines, which leave
 * the multiprocessors to others: a sync, after which all members' buffers may be used; this member's block, or blocks,
 * to every other by copies in the stream's order, the next member first, so that not all send to one; a sync behind
 * them, after which all have what is theirs. Nothing but the sizes is an argument, so that a captured graph can be
 * replayed. */
#include "cuda/device.h"
#include "world/membership.h"

int wefti_cuda_copies(const wefti_cuda *cuda, const weft_dev_team *team, const wefti_device_coll *coll)
{
    const int is_move = coll->kind == WEFTI_DEVICE_BROADCAST || coll->kind == WEFTI_DEVICE_FCOLLECT ||
                        coll->kind == WEFTI_DEVICE_ALLTOALL;
    const uint64_t offset = (uint64_t)((uintptr_t)coll->dest - cuda->world->view.heap);
    const int is_host = offset < cuda->world->heap_max_bytes; /* the host heap has addresses of its own */
    return is_move && !is_host && team->far_count == 0 && cuda->copy_bytes != 0 && coll->bytes >= cuda->copy_bytes;
}

/* This member's block for member `to` goes where that one keeps it. */
static weft_status send(wefti_device *device, const weft_dev_team *team, const wefti_device_coll *coll, int to,
                        weft_stream *stream)
{
    const unsigned char *source = coll->source;
    unsigned char *dest = coll->dest;
    uint64_t left;
    if (coll->kind != WEFTI_DEVICE_BROADCAST) {
        dest += (size_t)team->pe * coll->bytes;
        source += coll->kind == WEFTI_DEVICE_ALLTOALL ? (size_t)to * coll->bytes : 0;
    }
    void *at = (void *)wefti_cuda_locate(device, dest, wefti_member(coll->team, to), &left);
    return at == source ? WEFT_OK : wefti_cuda_stream_copy(device, at, source, coll->bytes, stream);
}

weft_status wefti_cuda_stream_coll_copy(wefti_device *device, const weft_dev_team *team, const wefti_device_coll *coll,
                                        weft_stream *stream)
{
    const int sends = coll->kind != WEFTI_DEVICE_BROADCAST || team->pe == coll->root;
    WEFT_TRY(wefti_cuda_stream_sync(device, team, stream));
    for (int i = 1; i <= team->pes && sends; i++) { /* itself last */
        WEFT_TRY(send(device, team, coll, (team->pe + i) % team->pes, stream));
    }
    return wefti_cuda_stream_sync(device, team, stream);
}
