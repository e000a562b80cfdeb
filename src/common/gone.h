/* common/gone.h: what layers above a world ask of it when a wait does not end well. */
#ifndef WEFTI_COMMON_GONE_H
#define WEFTI_COMMON_GONE_H

#include "weft/protocol/wait.h"
#include "weft/world.h"

/* Whether `pe` has ended while it was there or, of this node, has destroyed its world; or its host, where that is
 * another, gives no sign of life. */
int wefti_world_is_gone(const weft_world *world, int pe);

/* Whether what a wait is for can still come. IMPOSSIBLE: a PE that is lost has not done its part. DOUBTFUL: one has
 * left that may not have done it, and of another node cannot be asked; or it has left because of a PE that is lost, of
 * which this one has not been told yet. */
typedef enum wefti_completion {
    WEFTI_COMPLETION_POSSIBLE = 0,
    WEFTI_COMPLETION_DOUBTFUL,
    WEFTI_COMPLETION_IMPOSSIBLE
} wefti_completion;

/* What becomes of a wait for `pe`, whose part is not done as far as is known. */
wefti_completion wefti_world_completion_without(const weft_world *world, int pe);

/* The caller's look (wefti_waiter.must_look) has found this. The wait ends when that is IMPOSSIBLE, or when it has been
 * DOUBTFUL so many times in a row, within which what was sent before a PE left has come, and who is lost is known. */
#define WEFTI_DOUBTS_MAX 10
void wefti_waiter_judge(wefti_waiter *waiter, wefti_completion completion);

/* Whether `pe` is lost: it has ended, or its host gives no sign of life; whether it has left the world. */
int wefti_world_is_lost(const weft_world *world, int pe);
int wefti_world_has_left(const weft_world *world, int pe);

/* Before those that are lost are named: PEs that are lost together, as all of a host, are known one after another.
 * Waits until no other has been for a twentieth of a second. */
void wefti_world_await_all_lost(const weft_world *world);

/* What this thread's last wait, which cannot end well, returns: WEFT_ERR_TIMEOUT at the deadline, and WEFT_ERR_PEER
 * before it, since a PE that was needed is gone. And the words: "within 60.0 s (WEFT_DEADLINE sets the limit)". */
#define WEFTI_LIMIT_BYTES 80
weft_status wefti_world_late(const weft_world *world);
const char *wefti_world_limit_text(const weft_world *world, char text[WEFTI_LIMIT_BYTES]);

/* How long a wait of this world may take; may be WEFT_FOREVER. */
uint64_t wefti_world_deadline_ns(const weft_world *world);

#endif
