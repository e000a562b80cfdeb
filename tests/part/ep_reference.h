/* part/ep_reference.h: expert parallelism done serially by one who sees all ranks: what each must receive and get back.
 * Straightforward on purpose, and shares nothing with src/ep. */
#ifndef PART_EP_REFERENCE_H
#define PART_EP_REFERENCE_H

#include "part/ep_case.h"

/* One row that a rank receives. */
typedef struct ep_row {
    int source; /* -1: padding */
    int token;
    int choice; /* expert-major; 0 in rank-major */
    int expert; /* local; expert-major */
} ep_row;

/* What one rank receives. */
typedef struct ep_expected {
    int overflow; /* on any rank */
    int dropped; /* of this rank's own choices */
    int rows;
    ep_row *row; /* [rows] */
    int *rows_of_expert;
    int *offset_of_expert; /* [L + 1] */
    int *rows_of_source;
    int *offset_of_source; /* [R + 1] */
} ep_expected;

ep_expected ep_reference_route(const ep_case *one, int rank);
void ep_expected_free(ep_expected *expected);

/* The rows a rank would receive, padding included. */
int64_t ep_reference_rows(const ep_case *one, int rank);

/* One element of a combined row. */
typedef struct ep_sum {
    uint32_t bits; /* in the stated order of operations */
    double exact; /* in double precision */
    double partials; /* the sum of the magnitudes of the ranks' partial sums */
    double terms; /* the sum of the magnitudes of all that is added */
} ep_sum;

/* The row [hidden] that combine gives `rank` for `token`, the experts' results being ep_result with this salt. */
void ep_reference_combine(const ep_case *one, int rank, int token, int weighted, unsigned salt, ep_sum *row);

double ep_bits_value(weft_ep_dtype dtype, uint32_t bits);
/* The nearest value of the type, ties to the even one. */
uint32_t ep_value_bits(weft_ep_dtype dtype, float value);

#endif
