/* weft-ep-bench/trial.h: one shape: set up, checked, timed. */
#ifndef WEFT_EP_BENCH_TRIAL_H
#define WEFT_EP_BENCH_TRIAL_H

#include "tools/weft-ep-bench/options.h"
#include "weft.h"

typedef struct bench_figure {
    double median;
    double low; /* a quarter of the samples lies below, and a quarter above high */
    double high;
    int samples;
    double bytes; /* that one call moves on PE 0; 0: none */
} bench_figure;

/* Times in us, of the slowest PE; memory in MB (10^6 bytes) a PE. */
typedef struct bench_figures {
    bench_figure dispatch;
    bench_figure combine;
    bench_figure pair;
    bench_figure dispatch_bwd; /* these two without samples unless asked for */
    bench_figure combine_bwd;
    bench_figure setup;
    bench_figure memory;
} bench_figures;

/* Collective over the world; the figures are those of all PEs, on all PEs. Returns 0, or 1 after saying what failed. */
int bench_trial_run(weft_world *world, const bench_options *options, const bench_shape *shape, bench_figures *figures);

#endif
