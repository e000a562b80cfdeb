/* part/samples.c: what becomes of repeated measurements. */
#include "tools/part/samples.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int count, double share)
{
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
