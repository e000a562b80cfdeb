/* support/ep_group.h: rows as calls of expert parallelism take them, and a group of a world with one route. */
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

#endif
