/* ep/growth.h: groups whose limits grow (weft_ep_config.bytes_max), whatever the backend: what a call needs, and having
 * it. All ranks know alike what all need: of what must be equal on all each knows by itself, T they have told each
 * other. */
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

/* Why a rank cannot have other memory now, as bits; ranks tell each other theirs. */
enum {
    WEFTI_EP_HOLD_MASKED = 1, /* a rank is masked, which has no part in it */
    WEFTI_EP_HOLD_PAIR = 2, /* another pair of halves is outstanding */
    WEFTI_EP_HOLD_CAPTURED = 4, /* a graph has calls of the group */
    /* In a meeting (ep/backend.h): the rank does not make the call, though it compares it. */
    WEFTI_EP_HOLD_REFUSED = 8
};

/* Of a routing of so many tokens; of rows, beside what there is. */
wefti_ep_need wefti_ep_need_of_routing(const weft_ep_plan *plan, int tokens);
void wefti_ep_need_rows(wefti_ep_need *need, const weft_ep_rows *rows);

/* Whether it is more than there is. Never in a group whose limits stay. */
int wefti_ep_need_exceeds(const weft_ep *ep, const wefti_ep_need *need);

/* What holds this rank during a call. */
unsigned wefti_ep_holds(const weft_ep *ep);

/* The limits become at least `need`, which all ranks have alike, as `holds`, those of all. With is_routing the route
 * gets memory for them, too. Collective over the team. WEFT_ERR_RANGE on all ranks: they stay as they are, or the
 * route's memory, which is the caller's, is too small for them. */
weft_status wefti_ep_grow(weft_ep_route *route, const wefti_ep_need *need, unsigned holds, int is_routing,
                          const char *call);

#endif
