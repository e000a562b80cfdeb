/* common/gone.h: what layers above a world ask of it when a wait does not end well. */
#ifndef WEFTI_COMMON_GONE_H
#define WEFTI_COMMON_GONE_H

#include "weft/world.h"

/* Whether `pe` has ended while it was there or, of this node, has destroyed its world; or its host, where that is
 * another, gives no sign of life. */
int wefti_world_is_gone(const weft_world *world, int pe);

/* What this thread's last wait, which cannot end well, returns: WEFT_ERR_TIMEOUT at the deadline, and WEFT_ERR_PEER
 * before it, since a PE that was needed is gone. And the words: "within 60.0 s (WEFT_DEADLINE sets the limit)". */
#define WEFTI_LIMIT_BYTES 80
weft_status wefti_world_late(const weft_world *world);
const char *wefti_world_limit_text(const weft_world *world, char text[WEFTI_LIMIT_BYTES]);

/* How long a wait of this world may take; may be WEFT_FOREVER. */
uint64_t wefti_world_deadline_ns(const weft_world *world);

#endif
