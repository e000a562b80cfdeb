/* ep/records.h: the records of an update: who is received, with which local experts and weights. */
#ifndef WEFTI_EP_RECORDS_H
#define WEFTI_EP_RECORDS_H

#include "ep/call.h"
#include "ep/route.h"

/* Put the records of this rank's tokens to `rank`, which has answered the counts. `weights`: [T][K] or NULL. */
weft_status wefti_ep_records_put(const weft_ep_route *route, const float *weights, int rank);

/* Once all sources are done: take the records received over into the route and, expert-major, place them. */
void wefti_ep_records_take(weft_ep_route *route);

#endif
