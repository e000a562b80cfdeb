/* ep/host/counts.h: the counts of an update, through the owners of the experts: each source tells each owner how much comes;
 * the owner scans over the sources and answers each with its bases and a verdict. O(R + E) words a rank, balanced. */
#ifndef WEFTI_EP_HOST_COUNTS_H
#define WEFTI_EP_HOST_COUNTS_H

#include "ep/host/call.h"
#include "ep/host/routing.h"

/* Put this rank's counts to their owner; its call line, posted next, announces them. */
weft_status wefti_ep_counts_put(const wefti_ep_routing *route, int owner);

/* As owner, once all sources' lines have come: set the route's counts, and its status as this rank alone sees it. */
void wefti_ep_counts_scan(wefti_ep_routing *route);

/* Answer all sources. */
weft_status wefti_ep_counts_answer(const wefti_ep_routing *route, const wefti_ep_call *call);

/* Hear all owners: the bases into scratch.bases; *status becomes WEFT_ERR_OVERFLOW if any owner says so. */
weft_status wefti_ep_counts_hear(const wefti_ep_routing *route, const wefti_ep_call *call, int32_t *status);

#endif
