/* weft-ep-bench/trial.h: one point of a sweep: set up, checked, timed. */
#ifndef WEFT_EP_BENCH_TRIAL_H
#define WEFT_EP_BENCH_TRIAL_H

#include "tools/lib/stats.h"
#include "tools/weft-ep-bench/backend.h"
#include "tools/weft-ep-bench/options.h"

/* Times in us, of the slowest PE; memory in MB (10^6 bytes) a PE. */
typedef struct bench_figures {
    tool_figure dispatch;
    tool_figure combine;
    tool_figure pair;
    tool_figure dispatch_bwd; /* these two without samples unless asked for */
    tool_figure combine_bwd;
    tool_figure dispatch_floor; /* without samples where one PE is alone */
    tool_figure combine_floor;
    tool_figure pair_floor; /* with --memcpy only, of which the other two are then figures */
    tool_figure counts; /* with --counts only: until the host has those of a dispatch */
    tool_figure counts_behind; /* of it, from when the GPU has them */
    tool_figure update_counts; /* both of an update */
    tool_figure update_counts_behind;
    tool_figure setup;
    tool_figure memory;
    char missing[256]; /* not empty: what the library says is not supported here; no figure counts */
} bench_figures;

/* A figure without samples is of a call that is not supported. Collective over the world; the figures are those of all
 * PEs, on all PEs. Returns 0, or 1 after saying what failed. */
int bench_trial_run(bench_backend *backend, const bench_options *options, const bench_point *point,
                    bench_figures *figures);

#endif
