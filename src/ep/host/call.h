/* ep/host/call.h: a collective call of a group: every rank tells every rank what it calls and, at the end, that it is
 * done with its memory.
 *
 *     begin    read the epoch; then note on which routing, or that one is agreed on
 *     post     to each rank, once it may write here: the call header (signature, route, buffer), flag last
 *     compare  for each rank whose call header has come: compare it with this rank's own
 *     done     to each rank whose header was compared, when this rank will not touch that rank's memory in this call
 *              again
 *     end      when all ranks are done: advance the epoch
 *
 * A call whose headers differ goes through all of this too, without moving anything else, and ends in WEFT_ERR_MISMATCH
 * on all ranks; the group stays usable. */
#ifndef WEFTI_EP_HOST_CALL_H
#define WEFTI_EP_HOST_CALL_H

#include "ep/host/arrivals.h"
#include "ep/host/routing.h"

typedef struct wefti_ep_call {
    weft_ep *ep;
    const char *name; /* static text */
    uint64_t epoch;
    wefti_ep_call_header header; /* this rank's */
    /* In a group whose limits grow, of all ranks whose headers have come: what holds them, and T of a call that
     * routes. */
    unsigned holds;
    int refused_rank; /* one that does not make the call */
    int tokens_most;
    int mismatched_rank; /* the lowest rank found whose header differs, or -1 */
    wefti_ep_call_header mismatched_header;
} wefti_ep_call;

wefti_ep_call wefti_ep_call_begin(weft_ep *ep, const char *name, const wefti_ep_signature_fields *fields);

/* Fill in what the call is about: a new routing of a plan that it agrees on, of so many tokens of this rank, or the one
 * that the route has. */
void wefti_ep_call_set_plan(wefti_ep_call *call, const weft_ep_plan *plan, int tokens);
void wefti_ep_call_set_route(wefti_ep_call *call, const wefti_ep_routing *route);
/* Or a call of a group of another backend. */
void wefti_ep_call_set_meeting(wefti_ep_call *call, const wefti_ep_meeting *meeting);

weft_status wefti_ep_call_post(const wefti_ep_call *call, int rank);
weft_status wefti_ep_call_post_all(const wefti_ep_call *call);

/* Read `rank`'s call header, which has come. Returns 1 when it calls the same, else 0. */
int wefti_ep_call_compare(wefti_ep_call *call, int rank, wefti_ep_call_header *header);

/* Wait for the call headers that have not been looked at, of all ranks, and compare them. */
weft_status wefti_ep_call_wait_headers(wefti_ep_call *call);

/* This rank is half-way: what `rank` needs of it lies there. */
weft_status wefti_ep_call_mark(const wefti_ep_call *call, int rank);

/* This rank has worked on what `rank` sent. */
weft_status wefti_ep_call_reply(const wefti_ep_call *call, int rank);

weft_status wefti_ep_call_done(const wefti_ep_call *call, int rank);
weft_status wefti_ep_call_done_all(const wefti_ep_call *call);

/* Wait for all ranks' done flags. */
weft_status wefti_ep_call_await_done(const wefti_ep_call *call);

/* WEFT_OK or WEFT_ERR_MISMATCH, which names the rank and both calls. */
weft_status wefti_ep_call_end(const wefti_ep_call *call);

/* The same of a call that agreed on a routing: unless it did not match, the route has it now. */
weft_status wefti_ep_call_end_routed(const wefti_ep_call *call, wefti_ep_routing *route);

#endif
