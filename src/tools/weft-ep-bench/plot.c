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

/* One parameter of a shape as text. */
typedef struct parameter {
    char text[48];
    int varies; /* the sweep has several values of it */
} parameter;

enum { PARAMETERS = 9 };

static void list_parameters(const bench_options *options, const bench_shape *shape, parameter *list)
{
    const struct {
        const char *name; /* or a letter and a number */
        char letter;
        int value;
        int count;
    } all[PARAMETERS] = {
        {bench_dtype_names[shape->dtype], 0, 0, options->dtypes.count},
        {bench_layout_names[shape->layout], 0, 0, options->layouts.count},
        {bench_skew_names[shape->skew], 0, 0, options->skews.count},
        {bench_routing_names[shape->routing], 0, 0, options->routings.count},
        {bench_mode_names[shape->mode], 0, 0, options->modes.count},
        {NULL, 'T', shape->tokens, options->tokens.count},
        {NULL, 'H', shape->hidden, options->hidden.count},
        {NULL, 'K', shape->topk, options->topk.count},
        {NULL, 'E', shape->experts, options->experts.count},
    };
    for (int i = 0; i < PARAMETERS; i++) {
        if (all[i].name != NULL) {
            snprintf(list[i].text, sizeof list[i].text, "%s", all[i].name);
        } else {
            snprintf(list[i].text, sizeof list[i].text, "%c=%d", all[i].letter, all[i].value);
        }
        list[i].varies = all[i].count > 1;
    }
}

/* The parameters that vary, or those that do not, but for the axis; separated by commas. */
static void join(const bench_options *options, const bench_shape *shape, int varying, char *text, size_t bytes)
{
    parameter list[PARAMETERS];
    size_t used = 0;
    list_parameters(options, shape, list);
    text[0] = '\0';
    for (int i = 0; i < PARAMETERS; i++) {
        int is_axis = i - (PARAMETERS - AXES) == axis_of(options);
        if (!is_axis && list[i].varies == varying && used < bytes) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", list[i].text);
        }
    }
}

/* What tells one curve from another. */
static void name_curve(const bench_options *options, const bench_shape *shape, char *text, size_t bytes)
{
    join(options, shape, 1, text, bytes);
    if (text[0] == '\0') {
        snprintf(text, bytes, "%s", bench_layout_names[shape->layout]);
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
    fprintf(file, "set xlabel '%s'\nset ylabel 'us'\nset logscale xy 2\nset key left top\nset grid\n",
            axis_labels[axis_of(options)]);
    bench_shape first = bench_options_shape(options, 0);
    char common[256];
    join(options, &first, 0, common, sizeof common);
    fprintf(file, "set multiplot layout 3,1 title \"%s\"\n", common);
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
