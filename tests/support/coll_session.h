/* support/coll_session.h: random sequences of collectives on several teams, each compared with a serial reference. */
#ifndef SUPPORT_COLL_SESSION_H
#define SUPPORT_COLL_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "weft.h"

typedef struct coll_session_plan {
    int calls; /* of collectives with random arguments, without a barrier between them */
    size_t bytes_max; /* of a source or destination */
    uint64_t first_step; /* the data of call i is that of turn first_step + i */
    unsigned slow_us; /* a member now and then sleeps up to so long before a call; 0: never */
} coll_session_plan;

/* Collective over the world, with equal arguments. What goes wrong counts as a failed check. */
void coll_session_run(weft_world *world, uint64_t seed, const coll_session_plan *plan);

/* Every operation on every type once, at a few sizes, in place and not, on the team of all. */
void coll_session_all_types(weft_world *world, uint64_t seed);

#endif
