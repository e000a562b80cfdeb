/* lib/record.c: JSON lines, and a benchmark's table. */
#include "tools/lib/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weft/status.h"

/* A JSON string; only what must be escaped is. */
static void print_string(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', file);
        }
        (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
    (void)fputc('"', file);
}

void tool_line_begin(FILE *file, const char *name, const char *impl, int pes, const tool_figure *figure,
                     const char *unit)
{
    fprintf(file, "{\"name\": \"%s\", \"impl\": \"%s\", \"pes\": %d, \"bytes\": %.0f, \"value\": %.6g, ", name, impl,
            pes, figure->bytes, figure->median);
    fprintf(file, "\"unit\": \"%s\", \"stat\": \"median\", \"n\": %d, \"low\": %.6g, \"high\": %.6g", unit,
            figure->samples, figure->low, figure->high);
}

void tool_line_end(FILE *file, const char *machine)
{
    char host[256] = "unknown";
    char date[16] = "";
    time_t now = time(NULL);
    struct tm utc;
    const char *given = machine != NULL ? machine : getenv("WEFT_MACHINE");
    const char *commit = getenv("WEFT_COMMIT");
    const char *day = getenv("WEFT_DATE");
    (void)gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(date, sizeof date, "%Y-%m-%d", &utc);
    }
    fputs(", \"machine\": ", file);
    print_string(file, given != NULL ? given : host);
    if (commit != NULL) {
        fputs(", \"commit\": ", file);
        print_string(file, commit);
    }
    fprintf(file, ", \"version\": \"%d.%d.%d\", \"date\": ", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
            WEFT_VERSION_PATCH);
    print_string(file, day != NULL ? day : date);
    fputs("}\n", file);
    (void)fflush(file);
}

static int cannot_write(const char *path)
{
    fprintf(stderr, "%s: cannot write %s: %s\n", program_invocation_short_name, path, strerror(errno));
    return 1;
}

int tool_file_open(const char *path, const char *mode, FILE **file)
{
    *file = path != NULL ? fopen(path, mode) : NULL;
    return path != NULL && *file == NULL ? cannot_write(path) : 0;
}

int tool_file_close(FILE *file, const char *path)
{
    int failed = file != NULL && ferror(file);
    if (file != NULL) {
        failed |= fclose(file) != 0;
    }
    return failed ? cannot_write(path) : 0;
}

int tool_record_open(tool_record *record, const char *json_path, const char *impl, int pe, int pes)
{
    *record = (tool_record){.print = pe == 0, .impl = impl, .pes = pes};
    return pe == 0 && tool_file_open(json_path, "a", &record->json) != 0 ? -1 : 0;
}

void tool_record_close(tool_record *record)
{
    if (record->json != NULL) {
        fclose(record->json);
        record->json = NULL;
    }
}

void tool_record_write(tool_record *record, const tool_measurement *what, const tool_samples *samples)
{
    const char *impl = what->impl != NULL ? what->impl : record->impl;
    tool_figure figure = {.bytes = (double)what->bytes};
    if (!record->print) {
        return;
    }
    tool_samples_figure(samples, &figure);
    printf("%-14s %-9s %10zu B  %12.4g %-4s  (half of %d: %.4g to %.4g)%s%s\n", what->name, impl, what->bytes,
           figure.median, what->unit, figure.samples, figure.low, figure.high, what->more != NULL ? "  " : "",
           what->more != NULL ? what->more : "");
    fflush(stdout);
    if (record->json == NULL) {
        return;
    }
    tool_line_begin(record->json, what->name, impl, record->pes, &figure, what->unit);
    fprintf(record->json, "%s%s}\n", what->more != NULL ? ", " : "", what->more != NULL ? what->more : "");
    fflush(record->json);
}
