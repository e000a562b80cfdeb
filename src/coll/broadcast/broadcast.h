/* coll/broadcast/broadcast.h: the algorithms of broadcast. */
#ifndef WEFTI_COLL_BROADCAST_BROADCAST_H
#define WEFTI_COLL_BROADCAST_BROADCAST_H

#include "coll/step.h"

typedef struct wefti_broadcast {
    void *dest;
    const void *source;
    size_t bytes;
    int root;
} wefti_broadcast;

weft_status wefti_broadcast_push(wefti_step *step, const wefti_broadcast *b);
weft_status wefti_broadcast_pull(wefti_step *step, const wefti_broadcast *b);

#endif
