/* lib/plot.h: curves over one parameter, in a few panels: a gnuplot script with its data, drawn where something draws. */
#ifndef TOOL_PLOT_H
#define TOOL_PLOT_H

#include <stdio.h>

#define TOOL_PANELS_MAX 3

typedef struct tool_plot {
    const char *path;
    FILE *file; /* NULL: none was asked for */
    int panels;
    char **curves; /* their names, in the order they came */
    int curve_count;
} tool_plot;

/* What stands around the curves. */
typedef struct tool_plot_labels {
    const char *title;
    const char *x;
    const char *y[TOOL_PANELS_MAX];
    const char *panels[TOOL_PANELS_MAX];
} tool_plot_labels;

/* path NULL: nothing happens in any call. Returns 0, or 1 after saying what is wrong. */
int tool_plot_open(tool_plot *plot, const char *path, int panels);
/* A point of a curve in every panel. */
void tool_plot_add(tool_plot *plot, const char *curve, double x, const double *values);
/* Write the script, and draw PATH.svg with gnuplot, else with Python's matplotlib; where there is neither, say so. */
int tool_plot_close(tool_plot *plot, const tool_plot_labels *labels);

#endif
