/* ep/host/notices.h: what a rank tells all ranks of another domain, in one message to its forwarder there, which hands
 * it on: its call header and, where a routing is agreed on, its counts (protocol/ep_layout.h). So a call begins with a
 * message to each rank of the own domain and one to each other domain.
 *
 * A forwarder hands on a source's notice while it waits for the call headers of the same call, to itself too, which
 * is how it learns that the source has called; a notice of any other call it leaves unread. So who has a forwarder's
 * done flag of a call knows that it reads no notice of that call, or of an earlier one, any more, and writes the next
 * one in its place. After a call that did not end so, however that was told, the next are told to each rank directly
 * until one has ended on its bank, so that who is late in it sees them; and all are while any rank is masked.
 *
 * A forwarder that comes late, after the others have gone on without it, reads what its source has left alone since,
 * and writes where nobody else writes, under the flag of a call that nobody waits for. */
#ifndef WEFTI_EP_HOST_NOTICES_H
#define WEFTI_EP_HOST_NOTICES_H

#include "ep/host/host.h"

/* The most words that follow the header of a notice in a group. */
size_t wefti_ep_notice_words(const weft_ep *ep);

/* A call begins: decide how it is told. */
void wefti_ep_notices_begin(const weft_ep *ep, uint64_t epoch);

/* Whether this rank tells `rank` of the call by a notice. */
int wefti_ep_notices_reach(const weft_ep *ep, int rank);

/* To each other domain, if this call is told so; `counted`: with the counts. */
weft_status wefti_ep_notices_send(const weft_ep *ep, const wefti_ep_call_header *header, uint64_t epoch, int counted);

/* The call has ended, with the done flags of all ranks that are not masked; those that are come back (weft_ep_rejoin)
 * only when they have left it, too. */
void wefti_ep_notices_end(const weft_ep *ep);

/* As a forwarder, in a call whose headers are awaited: hand on the notices of that call that have come. */
weft_status wefti_ep_notices_hand_on(const weft_ep *ep, uint64_t epoch);

/* Whether a source's notice of a call has been handed on to this rank. */
static inline int wefti_ep_notices_has(const weft_ep *ep, int source, uint64_t epoch)
{
    return ep->host->crossing != NULL &&
           wefti_ld64(ep->host->base + wefti_ep_handed_flag_at(&ep->host->layout, source), WEFTI_ACQUIRE) == epoch;
}

#endif
