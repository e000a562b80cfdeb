/* support/ep_step.c: what the calls of a rank's step share: its rows and values, what is expected of sums, pauses, and
 * what is met. The calls: ep_step_update.c, ep_step_dispatch.c, ep_step_combine.c, ep_step_backward.c. */
#include "support/ep_step_calls.h"

#include <math.h>
#include <stdlib.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ep_workers.h"

#define SUM_WORK 4 /* an element of a sum takes as long as so many that are filled in */

const ep_side *ep_step_side_of(const ep_step *step)
{
    return &step->routing->side[step->rank];
}

int ep_step_tokens_of(const ep_step *step)
{
    return step->routing->one->tokens[step->rank];
}

void ep_step_dawdle(const ep_step *step)
{
    if (step->slow_us > 0 && random_below(step->arrays.random, 3) == 0) {
        wefti_os_sleep_ns(UINT64_C(1000) * random_below(step->arrays.random, step->slow_us));
    }
}

void ep_step_pause(const ep_step *step, ep_moment moment)
{
    if (step->meanwhile != NULL) {
        step->meanwhile(step->context, moment);
    } else if (moment == EP_BETWEEN_HALVES) {
        ep_step_dawdle(step);
    }
}

#define SMS_MOST 20 /* more than some groups have claimed */

void ep_step_vary_sms(const ep_step *step, unsigned salt)
{
    if (salt % 3 == 0) {
        CHECK_OK(weft_ep_route_sms(step->route, (int)((5 * salt + 7 * (unsigned)step->rank) % (SMS_MOST + 1))));
        ep_step_cover(step, EP_COVER_SMS, 1);
    }
}

/* ---- what is met ---- */

void ep_step_cover(const ep_step *step, ep_coverage what, long times)
{
    ep_cover(what, step->rank == 0 ? times : 0);
}

void ep_step_cover_routing(const ep_step *step)
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
    ep_step_cover(step, layouts[one->plan.layout], 1);
    ep_step_cover(step, EP_COVER_ALL_WEIGHTS, (one->plan.flags & WEFT_EP_ALL_WEIGHTS) != 0);
    ep_step_cover(step, EP_COVER_BY_CHOICE, one->plan.order == WEFT_EP_ORDER_CHOICE);
    ep_step_cover(step, EP_COVER_PADDED, one->plan.alignment > 1);
    ep_step_cover(step, EP_COVER_OVERFLOW, step->routing->overflow);
    ep_step_cover(step, EP_COVER_DROPPED, dropped > 0);
    ep_step_cover(step, EP_COVER_DROPPED_ALONE, dropped > 0 && step->routing->drops_rows);
    ep_step_cover(step, EP_COVER_OUT_OF_RANGE, wrong > 0);
    ep_step_cover(step, EP_COVER_CLAMPED, clamped > 0);
    ep_step_cover(step, EP_COVER_NO_ROWS, tokens == 0);
}

void ep_step_cover_rows(const ep_step *step, const ep_payload *payload, const ep_payload *received)
{
    static const ep_coverage dtypes[] = {
        [WEFT_EP_F32] = EP_COVER_F32,      [WEFT_EP_BF16] = EP_COVER_BF16,   [WEFT_EP_F16] = EP_COVER_F16,
        [WEFT_EP_FP8_E4M3] = EP_COVER_FP8, [WEFT_EP_BYTES] = EP_COVER_BYTES,
    };
    long rows = step->routing->overflow ? 0 : (long)ep_step_side_of(step)->tokens;
    ep_step_cover(step, dtypes[payload->dtype], rows);
    ep_step_cover(step, EP_COVER_BYTE_SCALES, payload->scale_type == WEFT_EP_SCALE_BYTES ? rows : 0);
    ep_step_cover(step, EP_COVER_QUANTISED, payload->dtype != received->dtype ? rows : 0);
    ep_step_cover(step, EP_COVER_MX,
                  payload->dtype != received->dtype && received->scale_type == WEFT_EP_SCALE_UE8M0_32 ? rows : 0);
    ep_step_cover(step, EP_COVER_LARGE, rows * (long)ep_row_bytes(received) > 256 << 10);
    ep_step_cover(step, EP_COVER_HALVES, step->halves);
}

/* ---- rows ---- */

/* Filling rows of `to` with the payload; with `side` only rows that have a source. */
typedef struct filling {
    int rank;
    const ep_row_array *to;
    const ep_side *side; /* or NULL: all */
} filling;

static void fill_rows(void *context, int64_t first, int64_t end)
{
    const filling *of = context;
    for (int64_t i = first; i < end; i++) {
        if (of->side == NULL || of->side->row[i].source >= 0) {
            ep_rows_fill(of->to, i, of->rank, (int)i);
        }
    }
}

ep_row_array ep_step_token_rows(const ep_step *step, const char *name, const ep_payload *payload)
{
    ep_row_array in = ep_rows_create(&step->arrays, name, payload, ep_step_tokens_of(step));
    filling of = {step->rank, &in, NULL};
    ep_workers_run(ep_step_tokens_of(step), (size_t)payload->hidden, fill_rows, &of);
    ep_rows_place(&step->arrays, &in);
    return in;
}

weft_status ep_step_wanted_status(const ep_step *step)
{
    return step->routing->overflow && !step->is_late ? WEFT_ERR_OVERFLOW : WEFT_OK;
}

/* A row for each received, padding and slots that nobody fills left poisoned. */
ep_row_array ep_step_result_rows(const ep_step *step, const char *name, const ep_payload *payload)
{
    const ep_side *side = ep_step_side_of(step);
    ep_row_array in = ep_rows_create(&step->arrays, name, payload, side->rows);
    filling of = {step->rank, &in, side};
    ep_workers_run(side->rows, (size_t)payload->hidden, fill_rows, &of);
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

typedef struct summing {
    const ep_step *step;
    const ep_row_array *out;
    ep_step_reference *reference;
    const void *context;
} summing;

static void expect_some(void *context, int64_t first, int64_t end)
{
    const summing *of = context;
    ep_sum *sums = malloc((size_t)of->out->payload.hidden * sizeof *sums);
    for (int64_t token = first; token < end; token++) {
        of->reference(of->context, of->step, (int)token, sums);
        expect_sums(of->step, of->out, (int)token, sums);
    }
    free(sums);
}

void ep_step_expect_sums(const ep_step *step, const ep_row_array *out, ep_step_reference *reference,
                         const void *context)
{
    summing of = {step, out, reference, context};
    ep_workers_run(ep_step_tokens_of(step), SUM_WORK * (size_t)out->payload.hidden, expect_some, &of);
}

size_t ep_step_choices_of(const ep_step *step)
{
    return (size_t)ep_step_tokens_of(step) * (size_t)step->routing->one->plan.topk;
}

/* Values of received rows, or gradients of their weights: floats that are a pure function of rank, row and place. */
ep_payload ep_step_values(const ep_step *step, const ep_payload *payload)
{
    return (ep_payload){.dtype = WEFT_EP_F32,
                        .hidden = ep_row_width(&step->routing->one->plan),
                        .fill = payload->fill == EP_FILL_INTEGER ? EP_FILL_INTEGER : EP_FILL_REAL,
                        .salt = payload->salt + 1000};
}

ep_word_array ep_step_received_gradients(const ep_step *step, const ep_payload *of)
{
    const ep_side *side = ep_step_side_of(step);
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
