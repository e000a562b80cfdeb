/* ep/host/sends.h: from the gate's choices to what this rank sends where. */
#ifndef WEFTI_EP_HOST_SENDS_H
#define WEFTI_EP_HOST_SENDS_H

#include "ep/host/routing.h"

/* The tokens of choices, which are read where the choices say. */
int wefti_ep_choices_tokens(const weft_ep_choices *choices);

/* Read the ids into the group's scratch, -1 for what is dropped, and set the route's tokens and dropped. Returns 0 when
 * the number of tokens read is out of its range, else 1. */
int wefti_ep_choices_read(wefti_ep_routing *route, const weft_ep_choices *choices);

/* Build the route's pairs and sends, and the message to each owner in scratch.counts. Returns 0 when the positions
 * given are none, which are then not used, else 1. */
int wefti_ep_sends_build(wefti_ep_routing *route, const weft_ep_choices *choices);

/* Where the message to `owner` lies. */
uint32_t *wefti_ep_sends_message(const weft_ep *ep, int owner);

/* Add the rows of `token` on `owner` to its message, or to anything of its form: 1 token, and its rows by expert. */
void wefti_ep_sends_count(const wefti_ep_routing *route, int token, int owner, uint32_t *message);

/* Take out the pairs that the owners' verdicts have dropped. */
void wefti_ep_sends_cut(wefti_ep_routing *route);

/* Once scratch.bases has the owners' answers: first_place and, by expert, send_row. */
void wefti_ep_sends_place(wefti_ep_routing *route);

#endif
