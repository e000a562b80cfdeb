/* support/ep_step_counts.c: the counts of a route, as the calls give them and as arrays are told them. */
#include "support/ep_step_calls.h"

#include <stdlib.h>

#include "support/check.h"

static void check_numbers(const ep_step *step, const char *name, const int32_t *there, const int *wanted, size_t count)
{
    int32_t *got = malloc((count + 1) * sizeof *got);
    step->arrays.memory->fetch(step->arrays.memory->context, got, there, count * sizeof *got);
    for (size_t i = 0; i < count; i++) {
        if (!CHECK_SAY(got[i] == wanted[i], "%s: %s[%zu] is %d, not %d", step->arrays.what, name, i, got[i],
                       wanted[i])) {
            break;
        }
    }
    free(got);
}

static void check_number(const ep_step *step, const char *name, const int32_t *there, int64_t wanted)
{
    int value = (int)wanted;
    check_numbers(step, name, there, &value, 1);
}

static weft_status status_of(const ep_step *step)
{
    if (step->routing->overflow) {
        return WEFT_ERR_OVERFLOW;
    }
    return ep_step_side_of(step)->out_of_range > 0 || ep_step_side_of(step)->is_clamped ? WEFT_ERR_RANGE : WEFT_OK;
}

static void check_host_counts(const ep_step *step)
{
    const ep_setup *setup = step->routing->one->setup;
    const ep_side *side = ep_step_side_of(step);
    weft_ep_host_counts host;
    if (!CHECK_OK(weft_ep_route_query(step->route, step->stream, &host))) {
        return;
    }
    CHECK_SAY(host.rows == side->rows, "%s: %lld rows, not %lld", step->arrays.what, (long long)host.rows,
              (long long)side->rows);
    CHECK_SAY(host.status == status_of(step), "%s: status %s, not %s", step->arrays.what, weft_status_name(host.status),
              weft_status_name(status_of(step)));
    CHECK_SAY(host.dropped == side->out_of_range, "%s: %lld dropped, not %d", step->arrays.what,
              (long long)host.dropped, side->out_of_range);
    CHECK_SAY(host.tokens == side->tokens, "%s: %lld tokens, not %lld", step->arrays.what, (long long)host.tokens,
              (long long)side->tokens);
    CHECK_SAY(host.dropped_rows == side->dropped_rows, "%s: %lld dropped rows, not %lld", step->arrays.what,
              (long long)host.dropped_rows, (long long)side->dropped_rows);
    CHECK(host.local_experts == setup->table[step->rank] && host.first_expert == setup->first[step->rank]);
}

static void *take_plain(size_t bytes)
{
    return calloc(1, bytes);
}

void *(*ep_told_take)(size_t bytes) = take_plain;
void (*ep_told_give)(void *memory) = free;

static void *told_array(uint64_t *random, size_t count)
{
    return random_below(random, 6) == 0 ? NULL : ep_told_take((2 * count + 1) * 8);
}

ep_told *ep_told_create(weft_ep_route *route, const ep_setup *setup, int rank, uint64_t *random)
{
    ep_told *told = ep_told_take(sizeof *told);
    size_t experts = (size_t)setup->table[rank];
    told->arrays = (weft_ep_count_arrays)WEFT_EP_COUNT_ARRAYS_INIT;
    told->arrays.on_stream = random_below(random, 4) == 0;
    told->arrays.generation = told->arrays.on_stream ? NULL : told->generations;
    told->arrays.type = random_below(random, 2) == 0 ? WEFT_EP_INT32 : WEFT_EP_INT64;
    told->arrays.rows = told_array(random, 1);
    told->arrays.rows_of_expert = told_array(random, experts);
    told->arrays.rows_of_expert_aligned = told_array(random, experts);
    told->arrays.rows_of_source = told_array(random, (size_t)setup->ranks);
    told->arrays.offset_of_expert = told_array(random, experts);
    told->arrays.with_dropped = random_below(random, 2) == 0;
    CHECK_OK(weft_ep_route_counts_to(route, &told->arrays));
    return told;
}

void ep_told_destroy(ep_told *told)
{
    if (told != NULL) {
        void *const arrays[] = {told->arrays.rows, told->arrays.rows_of_expert, told->arrays.rows_of_expert_aligned,
                                told->arrays.rows_of_source, told->arrays.offset_of_expert};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
            if (arrays[i] != NULL) {
                ep_told_give(arrays[i]);
            }
        }
        ep_told_give(told);
    }
}

static void check_told_number(const ep_step *step, const char *name, const void *array, size_t at, int64_t wanted)
{
    int64_t got = wanted;
    if (array != NULL) {
        got = step->told->arrays.type == WEFT_EP_INT64 ? ((const int64_t *)array)[at] : ((const int32_t *)array)[at];
    }
    CHECK_SAY(got == wanted, "%s: %s[%zu] is told as %lld, not %lld", step->arrays.what, name, at, (long long)got,
              (long long)wanted);
}

static void check_told(const ep_step *step)
{
    const ep_side *side = ep_step_side_of(step);
    const weft_ep_count_arrays *arrays = &step->told->arrays;
    size_t experts = (size_t)step->routing->one->setup->table[step->rank];
    size_t ranks = (size_t)step->routing->one->setup->ranks;
    uint64_t number = ++step->told->number;
    size_t slot = arrays->on_stream ? 0 : number % 2;
    weft_ep_host_counts host;
    if (!CHECK_OK(arrays->on_stream ? weft_ep_route_query(step->route, step->stream, &host)
                                    : weft_ep_route_counts_wait(step->route, number))) {
        return;
    }
    check_told_number(step, "rows", arrays->rows, slot, arrays->with_dropped ? side->wanted_rows : side->rows);
    for (size_t i = 0; i < experts; i++) {
        int by_expert = ep_is_by_expert(step->routing->one->plan.layout);
        int aligned = side->offset_of_expert[i + 1] - side->offset_of_expert[i];
        size_t at = slot * experts + i;
        check_told_number(step, "rows_of_expert", arrays->rows_of_expert, at, side->rows_of_expert[i]);
        check_told_number(step, "rows_of_expert_aligned", arrays->rows_of_expert_aligned, at,
                          by_expert ? aligned : side->rows_of_expert[i]);
        check_told_number(step, "offset_of_expert", arrays->offset_of_expert, at,
                          by_expert ? side->offset_of_expert[i] : 0);
    }
    for (size_t i = 0; i < ranks; i++) {
        check_told_number(step, "rows_of_source", arrays->rows_of_source, slot * ranks + i, side->rows_of_source[i]);
    }
    ep_step_cover(step, EP_COVER_TOLD, 1);
    ep_step_cover(step, EP_COVER_TOLD_ON_STREAM, arrays->on_stream);
}

/* Whether the sources of slots by expert may be numbered apart: WEFT_EP_MASK_ON_TIMEOUT on GPUs. */
static int has_places_apart(const ep_step *step)
{
    const weft_ep_config *config = &step->routing->one->setup->config;
    return config->on_device && (config->flags & WEFT_EP_MASK_ON_TIMEOUT) != 0 &&
           step->routing->one->plan.layout == WEFT_EP_SLOTS_EXPERT;
}

void ep_step_check_counts(const ep_step *step)
{
    if (step->told != NULL) {
        check_told(step);
    }
    const ep_setup *setup = step->routing->one->setup;
    const ep_side *side = ep_step_side_of(step);
    size_t experts = (size_t)setup->table[step->rank];
    size_t ranks = (size_t)setup->ranks;
    weft_ep_counts counts;
    check_host_counts(step);
    if (!CHECK_OK(weft_ep_route_counts(step->route, &counts))) {
        return;
    }
    check_number(step, "rows", counts.rows, side->rows);
    check_number(step, "status", counts.status, status_of(step));
    check_number(step, "dropped", counts.dropped, side->out_of_range);
    check_numbers(step, "rows_of_expert", counts.rows_of_expert, side->rows_of_expert, experts);
    check_numbers(step, "offset_of_expert", counts.offset_of_expert, side->offset_of_expert, experts + 1);
    check_numbers(step, "rows_of_source", counts.rows_of_source, side->rows_of_source, ranks);
    if (!has_places_apart(step)) {
        check_numbers(step, "offset_of_source", counts.offset_of_source, side->offset_of_source, ranks + 1);
    }
    check_numbers(step, "rows_of_expert_source", counts.rows_of_expert_source, side->rows_of_expert_source,
                  experts * ranks);
    check_number(step, "dropped_rows", counts.dropped_rows, side->dropped_rows);
}
