/* part/ep_step.h: one rank's part in one collective call, with inputs that are a pure function of the case and the rank,
 * and every array compared with the serial reference afterwards. What is wrong counts as a failed check. */
#ifndef PART_EP_STEP_H
#define PART_EP_STEP_H

#include "part/ep_reference.h"
#include "part/ep_tensor.h"

typedef struct ep_step {
    weft_ep_route *route;
    const ep_routing *routing; /* the route's */
    int rank;
    const char *what; /* which call it is, for messages */
    const ep_memory *memory;
    weft_stream *stream;
    uint64_t *random; /* of this rank: strides, arrays left out, where things lie, when it dawdles */
    unsigned slow_us; /* a rank may sleep up to so long before and after a call; 0: none does */
} ep_step;

void ep_step_update(const ep_step *step);
/* The counts the route has now. */
void ep_step_check_counts(const ep_step *step);
/* `received`: the payload as it arrives, perhaps quantised. */
void ep_step_dispatch(const ep_step *step, const ep_payload *payload, const ep_payload *received);
void ep_step_combine(const ep_step *step, const ep_payload *payload, unsigned flags);

#endif
