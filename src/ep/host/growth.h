/* ep/host/growth.h: limits that grow (ep/growth.h) on the host: a call for which the group's memory is too small goes
 * as far as its headers, whose comparison tells all ranks that all make it; then it ends, as one whose headers differ,
 * all ranks grow alike, and it begins anew. */
#ifndef WEFTI_EP_HOST_GROWTH_H
#define WEFTI_EP_HOST_GROWTH_H

#include "ep/growth.h"
#include "ep/host/call.h"

/* For ep/backend.h. */
weft_status wefti_ep_host_grow(weft_ep *ep, const char *call);
weft_status wefti_ep_host_meet(weft_ep *ep, wefti_ep_meeting *meeting, const char *call);

/* Before a call on the routing that the route has: grow, if it needs more. */
weft_status wefti_ep_grow_for_rows(weft_ep_route *handle, const char *name, const wefti_ep_signature_fields *fields,
                                   const wefti_ep_need *need);

/* After the headers of a call that routes: if any rank needs more, end it and grow, and *again becomes 1. The call may
 * lie in memory that is gone then. */
weft_status wefti_ep_grow_for_routing(weft_ep_route *handle, wefti_ep_call *call, wefti_ep_need *need, int *again);

#endif
