/* ep/host/routing.h: what one step sends where: the host backend's part of a route. Everything lies in one block of
 * private memory, so that a route stands by itself between its updates: dispatch and combine need nothing of the group
 * but its flags and rows. */
#ifndef WEFTI_EP_HOST_ROUTING_H
#define WEFTI_EP_HOST_ROUTING_H

#include "ep/host/host.h"

/* A pair is one (token, rank) of this rank's tokens and the distinct ranks that own a choice of theirs; P of them. A
 * token or choice that is dropped on its way is in no pair. A place is a received token's number on its rank, in the
 * order (source, token). */
typedef struct wefti_ep_routing {
    weft_ep *ep;
    weft_ep_plan plan;
    void *owned; /* the memory, if it is the library's */
    size_t bytes; /* of the memory */
    size_t laid_bytes; /* of these, those that the limits took when it was laid out last */
    uint64_t epoch; /* the call of the last update; 0: none, or it failed */
    int tokens; /* T */
    int received; /* tokens received; 0 after an overflow */
    int64_t wanted; /* rows, padding aside, that would come if none were dropped */
    int32_t wanted_rows; /* the same with padding */
    int is_counted; /* this routing's choices are what is left of others, of which `wanted` and `wanted_rows` tell */

    weft_ep_count_arrays counts_to; /* where counts are told; nowhere if it has neither generation nor on_stream */
    uint64_t counted; /* how many routings have been told there */

    /* weft_ep_counts */
    int32_t *rows;
    int32_t *rows_of_expert;
    int32_t *offset_of_expert;
    int32_t *rows_of_source;
    int32_t *offset_of_source;
    int32_t *dropped;
    int32_t *status;
    int32_t *rows_of_expert_source;
    int32_t *dropped_rows;
    int32_t *kept; /* [T][K] where rows are dropped by themselves: what is left of the choices */

    /* By token, for what comes back. */
    int32_t *choice_rank; /* [T][K] the rank that receives a choice, or -1 */
    int32_t *token_pairs; /* [T + 1] the first pair of each token */
    int32_t *pair_rank; /* [P] ascending within a token */
    int32_t *pair_index; /* [P] the token's number among those that go to that rank */
    float *pair_weight; /* [P] the weights of its choices there, added in ascending choice */

    /* By rank, for what is sent. */
    int32_t *rank_sends; /* [R + 1] the first send to each rank */
    int32_t *send_token; /* [P] ascending within a rank */
    int32_t *send_row; /* [P] by expert: the row there of its first choice there */
    uint32_t *first_place; /* [R] the place there of this rank's first token */

    /* Received. */
    int32_t *place_of_source; /* [R + 1] the first place of each source; wefti_ep_places_end is behind its last */
    unsigned char *records; /* [M] by place, as the sources wrote them: see wefti_ep_record_bytes */
    int32_t *record_rows; /* [M][K] by expert: the row of each choice, -1 where it is not of this rank */
} wefti_ep_routing;

/* One received token. */
typedef struct wefti_ep_record {
    const int32_t *token; /* [1] at its source */
    const int32_t *experts; /* [K] local, -1: not of this rank */
    const float *weights; /* [K] */
} wefti_ep_record;

static inline wefti_ep_record wefti_ep_record_of(const wefti_ep_routing *route, int place)
{
    size_t topk = (size_t)route->plan.topk;
    const unsigned char *at = route->records + (size_t)place * wefti_ep_record_bytes(topk);
    wefti_ep_record record;
    record.token = (const int32_t *)(const void *)at;
    record.experts = record.token + 1;
    record.weights = (const float *)(const void *)(record.experts + topk);
    return record;
}

/* [K]: by expert: the rows of a received token's choices. */
static inline const int32_t *wefti_ep_rows_at(const wefti_ep_routing *route, int place)
{
    return &route->record_rows[(size_t)place * (size_t)route->plan.topk];
}

/* Whether an earlier choice has the value of choice k: the row, the expert. Slots by expert keep one row of both. */
static inline int wefti_ep_is_again(const int32_t *values, int k)
{
    for (int j = 0; j < k; j++) {
        if (values[j] == values[k]) {
            return 1;
        }
    }
    return 0;
}

static inline int wefti_ep_shares_rows(const wefti_ep_routing *route)
{
    return route->plan.layout == WEFT_EP_SLOTS_EXPERT;
}

/* Slots of ep/backend.h. */
size_t wefti_ep_routing_bytes(const weft_ep *ep, const weft_ep_plan *plan);
weft_status wefti_ep_routing_open(weft_ep_route *handle, void *memory);
weft_status wefti_ep_routing_move(weft_ep_route *handle, void *memory, size_t bytes);
void wefti_ep_routing_close(weft_ep_route *handle);

weft_status wefti_ep_routing_fit(weft_ep_route *handle, const char *call);
weft_status wefti_ep_routing_counts(const weft_ep_route *handle, weft_ep_counts *counts);
weft_status wefti_ep_routing_query(const weft_ep_route *handle, weft_stream *stream, weft_ep_host_counts *counts);

/* For ep/backend.h; and tell the counts, which have agreed. */
weft_status wefti_ep_routing_counts_told(weft_ep_route *handle, const weft_ep_count_arrays *arrays);
void wefti_ep_routing_tell_counts(wefti_ep_routing *route);

/* WEFT_OK when the routing can move rows, else WEFT_ERR_OVERFLOW. */
weft_status wefti_ep_routing_check(const wefti_ep_routing *route, const char *call);

static inline int wefti_ep_is_by_source(const wefti_ep_routing *route)
{
    return wefti_ep_plan_is_by_source(&route->plan);
}

/* The tokens this rank sends to `rank`. */
static inline int wefti_ep_sends_to(const wefti_ep_routing *route, int rank)
{
    return route->rank_sends[rank + 1] - route->rank_sends[rank];
}

/* By source, where rows are not staged: the row on `rank` of this rank's first token there. */
static inline size_t wefti_ep_first_row(const wefti_ep_routing *route, int rank)
{
    return route->plan.layout == WEFT_EP_SLOTS_SOURCE ? (size_t)route->ep->rank * (size_t)route->plan.slot_tokens
                                                      : route->first_place[rank];
}

/* Behind the place of the last token that has come from a source. */
static inline int wefti_ep_places_end(const wefti_ep_routing *route, int source)
{
    return route->place_of_source[source] + route->rows_of_source[source];
}

/* From all sources. */
static inline int64_t wefti_ep_tokens_received(const wefti_ep_routing *route)
{
    int64_t tokens = 0;
    for (int source = 0; source < route->ep->ranks; source++) {
        tokens += route->rows_of_source[source];
    }
    return tokens;
}

/* By source: the row here of the token at `place`, which `source` sent. */
static inline size_t wefti_ep_row_of_place(const wefti_ep_routing *route, int source, int place)
{
    return (size_t)(route->offset_of_source[source] + (place - route->place_of_source[source]));
}

#endif
