/* ep/sends.h: from the gate's choices to what this rank sends where. */
#ifndef WEFTI_EP_SENDS_H
#define WEFTI_EP_SENDS_H

#include "ep/route.h"

/* Read the ids into the group's scratch, -1 for what is dropped, and set route->tokens and dropped. */
void wefti_ep_choices_read(weft_ep_route *route, const weft_ep_choices *choices);

/* Build the route's pairs and sends, and the message of each owner in scratch.counts: tokens, then choices an expert. */
void wefti_ep_sends_build(weft_ep_route *route, const float *weights);

/* Once scratch.bases has the owners' answers: first_place and, expert-major, send_row. */
void wefti_ep_sends_place(weft_ep_route *route);

#endif
