/* support/ep_reference.h: what each array must hold after an expert-parallel call, worked out serially from the
 * routing. Straightforward on purpose; shares nothing with src/ep or the protocol headers. */
#ifndef SUPPORT_EP_REFERENCE_H
#define SUPPORT_EP_REFERENCE_H

#include "support/ep_payload.h"
#include "support/ep_routing.h"

/* What the arrays of a received row hold: [ep_row_width] each. Of a slot that nobody fills nothing is written: 0
 * then. */
int ep_reference_labels(const ep_routing *routing, int rank, int64_t row, float *weights, int32_t *experts);

/* A row and its scales, quantised to `to`: the elements [hidden] and the words [ep_scale_words]. */
void ep_reference_quantise(const ep_payload *payload, int rank, int row, const ep_payload *to, unsigned char *elements,
                           uint32_t *scales);

/* One element of a sum. */
typedef struct ep_sum {
    uint32_t bits; /* in the stated order of operations */
    double exact; /* in double precision */
    double bound; /* |value of bits - exact| is at most this */
} ep_sum;

/* What a combine of one rank has beside. */
typedef struct ep_combining {
    float *weights; /* [T][K], or NULL: the route's */
    unsigned char *absent; /* [T][K], or NULL: not 0 where the choice takes no part in the call */
    int biases;
    ep_payload bias[2]; /* the rank's rows, by token */
    weft_ep_dtype out_dtype; /* of the combined rows, or 0: that of the payload */
    int has_values;
    ep_payload values; /* float32, what rows of all ranks have: [ep_row_width] a row */
} ep_combining;

/* The row [hidden] that combine gives `rank` for `token`; rank r's rows hold the payload's rows of r. Payloads of wild
 * values have no useful `exact`. `combining`: NULL, or what the call has beside. */
void ep_reference_combine(const ep_routing *routing, const ep_payload *payload, int rank, int token, unsigned flags,
                          const ep_combining *combining, ep_sum *sums);

/* What comes back of the call's values of received rows to the places [K] of a token. */
void ep_reference_values(const ep_routing *routing, const ep_combining *combining, int rank, int token, float *sums);

/* The gradient of a token's row: the sum over the rows that dispatch made of it, rank r's being the payload's. */
void ep_reference_dispatch_bwd(const ep_routing *routing, const ep_payload *payload, int rank, int token, ep_sum *sums);

/* The gradient of a received row, where the gradient of a combined row is the payload's of (source, token): the bits of
 * [hidden]. Only of rows that are filled. */
void ep_reference_combine_bwd(const ep_routing *routing, const ep_payload *payload, int rank, int64_t row,
                              unsigned flags, uint32_t *bits);

/* The gradient of a choice's weight in combine: <row, gradient of the combined row>, where rank r's rows are
 * `rows`'. */
float ep_reference_weight_bwd(const ep_routing *routing, const ep_payload *payload, const ep_payload *rows, int rank,
                              int token, int choice);

#endif
