/* ep/growth.h: groups whose limits grow (weft_ep_config.bytes_max), whatever the backend: the limits that a call needs,
 * and memory for them. All ranks of a call come to the same need: plan, type and width of rows are equal on all of
 * them, and the largest T they know from the call headers. */
#ifndef WEFTI_EP_GROWTH_H
#define WEFTI_EP_GROWTH_H

#include "ep/backend.h"

/* What a call needs of the limits. */
typedef struct wefti_ep_need {
    int tokens_max;
    int topk_max;
    int slot_tokens_max;
    size_t row_bytes_max;
    int scale_bytes_max;
} wefti_ep_need;

/* Why a rank's memory of the group must not be replaced now, as bits; ranks tell each other theirs. */
enum {
    WEFTI_EP_HOLD_MASKED = 1, /* a rank is masked: growing is collective over all ranks, and that one takes no part */
    WEFTI_EP_HOLD_PAIR = 2, /* another pair of halves is outstanding, whose rows lie there */
    WEFTI_EP_HOLD_CAPTURED = 4, /* a graph has calls of the group, whose kernels know its address */
    /* In a meeting (ep/backend.h): the rank compares the call and does not make it. */
    WEFTI_EP_HOLD_REFUSED = 8
};

/* What a routing of so many tokens needs. */
wefti_ep_need wefti_ep_need_of_routing(const weft_ep_plan *plan, int tokens);
/* Raise `need` to what these rows need. */
void wefti_ep_need_rows(wefti_ep_need *need, const weft_ep_rows *rows);

/* Whether it is more than the group's limits. Where these do not grow, such a call has been refused before. */
int wefti_ep_need_exceeds(const weft_ep *ep, const wefti_ep_need *need);

/* The bits of this rank during a call. */
unsigned wefti_ep_holds(const weft_ep *ep);

/* Raise the group's limits to `need` and give the group memory for them, with is_routing the route, too. Collective
 * over the team; `need`, and `holds`, the bits of all ranks together, are equal on all. WEFT_ERR_RANGE, on all ranks: a
 * bit is set, it would be more than bytes_max or than there is, and the limits are as before; or they have grown, and a
 * route's memory, which is the caller's, is too small for them. */
weft_status wefti_ep_grow(weft_ep_route *route, const wefti_ep_need *need, unsigned holds, int is_routing,
                          const char *call);

#endif
