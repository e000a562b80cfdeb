/* lib/record.h: figures as JSON lines, one a line, in the format of bench/records; and, for benchmarks, also as a
 * person reads them, on standard output. */
#ifndef TOOL_RECORD_H
#define TOOL_RECORD_H

#include <stddef.h>
#include <stdio.h>

#include "tools/lib/stats.h"

/* Begin a line: name, impl, pes, bytes, value, unit, stat, n, low, high. Members may follow, each after ", ". */
void tool_line_begin(FILE *file, const char *name, const char *impl, int pes, const tool_figure *figure,
                     const char *unit);
/* End it with the machine (NULL: WEFT_MACHINE, else the host's name), WEFT_COMMIT if set, the version and the date
 * (WEFT_DATE, else today's). */
void tool_line_end(FILE *file, const char *machine);

/* Open a file that was asked for (path not NULL). Returns 0, or 1 after saying that it cannot be written. */
int tool_file_open(const char *path, const char *mode, FILE **file);
/* Close it, NULL too. Returns 0, or 1 after saying that what was written is not there. */
int tool_file_close(FILE *file, const char *path);

/* Where one benchmark's figures go. One PE holds an open one; on the others `print` is 0 and nothing is written. Its
 * lines do not say machine, commit and date, which scripts/bench_record.py adds when it merges the rounds. */
typedef struct tool_record {
    int print;
    FILE *json; /* NULL: the table only */
    const char *impl; /* who is measured: "weft", "ompi" */
    int pes;
} tool_record;

/* Open the output of PE `pe`: PE 0 writes, lines are appended to `json_path` unless it is NULL. Returns 0, or -1 when
 * the file cannot be opened. */
int tool_record_open(tool_record *record, const char *json_path, const char *impl, int pe, int pes);
void tool_record_close(tool_record *record);

/* What was measured. `bytes` is what one operation moves, 0 when it moves nothing. `more` is NULL or further members of
 * the JSON object, such as "\"mode\": \"first\"". */
typedef struct tool_measurement {
    const char *name;
    const char *impl; /* NULL: the record's */
    size_t bytes;
    const char *unit;
    const char *more;
} tool_measurement;

/* Write the median of `samples`, each in the measurement's unit. */
void tool_record_write(tool_record *record, const tool_measurement *what, const tool_samples *samples);

#endif
