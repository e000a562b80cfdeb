/* tools/weftrun/output.c: from the PEs' pipes to weftrun's own output, line by line. */
#include "tools/weftrun/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SINK_FULL_BYTES (256 * 1024)
/* A longer line is broken. */
#define LINE_MAX_BYTES (1024 * 1024)
#define READ_BYTES (16 * 1024)

/* Make room behind `used` bytes. Returns 0 when there is no memory. */
static int reserve(char **memory, size_t *capacity, size_t used, size_t wanted)
{
    if (used + wanted <= *capacity) {
        return 1;
    }
    size_t larger = 2 * (used + wanted);
    char *grown = realloc(*memory, larger);
    if (grown == NULL) {
        return 0;
    }
    *memory = grown;
    *capacity = larger;
    return 1;
}

/* ---- sinks ---- */

void run_sink_init(run_sink *sink, int descriptor)
{
    memset(sink, 0, sizeof *sink);
    sink->descriptor = descriptor;
}

void run_sink_fini(run_sink *sink)
{
    free(sink->queue);
    sink->queue = NULL;
}

int run_sink_is_empty(const run_sink *sink)
{
    return sink->first == sink->end;
}

int run_sink_is_full(const run_sink *sink)
{
    return sink->end - sink->first >= SINK_FULL_BYTES;
}

static void append(run_sink *sink, const char *bytes, size_t count)
{
    if (sink->first > 0 && sink->first == sink->end) {
        sink->first = sink->end = 0;
    }
    if (count > 0 && sink->descriptor >= 0 && reserve(&sink->queue, &sink->capacity, sink->end, count)) {
        memcpy(sink->queue + sink->end, bytes, count);
        sink->end += count;
    }
}

/* A descriptor that is ready takes PIPE_BUF bytes without waiting. */
static int is_ready(int descriptor)
{
    struct pollfd item = {.fd = descriptor, .events = POLLOUT};
    return poll(&item, 1, 0) == 1;
}

void run_sink_flush(run_sink *sink)
{
    while (!run_sink_is_empty(sink) && is_ready(sink->descriptor)) {
        size_t count = sink->end - sink->first;
        ssize_t wrote = write(sink->descriptor, sink->queue + sink->first, count < PIPE_BUF ? count : PIPE_BUF);
        if (wrote >= 0) {
            sink->first += (size_t)wrote;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            sink->error = errno == EPIPE ? 0 : errno;
            sink->descriptor = -1;
            sink->first = sink->end;
        }
    }
}

/* ---- sources ---- */

void run_source_init(run_source *source, int descriptor, run_sink *sink, int pe)
{
    memset(source, 0, sizeof *source);
    source->descriptor = descriptor;
    source->sink = sink;
    if (pe >= 0) {
        (void)snprintf(source->prefix, sizeof source->prefix, "[%d] ", pe);
    }
}

static void stop(run_source *source)
{
    if (source->descriptor >= 0) {
        (void)close(source->descriptor);
        source->descriptor = -1;
    }
}

void run_source_fini(run_source *source)
{
    stop(source);
    free(source->line);
    source->line = NULL;
}

/* Move the kept beginning and `count` more bytes to the sink as one line, followed by `end`. */
static void finish_line(run_source *source, const char *bytes, size_t count, const char *end)
{
    append(source->sink, source->prefix, strlen(source->prefix));
    append(source->sink, source->line, source->used);
    append(source->sink, bytes, count);
    append(source->sink, end, strlen(end));
    source->used = 0;
}

/* What ends a last line without a newline: with prefixes the next line must not run on behind it. */
static const char *last_end(const run_source *source)
{
    return source->prefix[0] != '\0' ? "\n" : "";
}

static void keep_beginning(run_source *source, const char *bytes, size_t count)
{
    if (source->used + count > LINE_MAX_BYTES || !reserve(&source->line, &source->capacity, source->used, count)) {
        finish_line(source, bytes, count, last_end(source));
        return;
    }
    memcpy(source->line + source->used, bytes, count);
    source->used += count;
}

static void split(run_source *source, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *end = memchr(bytes, '\n', count);
        if (end == NULL) {
            keep_beginning(source, bytes, count);
            return;
        }
        size_t length = (size_t)(end - bytes);
        finish_line(source, bytes, length, "\n");
        bytes += length + 1;
        count -= length + 1;
    }
}

static void finish(run_source *source)
{
    if (source->used > 0) {
        finish_line(source, "", 0, last_end(source));
    }
    stop(source);
}

void run_source_read(run_source *source)
{
    char bytes[READ_BYTES];
    while (source->descriptor >= 0 && !run_sink_is_full(source->sink)) {
        if (source->sink->descriptor < 0) {
            stop(source);
            return;
        }
        ssize_t got = read(source->descriptor, bytes, sizeof bytes);
        if (got > 0) {
            split(source, bytes, (size_t)got);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            finish(source);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

void run_source_drain(run_source *source)
{
    char bytes[READ_BYTES];
    int left = 0;
    if (source->descriptor < 0 || ioctl(source->descriptor, FIONREAD, &left) != 0) {
        left = 0;
    }
    while (left > 0) {
        ssize_t got = read(source->descriptor, bytes, (size_t)left < sizeof bytes ? (size_t)left : sizeof bytes);
        if (got <= 0) {
            break;
        }
        split(source, bytes, (size_t)got);
        left -= (int)got;
    }
    finish(source);
}
