/* weft-ep-bench/counts.h: how soon the host has the counts of a new routing, by weft_ep_route_counts_to. */
#ifndef WEFT_EP_BENCH_COUNTS_H
#define WEFT_EP_BENCH_COUNTS_H

#include "tools/weft-ep-bench/backend.h"

typedef struct bench_counts {
    bench_backend *backend; /* of GPUs */
    weft_ep_route *route;
    weft_status (*call)(void *context); /* makes a new routing on it */
    void *context;
} bench_counts;

/* Of `repeats` calls after the warm-up, which the ranks make in step and on idle GPUs, in us:
 * us: from the call until its counts are told, by the host's clock;
 * behind: from when the counts are in the route's own arrays on the GPU until they are told, by the host's clock: a
 * kernel beside the call watches the arrays and tells the host by a word, so that the way of a word to the host is in
 * both. Negative: they are told first. *has_behind: 0 if kernels of two streams do not run at once.
 * Collective. */
weft_status bench_counts_time(const bench_counts *of, int warmup, int repeats, double *us, double *behind,
                              int *has_behind);

#endif
