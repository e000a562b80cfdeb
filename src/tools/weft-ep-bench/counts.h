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
 * behind: from when the counts are in the route's own arrays until they are told, by the GPU's clock, as a kernel
 * beside the call sees both (which reads what the host is told over its bus); *has_behind: 0 if it cannot run there.
 * Collective. */
weft_status bench_counts_time(const bench_counts *of, int warmup, int repeats, double *us, double *behind,
                              int *has_behind);

#endif
