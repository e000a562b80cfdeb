/* weft-ep-bench/plot.c: a gnuplot script with its data. */
#include "tools/weft-ep-bench/plot.h"

#include <string.h>

/* The numeric parameters, any of which may be the axis. */
enum { AXIS_TOKENS, AXIS_HIDDEN, AXIS_TOPK, AXIS_EXPERTS, AXES };

static const char *const axis_labels[AXES] = {"tokens a rank", "elements a row", "experts a token", "experts"};

static int axis_of(const bench_options *options)
{
    const int counts[AXES] = {options->tokens.count, options->hidden.count, options->topk.count,
                              options->experts.count};
    int most = 0;
    for (int i = 1; i < AXES; i++) {
        most = counts[i] > counts[most] ? i : most;
    }
    return most;
}

/* What tells one curve from another: every parameter but the axis. */
static void name_curve(const bench_options *options, const bench_shape *shape, char *text, size_t bytes)
{
    static const char *const letters[AXES] = {"T", "H", "K", "E"};
    const int values[AXES] = {shape->tokens, shape->hidden, shape->topk, shape->experts};
    int used =
        snprintf(text, bytes, "%s, %s, %s, %s, %s", bench_dtype_names[shape->dtype], bench_layout_names[shape->layout],
                 bench_skew_names[shape->skew], bench_routing_names[shape->routing], bench_mode_names[shape->mode]);
    for (int i = 0; i < AXES; i++) {
        if (i != axis_of(options)) {
            used += snprintf(text + used, bytes - (size_t)used, ", %s=%d", letters[i], values[i]);
        }
    }
}

static int axis_value(const bench_options *options, const bench_shape *shape)
{
    const int values[AXES] = {shape->tokens, shape->hidden, shape->topk, shape->experts};
    return values[axis_of(options)];
}

void bench_plot_begin(FILE *file, const bench_options *options)
{
    (void)options;
    fputs("# gnuplot script; columns: the parameter, then dispatch, combine and pair in us, and the curve's name\n"
          "$data << END\n",
          file);
}

void bench_plot_add(FILE *file, const bench_options *options, const bench_shape *shape, const bench_figures *figures)
{
    char name[256];
    name_curve(options, shape, name, sizeof name);
    fprintf(file, "%d %.6g %.6g %.6g \"%s\"\n", axis_value(options, shape), figures->dispatch.median,
            figures->combine.median, figures->pair.median, name);
}

static int is_first(const bench_options *options, int shape, const char *name)
{
    for (int i = 0; i < shape; i++) {
        bench_shape earlier = bench_options_shape(options, i);
        char other[256];
        name_curve(options, &earlier, other, sizeof other);
        if (strcmp(other, name) == 0) {
            return 0;
        }
    }
    return 1;
}

void bench_plot_end(FILE *file, const bench_options *options)
{
    fputs("END\n", file);
    fprintf(file, "set terminal svg size 1000,1100 background 'white'\nset output '%s.svg'\n", options->plot);
    fprintf(file, "set xlabel '%s'\nset ylabel 'us'\nset logscale xy 2\nset key outside bottom\nset grid\n",
            axis_labels[axis_of(options)]);
    fputs("set multiplot layout 3,1\n", file);
    static const char *const panels[] = {"dispatch", "combine", "dispatch and combine"};
    for (int panel = 0; panel < 3; panel++) {
        fprintf(file, "set title '%s'\nplot", panels[panel]);
        for (int i = 0; i < bench_options_shapes(options); i++) {
            bench_shape shape = bench_options_shape(options, i);
            char name[256];
            name_curve(options, &shape, name, sizeof name);
            if (is_first(options, i, name)) {
                fprintf(file,
                        "%s $data using 1:(stringcolumn(5) eq \"%s\" ? column(%d) : NaN) with linespoints title "
                        "\"%s\"",
                        i == 0 ? "" : ",", name, panel + 2, name);
            }
        }
        fputs("\n", file);
    }
    fputs("unset multiplot\n", file);
}
