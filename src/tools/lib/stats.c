/* lib/stats.c: the median and quartiles of repeated measurements. */
#include "tools/lib/stats.h"

#include <stdlib.h>
#include <string.h>

void tool_samples_add(tool_samples *samples, double value)
{
    if (samples->count < TOOL_SAMPLES_MAX) {
        samples->values[samples->count++] = value;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which the part `share` (0 .. 1) of the samples lies. */
static double quantile(const double *sorted, int count, double share)
{
    if (count == 0) {
        return 0;
    }
    double place = share * (count - 1);
    int below = (int)place;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

void tool_figure_of(tool_figure *figure, double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, compare);
    figure->median = quantile(samples, count, 0.5);
    figure->low = quantile(samples, count, 0.25);
    figure->high = quantile(samples, count, 0.75);
    figure->samples = count;
}

void tool_samples_figure(const tool_samples *samples, tool_figure *figure)
{
    double sorted[TOOL_SAMPLES_MAX];
    memcpy(sorted, samples->values, (size_t)samples->count * sizeof sorted[0]);
    tool_figure_of(figure, sorted, samples->count);
}
