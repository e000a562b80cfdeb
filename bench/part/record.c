#include "part/record.h"

#include <string.h>

int bench_record_open(bench_record *record, const char *json_path, const char *impl, int pe, int pes)
{
    memset(record, 0, sizeof *record);
    record->print = pe == 0;
    record->impl = impl;
    record->pes = pes;
    if (pe == 0 && json_path != NULL) {
        record->json = fopen(json_path, "a");
        if (record->json == NULL) {
            perror(json_path);
            return -1;
        }
    }
    return 0;
}

void bench_record_close(bench_record *record)
{
    if (record->json != NULL) {
        fclose(record->json);
        record->json = NULL;
    }
}

void bench_record_write(bench_record *record, const bench_figure *figure, const bench_samples *samples)
{
    if (!record->print) {
        return;
    }
    const char *impl = figure->impl != NULL ? figure->impl : record->impl;
    double median = bench_samples_quantile(samples, 0.5);
    double low = bench_samples_quantile(samples, 0.25);
    double high = bench_samples_quantile(samples, 0.75);
    printf("%-14s %-9s %10zu B  %12.4g %-4s  (half of %d: %.4g to %.4g)%s%s\n", figure->name, impl, figure->bytes,
           median, figure->unit, samples->count, low, high, figure->more != NULL ? "  " : "",
           figure->more != NULL ? figure->more : "");
    fflush(stdout);
    if (record->json == NULL) {
        return;
    }
    fprintf(record->json,
            "{\"name\": \"%s\", \"impl\": \"%s\", \"pes\": %d, \"bytes\": %zu, \"value\": %.6g, \"unit\": \"%s\", "
            "\"stat\": \"median\", \"n\": %d, \"low\": %.6g, \"high\": %.6g%s%s}\n",
            figure->name, impl, record->pes, figure->bytes, median, figure->unit, samples->count, low, high,
            figure->more != NULL ? ", " : "", figure->more != NULL ? figure->more : "");
    fflush(record->json);
}
