/* ep/host/letters.h: what a rank tells all ranks of another domain, in one message to its forwarder there, which hands
 * it on: its call header and, where a routing is agreed on, its counts (protocol/ep_layout.h). So a call header costs a
 * rank as many messages as its domain has ranks, and one a domain beside.
 *
 * A forwarder hands on what has come whenever it waits in a call. It waits for the call headers of the sources that it
 * forwards for itself, and no call ends without them: so who has what comes later of it, its reply or its done flag,
 * has had its letters handed on. */
#ifndef WEFTI_EP_HOST_LETTERS_H
#define WEFTI_EP_HOST_LETTERS_H

#include "ep/host/host.h"

/* The most words that follow the header of a letter of a group; 0 in one without. */
size_t wefti_ep_letters_words(const weft_ep *ep);

/* Whether this rank's call headers reach `rank` so. */
int wefti_ep_goes_by_letter(const weft_ep *ep, int rank);

/* To the forwarder in `domain`, if there is one that is not masked. */
weft_status wefti_ep_letters_send(const weft_ep *ep, int domain, const wefti_ep_call_header *header, uint64_t epoch,
                                  int counted);

/* A rank has been masked in this call: if it was a forwarder of this one, tell its domain directly what it may not have
 * handed on. */
weft_status wefti_ep_letters_again(const weft_ep *ep, int masked, uint64_t epoch);

/* Hand on what has come, of whatever call: ranks may be in an earlier one than their forwarder, which gave that up.
 * *handed_on becomes 1 if that is anything. */
weft_status wefti_ep_letters_hand_on(const weft_ep *ep, int *handed_on);

#endif
