/* support/ep_step_backward.c: the backward passes of both. */
#include "support/ep_step_calls.h"

#include <stdlib.h>

#include "support/check.h"
#include "support/ep_workers.h"

/* The gradient of each choice's weight is what its row had, 0 where the choice has none. */
static void expect_weight_gradients(const ep_step *step, const ep_payload *of, const ep_word_array *array)
{
    int topk = step->routing->one->plan.topk;
    for (int token = 0; token < ep_step_tokens_of(step); token++) {
        for (int k = 0; k < topk; k++) {
            int owner = ep_owner_of(step->routing->one, step->rank, token, k);
            int row = ep_row_of(step->routing, step->rank, token, k);
            uint32_t bits =
                row < 0 || step->routing->masked[owner] ? 0 : ep_row_element(of, owner, row, of->hidden == 1 ? 0 : k);
            ep_words_set(array, (size_t)token * (size_t)topk + (size_t)k, &bits, 1);
        }
    }
}

static void add_gradients_in(const void *context, const ep_step *step, int token, ep_sum *sums)
{
    const ep_payload *payload = context;
    ep_reference_dispatch_bwd(step->routing, payload, step->rank, token, sums);
}

void ep_step_dispatch_bwd(const ep_step *step, const ep_payload *payload, int with_weights)
{
    if (step->is_absent) {
        return;
    }
    ep_payload of_weights = ep_step_values(step, payload);
    ep_row_array in = ep_step_result_rows(step, "received gradients", payload);
    ep_row_array out = ep_rows_create(&step->arrays, "gradients of rows", payload, ep_step_tokens_of(step));
    ep_word_array weights_in = {.is_float = 1};
    ep_word_array weights_out = {.is_float = 1};
    if (with_weights) {
        weights_in = ep_step_received_gradients(step, &of_weights);
        weights_out = ep_words_create(&step->arrays, "gradients of weights", ep_step_choices_of(step), 1);
    }
    ep_rows_place(&step->arrays, &out);
    const float *given = ep_words_place(&step->arrays, &weights_in);
    float *wanted = ep_words_place(&step->arrays, &weights_out);
    ep_step_dawdle(step);
    int ok = CHECK_STATUS(weft_ep_dispatch_bwd(step->route, &in.rows, given, &out.rows, wanted, step->stream),
                          ep_step_wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_words_check(&step->arrays, &weights_in);
    ep_rows_destroy(&in);
    ep_words_destroy(&weights_in);
    ep_step_dawdle(step);
    if (ok && !step->routing->overflow) {
        ep_step_expect_sums(step, &out, add_gradients_in, &out.payload);
        if (with_weights) {
            expect_weight_gradients(step, &of_weights, &weights_out);
        }
    }
    ep_rows_check(&step->arrays, &out);
    ep_words_check(&step->arrays, &weights_out);
    ep_rows_destroy(&out);
    ep_words_destroy(&weights_out);
    ep_step_cover(step, EP_COVER_DISPATCH_BWD, 1);
    ep_step_cover(step, EP_COVER_WEIGHT_GRADIENTS, with_weights);
}

/* Rows whose expected gradients are worked out. */
typedef struct gradients_out {
    const ep_step *step;
    const ep_row_array *out;
    unsigned flags;
} gradients_out;

static void expect_gradients_out(void *context, int64_t first, int64_t end)
{
    const gradients_out *of = context;
    const ep_step *step = of->step;
    const ep_row_array *out = of->out;
    const ep_side *side = ep_step_side_of(step);
    uint32_t *bits = malloc((size_t)out->payload.hidden * sizeof *bits);
    for (int64_t row = first; row < end; row++) {
        if (side->row[row].source >= 0 && step->routing->masked[side->row[row].source]) {
            continue; /* left as it was */
        }
        if (side->row[row].source < 0) {
            if (step->routing->one->plan.flags & WEFT_EP_ZERO_PADDING) {
                ep_rows_zero(out, row);
            }
            continue;
        }
        ep_reference_combine_bwd(step->routing, &out->payload, step->rank, row, of->flags, bits);
        for (int column = 0; column < out->payload.hidden; column++) {
            ep_element_set(out->payload.dtype, ep_rows_image(out, row), column, bits[column]);
        }
    }
    free(bits);
}

/* Dot products that are worked out, a choice after the other. */
typedef struct dot_products {
    const ep_step *step;
    const ep_payload *payload;
    const ep_payload *rows;
    const ep_word_array *to;
} dot_products;

static void expect_dots(void *context, int64_t first, int64_t end)
{
    const dot_products *of = context;
    const int topk = of->step->routing->one->plan.topk;
    for (int64_t i = first; i < end; i++) {
        float dot = ep_reference_weight_bwd(of->step->routing, of->payload, of->rows, of->step->rank, (int)(i / topk),
                                            (int)(i % topk));
        ep_words_set(of->to, (size_t)i, &dot, 1);
    }
}

void ep_step_combine_bwd(const ep_step *step, const ep_payload *payload, const ep_payload *rows, unsigned flags)
{
    if (step->is_absent) {
        return;
    }
    ep_row_array in = ep_step_token_rows(step, "gradients of sums", payload);
    ep_row_array results = {.rows = {0}};
    ep_row_array out = ep_rows_create(&step->arrays, "gradients of results", payload, ep_step_side_of(step)->rows);
    ep_word_array weights = {.is_float = 1};
    if (rows != NULL) {
        results = ep_step_result_rows(step, "result rows", rows);
        weights = ep_words_create(&step->arrays, "gradients of weights", ep_step_choices_of(step), 1);
    }
    ep_rows_place(&step->arrays, &out);
    float *dots = ep_words_place(&step->arrays, &weights);
    ep_step_dawdle(step);
    int ok = CHECK_STATUS(weft_ep_combine_bwd(step->route, &in.rows, rows != NULL ? &results.rows : NULL, &out.rows,
                                              dots, flags, step->stream),
                          ep_step_wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_rows_destroy(&in);
    if (rows != NULL) {
        ep_rows_check(&step->arrays, &results);
        ep_rows_destroy(&results);
    }
    ep_step_dawdle(step);
    if (ok && !step->routing->overflow) {
        gradients_out of = {step, &out, flags};
        ep_workers_run(ep_step_side_of(step)->rows, (size_t)payload->hidden, expect_gradients_out, &of);
        if (rows != NULL) {
            dot_products products = {step, payload, rows, &weights};
            ep_workers_run((int64_t)ep_step_choices_of(step), (size_t)payload->hidden, expect_dots, &products);
        }
    }
    ep_rows_check(&step->arrays, &out);
    ep_words_check(&step->arrays, &weights);
    ep_rows_destroy(&out);
    ep_words_destroy(&weights);
    ep_step_cover(step, EP_COVER_COMBINE_BWD, 1);
    ep_step_cover(step, EP_COVER_WEIGHT_GRADIENTS, rows != NULL);
}
