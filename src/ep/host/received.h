/* ep/host/received.h: what a dispatch tells about its rows: the caller's arrays of weights, experts and sources. */
#ifndef WEFTI_EP_HOST_RECEIVED_H
#define WEFTI_EP_HOST_RECEIVED_H

#include "ep/host/routing.h"

/* Fill those arrays of `out` that are not NULL, from what the route knows: for padding rows, and for the rows of one
 * source. */
void wefti_ep_received_padding(const wefti_ep_routing *route, const weft_ep_received *out);
void wefti_ep_received_source(const wefti_ep_routing *route, const weft_ep_received *out, int source);

#endif
