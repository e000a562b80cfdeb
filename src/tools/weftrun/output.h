/* tools/weftrun/output.h: from the PEs' pipes to weftrun's own output, line by line.
 *
 * A sink is standard output or standard error: a queue of whole lines that never makes weftrun wait. While it is full,
 * the PEs' pipes are not read, and so it is the PEs that wait for a slow reader. */
#ifndef WEFTRUN_OUTPUT_H
#define WEFTRUN_OUTPUT_H

#include <stddef.h>

typedef struct run_sink {
    int descriptor; /* -1: the reader is gone, or it cannot be written to */
    int error; /* why not; 0 where its reader is gone, or it was closed from the start */
    char *queue;
    size_t first;
    size_t end;
    size_t capacity;
} run_sink;

void run_sink_init(run_sink *sink, int descriptor);
void run_sink_fini(run_sink *sink);
int run_sink_is_empty(const run_sink *sink);
int run_sink_is_full(const run_sink *sink);
/* Write what can be written without waiting. */
void run_sink_flush(run_sink *sink);

/* What one PE writes to one of its outputs. */
typedef struct run_source {
    int descriptor; /* the reading end of a pipe; -1: at its end */
    run_sink *sink;
    char prefix[16]; /* empty: what comes goes out as it is, though by whole lines */
    char *line; /* the beginning of a line whose end has not come */
    size_t used;
    size_t capacity;
} run_source;

/* `descriptor` must not block; the source owns it. pe -1: no prefix. */
void run_source_init(run_source *source, int descriptor, run_sink *sink, int pe);
void run_source_fini(run_source *source);
/* Read what there is and move whole lines to the sink. At the end of the pipe, or when the sink's reader is gone, the
 * descriptor is closed; a last line without its end gets one, unless lines go out as they are. */
void run_source_read(run_source *source);
/* No process of the job is left: move what the pipe holds now to the sink, however full that is, end the last line as
 * above and close the descriptor. A process that left its group may write to the pipe for ever. */
void run_source_drain(run_source *source);

#endif
