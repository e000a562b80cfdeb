/* ep/route.h: a weft_ep_route, whatever the backend. */
#ifndef WEFTI_EP_ROUTE_H
#define WEFTI_EP_ROUTE_H

#include "ep/group.h"

struct weft_ep_route {
    weft_ep *ep;
    weft_ep_route *next; /* in the group's list */
    weft_ep_route **link; /* what points here */
    int sms; /* 0, or what weft_ep_route_sms says */
    weft_ep_plan plan; /* alignment is at least 1, and 1 unless expert-major; slot_tokens 0 unless a slot layout */
    int is_chosen; /* the next dispatch agrees on these choices */
    weft_ep_choices choices;
    int is_counted; /* and the backend has what is left of them: wefti_ep_drops_rows */
    int is_weighed; /* the next dispatch, on the routing that is there, brings these weights */
    const float *weights;
    uint64_t generation; /* routings begun */
    uint64_t required; /* 0, or the routing that calls are to be on: weft_ep_route_require */
    const void *memory; /* that it was attached to last, or NULL */
    uint64_t held; /* the routing in there; WEFTI_EP_UNKNOWN or WEFTI_EP_OF_OTHERS; else `generation` */
    int is_routed; /* has a routing, of an update that did not fail */
    weft_ep_count_arrays counts_to; /* generation NULL: nowhere */
    struct wefti_ep_routing *host; /* the backend's part: of the one that the group has */
    struct wefti_ep_device_route *device;
    struct wefti_ep_between_route *between;
};

/* Neither NULL nor destroyed, as wefti_ep_is_alive. */
static inline int wefti_ep_route_is_alive(const weft_ep_route *route)
{
    return route != NULL && route->ep != NULL;
}

#define WEFTI_EP_UNKNOWN UINT64_MAX /* nothing is known of that memory */
#define WEFTI_EP_OF_OTHERS (UINT64_MAX - 1) /* another route made it */

/* A call that routes has been made, and not refused: the routing lies in the route's memory. */
void wefti_ep_route_made(weft_ep_route *route);

/* Free a route and take it off its group's list. */
void wefti_ep_route_end(weft_ep_route *route);

/* WEFT_OK when a call that uses the route's routing may be made; else WEFT_ERR_ARGUMENT, WEFT_ERR_STATE, or what a dead
 * group's calls return. */
weft_status wefti_ep_route_check(const weft_ep_route *route, const char *call);

/* Whether no pair of halves of the route is outstanding. */
weft_status wefti_ep_check_unused(const weft_ep_route *route, const char *call);

/* Whether the second half of `half` may be called on the route now, and on which bank. */
weft_status wefti_ep_check_half(const weft_ep_route *route, wefti_ep_half half, const weft_stream *stream,
                                const char *call, int *bank);

/* Whether a routing of the plan is made of what is left of its choices once rows are dropped, each by itself. */
static inline int wefti_ep_drops_rows(const weft_ep *ep, const weft_ep_plan *plan)
{
    return ep->config.overflow == WEFT_EP_OVERFLOW_DROP_ROWS && ep->config.rows_max != 0 &&
           plan->layout == WEFT_EP_EXPERT_MAJOR;
}

/* Before a call of the backend that makes a routing: *choices becomes what is left, in *kept, if rows are dropped. */
weft_status wefti_ep_route_drop(weft_ep_route *route, const weft_ep_choices **choices, weft_ep_choices *kept,
                                weft_stream *stream);

/* Tokens go to ranks: choice k is rank k. */
static inline int wefti_ep_plan_is_by_rank(const weft_ep_plan *plan)
{
    return (plan->flags & WEFT_EP_DESTINATIONS) != 0;
}

/* Rows are received one a (source, token). */
static inline int wefti_ep_plan_is_by_source(const weft_ep_plan *plan)
{
    return plan->layout == WEFT_EP_RANK_MAJOR || plan->layout == WEFT_EP_SLOTS_SOURCE;
}

static inline int wefti_ep_plan_is_slots(const weft_ep_plan *plan)
{
    return plan->layout == WEFT_EP_SLOTS_SOURCE || plan->layout == WEFT_EP_SLOTS_EXPERT;
}

/* The rows of a slot layout. */
static inline int64_t wefti_ep_slot_rows(const weft_ep_plan *plan, int ranks, int local_experts)
{
    return (int64_t)ranks * plan->slot_tokens * (plan->layout == WEFT_EP_SLOTS_EXPERT ? local_experts : 1);
}

#endif
