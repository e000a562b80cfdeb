/* part/samples.h: what becomes of repeated measurements. */
#ifndef TOOL_SAMPLES_H
#define TOOL_SAMPLES_H

typedef struct tool_figure {
    double median;
    double low; /* a quarter of the samples lies below, and a quarter above high */
    double high;
    int samples;
    double bytes; /* that one call moves; 0: none */
} tool_figure;

/* Sorts the samples. Leaves `bytes`. */
void tool_figure_of(tool_figure *figure, double *samples, int count);

#endif
