/* weft-ep-bench/plot.h: a gnuplot script with its data: times over the parameter that has most values, a curve for each
 * combination of the others. */
#ifndef WEFT_EP_BENCH_PLOT_H
#define WEFT_EP_BENCH_PLOT_H

#include <stdio.h>

#include "tools/weft-ep-bench/options.h"
#include "tools/weft-ep-bench/trial.h"

void bench_plot_begin(FILE *file, const bench_options *options);
void bench_plot_add(FILE *file, const bench_options *options, const bench_shape *shape, const bench_figures *figures);
void bench_plot_end(FILE *file, const bench_options *options);

#endif
