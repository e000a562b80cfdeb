#include "part/stats.h"

#include <stdlib.h>
#include <string.h>

void bench_samples_add(bench_samples *samples, double value)
{
    if (samples->count < BENCH_SAMPLES_MAX) {
        samples->values[samples->count++] = value;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_samples_quantile(const bench_samples *samples, double share)
{
    double sorted[BENCH_SAMPLES_MAX];
    if (samples->count == 0) {
        return 0;
    }
    memcpy(sorted, samples->values, (size_t)samples->count * sizeof sorted[0]);
    qsort(sorted, (size_t)samples->count, sizeof sorted[0], compare);
    double place = share * (samples->count - 1);
    int below = (int)place;
    int above = below + 1 < samples->count ? below + 1 : below;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}
