/* weft-ep-bench/plot.c: curves of a sweep. */
#include "tools/weft-ep-bench/plot.h"

#include <stdio.h>

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

enum { PARAMETERS = 11 };

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
        {bench_buffers_names[shape->buffers], 0, 0, options->buffers.count},
        {NULL, 'S', shape->sms, options->sms.count},
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

int bench_plot_open(tool_plot *plot, const bench_options *options)
{
    return tool_plot_open(plot, options->plot, 3);
}

void bench_plot_add(tool_plot *plot, const bench_options *options, const bench_shape *shape,
                    const bench_figures *figures)
{
    char name[256];
    const double values[] = {figures->dispatch.median, figures->combine.median, figures->pair.median};
    name_curve(options, shape, name, sizeof name);
    tool_plot_add(plot, name, axis_value(options, shape), values);
}

int bench_plot_close(tool_plot *plot, const bench_options *options)
{
    char common[256];
    bench_shape first = bench_options_shape(options, 0);
    join(options, &first, 0, common, sizeof common);
    const tool_plot_labels labels = {.title = common,
                                     .x = axis_labels[axis_of(options)],
                                     .y = {"us", "us", "us"},
                                     .panels = {"dispatch", "combine", "dispatch and combine"}};
    return tool_plot_close(plot, &labels);
}
