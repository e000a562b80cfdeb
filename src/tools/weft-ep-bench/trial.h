/* weft-ep-bench/trial.h: one shape: set up, checked, timed. */
#ifndef WEFT_EP_BENCH_TRIAL_H
#define WEFT_EP_BENCH_TRIAL_H

#include "tools/part/samples.h"
#include "tools/weft-ep-bench/options.h"
#include "weft.h"

/* Times in us, of the slowest PE; memory in MB (10^6 bytes) a PE. */
typedef struct bench_figures {
    tool_figure dispatch;
    tool_figure combine;
    tool_figure pair;
    tool_figure dispatch_bwd; /* these two without samples unless asked for */
    tool_figure combine_bwd;
    tool_figure setup;
    tool_figure memory;
} bench_figures;

/* Collective over the world; the figures are those of all PEs, on all PEs. Returns 0, or 1 after saying what failed. */
int bench_trial_run(weft_world *world, const bench_options *options, const bench_shape *shape, bench_figures *figures);

#endif
