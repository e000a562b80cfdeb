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
    int source; /* -1: padding, or a slot that nobody fills */
    int token;
    int expert; /* local, where a row is of one expert; else -1 */
} ep_row;

/* What one rank receives. */
typedef struct ep_side {
    int64_t rows; /* N: padding and all slots included */
    ep_row *row; /* [N] */
    int *rows_of_expert; /* [L] */
    int *offset_of_expert; /* [L + 1] */
    int *rows_of_source; /* [R] */
    int *offset_of_source; /* [R + 1] */
    int *rows_of_expert_source; /* [L][R] */
    int64_t tokens; /* (source, token) pairs */
    int64_t dropped_rows; /* because they did not fit */
    int out_of_range; /* of this rank's own choices */
    int is_clamped; /* this rank's number of tokens was out of range */
    /* while rows are counted and placed */
    int64_t limit; /* rows that fit; -1: any number */
    int is_full; /* the rest is dropped */
    int *next_of_source;
    int *next_of_expert;
} ep_side;

typedef struct ep_routing {
    const ep_case *one;
    int overflow; /* on any rank: nothing moves */
    ep_side side[EP_RANKS_MAX];
    int *row_of[EP_RANKS_MAX]; /* [T][K] of each source: the row on the owner, or -1 */
} ep_routing;

/* `capacity`: NULL, or the rows that each rank's receive buffer holds, where that limits them too. */
ep_routing *ep_routing_create(const ep_case *one, const int64_t *capacity);
void ep_routing_destroy(ep_routing *routing);

/* Whether a row stands for one expert, or for all of its token's choices on the rank. */
int ep_is_by_expert(weft_ep_layout layout);
int ep_is_slots(weft_ep_layout layout);
/* Weights and experts received a row: 1 or K. */
int ep_row_width(const weft_ep_plan *plan);

/* What the arrays of a received row hold: [ep_row_width] each. Of a slot that nobody fills nothing is written: 0 then. */
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

/* The row [hidden] that combine gives `rank` for `token`; rank r's rows hold the payload's rows of r. Payloads of wild
 * values have no useful `exact`. */
void ep_reference_combine(const ep_routing *routing, const ep_payload *payload, int rank, int token, unsigned flags,
                          ep_sum *sums);

/* The gradient of a token's row: the sum over the rows that dispatch made of it, rank r's being the payload's. */
void ep_reference_dispatch_bwd(const ep_routing *routing, const ep_payload *payload, int rank, int token, ep_sum *sums);

/* The gradient of a received row, where the gradient of a combined row is the payload's of (source, token): the bits of
 * [hidden]. Only of rows that are filled. */
void ep_reference_combine_bwd(const ep_routing *routing, const ep_payload *payload, int rank, int64_t row,
                              unsigned flags, uint32_t *bits);

/* The gradient of a choice's weight in combine: <row, gradient of the combined row>, where rank r's rows are `rows`'. */
float ep_reference_weight_bwd(const ep_routing *routing, const ep_payload *payload, const ep_payload *rows, int rank,
                              int token, int choice);

/* Where a choice ended up: its owner's number and the row there, or 0. */
int ep_reference_place(const ep_routing *routing, int rank, int token, int choice, int *owner, int *row);

#endif
