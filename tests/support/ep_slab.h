/* support/ep_slab.h: steps whose received rows are kept, as an allocator of tensors gives memory for them: from a slab
 * while that has room, then ordinary memory, where rows come by way of the group's. */
#ifndef SUPPORT_EP_SLAB_H
#define SUPPORT_EP_SLAB_H

#include "weft_ep.h"

#define EP_SLAB_PES 2

/* One PE's part. On GPUs on the fake driver, whose memory is this machine's. `flags`: 0: the slabs of the ranks are not
 * full at the same time; WEFT_EP_NO_STAGING, in WEFT_EP_RANK_MAJOR: what has no room there is refused. */
void ep_slab_run(weft_world *world, int on_device, weft_ep_layout layout, unsigned flags);

#endif
