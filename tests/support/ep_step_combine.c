/* support/ep_step_combine.c: a combine with all that it may have beside. */
#include "support/ep_step_calls.h"

#include <stdlib.h>

#include "support/check.h"

/* How rows are combined. */
typedef struct combine_of {
    const ep_payload *payload;
    unsigned flags;
    const ep_combining *combining;
} combine_of;

static void combine_token(const void *context, const ep_step *step, int token, ep_sum *sums)
{
    const combine_of *of = context;
    ep_reference_combine(step->routing, of->payload, step->rank, token, of->flags, of->combining, sums);
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
    of->ids = ep_step_ids_create(step);
    int64_t *wide = ep_tensor_image(&of->ids);
    int32_t *narrow = ep_tensor_image(&of->ids);
    for (size_t i = 0; i < ep_step_choices_of(step); i++) {
        if (combining->absent[i] && one->id_type == WEFT_EP_INT64) {
            wide[i] = -1;
        } else if (combining->absent[i]) {
            narrow[i] = -1;
        } else if (one->id_type == WEFT_EP_INT32 && narrow[i] == -1) {
            narrow[i] = 0; /* any value but -1 keeps the choice of the route, also a choice that was none */
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
        of->weights = ep_words_create(&step->arrays, "own weights", ep_step_choices_of(step), 1);
        ep_words_set(&of->weights, 0, combining->weights, ep_step_choices_of(step));
        of->options.weights = ep_words_place(&step->arrays, &of->weights);
    }
    if (combining->absent != NULL) {
        create_ids(step, combining, of);
    }
    for (int i = 0; i < combining->biases; i++) {
        of->bias[i] = ep_step_token_rows(step, names[i], &combining->bias[i]);
        of->options.bias[i] = &of->bias[i].rows;
    }
    if (combining->has_values) {
        of->values_in = ep_step_received_gradients(step, &combining->values);
        of->values_out = ep_words_create(&step->arrays, "values", ep_step_choices_of(step), 1);
        of->options.values_in = ep_words_place(&step->arrays, &of->values_in);
        of->options.values_out = ep_words_place(&step->arrays, &of->values_out);
    }
}

static void expect_values(const ep_step *step, const ep_combining *combining, const ep_word_array *array)
{
    size_t topk = (size_t)step->routing->one->plan.topk;
    float sums[EP_TOPK_MAX];
    for (int token = 0; token < ep_step_tokens_of(step) && combining->has_values; token++) {
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
    ep_step_pause(step, EP_BEFORE_SEND);
    weft_status status = send_combine(step, in, out, flags, options);
    ep_step_pause(step, EP_BETWEEN_HALVES);
    status = status != WEFT_OK || step->recv_is_made ? status : weft_ep_combine_recv(step->route, step->stream);
    ep_step_pause(step, EP_AFTER_RECV);
    return status;
}

void ep_step_combine(const ep_step *step, const ep_payload *payload, unsigned flags, const ep_combining *combining)
{
    if (step->is_absent) {
        return;
    }
    ep_row_array in = ep_step_result_rows(step, "result rows", payload);
    ep_payload summed = *payload;
    if (combining != NULL && combining->out_dtype != 0) {
        summed.dtype = combining->out_dtype;
    }
    ep_row_array out = ep_rows_create(&step->arrays, "combined rows", &summed, ep_step_tokens_of(step));
    option_tensors of = {.options = {0}};
    if (combining != NULL) {
        options_create(step, combining, flags, &of);
    }
    ep_rows_place(&step->arrays, &out);
    ep_step_dawdle(step);
    int ok = CHECK_STATUS(call_combine(step, &in.rows, &out.rows, flags, combining != NULL ? &of.options : NULL),
                          ep_step_wanted_status(step));
    ep_rows_check(&step->arrays, &in);
    ep_rows_destroy(&in);
    ep_step_dawdle(step);
    if (ok && !step->routing->overflow) {
        ep_step_expect_sums(step, &out, combine_token, &(combine_of){payload, flags, combining});
        if (combining != NULL) {
            expect_values(step, combining, &of.values_out);
        }
    }
    options_destroy(step, &of);
    ep_rows_check(&step->arrays, &out);
    ep_rows_destroy(&out);
    ep_step_cover(step, EP_COVER_COMBINES, 1);
    ep_step_cover(step, EP_COVER_OWN_WEIGHTS, combining != NULL && combining->weights != NULL);
    ep_step_cover(step, EP_COVER_OWN_CHOICES, combining != NULL && combining->absent != NULL);
    ep_step_cover(step, EP_COVER_OTHER_TYPE, summed.dtype != payload->dtype);
    ep_step_cover(step, EP_COVER_VALUES, combining != NULL && combining->has_values);
    ep_step_cover(step, EP_COVER_BIASES, combining != NULL ? combining->biases : 0);
    ep_step_cover_rows(step, payload, payload);
}
