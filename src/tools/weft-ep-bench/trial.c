/* weft-ep-bench/trial.c: one shape: set up, checked, timed. */
#include "tools/weft-ep-bench/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/part/pes.h"
#include "tools/weft-ep-bench/arrays.h"
#include "tools/weft-ep-bench/check.h"
#include "tools/weft-ep-bench/gate.h"
#include "weft/coll.h"

#define MB 1e-6
#define SETUPS 3 /* groups made, the last of which is used */

typedef struct trial {
    weft_world *world;
    const bench_backend *backend;
    const bench_options *options;
    const bench_shape *shape;
    bench_arrays arrays;
    int64_t rows; /* this PE receives */
    weft_ep *ep;
    weft_ep_route *route;
    size_t memory_bytes;
    double *times; /* symmetric: of this PE, then of the slowest */
} trial;

/* ---- the calls that are timed ---- */

static weft_ep_choices choices_of(const trial *t)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = t->shape->tokens;
    choices.ids = t->arrays.ids;
    choices.weights = t->arrays.weights;
    return choices;
}

static weft_status dispatch(void *context)
{
    trial *t = context;
    weft_stream *stream = t->backend->stream;
    weft_ep_choices choices = choices_of(t);
    weft_status status = t->shape->routing == BENCH_FRESH ? weft_ep_route_choose(t->route, &choices) : WEFT_OK;
    if (status != WEFT_OK) {
        return status;
    }
    if (t->shape->mode == BENCH_HT) {
        return weft_ep_dispatch(t->route, &t->arrays.in, &t->arrays.received, stream);
    }
    status = weft_ep_dispatch_send(t->route, &t->arrays.in, &t->arrays.received, stream);
    return status != WEFT_OK ? status : weft_ep_dispatch_recv(t->route, stream);
}

static weft_status combine(void *context)
{
    trial *t = context;
    weft_stream *stream = t->backend->stream;
    if (t->shape->mode == BENCH_HT) {
        return weft_ep_combine(t->route, &t->arrays.results, &t->arrays.out, WEFT_EP_WEIGHTED, stream);
    }
    weft_status status = weft_ep_combine_send(t->route, &t->arrays.results, &t->arrays.out, WEFT_EP_WEIGHTED, stream);
    return status != WEFT_OK ? status : weft_ep_combine_recv(t->route, stream);
}

/* The results stand for the gradients of the received rows, and the sums for those of the tokens. */
static weft_status dispatch_bwd(void *context)
{
    trial *t = context;
    return weft_ep_dispatch_bwd(t->route, &t->arrays.results, t->arrays.received.weights, &t->arrays.out,
                                t->arrays.weight_gradients, t->backend->stream);
}

static weft_status combine_bwd(void *context)
{
    trial *t = context;
    return weft_ep_combine_bwd(t->route, &t->arrays.out, &t->arrays.results, &t->arrays.gradients,
                               t->arrays.weight_gradients, WEFT_EP_WEIGHTED, t->backend->stream);
}

static weft_status pair(void *context)
{
    weft_status status = dispatch(context);
    return status != WEFT_OK ? status : combine(context);
}

static weft_status create(void *context)
{
    trial *t = context;
    int is_slots = t->shape->layout == BENCH_SLOTS_SOURCE || t->shape->layout == BENCH_SLOTS_EXPERT;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = t->shape->experts;
    config.tokens_max = t->shape->tokens;
    config.topk_max = t->shape->topk;
    config.row_bytes_max = 2 * (size_t)t->shape->hidden; /* bf16, which combine takes in any case */
    if (bench_sent_dtype(t->shape->dtype) == WEFT_EP_F32) {
        config.row_bytes_max *= 2;
    }
    config.rows_max = t->arrays.rows;
    config.slot_tokens_max = is_slots ? t->shape->tokens : 0;
    config.on_device = t->backend->on_device;
    plan.topk = t->shape->topk;
    plan.layout = bench_weft_layout(t->shape->layout);
    plan.alignment = t->shape->layout == BENCH_EXPERT_MAJOR ? t->options->alignment : 0;
    weft_status status = weft_ep_create(weft_team_world(t->world), &config, &t->ep);
    if (status == WEFT_OK) {
        status = weft_ep_route_bytes(t->ep, &plan, &t->memory_bytes);
    }
    return status != WEFT_OK ? status : weft_ep_route_create(t->ep, &plan, NULL, &t->route);
}

static int destroy(trial *t)
{
    int failed = tool_failed(weft_ep_route_destroy(t->route), "weft_ep_route_destroy") ||
                 tool_failed(weft_ep_destroy(t->ep), "weft_ep_destroy");
    t->route = NULL;
    t->ep = NULL;
    return failed;
}

/* ---- figures ---- */

/* Of this PE's `count` samples in t->times, the slowest PE's each. Collective. */
static int summarise(trial *t, int count, tool_figure *figure)
{
    weft_team *team = weft_team_world(t->world);
    if (tool_failed(weft_double_max_reduce(team, t->times, t->times, (size_t)count), "comparing times")) {
        return 1;
    }
    tool_figure_of(figure, t->times, count);
    return tool_failed(weft_barrier(t->world), "barrier");
}

/* The bytes of the rows that this PE's tokens send: once a rank, or once an expert where rows are by expert. */
static double bytes_sent(const trial *t, const weft_ep_rows *rows)
{
    weft_ep_host_counts counts;
    if (weft_ep_route_query(t->route, t->backend->stream, &counts) != WEFT_OK) {
        return 0.0;
    }
    return (double)counts.tokens * (double)bench_row_bytes(rows);
}

/* ---- the course of a trial ---- */

static int set_up(trial *t, bench_figures *figures)
{
    weft_counters before;
    weft_counters after;
    for (int i = 0; i < SETUPS; i++) {
        if (i > 0 && destroy(t)) {
            return 1;
        }
        if (tool_failed(weft_world_counters(t->world, &before), "weft_world_counters") ||
            tool_failed(t->backend->time(t->world, create, t, &t->times[i]), "creating a group and a route") ||
            tool_failed(weft_world_counters(t->world, &after), "weft_world_counters")) {
            return 1;
        }
    }
    if (summarise(t, SETUPS, &figures->setup)) {
        return 1;
    }
    t->times[0] = MB * (double)(after.heap_bytes_used - before.heap_bytes_used + t->memory_bytes);
    return summarise(t, 1, &figures->memory);
}

/* One route update, whose status must be well; dispatch and combine once, looked at if asked for. */
static int rehearse(trial *t)
{
    weft_ep_host_counts counts;
    weft_ep_choices choices = choices_of(t);
    if (tool_failed(weft_ep_route_update(t->route, &choices, t->backend->stream), "weft_ep_route_update") ||
        tool_failed(weft_ep_route_query(t->route, t->backend->stream, &counts), "weft_ep_route_query")) {
        return 1;
    }
    if (counts.status != WEFT_OK || counts.rows != t->rows) {
        fprintf(stderr, "weft-ep-bench: PE %d: the route has status %s and %lld rows, not %lld\n",
                weft_world_pe(t->world), weft_status_name(counts.status), (long long)counts.rows, (long long)t->rows);
        return 1;
    }
    if (!t->options->check) {
        return 0;
    }
    if (tool_failed(dispatch(t), "weft_ep_dispatch") ||
        bench_check_received(&t->arrays, t->world, t->backend, t->options, t->shape)) {
        return 1;
    }
    return tool_failed(combine(t), "weft_ep_combine") ||
           bench_check_combined(&t->arrays, t->world, t->backend, t->options, t->shape);
}

static int time_call(trial *t, weft_status (*call)(void *context), const char *what, tool_figure *figure)
{
    for (int i = -t->options->warmup; i < t->options->repeats; i++) {
        double us;
        if (tool_failed(t->backend->time(t->world, call, t, &us), what)) {
            return 1;
        }
        if (i >= 0) {
            t->times[i] = us;
        }
    }
    return summarise(t, t->options->repeats, figure);
}

static int time_all(trial *t, bench_figures *figures)
{
    double sent = bytes_sent(t, &t->arrays.received.rows);
    double returned = bytes_sent(t, &t->arrays.results);
    if (time_call(t, dispatch, "weft_ep_dispatch", &figures->dispatch) ||
        time_call(t, combine, "weft_ep_combine", &figures->combine) ||
        time_call(t, pair, "dispatch and combine", &figures->pair)) {
        return 1;
    }
    if (t->options->backward && (time_call(t, dispatch_bwd, "weft_ep_dispatch_bwd", &figures->dispatch_bwd) ||
                                 time_call(t, combine_bwd, "weft_ep_combine_bwd", &figures->combine_bwd))) {
        return 1;
    }
    figures->dispatch_bwd.bytes = returned;
    figures->combine_bwd.bytes = returned;
    figures->dispatch.bytes = sent;
    figures->combine.bytes = returned;
    figures->pair.bytes = sent + returned;
    return 0;
}

/* The most rows of any PE, and this one's. */
static int count_rows(trial *t, size_t *most)
{
    int pes = weft_world_pes(t->world);
    int64_t *rows = malloc((size_t)pes * sizeof *rows);
    if (rows == NULL || bench_gate_rows(t->shape, pes, t->options->alignment, t->options->seed, rows) != 0) {
        fprintf(stderr, "weft-ep-bench: no memory\n");
        free(rows);
        return 1;
    }
    *most = 1;
    for (int pe = 0; pe < pes; pe++) {
        *most = (size_t)rows[pe] > *most ? (size_t)rows[pe] : *most;
    }
    t->rows = rows[weft_world_pe(t->world)];
    free(rows);
    return 0;
}

int bench_trial_run(weft_world *world, const bench_options *options, const bench_shape *shape, bench_figures *figures)
{
    trial t = {.world = world, .backend = &bench_host, .options = options, .shape = shape};
    size_t samples = (size_t)(options->repeats > SETUPS ? options->repeats : SETUPS);
    size_t rows;
    void *times;
    memset(figures, 0, sizeof *figures);
    if (count_rows(&t, &rows) || tool_failed(weft_malloc(world, samples * sizeof *t.times, &times), "memory")) {
        return 1;
    }
    t.times = times;
    if (bench_arrays_create(&t.arrays, world, t.backend, options, shape, rows) || set_up(&t, figures) || rehearse(&t) ||
        time_all(&t, figures) || destroy(&t)) {
        return 1; /* others may be anywhere: the world's end frees the rest */
    }
    bench_arrays_destroy(&t.arrays, world, t.backend);
    return tool_failed(weft_free(world, times), "weft_free");
}
