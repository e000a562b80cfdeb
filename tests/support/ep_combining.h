/* A combine with options: weights, choices, biases, values and a type of its own, drawn. */
#ifndef TEST_SUPPORT_EP_COMBINING_H
#define TEST_SUPPORT_EP_COMBINING_H

#include "support/ep_step.h"

/* A combine of the step's route, plain or with some of what it may have beside. `common`: equal on all ranks. */
void ep_combining_step(const ep_step *step, const ep_payload *payload, unsigned flags, uint64_t *common);

#endif
