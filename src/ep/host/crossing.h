/* ep/host/crossing.h: what push and pull share where rows cross between domains (protocol/ep_ring.h): a rank's ends of
 * rings, as a source and as a forwarder, and waiting for all of them at once.
 *
 *     wefti_ep_crossing_start(ep, epoch, name, asks);
 *     while something is left:
 *         look at each end without waiting: send what there is room for, take what has come
 *         if nothing was done: wefti_ep_crossing_await for each rank of which something is awaited, then
 *         wefti_ep_crossing_pause
 */
#ifndef WEFTI_EP_HOST_CROSSING_H
#define WEFTI_EP_HOST_CROSSING_H

#include "ep/host/arrivals.h"

/* What a ring holds. */
typedef enum wefti_ep_ring_kind { WEFTI_EP_RING_CHUNKS, WEFTI_EP_RING_ASKS } wefti_ep_ring_kind;

/* This rank as a source, towards another domain. */
typedef struct wefti_ep_outlet {
    int32_t forwarder; /* -1: this rank's own domain */
    int32_t line; /* the number of this rank's ring there */
    uint32_t sent; /* chunks, or requests (asks) */
    uint32_t taken; /* chunks that the forwarder is known to have taken; or answers that were worked on */
    int32_t token; /* the next one to be sent or asked for */
    int is_all; /* nothing is left to be sent or asked for */
    uint32_t row; /* the next sum in the answer that is being worked on */
} wefti_ep_outlet;

/* This rank as the forwarder of one source. */
typedef struct wefti_ep_inlet {
    int32_t source;
    uint32_t taken; /* chunks or asks */
    int is_all;
    uint64_t handed_on; /* the call whose notice was last */
} wefti_ep_inlet;

typedef struct wefti_ep_crossing {
    wefti_ep_arrivals arrivals; /* first: what is awaited in a pause */
    wefti_ep_outlet *outlets; /* [domains] */
    wefti_ep_inlet *inlets; /* [inlet_count]: number i is line i */
    int inlet_count;
    int asks; /* the call asks for sums; else it sends rows */
    int awaited; /* the domain whose sum is added next, or -1 */
    unsigned char *chunk; /* a chunk while it is filled */
    unsigned char *copy; /* of a chunk that came, which the simulator reads in one piece */
    unsigned char *copy_of_ask;
    uint64_t begun; /* 0, or the last call, this one or one that failed: its notices may still be read (notices.h) */
    int notifies; /* this call is told by notices: nobody is masked */
    unsigned char *notice; /* a notice while it is written or handed on */
    unsigned char *handed; /* and what a rank gets of it */
} wefti_ep_crossing;

/* The sizes of the rings of a group with these domains; all zero without crossings. */
wefti_ep_ring_shape wefti_ep_crossing_shape(const weft_ep *ep);

/* ep->host->crossing, unless there is none. A half-built one is good for fini. */
weft_status wefti_ep_crossing_init(weft_ep *ep);
size_t wefti_ep_crossing_bytes(const weft_ep *ep); /* of one that is not there yet */
void wefti_ep_crossing_fini(wefti_ep_crossing *crossing); /* NULL is allowed */

/* Whether rows go through forwarders in the next call. They go directly while a rank is masked, since forwarders may be
 * lost, and where a deadline may mask one on some ranks and not on others. */
int wefti_ep_crossing_is_on(const weft_ep *ep);

/* A call in which the headers of all ranks have come begins to cross. */
void wefti_ep_crossing_start(const weft_ep *ep, uint64_t epoch, const char *name, int asks);

/* Put a chunk or ask to a line of another rank, which has room for it. */
weft_status wefti_ep_crossing_send(const weft_ep *ep, wefti_ep_ring_kind kind, int rank, int line, uint32_t number,
                                   const void *chunk, size_t bytes);

/* Chunk or ask `number` of a line here, if it has come; else NULL. */
const unsigned char *wefti_ep_crossing_take(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number);

/* Where that lies, come or not. */
const unsigned char *wefti_ep_crossing_at(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number);

/* Whether chunk or ask `number` of a ring has come. */
int wefti_ep_crossing_has(const weft_ep *ep, wefti_ep_ring_kind kind, int line, uint32_t number);

/* Tell a source that one more of its chunks has been taken, perhaps later. */
weft_status wefti_ep_crossing_credit(const weft_ep *ep, wefti_ep_inlet *inlet);

/* Look how many chunks the forwarder of an outlet has taken. */
void wefti_ep_crossing_look(const weft_ep *ep, int domain);

/* Something was done: the deadline begins anew. */
void wefti_ep_crossing_renew(const weft_ep *ep);

/* await: something of this rank is awaited. pause, after that of each such rank: wait a moment. */
void wefti_ep_crossing_await(const weft_ep *ep, int rank);
weft_status wefti_ep_crossing_pause(const weft_ep *ep);

#endif
