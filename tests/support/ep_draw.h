/* support/ep_draw.h: how sizes are drawn. */
#ifndef SUPPORT_EP_DRAW_H
#define SUPPORT_EP_DRAW_H

#include "support/check.h"

/* Below `limit`, small values more often than large ones. */
static inline int ep_draw_skewed(uint64_t *state, int limit)
{
    int bound = 1 + (int)random_below(state, (unsigned)limit);
    return (int)random_below(state, (unsigned)bound);
}

static inline int ep_draw_one_in(uint64_t *state, unsigned count)
{
    return random_below(state, count) == 0;
}

#endif
