/* support/ep_group.h: rows as calls of expert parallelism take them, a group of a world with one route, and tokens that
 * all ranks' experts give back as they are. */
#ifndef SUPPORT_EP_GROUP_H
#define SUPPORT_EP_GROUP_H

#include "support/check.h"
#include "weft_ep.h"

static inline weft_ep_rows ep_rows(void *data, weft_ep_dtype dtype, int hidden)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = dtype;
    rows.hidden = hidden;
    return rows;
}

/* Returns whether there are both. */
static inline int ep_group_open(weft_world *world, const weft_ep_config *config, const weft_ep_plan *plan, weft_ep **ep,
                                weft_ep_route **route)
{
    return CHECK_OK(weft_ep_create(weft_team_world(world), config, ep)) &&
           CHECK_OK(weft_ep_route_create(*ep, plan, NULL, route));
}

static inline void ep_group_close(weft_ep *ep, weft_ep_route *route)
{
    CHECK_OK(weft_ep_route_destroy(route));
    CHECK_OK(weft_ep_destroy(ep));
}

/* Tokens of which each has one value, which says whose it is. */
static inline void ep_tokens_fill(float *in, int rank, int tokens, int hidden)
{
    for (int i = 0; i < tokens * hidden; i++) {
        in[i] = (float)(100 * rank + i / hidden + 1);
    }
}

/* Choices of each token: the experts 0 to `experts` - 1, in ascending order. */
static inline void ep_choose_all(int32_t *ids, int tokens, int experts)
{
    for (int i = 0; i < tokens * experts; i++) {
        ids[i] = i % experts;
    }
}

/* Their sums, where so many experts have given each back. */
static inline void ep_sums_check(const float *out, const float *in, int experts, int tokens, int hidden)
{
    for (int i = 0; i < tokens * hidden; i++) {
        if (!CHECK_SAY(out[i] == (float)experts * in[i], "element %d is %g, not %g", i, (double)out[i],
                       experts * (double)in[i])) {
            return;
        }
    }
}

#endif
