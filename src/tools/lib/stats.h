/* lib/stats.h: the median and quartiles of repeated measurements. */
#ifndef TOOL_STATS_H
#define TOOL_STATS_H

#define TOOL_SAMPLES_MAX 1024

typedef struct tool_samples {
    int count;
    double values[TOOL_SAMPLES_MAX];
} tool_samples;

typedef struct tool_figure {
    double median;
    double low; /* a quarter of the samples lies below, and a quarter above high */
    double high;
    int samples;
    double bytes; /* that one call moves; 0: none */
} tool_figure;

/* Samples beyond TOOL_SAMPLES_MAX are ignored. */
void tool_samples_add(tool_samples *samples, double value);

/* The median and the quartiles; all 0 without samples. Leaves `bytes`. */
void tool_samples_figure(const tool_samples *samples, tool_figure *figure);

/* The same of an array, which is sorted. */
void tool_figure_of(tool_figure *figure, double *samples, int count);

#endif
