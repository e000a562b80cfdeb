/* ep/host/sends.h: from the gate's choices to what this rank sends where. */
#ifndef WEFTI_EP_HOST_SENDS_H
#define WEFTI_EP_HOST_SENDS_H

#include "ep/host/routing.h"

/* Read the ids into the group's scratch, -1 for what is dropped, and set route->tokens and dropped. */
void wefti_ep_choices_read(wefti_ep_routing *route, const weft_ep_choices *choices);

/* Build the route's pairs and sends, and the message of each owner in scratch.counts: tokens, then choices an expert. */
void wefti_ep_sends_build(wefti_ep_routing *route, const float *weights);

/* Once scratch.bases has the owners' answers: first_place and, expert-major, send_row. */
void wefti_ep_sends_place(wefti_ep_routing *route);

#endif
