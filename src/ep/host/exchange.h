/* ep/host/exchange.h: how the ranks agree on a routing, in an update or on the way of a dispatch:
 *
 *     every rank to every rank    counts, then its call header
 *     every owner to every rank   bases and verdict, then its reply, once all call headers have come (not where counts
 *                                 are direct)
 *     only where rows are dropped:
 *     source at a cut to owner    its message again, then its mark
 *     owner to every rank         bases again, then the reply's `final`
 *
 * After an overflow, and in calls that do not match, nothing follows but the done flags. */
#ifndef WEFTI_EP_HOST_EXCHANGE_H
#define WEFTI_EP_HOST_EXCHANGE_H

#include "ep/host/call.h"
#include "ep/host/routing.h"

/* Read the choices, and post this rank's counts and call header to all. `limit`: the rows that this rank takes. */
weft_status wefti_ep_exchange_post(wefti_ep_routing *route, const wefti_ep_call *call, const weft_ep_choices *choices,
                                   int64_t limit);

/* Once all call headers have come and match: the route's counts and status and, unless that is WEFT_ERR_OVERFLOW, where
 * everything goes. `limit` as above. */
weft_status wefti_ep_exchange_agree(wefti_ep_routing *route, const wefti_ep_call *call, int64_t limit);

#endif
