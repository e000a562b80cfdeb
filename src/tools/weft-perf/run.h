/* weft-perf/run.h: one case: checked, timed, told; and worlds. */
#ifndef WEFT_PERF_RUN_H
#define WEFT_PERF_RUN_H

#include "tools/weft-perf/pe.h"
#include "tools/weft-perf/report.h"

/* Collective over the world. *wrong grows by what the check found. Returns 0, or 1 after saying what failed. */
int perf_run_case(perf_pe *pe, const perf_case *c, perf_report *report, long *wrong);

#define PERF_WORLDS 7

/* Times of this PE, taken before any other world was made. */
typedef struct perf_worlds {
    double create_ms[PERF_WORLDS];
    double destroy_ms[PERF_WORLDS];
    double taken_mb[PERF_WORLDS]; /* GPU memory that an idle world takes, its heap included */
    double heap_mb;
    int has_memory;
} perf_worlds;

/* Make and destroy worlds of all processes. Returns 0, or 1 after saying what failed. */
int perf_worlds_time(const perf_options *options, perf_worlds *worlds);
/* Tell the slowest PE's. Collective. */
int perf_worlds_tell(perf_pe *pe, const perf_worlds *worlds, perf_report *report);

#endif
