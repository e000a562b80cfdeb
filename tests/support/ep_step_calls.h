/* support/ep_step_calls.h: what the files of ep_step share. */
#ifndef SUPPORT_EP_STEP_CALLS_H
#define SUPPORT_EP_STEP_CALLS_H

#include "support/ep_coverage.h"
#include "support/ep_step.h"

/* ---- ep_step.c ---- */

const ep_side *ep_step_side_of(const ep_step *step);
int ep_step_tokens_of(const ep_step *step);
size_t ep_step_choices_of(const ep_step *step);

/* What calls but updates return: an overflow that is known at once. */
weft_status ep_step_wanted_status(const ep_step *step);

/* Sleep at times, so that ranks are not in step. */
void ep_step_dawdle(const ep_step *step);
/* A moment of a call in halves. */
void ep_step_pause(const ep_step *step, ep_moment moment);

/* This rank's tokens; and a row for each received, padding and slots that nobody fills left poisoned. */
ep_row_array ep_step_token_rows(const ep_step *step, const char *name, const ep_payload *payload);
ep_row_array ep_step_result_rows(const ep_step *step, const char *name, const ep_payload *payload);
ep_word_array ep_step_received_gradients(const ep_step *step, const ep_payload *of);

/* The sums of all tokens in `out`, which are also near enough to exact ones; threads may work them out. */
typedef void ep_step_reference(const void *context, const ep_step *step, int token, ep_sum *sums);
void ep_step_expect_sums(const ep_step *step, const ep_row_array *out, ep_step_reference *reference,
                         const void *context);

/* What the call has met, counted by rank 0. */
void ep_step_cover(const ep_step *step, ep_coverage what, long times);
void ep_step_cover_routing(const ep_step *step);
void ep_step_cover_rows(const ep_step *step, const ep_payload *payload, const ep_payload *received);

/* ---- ep_step_update.c ---- */

/* The arrays of a call that routes. */
typedef struct ep_choice_tensors {
    ep_tensor ids;
    ep_tensor weights;
    ep_tensor told;
    ep_tensor destinations; /* or positions */
} ep_choice_tensors;

ep_choice_tensors ep_step_choices_create(const ep_step *step, weft_ep_choices *choices);
/* The weights, in memory that calls read; nothing where the case has none. */
ep_tensor ep_step_weights_create(const ep_step *step);
void ep_step_choices_destroy(ep_choice_tensors *of);
/* The ids in the type asked for. */
ep_tensor ep_step_ids_create(const ep_step *step);

#endif
