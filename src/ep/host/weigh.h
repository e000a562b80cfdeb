/* ep/host/weigh.h: a dispatch that brings new weights for the routing that there is (weft_ep_route_weigh). They go
 * before the call header, and are taken once all headers have come and are alike, before this rank says to anybody that
 * it is done. */
#ifndef WEFTI_EP_HOST_WEIGH_H
#define WEFTI_EP_HOST_WEIGH_H

#include "ep/host/push.h"

/* The weights push->choices.weights, [T][K] or NULL, and the call header, to all ranks. */
weft_status wefti_ep_weigh_post(const wefti_ep_push *push);

/* Wait for the call headers. Unless some differ the routing has the weights, its own and those of all sources. */
weft_status wefti_ep_weigh_take(wefti_ep_push *push);

#endif
