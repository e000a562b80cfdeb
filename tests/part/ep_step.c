/* part/ep_step.c: one rank's part in one collective call. */
#include "part/ep_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "part/check.h"

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
    if (step->slow_us > 0 && random_below(step->random, 3) == 0) {
        wefti_os_sleep_ns(UINT64_C(1000) * random_below(step->random, step->slow_us));
    }
}

/* ---- arrays ---- */

/* Rows, packed or with a stride, and the scales of fp8. */
typedef struct row_tensor {
    ep_payload payload;
    ep_tensor tensor;
    size_t row_bytes;
    size_t pitch;
    ep_tensor scales; /* none unless the payload has some */
    size_t row_stride; /* of the scales, in words */
    size_t word_stride;
    weft_ep_rows rows;
} row_tensor;

/* Scales: packed, or by row or by column with gaps. */
static void scales_create(const ep_step *step, row_tensor *of, int64_t count)
{
    size_t words = (size_t)ep_scale_words(&of->payload);
    unsigned kind = random_below(step->random, 3);
    size_t gap = random_below(step->random, 3);
    size_t rows = count > 0 ? (size_t)count : 1;
    of->row_stride = kind == 2 ? 1 : words + (kind == 1 ? gap : 0);
    of->word_stride = kind == 2 ? rows + gap : 1;
    size_t all = (rows - 1) * of->row_stride + (words - 1) * of->word_stride + 1;
    of->scales = ep_tensor_create(step->memory, "scales", 4 * all);
    of->rows.scale_type = of->payload.scale_type;
    of->rows.scale_row_stride = kind == 0 ? 0 : of->row_stride;
    of->rows.scale_word_stride = kind == 0 ? 0 : of->word_stride;
}

static row_tensor rows_create(const ep_step *step, const char *name, const ep_payload *payload, int64_t count)
{
    row_tensor of;
    memset(&of, 0, sizeof of);
    size_t gap = random_below(step->random, 3) == 0 ? 16 * (size_t)random_below(step->random, 4) : 0;
    of.payload = *payload;
    of.row_bytes = ep_row_bytes(payload);
    of.pitch = of.row_bytes + gap;
    of.tensor = ep_tensor_create(step->memory, name, (size_t)count * of.pitch);
    of.tensor.is_f32 = payload->dtype == WEFT_EP_F32 && payload->fill != EP_FILL_PATTERN;
    of.rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    of.rows.dtype = payload->dtype;
    of.rows.hidden = payload->hidden;
    of.rows.stride_bytes = gap > 0 ? of.pitch : 0;
    if (payload->scale_type != WEFT_EP_SCALE_NONE) {
        scales_create(step, &of, count);
    }
    return of;
}

static void *rows_image(const row_tensor *of, int64_t row)
{
    return (unsigned char *)ep_tensor_image(&of->tensor) + (size_t)row * of->pitch;
}

static void scales_set(const row_tensor *of, int64_t row, const uint32_t *words)
{
    uint32_t *scales = of->scales.image == NULL ? NULL : ep_tensor_image(&of->scales);
    for (int word = 0; word < ep_scale_words(&of->payload); word++) {
        scales[(size_t)row * of->row_stride + (size_t)word * of->word_stride] = words[word];
    }
}

/* Let row `row` of the image be the payload's row `number` of `rank`. */
static void rows_fill(const row_tensor *of, int64_t row, int rank, int number)
{
    uint32_t words[EP_SCALE_WORDS_MAX];
    for (int word = 0; word < ep_scale_words(&of->payload); word++) {
        words[word] = ep_row_scale(&of->payload, rank, number, word);
    }
    ep_row_fill(&of->payload, rank, number, rows_image(of, row));
    scales_set(of, row, words);
}

static void rows_zero(const row_tensor *of, int64_t row)
{
    const uint32_t words[EP_SCALE_WORDS_MAX] = {0};
    memset(rows_image(of, row), 0, of->row_bytes);
    scales_set(of, row, words);
}

static void rows_place(const ep_step *step, row_tensor *of)
{
    of->rows.data = ep_tensor_place(&of->tensor, (unsigned)random_next(step->random));
    if (of->scales.image != NULL) {
        of->rows.scales = ep_tensor_place(&of->scales, (unsigned)random_next(step->random));
    }
}

static void rows_destroy(row_tensor *of)
{
    ep_tensor_destroy(&of->tensor);
    ep_tensor_destroy(&of->scales);
}

static void scales_check(const ep_step *step, const row_tensor *of)
{
    long at;
    unsigned char *found = of->scales.image == NULL ? NULL : ep_tensor_differs(&of->scales, &at);
    if (found != NULL) {
        int inside = at >= 0 && (size_t)at < of->scales.bytes;
        const uint32_t *got = (const uint32_t *)(const void *)found;
        const uint32_t *wanted = ep_tensor_image(&of->scales);
        CHECK_SAY(0, "%s: %s: scales (strides %zu, %zu): word %ld of %zu is 0x%x, not 0x%x", step->what,
                  of->tensor.name, of->row_stride, of->word_stride, at / 4, of->scales.bytes / 4,
                  inside ? got[at / 4] : 0, inside ? wanted[at / 4] : 0);
        free(found);
    }
}

static void rows_say(const ep_step *step, const row_tensor *of, const unsigned char *found, long at)
{
    if (at < 0 || (size_t)at >= of->tensor.bytes || (size_t)at % of->pitch >= of->row_bytes) {
        CHECK_SAY(0, "%s: %s: wrote %s the rows, at byte %ld of %zu", step->what, of->tensor.name,
                  at < 0 || (size_t)at >= of->tensor.bytes ? "outside of" : "between", at, of->tensor.bytes);
        return;
    }
    weft_ep_dtype dtype = of->payload.dtype;
    size_t row = (size_t)at / of->pitch;
    size_t size = of->payload.fill == EP_FILL_PATTERN ? 4 : ep_element_bytes(dtype);
    size_t column = (size_t)at % of->pitch / size;
    uint32_t got = 0;
    uint32_t wanted = 0;
    memcpy(&got, found + row * of->pitch + column * size, size);
    memcpy(&wanted, (unsigned char *)rows_image(of, (int64_t)row) + column * size, size);
    if (of->payload.fill == EP_FILL_PATTERN) {
        char got_text[80];
        char wanted_text[80];
        CHECK_SAY(0, "%s: %s: word %zu of row %zu is %s, not %s", step->what, of->tensor.name, column, row,
                  ep_pattern_text(got, got_text, sizeof got_text),
                  ep_pattern_text(wanted, wanted_text, sizeof wanted_text));
    } else {
        CHECK_SAY(0, "%s: %s: element %zu of row %zu is %g (0x%x), not %g (0x%x)", step->what, of->tensor.name, column,
                  row, ep_bits_value(dtype, got), got, ep_bits_value(dtype, wanted), wanted);
    }
}

static void rows_check(const ep_step *step, const row_tensor *of)
{
    long at;
    unsigned char *found = ep_tensor_differs(&of->tensor, &at);
    if (found != NULL) {
        rows_say(step, of, found, at);
        free(found);
    }
    scales_check(step, of);
}

/* An array of 4-byte words, absent in one call of six; then nothing is expected of it. */
typedef struct word_tensor {
    ep_tensor tensor;
    int is_float;
} word_tensor;

static word_tensor words_create(const ep_step *step, const char *name, size_t count, int is_float)
{
    word_tensor of = {.is_float = is_float};
    if (random_below(step->random, 6) != 0) {
        of.tensor = ep_tensor_create(step->memory, name, 4 * count);
    }
    return of;
}

static void *words_place(const ep_step *step, word_tensor *of)
{
    return of->tensor.image == NULL ? NULL : ep_tensor_place(&of->tensor, (unsigned)random_next(step->random));
}

static void words_set(const word_tensor *of, size_t at, const void *words, size_t count)
{
    if (of->tensor.image != NULL) {
        memcpy((unsigned char *)ep_tensor_image(&of->tensor) + 4 * at, words, 4 * count);
    }
}

static void words_check(const ep_step *step, const word_tensor *of)
{
    long at = 0;
    unsigned char *found = of->tensor.image == NULL ? NULL : ep_tensor_differs(&of->tensor, &at);
    if (found == NULL) {
        return;
    }
    if (at < 0 || (size_t)at >= of->tensor.bytes) {
        CHECK_SAY(0, "%s: wrote outside of %s, at byte %ld of %zu", step->what, of->tensor.name, at, of->tensor.bytes);
    } else if (of->is_float) {
        const float *got = (const float *)(const void *)found;
        const float *wanted = ep_tensor_image(&of->tensor);
        CHECK_SAY(0, "%s: %s[%ld] is %.9g, not %.9g", step->what, of->tensor.name, at / 4, (double)got[at / 4],
                  (double)wanted[at / 4]);
    } else {
        const int32_t *got = (const int32_t *)(const void *)found;
        const int32_t *wanted = ep_tensor_image(&of->tensor);
        CHECK_SAY(0, "%s: %s[%ld] is %d, not %d", step->what, of->tensor.name, at / 4, got[at / 4], wanted[at / 4]);
    }
    free(found);
}

/* ---- update ---- */

static void check_numbers(const ep_step *step, const char *name, const int32_t *there, const int *wanted, size_t count)
{
    int32_t *got = malloc((count + 1) * sizeof *got);
    step->memory->fetch(step->memory->context, got, there, count * sizeof *got);
    for (size_t i = 0; i < count; i++) {
        if (!CHECK_SAY(got[i] == wanted[i], "%s: %s[%zu] is %d, not %d", step->what, name, i, got[i], wanted[i])) {
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
    CHECK_SAY(host.rows == side->rows, "%s: %lld rows, not %lld", step->what, (long long)host.rows,
              (long long)side->rows);
    CHECK_SAY(host.status == status_of(step), "%s: status %s, not %s", step->what, weft_status_name(host.status),
              weft_status_name(status_of(step)));
    CHECK_SAY(host.dropped == side->out_of_range, "%s: %lld dropped, not %d", step->what, (long long)host.dropped,
              side->out_of_range);
    CHECK_SAY(host.tokens == side->tokens, "%s: %lld tokens, not %lld", step->what, (long long)host.tokens,
              (long long)side->tokens);
    CHECK_SAY(host.dropped_rows == side->dropped_rows, "%s: %lld dropped rows, not %lld", step->what,
              (long long)host.dropped_rows, (long long)side->dropped_rows);
    CHECK(host.local_experts == setup->table[step->rank] && host.first_expert == setup->first[step->rank]);
}

void ep_step_check_counts(const ep_step *step)
{
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
    check_numbers(step, "offset_of_source", counts.offset_of_source, side->offset_of_source, ranks + 1);
    check_numbers(step, "rows_of_expert_source", counts.rows_of_expert_source, side->rows_of_expert_source,
                  experts * ranks);
    check_number(step, "dropped_rows", counts.dropped_rows, side->dropped_rows);
}

/* The ids in the type asked for. */
static ep_tensor ids_create(const ep_step *step)
{
    const ep_case *one = step->routing->one;
    size_t count = (size_t)tokens_of(step) * (size_t)one->plan.topk;
    ep_tensor tensor = ep_tensor_create(step->memory, "ids", count * (one->id_type == WEFT_EP_INT64 ? 8 : 4));
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
    ep_tensor tensor = ep_tensor_create(step->memory, "weights", bytes);
    memcpy(ep_tensor_image(&tensor), one->weights[step->rank], bytes);
    return tensor;
}

/* The arrays of a call that routes. */
typedef struct choice_tensors {
    ep_tensor ids;
    ep_tensor weights;
    ep_tensor told;
} choice_tensors;

static choice_tensors choices_create(const ep_step *step, weft_ep_choices *choices)
{
    const ep_case *one = step->routing->one;
    choice_tensors of = {.ids = ids_create(step), .weights = weights_create(step)};
    *choices = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
    choices->tokens = one->tokens_most[step->rank];
    choices->id_type = one->id_type;
    choices->ids = ep_tensor_place(&of.ids, (unsigned)random_next(step->random));
    if (of.weights.image != NULL) {
        choices->weights = ep_tensor_place(&of.weights, (unsigned)random_next(step->random));
    }
    if (one->is_told[step->rank]) {
        of.told = ep_tensor_create(step->memory, "tokens_at", sizeof(int32_t));
        memcpy(ep_tensor_image(&of.told), &one->tokens_told[step->rank], sizeof(int32_t));
        choices->tokens_at = ep_tensor_place(&of.told, (unsigned)random_next(step->random));
    }
    return of;
}

static void choices_destroy(choice_tensors *of)
{
    ep_tensor_destroy(&of->ids);
    ep_tensor_destroy(&of->weights);
    ep_tensor_destroy(&of->told);
}

void ep_step_update(const ep_step *step)
{
    weft_ep_choices choices;
    choice_tensors of = choices_create(step, &choices);
    dawdle(step);
    int ok = CHECK_OK(weft_ep_route_update(step->route, &choices, step->stream));
    choices_destroy(&of);
    if (ok) {
        ep_step_check_counts(step);
    }
}

/* ---- dispatch ---- */

/* What a dispatch receives. */
typedef struct received_tensors {
    row_tensor rows;
    word_tensor weights;
    word_tensor experts;
    word_tensor source_rank;
    word_tensor source_token;
} received_tensors;

static received_tensors received_create(const ep_step *step, const ep_payload *payload, weft_ep_received *out)
{
    size_t rows = (size_t)side_of(step)->rows;
    size_t width = (size_t)ep_row_width(&step->routing->one->plan);
    received_tensors to = {
        .rows = rows_create(step, "received rows", payload, side_of(step)->rows),
        .weights = words_create(step, "received weights", rows * width, 1),
        .experts = words_create(step, "received experts", rows * width, 0),
        .source_rank = words_create(step, "source_rank", rows, 0),
        .source_token = words_create(step, "source_token", rows, 0),
    };
    rows_place(step, &to.rows);
    *out = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    out->rows = to.rows.rows;
    out->rows_capacity = rows + random_below(step->random, 3);
    out->weights = words_place(step, &to.weights);
    out->experts = words_place(step, &to.experts);
    out->source_rank = words_place(step, &to.source_rank);
    out->source_token = words_place(step, &to.source_token);
    return to;
}

static void expect_labels(const ep_step *step, const received_tensors *to, int64_t row)
{
    const ep_row *what = &side_of(step)->row[row];
    size_t width = (size_t)ep_row_width(&step->routing->one->plan);
    float weights[EP_TOPK_MAX];
    int32_t experts[EP_TOPK_MAX];
    if (ep_reference_labels(step->routing, step->rank, row, weights, experts)) {
        words_set(&to->weights, (size_t)row * width, weights, width);
        words_set(&to->experts, (size_t)row * width, experts, width);
        words_set(&to->source_rank, (size_t)row, &what->source, 1);
        words_set(&to->source_token, (size_t)row, &what->token, 1);
    }
}

static void expect_row(const ep_payload *payload, const row_tensor *rows, int64_t row, const ep_row *what)
{
    if (payload->dtype == rows->payload.dtype) {
        rows_fill(rows, row, what->source, what->token);
    } else {
        uint32_t scales[EP_SCALE_WORDS_MAX];
        ep_reference_quantise(payload, what->source, what->token, &rows->payload, rows_image(rows, row), scales);
        scales_set(rows, row, scales);
    }
}

static void received_expect(const ep_step *step, const ep_payload *payload, const received_tensors *to)
{
    const ep_side *side = side_of(step);
    for (int64_t i = 0; i < side->rows; i++) {
        if (side->row[i].source >= 0) {
            expect_row(payload, &to->rows, i, &side->row[i]);
        } else if (step->routing->one->plan.flags & WEFT_EP_ZERO_PADDING) {
            rows_zero(&to->rows, i);
        }
        expect_labels(step, to, i);
    }
}

static void received_check(const ep_step *step, const received_tensors *to)
{
    rows_check(step, &to->rows);
    words_check(step, &to->weights);
    words_check(step, &to->experts);
    words_check(step, &to->source_rank);
    words_check(step, &to->source_token);
}

static void received_destroy(received_tensors *to)
{
    rows_destroy(&to->rows);
    ep_tensor_destroy(&to->weights.tensor);
    ep_tensor_destroy(&to->experts.tensor);
    ep_tensor_destroy(&to->source_rank.tensor);
    ep_tensor_destroy(&to->source_token.tensor);
}

static row_tensor token_rows(const ep_step *step, const char *name, const ep_payload *payload)
{
    row_tensor in = rows_create(step, name, payload, tokens_of(step));
    for (int token = 0; token < tokens_of(step); token++) {
        rows_fill(&in, token, step->rank, token);
    }
    rows_place(step, &in);
    return in;
}

static weft_status wanted_status(const ep_step *step)
{
    return step->routing->overflow ? WEFT_ERR_OVERFLOW : WEFT_OK;
}

void ep_step_dispatch(const ep_step *step, const ep_payload *payload, const ep_payload *received)
{
    weft_ep_received out;
    received_tensors to = received_create(step, received, &out);
    row_tensor in = token_rows(step, "token rows", payload);
    dawdle(step);
    int ok = CHECK_STATUS(weft_ep_dispatch(step->route, &in.rows, &out, step->stream), wanted_status(step));
    rows_check(step, &in);
    rows_destroy(&in);
    dawdle(step); /* a consumer may be slow; nobody may write here yet */
    if (ok && !step->routing->overflow) {
        received_expect(step, payload, &to);
    }
    received_check(step, &to);
    received_destroy(&to);
}

/* ---- combine ---- */

/* A row for each received, padding and slots that nobody fills left poisoned. */
static row_tensor result_rows(const ep_step *step, const char *name, const ep_payload *payload)
{
    const ep_side *side = side_of(step);
    row_tensor in = rows_create(step, name, payload, side->rows);
    for (int64_t i = 0; i < side->rows; i++) {
        if (side->row[i].source >= 0) {
            rows_fill(&in, i, step->rank, (int)i);
        }
    }
    rows_place(step, &in);
    return in;
}

static void expect_sums(const ep_step *step, const row_tensor *out, int token, const ep_sum *sums)
{
    const ep_payload *payload = &out->payload;
    for (int column = 0; column < payload->hidden; column++) {
        const ep_sum *sum = &sums[column];
        double error = fabs(ep_bits_value(payload->dtype, sum->bits) - sum->exact);
        ep_element_set(payload->dtype, rows_image(out, token), column, sum->bits);
        CHECK_SAY(payload->fill == EP_FILL_WILD || error <= sum->bound, "%s: token %d, column %d is off by %g from %g",
                  step->what, token, column, error, sum->exact);
    }
}

static void combined_expect(const ep_step *step, const row_tensor *out, unsigned flags)
{
    ep_sum *sums = malloc((size_t)out->payload.hidden * sizeof *sums);
    for (int token = 0; token < tokens_of(step); token++) {
        ep_reference_combine(step->routing, &out->payload, step->rank, token, flags, sums);
        expect_sums(step, out, token, sums);
    }
    free(sums);
}

void ep_step_combine(const ep_step *step, const ep_payload *payload, unsigned flags)
{
    row_tensor in = result_rows(step, "result rows", payload);
    row_tensor out = rows_create(step, "combined rows", payload, tokens_of(step));
    rows_place(step, &out);
    dawdle(step);
    int ok = CHECK_STATUS(weft_ep_combine(step->route, &in.rows, &out.rows, flags, step->stream), wanted_status(step));
    rows_check(step, &in);
    rows_destroy(&in);
    dawdle(step);
    if (ok && !step->routing->overflow) {
        combined_expect(step, &out, flags);
    }
    rows_check(step, &out);
    rows_destroy(&out);
}
