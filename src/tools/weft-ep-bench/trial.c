/* weft-ep-bench/trial.c: one point of a sweep: set up, checked, timed. */
#include "tools/weft-ep-bench/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lib/clock.h"
#include "tools/lib/pes.h"
#include "tools/weft-ep-bench/arrays.h"
#include "tools/weft-ep-bench/check.h"
#include "tools/weft-ep-bench/copies.h"
#include "tools/weft-ep-bench/counts.h"
#include "tools/weft-ep-bench/gate.h"
#include "weft/coll.h"

#define MB 1e-6
#define SETUPS 3 /* groups made, the last of which is used */
#define COMPARED 6 /* dispatch, combine and the pair, each beside memcpy */

typedef struct trial {
    weft_world *world;
    bench_backend *backend;
    const bench_options *options;
    const bench_point *point;
    bench_arrays arrays;
    bench_copies copies; /* with --memcpy */
    int64_t rows; /* this PE receives */
    weft_ep *ep;
    weft_ep_route *route;
    bench_arrays other_arrays; /* of the second of two pairs, in that mode */
    weft_ep_route *other_route; /* likewise; else NULL */
    size_t memory_bytes; /* of the routes */
    double *times; /* symmetric: of this PE, then of the slowest */
} trial;

/* ---- the calls that are timed ---- */

static weft_ep_choices choices_of(const trial *t)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = t->point->tokens;
    choices.ids = t->arrays.ids;
    choices.weights = t->arrays.weights;
    return choices;
}

static unsigned flags_of(const trial *t)
{
    return t->options->unweighted ? 0 : WEFT_EP_WEIGHTED;
}

/* Two pairs of halves that are outstanding at once, the second on stream `beside`. */
static weft_status two_dispatches(trial *t, weft_stream *beside)
{
    weft_stream *stream = t->backend->stream;
    weft_ep_choices choices = choices_of(t);
    weft_status status = WEFT_OK;
    if (t->point->routing == BENCH_FRESH) {
        status = weft_ep_route_choose(t->route, &choices);
        status = status != WEFT_OK ? status : weft_ep_route_choose(t->other_route, &choices);
    }
    status = status != WEFT_OK ? status : weft_ep_dispatch_send(t->route, &t->arrays.in, &t->arrays.received, stream);
    status = status != WEFT_OK
                 ? status
                 : weft_ep_dispatch_send(t->other_route, &t->other_arrays.in, &t->other_arrays.received, beside);
    status = status != WEFT_OK ? status : weft_ep_dispatch_recv(t->route, stream);
    return status != WEFT_OK ? status : weft_ep_dispatch_recv(t->other_route, beside);
}

static weft_status two_combines(trial *t, weft_stream *beside)
{
    weft_stream *stream = t->backend->stream;
    unsigned flags = flags_of(t);
    weft_status status = weft_ep_combine_send(t->route, &t->arrays.results, &t->arrays.out, flags, stream);
    status = status != WEFT_OK
                 ? status
                 : weft_ep_combine_send(t->other_route, &t->other_arrays.results, &t->other_arrays.out, flags, beside);
    status = status != WEFT_OK ? status : weft_ep_combine_recv(t->route, stream);
    return status != WEFT_OK ? status : weft_ep_combine_recv(t->other_route, beside);
}

static weft_status two_of_both(trial *t, weft_stream *beside)
{
    weft_status status = two_dispatches(t, beside);
    return status != WEFT_OK ? status : two_combines(t, beside);
}

static weft_status make_two(trial *t, weft_status (*calls)(trial *t, weft_stream *beside))
{
    weft_stream *beside;
    if (t->point->mode == BENCH_TWO) {
        return calls(t, t->backend->stream);
    }
    weft_status status = tool_gpu_fork(t->backend->gpu, &beside);
    status = status != WEFT_OK ? status : calls(t, beside);
    weft_status joined = tool_gpu_join(t->backend->gpu);
    return status != WEFT_OK ? status : joined;
}

static weft_status dispatch(void *context)
{
    trial *t = context;
    weft_stream *stream = t->backend->stream;
    if (t->other_route != NULL) {
        return make_two(t, two_dispatches);
    }
    weft_ep_choices choices = choices_of(t);
    weft_status status = t->point->routing == BENCH_FRESH ? weft_ep_route_choose(t->route, &choices) : WEFT_OK;
    if (status != WEFT_OK) {
        return status;
    }
    if (t->point->mode == BENCH_HT) {
        return weft_ep_dispatch(t->route, &t->arrays.in, &t->arrays.received, stream);
    }
    status = weft_ep_dispatch_send(t->route, &t->arrays.in, &t->arrays.received, stream);
    return status != WEFT_OK ? status : weft_ep_dispatch_recv(t->route, stream);
}

static weft_status combine(void *context)
{
    trial *t = context;
    weft_stream *stream = t->backend->stream;
    unsigned flags = flags_of(t);
    if (t->other_route != NULL) {
        return make_two(t, two_combines);
    }
    if (t->point->mode == BENCH_HT) {
        return weft_ep_combine(t->route, &t->arrays.results, &t->arrays.out, flags, stream);
    }
    weft_status status = weft_ep_combine_send(t->route, &t->arrays.results, &t->arrays.out, flags, stream);
    return status != WEFT_OK ? status : weft_ep_combine_recv(t->route, stream);
}

static weft_status update(void *context)
{
    trial *t = context;
    weft_ep_choices choices = choices_of(t);
    return weft_ep_route_update(t->route, &choices, t->backend->stream);
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
    trial *t = context;
    if (t->other_route != NULL) {
        return make_two(t, two_of_both);
    }
    weft_status status = dispatch(context);
    return status != WEFT_OK ? status : combine(context);
}

/* The same rows by memcpy. */
static weft_status dispatch_copies(void *context)
{
    const trial *t = context;
    bench_copies_send(&t->copies);
    return WEFT_OK;
}

static weft_status combine_copies(void *context)
{
    const trial *t = context;
    bench_copies_return(&t->copies);
    return WEFT_OK;
}

static weft_status pair_copies(void *context)
{
    (void)dispatch_copies(context);
    return combine_copies(context);
}

static weft_status create_group(trial *t)
{
    int is_slots = t->point->layout == BENCH_SLOTS_SOURCE || t->point->layout == BENCH_SLOTS_EXPERT;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = t->point->experts;
    config.tokens_max = t->point->tokens;
    config.topk_max = t->point->topk;
    config.row_bytes_max = 2 * (size_t)t->point->hidden; /* bf16, which combine takes in any case */
    if (bench_sent_dtype(t->point->dtype) == WEFT_EP_F32) {
        config.row_bytes_max *= 2;
    }
    config.rows_max = t->options->worst_case ? 0 : t->arrays.rows;
    config.slot_tokens_max = is_slots ? t->point->tokens : 0;
    config.on_device = t->backend->on_device;
    config.flags = t->point->mode == BENCH_EAGER ? WEFT_EP_ROWS_WITH_SEND : 0;
    config.pairs_max = bench_pairs(t->point->mode);
    plan.topk = t->point->topk;
    plan.layout = bench_weft_layout(t->point->layout);
    plan.alignment = t->point->layout == BENCH_EXPERT_MAJOR ? t->options->alignment : 0;
    plan.sms = t->point->sms;
    weft_status status = weft_ep_create(weft_team_world(t->world), &config, &t->ep);
    if (status == WEFT_OK) {
        status = weft_ep_route_bytes(t->ep, &plan, &t->memory_bytes);
    }
    status = status != WEFT_OK ? status : weft_ep_route_create(t->ep, &plan, NULL, &t->route);
    if (status == WEFT_OK && bench_pairs(t->point->mode) == 2) {
        t->memory_bytes *= 2;
        status = weft_ep_route_create(t->ep, &plan, NULL, &t->other_route);
    }
    return status;
}

/* On GPUs with a first dispatch of a new routing, which must find everything there. */
static weft_status create(trial *t)
{
    weft_status status = create_group(t);
    if (status == WEFT_OK && t->backend->on_device) {
        weft_ep_choices choices = choices_of(t);
        status = weft_ep_route_choose(t->route, &choices);
        status = status != WEFT_OK ? status
                                   : weft_ep_dispatch(t->route, &t->arrays.in, &t->arrays.received, t->backend->stream);
        status = status != WEFT_OK ? status : t->backend->ops->finish(t->backend);
    }
    return status;
}

static int destroy(trial *t)
{
    int failed = tool_failed(weft_ep_route_destroy(t->route), "weft_ep_route_destroy") ||
                 tool_failed(weft_ep_route_destroy(t->other_route), "weft_ep_route_destroy") ||
                 tool_failed(weft_ep_destroy(t->ep), "weft_ep_destroy");
    t->route = t->other_route = NULL;
    t->ep = NULL;
    return failed;
}

/* ---- figures ---- */

/* Of this PE's `count` samples, which are symmetric, the slowest PE's each. Collective. */
static int summarise(trial *t, double *times, int count, tool_figure *figure)
{
    weft_team *team = weft_team_world(t->world);
    if (tool_failed(weft_double_max_reduce(team, times, times, (size_t)count), "comparing times")) {
        return 1;
    }
    tool_figure_of(figure, times, count);
    return tool_failed(weft_barrier(t->world), "barrier");
}

/* ---- the course of a trial ---- */

/* Memory in use now: of the symmetric heap, or of the GPU. */
static int memory_used(const trial *t, double *bytes)
{
    size_t left = 0;
    weft_counters counters;
    if (t->backend->on_device) {
        weft_status status = tool_gpu_free_bytes(t->backend->gpu, &left);
        *bytes = -(double)left;
        return status != WEFT_ERR_UNSUPPORTED && tool_failed(status, "the GPU's memory");
    }
    if (tool_failed(weft_world_counters(t->world, &counters), "weft_world_counters")) {
        return 1;
    }
    *bytes = (double)counters.heap_bytes_used;
    return 0;
}

/* The memory that a group and its routes take. On GPUs this includes the received rows, of each of two pairs, by which
 * only the first group makes the heap grow. */
static double memory_of(const trial *t, double before, double after)
{
    const bench_arrays *a = &t->arrays;
    const size_t received = (size_t)bench_pairs(t->point->mode) * a->rows * bench_row_bytes(&a->received.rows);
    return after - before + (t->backend->on_device ? (double)received : (double)t->memory_bytes);
}

static weft_status set_up(trial *t, bench_figures *figures)
{
    double before;
    double after;
    double taken = 0;
    for (int i = 0; i < SETUPS; i++) {
        if ((i > 0 && destroy(t)) || memory_used(t, &before)) {
            return WEFT_ERR_SYSTEM;
        }
        weft_status status = weft_barrier(t->world);
        double start = tool_now_us();
        status = status != WEFT_OK ? status : create(t);
        t->times[i] = tool_now_us() - start;
        if (status != WEFT_OK || memory_used(t, &after)) {
            return status != WEFT_OK ? status : WEFT_ERR_SYSTEM;
        }
        taken = i == 0 ? memory_of(t, before, after) : taken;
    }
    if (summarise(t, t->times, SETUPS, &figures->setup)) {
        return WEFT_ERR_SYSTEM;
    }
    t->times[0] = MB * taken;
    return summarise(t, t->times, 1, &figures->memory) ? WEFT_ERR_SYSTEM : WEFT_OK;
}

static int has_wrong_counts(const trial *t, const weft_ep_host_counts *counts)
{
    int is_wrong = counts->status != WEFT_OK || counts->rows != t->rows;
    if (is_wrong) {
        fprintf(stderr, "weft-ep-bench: PE %d: the route has status %s and %lld rows, not %lld\n",
                weft_world_pe(t->world), weft_status_name(counts->status), (long long)counts->rows, (long long)t->rows);
    }
    return is_wrong;
}

/* memcpy brings every row to where the dispatch did, and back. Collective. */
static int check_copies(trial *t)
{
    const weft_ep_rows *rows = &t->arrays.received.rows;
    weft_world *world = t->world;
    if (tool_failed(t->backend->ops->fill(t->backend, rows->data, 0xff, t->arrays.rows * bench_row_bytes(rows)),
                    "filling memory") ||
        tool_failed(weft_barrier(world), "barrier")) {
        return 1;
    }
    bench_copies_send(&t->copies);
    if (tool_failed(weft_barrier(world), "barrier") ||
        bench_check_received(&t->arrays, t->backend, t->options, t->point)) {
        return 1;
    }
    bench_copies_return(&t->copies);
    for (size_t i = 0; i < t->copies.count; i++) {
        if (memcmp(t->copies.returned + i * t->copies.row_bytes, t->copies.copies[i].token, t->copies.row_bytes) != 0) {
            fprintf(stderr, "weft-ep-bench: PE %d: row %zu of memcpy came back wrong\n", weft_world_pe(world), i);
            return 1;
        }
    }
    return 0;
}

/* One route update, whose status must be WEFT_OK; then dispatch and combine once, checked with --check. */
static weft_status rehearse(trial *t)
{
    weft_ep_host_counts counts;
    weft_ep_choices choices = choices_of(t);
    weft_status status =
        t->other_route != NULL ? weft_ep_route_update(t->other_route, &choices, t->backend->stream) : WEFT_OK;
    status = status != WEFT_OK ? status : update(t);
    status = status != WEFT_OK ? status : weft_ep_route_query(t->route, t->backend->stream, &counts);
    if (status != WEFT_OK || has_wrong_counts(t, &counts)) {
        return status != WEFT_OK ? status : WEFT_ERR_STATE;
    }
    status = dispatch(t);
    status = status != WEFT_OK ? status : t->backend->ops->finish(t->backend);
    if (status != WEFT_OK || !t->options->check) {
        return status;
    }
    if (bench_check_received(&t->arrays, t->backend, t->options, t->point) ||
        (t->other_route != NULL && bench_check_received(&t->other_arrays, t->backend, t->options, t->point)) ||
        (t->options->beside_memcpy && check_copies(t))) {
        return WEFT_ERR_STATE;
    }
    status = combine(t);
    status = status != WEFT_OK ? status : t->backend->ops->finish(t->backend);
    if (status == WEFT_ERR_UNSUPPORTED) { /* as its figure will say */
        return WEFT_OK;
    }
    if (status == WEFT_OK &&
        (bench_check_combined(&t->arrays, t->backend, t->options, t->point) ||
         (t->other_route != NULL && bench_check_combined(&t->other_arrays, t->backend, t->options, t->point)))) {
        return WEFT_ERR_STATE;
    }
    return status;
}

static int time_call(trial *t, weft_status (*call)(void *context), const char *what, tool_figure *figure)
{
    const bench_options *options = t->options;
    weft_status status = t->backend->ops->time(t->backend, call, t, options->warmup, options->repeats, t->times);
    if (status == WEFT_ERR_UNSUPPORTED) {
        return 0;
    }
    return tool_failed(status, what) || summarise(t, t->times, options->repeats, figure);
}

/* When the host has the counts, of new routings by calls one after the other. */
static int time_counts(trial *t, weft_status (*call)(void *context), const char *what, tool_figure *figure,
                       tool_figure *behind_figure)
{
    int has_behind;
    const bench_options *options = t->options;
    double *behind = t->times + options->repeats;
    const bench_counts counts = {.backend = t->backend, .route = t->route, .call = call, .context = t};
    return tool_failed(bench_counts_time(&counts, options->warmup, options->repeats, t->times, behind, &has_behind),
                       what) ||
           summarise(t, t->times, options->repeats, figure) ||
           (has_behind && summarise(t, behind, options->repeats, behind_figure));
}

/* What the rows of the rank that sends most take at least. */
static int time_floor(trial *t, const weft_ep_rows *rows, tool_figure *figure)
{
    int64_t sent = bench_gate_most_sent(t->point, weft_world_pes(t->world), t->options->seed);
    size_t bytes = sent > 0 ? (size_t)bench_pairs(t->point->mode) * (size_t)sent * bench_row_bytes(rows) : 0;
    if (bytes == 0) {
        return 0;
    }
    figure->bytes = (double)bytes;
    weft_status status = t->backend->ops->floor(t->backend, bytes, t->point->sms, t->options->repeats, t->times);
    return tool_failed(status, "the floor") || summarise(t, t->times, t->options->repeats, figure);
}

/* Each call in turn with the same rows by memcpy, so that what is compared is timed side by side. */
static int time_beside_memcpy(trial *t, bench_figures *figures)
{
    const struct {
        weft_status (*call)(void *context);
        tool_figure *figure;
    } calls[COMPARED] = {{dispatch, &figures->dispatch}, {dispatch_copies, &figures->dispatch_floor},
                         {combine, &figures->combine},   {combine_copies, &figures->combine_floor},
                         {pair, &figures->pair},         {pair_copies, &figures->pair_floor}};
    int repeats = t->options->repeats;
    for (int round = -t->options->warmup; round < repeats; round++) {
        for (int i = 0; i < COMPARED; i++) {
            double us;
            weft_status status = t->backend->ops->time(t->backend, calls[i].call, t, 0, 1, &us);
            if (tool_failed(status, "a call in turn with memcpy")) {
                return 1;
            }
            if (round >= 0) {
                t->times[i * repeats + round] = us;
            }
        }
    }
    for (int i = 0; i < COMPARED; i++) {
        if (summarise(t, t->times + (size_t)i * (size_t)repeats, repeats, calls[i].figure)) {
            return 1;
        }
    }
    return 0;
}

static int time_forward(trial *t, bench_figures *figures)
{
    if (t->options->beside_memcpy) {
        return time_beside_memcpy(t, figures);
    }
    return time_floor(t, &t->arrays.received.rows, &figures->dispatch_floor) ||
           time_floor(t, &t->arrays.results, &figures->combine_floor) ||
           time_call(t, dispatch, "weft_ep_dispatch", &figures->dispatch) ||
           time_call(t, combine, "weft_ep_combine", &figures->combine) ||
           time_call(t, pair, "dispatch and combine", &figures->pair);
}

static int time_all(trial *t, bench_figures *figures)
{
    int64_t rows = bench_gate_sent(t->point, weft_world_pes(t->world), t->options->seed, weft_world_pe(t->world));
    const int pairs = bench_pairs(t->point->mode);
    double sent = pairs * (double)rows * (double)bench_row_bytes(&t->arrays.received.rows);
    double returned = pairs * (double)rows * (double)bench_row_bytes(&t->arrays.results);
    if (rows < 0 || time_forward(t, figures)) {
        return 1;
    }
    if (t->options->backward && (time_call(t, dispatch_bwd, "weft_ep_dispatch_bwd", &figures->dispatch_bwd) ||
                                 time_call(t, combine_bwd, "weft_ep_combine_bwd", &figures->combine_bwd))) {
        return 1;
    }
    if (t->options->counts && t->point->routing == BENCH_FRESH && pairs == 1 &&
        (time_counts(t, dispatch, "the counts of a dispatch", &figures->counts, &figures->counts_behind) ||
         time_counts(t, update, "the counts of an update", &figures->update_counts, &figures->update_counts_behind))) {
        return 1;
    }
    if (t->options->beside_memcpy) { /* the floor is of the same rows */
        figures->dispatch_floor.bytes = sent;
        figures->combine_floor.bytes = returned;
        figures->pair_floor.bytes = sent + returned;
    }
    figures->dispatch_bwd.bytes = returned / pairs; /* which are whole calls in all modes */
    figures->combine_bwd.bytes = returned / pairs;
    figures->dispatch.bytes = sent;
    figures->combine.bytes = returned;
    figures->pair.bytes = sent + returned;
    return 0;
}

/* The most rows that any PE may receive, whatever the gate says. */
static size_t worst_rows(const trial *t, int pes)
{
    size_t tokens = (size_t)pes * (size_t)t->point->tokens;
    return t->point->layout == BENCH_RANK_MAJOR
               ? tokens
               : tokens * (size_t)t->point->topk + (size_t)t->point->experts * (size_t)t->options->alignment;
}

/* The most rows of any PE, and this one's. */
static int count_rows(trial *t, size_t *most)
{
    int pes = weft_world_pes(t->world);
    int64_t *rows = malloc((size_t)pes * sizeof *rows);
    int is_slots = t->point->layout == BENCH_SLOTS_SOURCE || t->point->layout == BENCH_SLOTS_EXPERT;
    if (rows == NULL || bench_gate_rows(t->point, pes, t->options->alignment, t->options->seed, rows) != 0) {
        fprintf(stderr, "weft-ep-bench: no memory\n");
        free(rows);
        return 1;
    }
    *most = t->options->worst_case && !is_slots ? worst_rows(t, pes) : 1;
    for (int pe = 0; pe < pes; pe++) {
        *most = (size_t)rows[pe] > *most ? (size_t)rows[pe] : *most;
    }
    t->rows = rows[weft_world_pe(t->world)];
    free(rows);
    return 0;
}

/* Returns 0 also where the library said that it cannot do this, equally on all ranks: figures->missing says what. */
static int run(trial *t, bench_figures *figures)
{
    weft_status status = set_up(t, figures);
    status = status != WEFT_OK ? status : rehearse(t);
    if (status == WEFT_ERR_UNSUPPORTED) {
        snprintf(figures->missing, sizeof figures->missing, "%s", weft_last_error());
        return destroy(t);
    }
    return tool_failed(status, "a trial") || time_all(t, figures) || destroy(t);
}

int bench_trial_run(bench_backend *backend, const bench_options *options, const bench_point *point,
                    bench_figures *figures)
{
    weft_world *world = backend->world;
    trial t = {.world = world, .backend = backend, .options = options, .point = point};
    size_t samples = (size_t)(options->repeats > SETUPS ? options->repeats : SETUPS) * COMPARED;
    size_t rows;
    void *times;
    memset(figures, 0, sizeof *figures);
    if (count_rows(&t, &rows) || tool_failed(weft_malloc(world, samples * sizeof *t.times, &times), "memory")) {
        return 1;
    }
    t.times = times;
    if (bench_arrays_create(&t.arrays, backend, options, point, rows) ||
        (bench_pairs(point->mode) == 2 && bench_arrays_create(&t.other_arrays, backend, options, point, rows)) ||
        (options->beside_memcpy && bench_copies_create(&t.copies, &t.arrays, world, point, options->seed)) ||
        run(&t, figures)) {
        return 1; /* other PEs may be in other calls, so no collective frees the rest: the world's end does */
    }
    bench_copies_destroy(&t.copies);
    bench_arrays_destroy(&t.arrays, backend);
    if (bench_pairs(point->mode) == 2) {
        bench_arrays_destroy(&t.other_arrays, backend);
    }
    return tool_failed(weft_free(world, times), "weft_free");
}
