/* part/record.h: figures as a person reads them, on standard output, and as JSON lines, in a file. */
#ifndef PART_RECORD_H
#define PART_RECORD_H

#include <stddef.h>
#include <stdio.h>

#include "part/stats.h"

/* Where one program's figures go. One PE holds an open one; on the others `print` is 0 and nothing is written. */
typedef struct bench_record {
    int print;
    FILE *json; /* NULL: the table only */
    const char *impl; /* who is measured: "weft", "ompi" */
    int pes;
} bench_record;

/* Open the output of PE `pe`: PE 0 writes, lines are appended to `json_path` unless it is NULL. Returns 0, or -1 when
 * the file cannot be opened. */
int bench_record_open(bench_record *record, const char *json_path, const char *impl, int pe, int pes);
void bench_record_close(bench_record *record);

/* What a figure is. `bytes` is what one operation moves, 0 when it moves nothing. `more` is NULL or further members of
 * the JSON object, such as "\"mode\": \"first\"". */
typedef struct bench_figure {
    const char *name;
    const char *impl; /* NULL: the record's */
    size_t bytes;
    const char *unit;
    const char *more;
} bench_figure;

/* Write the median of `samples`, each in the figure's unit. */
void bench_record_write(bench_record *record, const bench_figure *figure, const bench_samples *samples);

#endif
