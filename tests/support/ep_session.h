/* support/ep_session.h: one PE's part in a sequence of expert-parallel calls that the seed decides: several groups,
 * several routes each, all collective calls in any order, each result compared with the serial reference. */
#ifndef SUPPORT_EP_SESSION_H
#define SUPPORT_EP_SESSION_H

#include "support/ep_case.h"
#include "support/ep_place.h"
#include "weft.h"

typedef struct ep_session_plan {
    ep_size size;
    int groups; /* 1 .. 4 */
    int routes; /* a group, 1 .. 4 */
    int calls; /* collective calls in all */
    unsigned slow_us; /* a rank may sleep up to so long before and after a call; 0: none does */
    unsigned updates; /* of 100 calls, so many are updates, also of routes that have a routing */
    unsigned
        masks; /* of 100 calls, before so many a rank is masked, or one is back that was; the last is not masked. Memory
                  of a group that ends with masked ranks stays taken */
    int grows; /* groups know little of their limits when they are made, where they may; not with masks */
    int splits; /* in half of the sessions two teams have groups of their own beside each other; not with masks */
    unsigned flags; /* of groups: WEFT_EP_STATISTICS or 0 */
    void (*prepare)(weft_ep *ep); /* called on each new group, unless NULL */
    ep_place_open open; /* where it runs; NULL, both: on the host */
    ep_place_close close;
} ep_session_plan;

/* Collective over the world. What is wrong counts as a failed check (support/check.h). */
void ep_session_run(weft_world *world, uint64_t seed, const ep_session_plan *plan);

#endif
