/* part/stats.h: what becomes of repeated measurements. */
#ifndef PART_STATS_H
#define PART_STATS_H

#define BENCH_SAMPLES_MAX 1024

typedef struct bench_samples {
    int count;
    double values[BENCH_SAMPLES_MAX];
} bench_samples;

/* Samples beyond BENCH_SAMPLES_MAX are ignored. */
void bench_samples_add(bench_samples *samples, double value);

/* The value below which the part `share` (0 .. 1) of the samples lies; 0.5 is the median. 0 without samples. */
double bench_samples_quantile(const bench_samples *samples, double share);

#endif
