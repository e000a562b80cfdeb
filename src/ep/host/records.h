/* ep/host/records.h: the records of an update: who is received, with which local experts and weights. */
#ifndef WEFTI_EP_HOST_RECORDS_H
#define WEFTI_EP_HOST_RECORDS_H

#include "ep/host/call.h"
#include "ep/host/routing.h"

/* Put the records of this rank's tokens to `rank`, which has answered the counts. `weights`: [T][K] or NULL. */
weft_status wefti_ep_records_put(const wefti_ep_routing *route, const float *weights, int rank);

/* Once all sources are done: take the records received over into the route and, expert-major, place them. */
void wefti_ep_records_take(wefti_ep_routing *route);

#endif
