/* support/ep_step.h: one rank's part in one collective call, with inputs that are a pure function of the case and the
 * rank, and every array compared with the serial reference afterwards. What is wrong counts as a failed check. */
#ifndef SUPPORT_EP_STEP_H
#define SUPPORT_EP_STEP_H

#include "support/ep_arrays.h"
#include "support/ep_reference.h"

/* Around the halves of a call. */
typedef enum ep_moment { EP_BEFORE_SEND, EP_BETWEEN_HALVES, EP_AFTER_RECV } ep_moment;

typedef struct ep_step {
    weft_ep_route *route;
    const ep_routing *routing; /* the route's */
    int rank;
    ep_array_source arrays;
    weft_stream *stream;
    struct ep_told *told; /* NULL, or where the route's counts are told */
    int is_late; /* calls return WEFT_OK before they have found out about an overflow */
    int is_absent; /* this rank is masked: nothing is called */
    int weighs; /* a dispatch on the route's routing brings the case's weights, which are new */
    int halves; /* dispatch and combine are made as send and recv */
    void (*meanwhile)(void *context, ep_moment moment); /* NULL, or what is done around halves */
    int recv_is_made; /* meanwhile: the step makes only the send */
    void *context;
    unsigned slow_us; /* a rank may sleep up to so long before and after a call; 0: none does */
} ep_step;

/* Where counts are told: weft_ep_count_arrays of the route, and how many routings have been told. */
typedef struct ep_told {
    weft_ep_count_arrays arrays;
    uint64_t generations[2];
    uint64_t number;
} ep_told;

/* Where such arrays lie, zeroed: memory that GPUs reach, if they tell. */
extern void *(*ep_told_take)(size_t bytes);
extern void (*ep_told_give)(void *memory);

/* Have the counts of a route with this setup and plan told, all of them or some; a route that is created again:
 * another. */
ep_told *ep_told_create(weft_ep_route *route, const ep_setup *setup, int rank, uint64_t *random);
void ep_told_destroy(ep_told *told);

/* Now and then another number of multiprocessors for the route's calls from now on, on each rank its own. */
void ep_step_vary_sms(const ep_step *step, unsigned salt);

void ep_step_update(const ep_step *step);
/* The counts the route has now. */
void ep_step_check_counts(const ep_step *step);

/* `received`: the payload as it arrives, perhaps quantised. `capacity`: NULL, or the rows that the receive buffer of
 * each rank holds: then the routing is chosen with the dispatch, on its way. */
void ep_step_dispatch(const ep_step *step, const ep_payload *payload, const ep_payload *received,
                      const int64_t *capacity);
/* Values of received rows, for a combine that sends them back, beside this payload. */
ep_payload ep_step_values(const ep_step *step, const ep_payload *payload);
/* `combining`: NULL, or what the call has beside. */
void ep_step_combine(const ep_step *step, const ep_payload *payload, unsigned flags, const ep_combining *combining);

/* The backward passes: the payload is of the gradients that are there before; `rows`: NULL, or what combine was given,
 * when the gradients of the weights are wanted as well. */
void ep_step_dispatch_bwd(const ep_step *step, const ep_payload *payload, int with_weights);
void ep_step_combine_bwd(const ep_step *step, const ep_payload *payload, const ep_payload *rows, unsigned flags);

#endif
