/* part/ep_reference.h: expert parallelism done serially by one who sees all ranks: who receives which row, and what each
 * array must hold after a call. Straightforward on purpose; shares nothing with src/ep or the protocol headers.
 *
 * A rank's rows are numbered. Everything follows from two lists: what each row of a rank is (`row`), and in which row of
 * its owner each choice ended up (`row_of`). */
#ifndef PART_EP_REFERENCE_H
#define PART_EP_REFERENCE_H

#include "part/ep_case.h"

/* One row that a rank receives. */
typedef struct ep_row {
    int source; /* -1: padding */
    int token;
    int expert; /* local, where a row is of one expert; else -1 */
} ep_row;

/* What one rank receives. */
typedef struct ep_side {
    int64_t rows; /* N, padding included */
    ep_row *row; /* [N] */
    int *rows_of_expert; /* [L] */
    int *offset_of_expert; /* [L + 1] */
    int *rows_of_source; /* [R] */
    int *offset_of_source; /* [R + 1] */
    int out_of_range; /* of this rank's own choices */
    int next; /* while rows are placed: the next, by token and by expert */
    int *next_of_expert;
} ep_side;

typedef struct ep_routing {
    const ep_case *one;
    int overflow; /* on any rank: nothing moves */
    ep_side side[EP_RANKS_MAX];
    int *row_of[EP_RANKS_MAX]; /* [T][K] of each source: the row on the owner, or -1 */
} ep_routing;

ep_routing *ep_routing_create(const ep_case *one);
void ep_routing_destroy(ep_routing *routing);

/* Whether a row stands for one expert, or for all of its token's choices on the rank. */
int ep_is_by_expert(weft_ep_layout layout);
/* Weights and experts received a row: 1 or K. */
int ep_row_width(const weft_ep_plan *plan);

/* What the arrays of a received row hold: [ep_row_width] each. */
void ep_reference_labels(const ep_routing *routing, int rank, int64_t row, float *weights, int32_t *experts);

/* One element of a combined row. */
typedef struct ep_sum {
    uint32_t bits; /* in the stated order of operations */
    double exact; /* in double precision */
    double bound; /* |value of bits - exact| is at most this */
} ep_sum;

/* The row [hidden] that combine gives `rank` for `token`; rank r's rows hold the payload's rows of r. `wild` payloads
 * have no useful `exact`. */
void ep_reference_combine(const ep_routing *routing, const ep_payload *payload, int rank, int token, unsigned flags,
                          ep_sum *sums);

#endif
