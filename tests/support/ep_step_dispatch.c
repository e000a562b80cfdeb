/* support/ep_step_dispatch.c: a dispatch, and everything it receives. */
#include "support/ep_step_calls.h"

#include "support/check.h"
#include "support/ep_workers.h"

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
    ep_step_cover(step, EP_COVER_GROUPED_SCALES, groups);
    ep_step_cover(step, EP_COVER_WIDE_EXPERTS, is_wide);
    ep_step_cover(step, EP_COVER_GLOBAL_EXPERTS, is_global);
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
    const ep_row *what = &ep_step_side_of(step)->row[row];
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

/* What a dispatch of a payload receives. */
typedef struct arrival {
    const ep_step *step;
    const ep_payload *payload;
    const received_tensors *to;
} arrival;

static void expect_rows(void *context, int64_t first, int64_t end)
{
    const arrival *of = context;
    const ep_step *step = of->step;
    const received_tensors *to = of->to;
    const ep_side *side = ep_step_side_of(step);
    for (int64_t i = first; i < end; i++) {
        if (side->row[i].source >= 0 && step->routing->masked[side->row[i].source]) {
            expect_labels(step, to, i); /* the routing still has them; the row is left as it was */
            continue;
        }
        if (side->row[i].source >= 0) {
            expect_row(of->payload, &to->rows, i, &side->row[i]);
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

static weft_status call_dispatch(const ep_step *step, const weft_ep_rows *in, const weft_ep_received *out)
{
    if (!step->halves) {
        return weft_ep_dispatch(step->route, in, out, step->stream);
    }
    ep_step_pause(step, EP_BEFORE_SEND);
    weft_status status = weft_ep_dispatch_send(step->route, in, out, step->stream);
    ep_step_pause(step, EP_BETWEEN_HALVES);
    status = status != WEFT_OK || step->recv_is_made ? status : weft_ep_dispatch_recv(step->route, step->stream);
    ep_step_pause(step, EP_AFTER_RECV);
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
    ep_choice_tensors chosen = {.ids = {0}};
    int64_t room =
        capacity != NULL ? capacity[step->rank] : ep_step_side_of(step)->rows + random_below(step->arrays.random, 3);
    received_tensors to = received_create(step, received, room, &out);
    ep_row_array in = ep_step_token_rows(step, "token rows", payload);
    if (capacity != NULL) {
        chosen = ep_step_choices_create(step, &choices);
        CHECK_OK(weft_ep_route_choose(step->route, &choices));
    } else if (step->weighs) {
        chosen.weights = ep_step_weights_create(step);
        const unsigned shift = (unsigned)random_next(step->arrays.random);
        CHECK_OK(weft_ep_route_weigh(step->route, ep_tensor_place(&chosen.weights, shift)));
    }
    ep_step_dawdle(step);
    int ok = CHECK_STATUS(call_dispatch(step, &in.rows, &out), ep_step_wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_rows_destroy(&in);
    ep_step_choices_destroy(&chosen);
    if (ok && capacity != NULL) {
        ep_step_check_counts(step);
    }
    ep_step_dawdle(step); /* a consumer may be slow; nobody may write here yet */
    if (ok && !step->routing->overflow) {
        arrival of = {step, payload, &to};
        ep_workers_run(ep_step_side_of(step)->rows, (size_t)received->hidden, expect_rows, &of);
    }
    received_check(step, &to);
    received_destroy(&to);
    ep_step_cover(step, capacity != NULL ? EP_COVER_FRESH : EP_COVER_CACHED, 1);
    ep_step_cover(step, EP_COVER_WEIGHED, capacity == NULL && step->weighs);
    ep_step_cover_rows(step, payload, received);
    if (capacity != NULL) {
        ep_step_cover_routing(step);
    }
}
