/* weft/region.h: memory outside the symmetric heap, announced before it is a source or a local destination of
 * transfers.
 *
 * Not needed for correctness: any call takes any local memory. Transports that must pin memory do so once, here,
 * instead of at each call; by load and store there is nothing to do. */
#ifndef WEFT_REGION_H
#define WEFT_REGION_H

#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_region weft_region;

/* Register `bytes` bytes at `address`, which stay mapped until weft_unregister. Local; any thread. Regions may overlap,
 * and be equal: each is a region of its own, whose end leaves the others as they are.
 * WEFT_ERR_ARGUMENT (a NULL, no bytes, bytes beyond the end of the address space, or memory of the symmetric heap,
 * which is registered already), WEFT_ERR_MEMORY. */
WEFT_API weft_status weft_register(weft_world *world, void *address, size_t bytes,
                                   weft_region **region) WEFT_MUST_CHECK;

/* End a registration, before its world. Transfers from and to it have completed. NULL is allowed. A region
 * that has ended is WEFT_ERR_ARGUMENT until its world ends, or 64 other handles of the world have been destroyed since,
 * and has no address and no bytes. */
WEFT_API weft_status weft_unregister(weft_region *region);

/* What is registered. Any thread. NULL and 0 for a NULL region. */
WEFT_API void *weft_region_address(const weft_region *region);
WEFT_API size_t weft_region_bytes(const weft_region *region);

#ifdef __cplusplus
}
#endif
#endif
