/* weft-perf/report.h: the table and the JSON lines, both by PE 0. */
#ifndef WEFT_PERF_REPORT_H
#define WEFT_PERF_REPORT_H

#include <stdio.h>

#include "tools/lib/stats.h"
#include "tools/weft-perf/options.h"

typedef struct perf_report {
    const perf_options *options;
    int prints;
    int pes;
    FILE *json; /* NULL: none */
} perf_report;

/* What came of a case: the time of a call in us, and how many elements were wrong; -1: none compared. */
typedef struct perf_result {
    int is_there; /* 0: not supported, and nothing below counts */
    tool_figure time;
    long wrong;
} perf_result;

/* Returns 0, or 1 after saying which file cannot be written. */
int perf_report_open(perf_report *report, const perf_options *options, int pe, int pes);
void perf_report_add(perf_report *report, const perf_case *c, const perf_result *result);
/* A figure that is no call: a line in the table, and one of JSON with `more` members, each after ", ". */
void perf_report_figure(perf_report *report, const char *name, const tool_figure *figure, const char *unit,
                        const char *more);
/* Returns `failed`, or 1 when what was told could not be written. */
int perf_report_close(perf_report *report, int failed);

#endif
