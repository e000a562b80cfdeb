/* support/ep_step.c: one rank's part in one collective call. */
#include "support/ep_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ep_coverage.h"

static const ep_side *side_of(const ep_step *step)
{
    return &step->routing->side[step->rank];
}

static int tokens_of(const ep_step *step)
{
    return step->routing->one->tokens[step->rank];
}

static void dawdle(const ep_step *step)
{
    if (step->slow_us > 0 && random_below(step->arrays.random, 3) == 0) {
        wefti_os_sleep_ns(UINT64_C(1000) * random_below(step->arrays.random, step->slow_us));
    }
}

static void pass(const ep_step *step, ep_moment moment)
{
    if (step->meanwhile != NULL) {
        step->meanwhile(step->context, moment);
    } else if (moment == EP_BETWEEN_HALVES) {
        dawdle(step);
    }
}

/* ---- what is met ---- */

static void cover(const ep_step *step, ep_coverage what, long times)
{
    ep_cover(what, step->rank == 0 ? times : 0);
}

static void cover_routing(const ep_step *step)
{
    static const ep_coverage layouts[] = {EP_COVER_RANK_MAJOR, EP_COVER_EXPERT_MAJOR, EP_COVER_SLOTS_SOURCE,
                                          EP_COVER_SLOTS_EXPERT};
    const ep_case *one = step->routing->one;
    long dropped = 0;
    long wrong = 0;
    long clamped = 0;
    long tokens = 0;
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        dropped += step->routing->side[rank].dropped_rows;
        wrong += step->routing->side[rank].out_of_range;
        clamped += step->routing->side[rank].is_clamped;
        tokens += step->routing->side[rank].tokens;
    }
    cover(step, layouts[one->plan.layout], 1);
    cover(step, EP_COVER_ALL_WEIGHTS, (one->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0);
    cover(step, EP_COVER_BY_CHOICE, one->plan.order == WEFT_EP_ORDER_CHOICE);
    cover(step, EP_COVER_PADDED, one->plan.alignment > 1);
    cover(step, EP_COVER_OVERFLOW, step->routing->overflow);
    cover(step, EP_COVER_DROPPED, dropped > 0);
    cover(step, EP_COVER_OUT_OF_RANGE, wrong > 0);
    cover(step, EP_COVER_CLAMPED, clamped > 0);
    cover(step, EP_COVER_NO_ROWS, tokens == 0);
}

static void cover_rows(const ep_step *step, const ep_payload *payload, const ep_payload *received)
{
    static const ep_coverage dtypes[] = {
        [WEFT_EP_F32] = EP_COVER_F32,      [WEFT_EP_BF16] = EP_COVER_BF16,   [WEFT_EP_F16] = EP_COVER_F16,
        [WEFT_EP_FP8_E4M3] = EP_COVER_FP8, [WEFT_EP_BYTES] = EP_COVER_BYTES,
    };
    long rows = step->routing->overflow ? 0 : (long)side_of(step)->tokens;
    cover(step, dtypes[payload->dtype], rows);
    cover(step, EP_COVER_BYTE_SCALES, payload->scale_type == WEFT_EP_SCALE_BYTES ? rows : 0);
    cover(step, EP_COVER_QUANTISED, payload->dtype != received->dtype ? rows : 0);
    cover(step, EP_COVER_MX,
          payload->dtype != received->dtype && received->scale_type == WEFT_EP_SCALE_UE8M0_32 ? rows : 0);
    cover(step, EP_COVER_LARGE, rows * (long)ep_row_bytes(received) > 256 << 10);
    cover(step, EP_COVER_HALVES, step->halves);
}

/* ---- update ---- */

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
    return side_of(step)->out_of_range > 0 || side_of(step)->is_clamped ? WEFT_ERR_RANGE : WEFT_OK;
}

static void check_host_counts(const ep_step *step)
{
    const ep_setup *setup = step->routing->one->setup;
    const ep_side *side = side_of(step);
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
    const ep_side *side = side_of(step);
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
    check_told_number(step, "rows", arrays->rows, slot, side->rows);
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
    cover(step, EP_COVER_TOLD, 1);
    cover(step, EP_COVER_TOLD_ON_STREAM, arrays->on_stream);
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
    const ep_side *side = side_of(step);
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

/* The ids in the type asked for. */
static ep_tensor ids_create(const ep_step *step)
{
    const ep_case *one = step->routing->one;
    size_t count = (size_t)tokens_of(step) * (size_t)one->plan.topk;
    ep_tensor tensor = ep_tensor_create(step->arrays.memory, "ids", count * (one->id_type == WEFT_EP_INT64 ? 8 : 4));
    int64_t *wide = ep_tensor_image(&tensor);
    int32_t *narrow = ep_tensor_image(&tensor);
    for (size_t i = 0; i < count; i++) {
        if (one->id_type == WEFT_EP_INT64) {
            wide[i] = one->ids[step->rank][i];
        } else {
            narrow[i] = (int32_t)one->ids[step->rank][i];
        }
    }
    return tensor;
}

static ep_tensor weights_create(const ep_step *step)
{
    const ep_case *one = step->routing->one;
    size_t bytes = (size_t)tokens_of(step) * (size_t)one->plan.topk * sizeof(float);
    if (one->weights[step->rank] == NULL) {
        return (ep_tensor){0};
    }
    ep_tensor tensor = ep_tensor_create(step->arrays.memory, "weights", bytes);
    memcpy(ep_tensor_image(&tensor), one->weights[step->rank], bytes);
    return tensor;
}

/* The arrays of a call that routes. */
typedef struct choice_tensors {
    ep_tensor ids;
    ep_tensor weights;
    ep_tensor told;
    ep_tensor destinations; /* or positions */
} choice_tensors;

static void create_destinations(const ep_step *step, choice_tensors *of, weft_ep_choices *choices)
{
    const ep_case *one = step->routing->one;
    size_t count = (size_t)tokens_of(step) * (size_t)one->plan.topk;
    const int32_t *positions = one->positions[step->rank];
    of->destinations =
        ep_tensor_create(step->arrays.memory, "destinations", positions != NULL ? count * sizeof *positions : count);
    unsigned char *bytes = ep_tensor_image(&of->destinations);
    for (size_t i = 0; i < count && positions == NULL; i++) {
        bytes[i] = one->ids[step->rank][i] >= 0 ? (unsigned char)(1 + i % 255) : 0;
    }
    if (positions != NULL) {
        memcpy(bytes, positions, count * sizeof *positions);
        choices->positions = ep_tensor_place(&of->destinations, (unsigned)random_next(step->arrays.random));
    } else {
        choices->destinations = ep_tensor_place(&of->destinations, (unsigned)random_next(step->arrays.random));
    }
    cover(step, positions != NULL ? EP_COVER_POSITIONS : EP_COVER_DESTINATIONS, 1);
}

static choice_tensors choices_create(const ep_step *step, weft_ep_choices *choices)
{
    const ep_case *one = step->routing->one;
    choice_tensors of = {.ids = ids_create(step), .weights = weights_create(step)};
    *choices = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
    choices->tokens = one->tokens_most[step->rank];
    choices->id_type = one->id_type;
    if (one->plan.flags & WEFT_EP_DESTINATIONS) {
        create_destinations(step, &of, choices);
    } else {
        choices->ids = ep_tensor_place(&of.ids, (unsigned)random_next(step->arrays.random));
    }
    if (of.weights.image != NULL) {
        choices->weights = ep_tensor_place(&of.weights, (unsigned)random_next(step->arrays.random));
    }
    if (one->is_told[step->rank]) {
        of.told = ep_tensor_create(step->arrays.memory, "tokens_at", sizeof(int32_t));
        memcpy(ep_tensor_image(&of.told), &one->tokens_told[step->rank], sizeof(int32_t));
        choices->tokens_at = ep_tensor_place(&of.told, (unsigned)random_next(step->arrays.random));
    }
    return of;
}

static void choices_destroy(choice_tensors *of)
{
    ep_tensor_destroy(&of->ids);
    ep_tensor_destroy(&of->weights);
    ep_tensor_destroy(&of->told);
    ep_tensor_destroy(&of->destinations);
}

void ep_step_update(const ep_step *step)
{
    if (step->is_absent) {
        return;
    }
    weft_ep_choices choices;
    choice_tensors of = choices_create(step, &choices);
    dawdle(step);
    int ok = CHECK_OK(weft_ep_route_update(step->route, &choices, step->stream));
    choices_destroy(&of);
    if (ok) {
        ep_step_check_counts(step);
    }
    cover(step, EP_COVER_UPDATES, 1);
    cover_routing(step);
}

/* ---- dispatch ---- */

/* Left out in one call of six. */
static ep_word_array optional_words(const ep_step *step, const char *name, size_t count, int is_float)
{
    if (random_below(step->arrays.random, 6) == 0) {
        return (ep_word_array){.is_float = is_float};
    }
    return ep_words_create(&step->arrays, name, count, is_float);
}

/* What a dispatch receives. */
typedef struct received_tensors {
    ep_row_array rows;
    ep_word_array weights;
    ep_word_array experts; /* of 64 bits: two words an id */
    int expert_words;
    int first_expert; /* what ids are counted from */
    ep_word_array source_rank;
    ep_word_array source_token;
} received_tensors;

static received_tensors received_create(const ep_step *step, const ep_payload *payload, int64_t capacity,
                                        weft_ep_received *out)
{
    size_t rows = (size_t)capacity;
    size_t width = (size_t)ep_row_width(&step->routing->one->plan);
    int is_wide = random_below(step->arrays.random, 3) == 0;
    int is_global =
        random_below(step->arrays.random, 3) == 0 && (step->routing->one->plan.flags & WEFT_EP_DESTINATIONS) == 0;
    received_tensors to = {
        .rows = ep_rows_create(&step->arrays, "received rows", payload, capacity),
        .weights = optional_words(step, "received weights", rows * width, 1),
        .experts = optional_words(step, "received experts", rows * width * (is_wide ? 2 : 1), 0),
        .expert_words = is_wide ? 2 : 1,
        .first_expert = is_global ? step->routing->one->setup->first[step->rank] : 0,
        .source_rank = optional_words(step, "source_rank", rows, 0),
        .source_token = optional_words(step, "source_token", rows, 0),
    };
    const ep_case *one = step->routing->one;
    int slots = ep_slot_tokens(one->setup, &one->plan) * one->setup->ranks;
    int experts = one->setup->table[step->rank];
    int groups = payload->scale_type != WEFT_EP_SCALE_NONE && slots * experts > 0 &&
                 one->plan.layout == WEFT_EP_SLOTS_EXPERT && random_below(step->arrays.random, 2) == 0;
    if (groups) {
        ep_rows_group_scales(&step->arrays, &to.rows, slots, (capacity + slots - 1) / slots);
    }
    cover(step, EP_COVER_GROUPED_SCALES, groups);
    cover(step, EP_COVER_WIDE_EXPERTS, is_wide);
    cover(step, EP_COVER_GLOBAL_EXPERTS, is_global);
    ep_rows_place(&step->arrays, &to.rows);
    *out = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    out->scale_group_stride = to.rows.group_stride;
    out->rows = to.rows.rows;
    out->rows_capacity = rows;
    out->weights = ep_words_place(&step->arrays, &to.weights);
    out->experts = ep_words_place(&step->arrays, &to.experts);
    out->expert_type = is_wide ? WEFT_EP_INT64 : WEFT_EP_INT32;
    out->experts_are_global = is_global;
    out->source_rank = ep_words_place(&step->arrays, &to.source_rank);
    out->source_token = ep_words_place(&step->arrays, &to.source_token);
    return to;
}

static void expect_experts(const received_tensors *to, size_t at, const int32_t *experts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t id = experts[i] >= 0 ? experts[i] + to->first_expert : experts[i];
        const int64_t wide = id;
        const size_t word = (at + i) * (size_t)to->expert_words;
        ep_words_set(&to->experts, word, to->expert_words == 2 ? (const void *)&wide : &id, (size_t)to->expert_words);
    }
}

static void expect_labels(const ep_step *step, const received_tensors *to, int64_t row)
{
    const ep_row *what = &side_of(step)->row[row];
    size_t width = (size_t)ep_row_width(&step->routing->one->plan);
    float weights[EP_TOPK_MAX];
    int32_t experts[EP_TOPK_MAX];
    if (ep_reference_labels(step->routing, step->rank, row, weights, experts)) {
        ep_words_set(&to->weights, (size_t)row * width, weights, width);
        expect_experts(to, (size_t)row * width, experts, width);
        ep_words_set(&to->source_rank, (size_t)row, &what->source, 1);
        ep_words_set(&to->source_token, (size_t)row, &what->token, 1);
    }
}

static void expect_row(const ep_payload *payload, const ep_row_array *rows, int64_t row, const ep_row *what)
{
    if (payload->dtype == rows->payload.dtype) {
        ep_rows_fill(rows, row, what->source, what->token);
    } else {
        uint32_t scales[EP_SCALE_WORDS_MAX];
        ep_reference_quantise(payload, what->source, what->token, &rows->payload, ep_rows_image(rows, row), scales);
        ep_rows_set_scales(rows, row, scales);
    }
}

static void received_expect(const ep_step *step, const ep_payload *payload, const received_tensors *to)
{
    const ep_side *side = side_of(step);
    for (int64_t i = 0; i < side->rows; i++) {
        if (side->row[i].source >= 0 && step->routing->masked[side->row[i].source]) {
            expect_labels(step, to, i); /* the routing still has them; the row is left as it was */
            continue;
        }
        if (side->row[i].source >= 0) {
            expect_row(payload, &to->rows, i, &side->row[i]);
        } else if (step->routing->one->plan.flags & WEFT_EP_ZERO_PADDING) {
            ep_rows_zero(&to->rows, i);
        }
        expect_labels(step, to, i);
    }
}

static void received_check(const ep_step *step, const received_tensors *to)
{
    ep_rows_check(&step->arrays, &to->rows);
    ep_words_check(&step->arrays, &to->weights);
    ep_words_check(&step->arrays, &to->experts);
    ep_words_check(&step->arrays, &to->source_rank);
    ep_words_check(&step->arrays, &to->source_token);
}

static void received_destroy(received_tensors *to)
{
    ep_rows_destroy(&to->rows);
    ep_words_destroy(&to->weights);
    ep_words_destroy(&to->experts);
    ep_words_destroy(&to->source_rank);
    ep_words_destroy(&to->source_token);
}

static ep_row_array token_rows(const ep_step *step, const char *name, const ep_payload *payload)
{
    ep_row_array in = ep_rows_create(&step->arrays, name, payload, tokens_of(step));
    for (int token = 0; token < tokens_of(step); token++) {
        ep_rows_fill(&in, token, step->rank, token);
    }
    ep_rows_place(&step->arrays, &in);
    return in;
}

static weft_status wanted_status(const ep_step *step)
{
    return step->routing->overflow && !step->is_late ? WEFT_ERR_OVERFLOW : WEFT_OK;
}

static weft_status call_dispatch(const ep_step *step, const weft_ep_rows *in, const weft_ep_received *out)
{
    if (!step->halves) {
        return weft_ep_dispatch(step->route, in, out, step->stream);
    }
    pass(step, EP_BEFORE_SEND);
    weft_status status = weft_ep_dispatch_send(step->route, in, out, step->stream);
    pass(step, EP_BETWEEN_HALVES);
    status = status != WEFT_OK ? status : weft_ep_dispatch_recv(step->route, step->stream);
    pass(step, EP_AFTER_RECV);
    return status;
}

void ep_step_dispatch(const ep_step *step, const ep_payload *payload, const ep_payload *received,
                      const int64_t *capacity)
{
    if (step->is_absent) {
        return;
    }
    weft_ep_received out;
    weft_ep_choices choices;
    choice_tensors chosen = {.ids = {0}};
    int64_t room = capacity != NULL ? capacity[step->rank] : side_of(step)->rows + random_below(step->arrays.random, 3);
    received_tensors to = received_create(step, received, room, &out);
    ep_row_array in = token_rows(step, "token rows", payload);
    if (capacity != NULL) {
        chosen = choices_create(step, &choices);
        CHECK_OK(weft_ep_route_choose(step->route, &choices));
    }
    dawdle(step);
    int ok = CHECK_STATUS(call_dispatch(step, &in.rows, &out), wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_rows_destroy(&in);
    choices_destroy(&chosen);
    if (ok && capacity != NULL) {
        ep_step_check_counts(step);
    }
    dawdle(step); /* a consumer may be slow; nobody may write here yet */
    if (ok && !step->routing->overflow) {
        received_expect(step, payload, &to);
    }
    received_check(step, &to);
    received_destroy(&to);
    cover(step, capacity != NULL ? EP_COVER_FRESH : EP_COVER_CACHED, 1);
    cover_rows(step, payload, received);
    if (capacity != NULL) {
        cover_routing(step);
    }
}

/* ---- combine ---- */

/* A row for each received, padding and slots that nobody fills left poisoned. */
static ep_row_array result_rows(const ep_step *step, const char *name, const ep_payload *payload)
{
    const ep_side *side = side_of(step);
    ep_row_array in = ep_rows_create(&step->arrays, name, payload, side->rows);
    for (int64_t i = 0; i < side->rows; i++) {
        if (side->row[i].source >= 0) {
            ep_rows_fill(&in, i, step->rank, (int)i);
        }
    }
    ep_rows_place(&step->arrays, &in);
    return in;
}

static void expect_sums(const ep_step *step, const ep_row_array *out, int token, const ep_sum *sums)
{
    const ep_payload *payload = &out->payload;
    for (int column = 0; column < payload->hidden; column++) {
        const ep_sum *sum = &sums[column];
        double error = fabs(ep_bits_value(payload->dtype, sum->bits) - sum->exact);
        ep_element_set(payload->dtype, ep_rows_image(out, token), column, sum->bits);
        CHECK_SAY(payload->fill == EP_FILL_WILD || error <= sum->bound, "%s: token %d, column %d is off by %g from %g",
                  step->arrays.what, token, column, error, sum->exact);
    }
}

static void combined_expect(const ep_step *step, const ep_payload *payload, const ep_row_array *out, unsigned flags,
                            const ep_combining *combining)
{
    ep_sum *sums = malloc((size_t)out->payload.hidden * sizeof *sums);
    for (int token = 0; token < tokens_of(step); token++) {
        ep_reference_combine(step->routing, payload, step->rank, token, flags, combining, sums);
        expect_sums(step, out, token, sums);
    }
    free(sums);
}

static size_t choices_of(const ep_step *step)
{
    return (size_t)tokens_of(step) * (size_t)step->routing->one->plan.topk;
}

/* Values of received rows, or gradients of their weights: floats that are a pure function of rank, row and place. */
ep_payload ep_step_values(const ep_step *step, const ep_payload *payload)
{
    return (ep_payload){.dtype = WEFT_EP_F32,
                        .hidden = ep_row_width(&step->routing->one->plan),
                        .fill = payload->fill == EP_FILL_INTEGER ? EP_FILL_INTEGER : EP_FILL_REAL,
                        .salt = payload->salt + 1000};
}

static ep_word_array received_gradients(const ep_step *step, const ep_payload *of)
{
    const ep_side *side = side_of(step);
    size_t width = (size_t)of->hidden;
    ep_word_array array = ep_words_create(&step->arrays, "values of received rows", (size_t)side->rows * width, 1);
    for (int64_t row = 0; row < side->rows; row++) {
        for (int i = 0; i < of->hidden && side->row[row].source >= 0; i++) {
            uint32_t bits = ep_row_element(of, step->rank, (int)row, i);
            ep_words_set(&array, (size_t)row * width + (size_t)i, &bits, 1);
        }
    }
    return array;
}

/* The arrays of a combine's options. */
typedef struct option_tensors {
    weft_ep_combine_options options;
    ep_word_array weights;
    ep_tensor ids;
    ep_row_array bias[2];
    ep_word_array values_in;
    ep_word_array values_out;
} option_tensors;

static void create_ids(const ep_step *step, const ep_combining *combining, option_tensors *of)
{
    const ep_case *one = step->routing->one;
    of->ids = ids_create(step);
    int64_t *wide = ep_tensor_image(&of->ids);
    int32_t *narrow = ep_tensor_image(&of->ids);
    for (size_t i = 0; i < choices_of(step); i++) {
        if (combining->absent[i] && one->id_type == WEFT_EP_INT64) {
            wide[i] = -1;
        } else if (combining->absent[i]) {
            narrow[i] = -1;
        } else if (one->id_type == WEFT_EP_INT32 && narrow[i] == -1) {
            narrow[i] = 0; /* any value but -1 says as it was, even if that was none */
        }
    }
    of->options.id_type = one->id_type;
    of->options.ids = ep_tensor_place(&of->ids, (unsigned)random_next(step->arrays.random));
}

static void options_create(const ep_step *step, const ep_combining *combining, unsigned flags, option_tensors *of)
{
    static const char *const names[] = {"bias 0", "bias 1"};
    *of = (option_tensors){.options = WEFT_EP_COMBINE_OPTIONS_INIT};
    of->options.flags = flags;
    if (combining->weights != NULL) {
        of->weights = ep_words_create(&step->arrays, "own weights", choices_of(step), 1);
        ep_words_set(&of->weights, 0, combining->weights, choices_of(step));
        of->options.weights = ep_words_place(&step->arrays, &of->weights);
    }
    if (combining->absent != NULL) {
        create_ids(step, combining, of);
    }
    for (int i = 0; i < combining->biases; i++) {
        of->bias[i] = token_rows(step, names[i], &combining->bias[i]);
        of->options.bias[i] = &of->bias[i].rows;
    }
    if (combining->has_values) {
        of->values_in = received_gradients(step, &combining->values);
        of->values_out = ep_words_create(&step->arrays, "values", choices_of(step), 1);
        of->options.values_in = ep_words_place(&step->arrays, &of->values_in);
        of->options.values_out = ep_words_place(&step->arrays, &of->values_out);
    }
}

static void expect_values(const ep_step *step, const ep_combining *combining, const ep_word_array *array)
{
    size_t topk = (size_t)step->routing->one->plan.topk;
    float sums[EP_TOPK_MAX];
    for (int token = 0; token < tokens_of(step) && combining->has_values; token++) {
        ep_reference_values(step->routing, combining, step->rank, token, sums);
        ep_words_set(array, (size_t)token * topk, sums, topk);
    }
}

static void options_destroy(const ep_step *step, option_tensors *of)
{
    ep_words_check(&step->arrays, &of->weights);
    ep_words_destroy(&of->weights);
    ep_tensor_destroy(&of->ids);
    for (int i = 0; i < 2 && of->options.bias[i] != NULL; i++) {
        ep_rows_check(&step->arrays, &of->bias[i]);
        ep_rows_destroy(&of->bias[i]);
    }
    ep_words_check(&step->arrays, &of->values_in);
    ep_words_destroy(&of->values_in);
    ep_words_check(&step->arrays, &of->values_out);
    ep_words_destroy(&of->values_out);
}

static weft_status send_combine(const ep_step *step, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                                const weft_ep_combine_options *options)
{
    return options != NULL ? weft_ep_combine_send_with(step->route, in, out, options, step->stream)
                           : weft_ep_combine_send(step->route, in, out, flags, step->stream);
}

static weft_status call_combine(const ep_step *step, const weft_ep_rows *in, const weft_ep_rows *out, unsigned flags,
                                const weft_ep_combine_options *options)
{
    if (!step->halves) {
        return options != NULL ? weft_ep_combine_with(step->route, in, out, options, step->stream)
                               : weft_ep_combine(step->route, in, out, flags, step->stream);
    }
    pass(step, EP_BEFORE_SEND);
    weft_status status = send_combine(step, in, out, flags, options);
    pass(step, EP_BETWEEN_HALVES);
    status = status != WEFT_OK ? status : weft_ep_combine_recv(step->route, step->stream);
    pass(step, EP_AFTER_RECV);
    return status;
}

void ep_step_combine(const ep_step *step, const ep_payload *payload, unsigned flags, const ep_combining *combining)
{
    if (step->is_absent) {
        return;
    }
    ep_row_array in = result_rows(step, "result rows", payload);
    ep_payload summed = *payload;
    if (combining != NULL && combining->out_dtype != 0) {
        summed.dtype = combining->out_dtype;
    }
    ep_row_array out = ep_rows_create(&step->arrays, "combined rows", &summed, tokens_of(step));
    option_tensors of = {.options = {0}};
    if (combining != NULL) {
        options_create(step, combining, flags, &of);
    }
    ep_rows_place(&step->arrays, &out);
    dawdle(step);
    int ok = CHECK_STATUS(call_combine(step, &in.rows, &out.rows, flags, combining != NULL ? &of.options : NULL),
                          wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_rows_destroy(&in);
    dawdle(step);
    if (ok && !step->routing->overflow) {
        combined_expect(step, payload, &out, flags, combining);
        if (combining != NULL) {
            expect_values(step, combining, &of.values_out);
        }
    }
    options_destroy(step, &of);
    ep_rows_check(&step->arrays, &out);
    ep_rows_destroy(&out);
    cover(step, EP_COVER_COMBINES, 1);
    cover(step, EP_COVER_OWN_WEIGHTS, combining != NULL && combining->weights != NULL);
    cover(step, EP_COVER_OWN_CHOICES, combining != NULL && combining->absent != NULL);
    cover(step, EP_COVER_OTHER_TYPE, summed.dtype != payload->dtype);
    cover(step, EP_COVER_VALUES, combining != NULL && combining->has_values);
    cover(step, EP_COVER_BIASES, combining != NULL ? combining->biases : 0);
    cover_rows(step, payload, payload);
}

/* ---- backward ---- */

/* The gradient of each choice's weight is what its row had, 0 where the choice has none. */
static void expect_weight_gradients(const ep_step *step, const ep_payload *of, const ep_word_array *array)
{
    int topk = step->routing->one->plan.topk;
    for (int token = 0; token < tokens_of(step); token++) {
        for (int k = 0; k < topk; k++) {
            int owner = ep_owner_of(step->routing->one, step->rank, token, k);
            int row = ep_row_of(step->routing, step->rank, token, k);
            uint32_t bits =
                row < 0 || step->routing->masked[owner] ? 0 : ep_row_element(of, owner, row, of->hidden == 1 ? 0 : k);
            ep_words_set(array, (size_t)token * (size_t)topk + (size_t)k, &bits, 1);
        }
    }
}

static void expect_gradients_in(const ep_step *step, const ep_row_array *out)
{
    ep_sum *sums = malloc((size_t)out->payload.hidden * sizeof *sums);
    for (int token = 0; token < tokens_of(step); token++) {
        ep_reference_dispatch_bwd(step->routing, &out->payload, step->rank, token, sums);
        expect_sums(step, out, token, sums);
    }
    free(sums);
}

void ep_step_dispatch_bwd(const ep_step *step, const ep_payload *payload, int with_weights)
{
    if (step->is_absent) {
        return;
    }
    ep_payload of_weights = ep_step_values(step, payload);
    ep_row_array in = result_rows(step, "received gradients", payload);
    ep_row_array out = ep_rows_create(&step->arrays, "gradients of rows", payload, tokens_of(step));
    ep_word_array weights_in = {.is_float = 1};
    ep_word_array weights_out = {.is_float = 1};
    if (with_weights) {
        weights_in = received_gradients(step, &of_weights);
        weights_out = ep_words_create(&step->arrays, "gradients of weights", choices_of(step), 1);
    }
    ep_rows_place(&step->arrays, &out);
    const float *given = ep_words_place(&step->arrays, &weights_in);
    float *wanted = ep_words_place(&step->arrays, &weights_out);
    dawdle(step);
    int ok = CHECK_STATUS(weft_ep_dispatch_bwd(step->route, &in.rows, given, &out.rows, wanted, step->stream),
                          wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_words_check(&step->arrays, &weights_in);
    ep_rows_destroy(&in);
    ep_words_destroy(&weights_in);
    dawdle(step);
    if (ok && !step->routing->overflow) {
        expect_gradients_in(step, &out);
        if (with_weights) {
            expect_weight_gradients(step, &of_weights, &weights_out);
        }
    }
    ep_rows_check(&step->arrays, &out);
    ep_words_check(&step->arrays, &weights_out);
    ep_rows_destroy(&out);
    ep_words_destroy(&weights_out);
    cover(step, EP_COVER_DISPATCH_BWD, 1);
    cover(step, EP_COVER_WEIGHT_GRADIENTS, with_weights);
}

static void expect_gradients_out(const ep_step *step, const ep_row_array *out, unsigned flags)
{
    const ep_side *side = side_of(step);
    uint32_t *bits = malloc((size_t)out->payload.hidden * sizeof *bits);
    for (int64_t row = 0; row < side->rows; row++) {
        if (side->row[row].source >= 0 && step->routing->masked[side->row[row].source]) {
            continue; /* left as it was */
        }
        if (side->row[row].source < 0) {
            if (step->routing->one->plan.flags & WEFT_EP_ZERO_PADDING) {
                ep_rows_zero(out, row);
            }
            continue;
        }
        ep_reference_combine_bwd(step->routing, &out->payload, step->rank, row, flags, bits);
        for (int column = 0; column < out->payload.hidden; column++) {
            ep_element_set(out->payload.dtype, ep_rows_image(out, row), column, bits[column]);
        }
    }
    free(bits);
}

static void expect_dots(const ep_step *step, const ep_payload *payload, const ep_payload *rows,
                        const ep_word_array *array)
{
    int topk = step->routing->one->plan.topk;
    for (int token = 0; token < tokens_of(step); token++) {
        for (int k = 0; k < topk; k++) {
            float dot = ep_reference_weight_bwd(step->routing, payload, rows, step->rank, token, k);
            ep_words_set(array, (size_t)token * (size_t)topk + (size_t)k, &dot, 1);
        }
    }
}

void ep_step_combine_bwd(const ep_step *step, const ep_payload *payload, const ep_payload *rows, unsigned flags)
{
    if (step->is_absent) {
        return;
    }
    ep_row_array in = token_rows(step, "gradients of sums", payload);
    ep_row_array results = {.rows = {0}};
    ep_row_array out = ep_rows_create(&step->arrays, "gradients of results", payload, side_of(step)->rows);
    ep_word_array weights = {.is_float = 1};
    if (rows != NULL) {
        results = result_rows(step, "result rows", rows);
        weights = ep_words_create(&step->arrays, "gradients of weights", choices_of(step), 1);
    }
    ep_rows_place(&step->arrays, &out);
    float *dots = ep_words_place(&step->arrays, &weights);
    dawdle(step);
    int ok = CHECK_STATUS(weft_ep_combine_bwd(step->route, &in.rows, rows != NULL ? &results.rows : NULL, &out.rows,
                                              dots, flags, step->stream),
                          wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_rows_destroy(&in);
    if (rows != NULL) {
        ep_rows_check(&step->arrays, &results);
        ep_rows_destroy(&results);
    }
    dawdle(step);
    if (ok && !step->routing->overflow) {
        expect_gradients_out(step, &out, flags);
        if (rows != NULL) {
            expect_dots(step, payload, rows, &weights);
        }
    }
    ep_rows_check(&step->arrays, &out);
    ep_words_check(&step->arrays, &weights);
    ep_rows_destroy(&out);
    ep_words_destroy(&weights);
    cover(step, EP_COVER_COMBINE_BWD, 1);
    cover(step, EP_COVER_WEIGHT_GRADIENTS, rows != NULL);
}
