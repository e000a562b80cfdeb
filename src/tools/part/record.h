/* part/record.h: files that a tool writes: JSON lines, one figure a line, in the format of bench/records. */
#ifndef TOOL_RECORD_H
#define TOOL_RECORD_H

#include <stdio.h>

#include "tools/part/samples.h"

/* Begin a line: name, impl, pes, bytes, value, unit, stat, n, low, high. Members may follow, each after ", ". */
void tool_record_begin(FILE *file, const char *name, const char *impl, int pes, const tool_figure *figure,
                       const char *unit);
/* End it with the machine (NULL: WEFT_MACHINE, else the host's name), WEFT_COMMIT if set, the version and the date
 * (WEFT_DATE, else today's). */
void tool_record_end(FILE *file, const char *machine);

/* Open a file that was asked for (path not NULL). Returns 0, or 1 after saying that it cannot be written. */
int tool_file_open(const char *path, const char *mode, FILE **file);
/* Close it, NULL too. Returns 0, or 1 after saying that what was written is not there. */
int tool_file_close(FILE *file, const char *path);

#endif
