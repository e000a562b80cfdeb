/* common/attachment.h: what layers above a world hang on it, objects that end with it and counts; and what they ask. */
#ifndef WEFTI_COMMON_ATTACHMENT_H
#define WEFTI_COMMON_ATTACHMENT_H

#include <stdint.h>

#include "weft/world.h"

/* First in an object that ends with its world: a team, a context, an expert-parallel group. Zeroed memory is not
 * attached. */
typedef struct wefti_attachment {
    struct wefti_attachment *next;
    struct wefti_attachment **link; /* what points here; NULL when not attached */
    /* The world ends: free the object's private memory. Local; nobody is called any more, and symmetric memory goes
     * with the world. */
    void (*end)(struct wefti_attachment *attachment);
} wefti_attachment;

/* Objects end in the opposite order of their attaching. Any thread. */
void wefti_world_attach(weft_world *world, wefti_attachment *attachment);
/* Before the object is freed otherwise; one that is not attached is left alone. Any thread. */
void wefti_world_detach(weft_world *world, wefti_attachment *attachment);

/* Keep the memory of an object that a user may still have a handle of, in a state that says that it is destroyed: until
 * the world ends, or WEFTI_LATE_FREES others have been destroyed since. The object is detached. Any thread. */
#define WEFTI_LATE_FREES 64
void wefti_world_free_late(weft_world *world, void *object);

/* Whether this process was forked from the one that made the world. Its copies of the world's handles, and of those of
 * all that hangs on it, are good for nothing: who destroys one does nothing, and returns WEFT_OK. */
int wefti_world_is_forked(const weft_world *world);
/* WEFT_OK for the world of an object that is alive, or WEFT_ERR_STATE in a forked process. One test. */
weft_status wefti_world_check_handle(const weft_world *world, const char *call);

typedef enum wefti_counter {
#define WEFTI_COUNTER_ENUM(name, text) WEFTI_COUNTER_##name,
    WEFT_COUNTER_TABLE(WEFTI_COUNTER_ENUM)
#undef WEFTI_COUNTER_ENUM
} wefti_counter;

/* Add to a counter of the world. Any thread. */
void wefti_world_count(weft_world *world, wefti_counter counter, uint64_t amount);

/* The lowest PE of the link domain of `pe`, a PE of the world. */
int wefti_world_link_domain(const weft_world *world, int pe);
#endif
