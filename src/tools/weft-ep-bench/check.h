/* weft-ep-bench/check.h: whether a dispatch and a combine did what they are to do. */
#ifndef WEFT_EP_BENCH_CHECK_H
#define WEFT_EP_BENCH_CHECK_H

#include "tools/weft-ep-bench/arrays.h"

/* Compare what a dispatch received: every row and scale, its place in the order, its source, weight and expert, and
 * that all came. Then set the experts' results to the token's rows. Returns 0, or 1 after saying what is wrong. */
int bench_check_received(const bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                         const bench_point *point);

/* Compare what a weighted combine of these results gave: every element. */
int bench_check_combined(const bench_arrays *arrays, bench_backend *backend, const bench_options *options,
                         const bench_point *point);

#endif
