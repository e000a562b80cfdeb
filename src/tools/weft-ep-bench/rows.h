/* weft-ep-bench/rows.h: what rows hold: small integers that name their token and column, exact in every type, and so
 * are their sums. */
#ifndef WEFT_EP_BENCH_ROWS_H
#define WEFT_EP_BENCH_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "weft_ep.h"

size_t bench_element_bytes(weft_ep_dtype dtype);

/* The integer at a column of a token's row. */
static inline int bench_row_value(int rank, int token, int column)
{
    return (rank * 31 + token * 7 + column) % 15 - 7;
}

/* The scale of a group of 128 elements of a token's row. */
static inline float bench_row_scale(int rank, int token, int group)
{
    return (float)(1 + (rank + token + group) % 4);
}

/* Fill a row with `factor` times its token's. */
void bench_row_fill(weft_ep_dtype dtype, int hidden, int rank, int token, int factor, void *row);
/* Compare a row, times `scales` [groups] unless NULL, with `factor` times its token's. Returns the first column that is
 * not within the relative `tolerance`; -1: none. */
int bench_row_differs(weft_ep_dtype dtype, int hidden, int rank, int token, int factor, const float *scales,
                      double tolerance, const void *row);

#endif
