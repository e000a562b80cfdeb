/* ep/host/records.h: the records of a routing: who is received, with which local experts and weights. */
#ifndef WEFTI_EP_HOST_RECORDS_H
#define WEFTI_EP_HOST_RECORDS_H

#include "ep/host/routing.h"

/* Put the records of this rank's tokens to `rank`, whose bases are known. `weights`: [T][K] or NULL. */
weft_status wefti_ep_records_put(const wefti_ep_routing *route, const float *weights, int rank);

/* The choices [K] and weights [K] of a token, of which its records are made; and, as the forwarder, put that of a rank
 * in this domain. */
void wefti_ep_records_choices(const wefti_ep_routing *route, const float *weights, int token, uint32_t *words);
weft_status wefti_ep_records_hand_on(const wefti_ep_routing *route, int rank, size_t place, uint32_t token,
                                     const uint32_t *words);

/* Once `source` has put its records: take them over into the route and, by expert, place them. In the call that agreed
 * on the routing: scratch.counts_in has the answers to all sources. */
void wefti_ep_records_take(wefti_ep_routing *route, int source);

/* Let received tokens have no choices here. */
void wefti_ep_records_forget(wefti_ep_routing *route);

#endif
