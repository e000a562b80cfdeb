/* protocol/attachment.h: what layers above a world hang on it: objects that end with it, and counts. */
#ifndef WEFTI_PROTOCOL_ATTACHMENT_H
#define WEFTI_PROTOCOL_ATTACHMENT_H

#include <stdint.h>

#include "weft/world.h"

/* First in an object that ends with its world: a team, a context, an expert-parallel group. Zeroed memory is not attached. */
typedef struct wefti_attachment {
    struct wefti_attachment *next;
    struct wefti_attachment **link; /* what points here; NULL when not attached */
    /* The world ends: free the object's private memory. Local; nobody is called any more, and symmetric memory goes with
     * the world. */
    void (*end)(struct wefti_attachment *attachment);
} wefti_attachment;

/* Objects end in the opposite order of their attaching. Any thread. */
void wefti_world_attach(weft_world *world, wefti_attachment *attachment);
/* Before the object is freed otherwise; one that is not attached is left alone. Any thread. */
void wefti_world_detach(weft_world *world, wefti_attachment *attachment);

typedef enum wefti_counter {
#define WEFTI_COUNTER_ENUM(name, text) WEFTI_COUNTER_##name,
    WEFT_COUNTER_TABLE(WEFTI_COUNTER_ENUM)
#undef WEFTI_COUNTER_ENUM
} wefti_counter;

/* Add to a counter of the world. Any thread. */
void wefti_world_count(weft_world *world, wefti_counter counter, uint64_t amount);
#endif
