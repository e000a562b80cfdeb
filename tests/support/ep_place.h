/* support/ep_place.h: where the calls of a session run and its arrays lie: on the host, in the symmetric heap and
 * beside it; a test for a device brings its own. */
#ifndef SUPPORT_EP_PLACE_H
#define SUPPORT_EP_PLACE_H

#include "support/ep_tensor.h"
#include "weft.h"
#include "weft_ep.h"

typedef struct ep_place {
    ep_memory memory;
    weft_stream *stream; /* what calls are made on; memory.fetch and memory.release wait for it */
    void *block; /* of the host's own */
    int on_device; /* as in weft_ep_config; calls then return before they have found out about an overflow */
} ep_place;

/* A place with symmetric memory of `bytes` bytes. Collective over the world. Returns whether all is well; what is wrong
 * counts as a failed check. */
typedef int (*ep_place_open)(ep_place *place, weft_world *world, size_t bytes);
/* Collective over the world. */
typedef void (*ep_place_close)(ep_place *place, weft_world *world);

int ep_host_open(ep_place *place, weft_world *world, size_t bytes);
void ep_host_close(ep_place *place, weft_world *world);

#endif
