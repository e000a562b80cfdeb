/* ep/received.h: what a dispatch tells about its rows: the caller's arrays of weights, experts and sources. */
#ifndef WEFTI_EP_RECEIVED_H
#define WEFTI_EP_RECEIVED_H

#include "ep/route.h"

/* Fill those of the arrays of `out` that are not NULL. Local: the route knows. */
void wefti_ep_received_fill(const weft_ep_route *route, const weft_ep_received *out);

#endif
