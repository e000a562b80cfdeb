/* ep/host/growth.h: groups whose limits grow (weft_ep_config.bytes_max). A call for which the group's memory is too
 * small goes as far as its headers, whose comparison tells all ranks that all make it; then it ends, as one whose
 * headers differ, all ranks grow alike, and it begins anew. What each rank needs follows from what must be equal on
 * all, but for T, which the headers of calls that route tell. */
#ifndef WEFTI_EP_HOST_GROWTH_H
#define WEFTI_EP_HOST_GROWTH_H

#include "ep/host/call.h"

/* What a call needs of the limits. */
typedef struct wefti_ep_need {
    int tokens_max;
    int topk_max;
    int slot_tokens_max;
    size_t row_bytes_max;
    int scale_bytes_max;
} wefti_ep_need;

/* Of a routing of so many tokens; of rows, beside what there is. */
wefti_ep_need wefti_ep_need_of_routing(const weft_ep_plan *plan, int tokens);
void wefti_ep_need_rows(wefti_ep_need *need, const weft_ep_rows *rows);

/* Whether it is more than there is. Never in a group whose limits stay. */
int wefti_ep_need_exceeds(const weft_ep *ep, const wefti_ep_need *need);

/* Before a call on the routing that the route has: grow, if it needs more. */
weft_status wefti_ep_grow_for_rows(const wefti_ep_routing *route, const char *name,
                                   const wefti_ep_signature_fields *fields, const wefti_ep_need *need);

/* After the headers of a call that routes: if any rank needs more, end it and grow, and *again becomes 1. */
weft_status wefti_ep_grow_for_routing(wefti_ep_call *call, wefti_ep_need *need, int *again);

#endif
