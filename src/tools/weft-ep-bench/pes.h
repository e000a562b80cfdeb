/* weft-ep-bench/pes.h: the PEs of the benchmark: processes that weftrun started, or threads. */
#ifndef WEFT_EP_BENCH_PES_H
#define WEFT_EP_BENCH_PES_H

#include "weft.h"

/* Print what failed on this PE; returns whether it did. */
int bench_failed(weft_status status, const char *what);

/* Run body(world, context) on every PE; `threads` of them in this process, or, if 0, this process alone is one. Returns
 * the exit status: 1 when a body did not return 0. */
int bench_pes_run(int threads, int (*body)(weft_world *world, void *context), void *context);

#endif
