/* weft_nccl_ep.h: what NCCL EP's interface has no names for, on its groups in weft's library. */
#ifndef WEFT_WEFT_NCCL_EP_H
#define WEFT_WEFT_NCCL_EP_H

#include <nccl_ep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Make `bytes` bytes at `address` known to all ranks of the group, so that rows move into and out of it in place: rows
 * that a dispatch receives there, and rows that a combine of HT flat or LL rank-major returns from there. For tensors
 * that lie in it by address: those in windows of the communicator move in place without this, where NCCL is 2.29.2 or
 * later and maps the windows of all ranks; elsewhere by a window of NCCL's on it, too. From cudaMalloc or ncclMemAlloc,
 * inside one allocation; equal sizes on all ranks; up to 65535 at a time, which may not overlap. It stays the caller's,
 * and outlives this or the group.
 * ep_group NULL: the process's, if it has one, as that of TransformerEngine's backend, which shows its own to nobody.
 *
 * Collective over the group, and not while a stream is captured: once, when the memory is made, never in a step.
 * ncclInvalidArgument: NULL, no bytes, or memory that is registered; ncclInvalidUsage: memory that other GPUs cannot
 * map. */
ncclResult_t weft_nccl_ep_register(ncclEpGroup_t ep_group, void *address, size_t bytes);
/* No longer. Collective over the group, with the same address, when its calls have ended; a group ends it, too. */
ncclResult_t weft_nccl_ep_unregister(ncclEpGroup_t ep_group, void *address);

#ifdef __cplusplus
}
#endif
#endif
