/* weft-ep-bench/counts.h: how soon the host has the counts of a new routing, by weft_ep_route_counts_to. */
#ifndef WEFT_EP_BENCH_COUNTS_H
#define WEFT_EP_BENCH_COUNTS_H

#include "tools/weft-ep-bench/backend.h"

typedef struct bench_counts {
    bench_backend *backend;
    weft_ep_route *route;
    weft_status (*call)(void *context); /* makes a new routing on it */
    void *context;
} bench_counts;

/* How long it takes from the call, which the ranks make in step and on idle GPUs, until its counts are told, by the
 * host's clock, `repeats` times after the warm-up. Collective. */
weft_status bench_counts_time(const bench_counts *of, int warmup, int repeats, double *us);

#endif
