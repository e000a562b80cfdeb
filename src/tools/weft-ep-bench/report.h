/* weft-ep-bench/report.h: the table and the JSON lines, both by PE 0. */
#ifndef WEFT_EP_BENCH_REPORT_H
#define WEFT_EP_BENCH_REPORT_H

#include <stdio.h>

#include "tools/weft-ep-bench/options.h"
#include "tools/weft-ep-bench/trial.h"

typedef struct bench_report {
    const bench_options *options;
    int prints;
    int pes;
    FILE *json; /* NULL: none */
} bench_report;

/* Returns 0, or 1 after saying which file cannot be written. */
int bench_report_open(bench_report *report, const bench_options *options, int pe, int pes);
void bench_report_add(bench_report *report, const bench_point *point, const bench_figures *figures);
/* Returns `failed`, or 1 when what was told could not be written. */
int bench_report_close(bench_report *report, int failed);

#endif
