/* weft-ep-bench/plot.h: a plot: times over the parameter that has most values, a curve for each
 * combination of the others. */
#ifndef WEFT_EP_BENCH_PLOT_H
#define WEFT_EP_BENCH_PLOT_H

#include "tools/lib/plot.h"
#include "tools/weft-ep-bench/options.h"
#include "tools/weft-ep-bench/trial.h"

int bench_plot_open(tool_plot *plot, const bench_options *options);
void bench_plot_add(tool_plot *plot, const bench_options *options, const bench_shape *shape,
                    const bench_figures *figures);
int bench_plot_close(tool_plot *plot, const bench_options *options);

#endif
