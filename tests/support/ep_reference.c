/* support/ep_reference.c: what each array must hold after an expert-parallel call. */
#include "support/ep_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int ep_reference_labels(const ep_routing *routing, int rank, int64_t row, float *weights, int32_t *experts)
{
    const ep_case *one = routing->one;
    const ep_row *what = &routing->side[rank].row[row];
    int by_expert = ep_is_by_expert(one->plan.layout);
    if (what->source < 0 && ep_is_slots(one->plan.layout)) {
        return 0;
    }
    for (int i = 0; i < ep_row_width(&one->plan); i++) {
        weights[i] = 0.0f;
        experts[i] = by_expert ? what->expert : -1;
    }
    for (int k = 0; k < one->plan.topk && what->source >= 0; k++) {
        int owner = ep_owner_of(one, what->source, what->token, k);
        if (owner == rank && ep_row_of(routing, what->source, what->token, k) == row) {
            int i = by_expert ? 0 : k;
            weights[i] = ep_add(weights[i], ep_weight(one, what->source, what->token, k));
            experts[i] = ep_expert_of(one, what->source, what->token, k);
        } else if (one->plan.flags & WEFT_EP_ALL_WEIGHTS) {
            weights[k] = ep_weight(one, what->source, what->token, k);
        }
    }
    return 1;
}

/* ---- quantising ---- */

/* What a group's elements are divided by, as protocol/fp8.h states it: its bits, of a power of two the byte of ue8m0,
 * and what they are multiplied by. */
static float scale_of(const ep_payload *payload, int rank, int row, int group, int each, int rounds_up, uint32_t *bits)
{
    float amax = 1e-4f;
    for (int i = each * group; i < payload->hidden && i < each * (group + 1); i++) {
        double x = fabs(ep_bits_value(payload->dtype, ep_row_element(payload, rank, row, i)));
        x = x > (double)FLT_MAX ? (double)FLT_MAX : x;
        amax = x > (double)amax ? (float)x : amax;
    }
    float scale = (float)((double)amax / 448.0);
    int exponent;
    if (!rounds_up) {
        memcpy(bits, &scale, sizeof *bits);
        return (float)(448.0 / (double)amax);
    }
    exponent = frexpf(scale, &exponent) == 0.5f ? exponent - 1 : exponent; /* 2^exponent >= scale */
    *bits = (uint32_t)(exponent + 127);
    return ldexpf(1.0f, -exponent);
}

void ep_reference_quantise(const ep_payload *payload, int rank, int row, const ep_payload *to, unsigned char *elements,
                           uint32_t *scales)
{
    int rounds_up = to->scale_type != WEFT_EP_SCALE_F32;
    int each = to->scale_type == WEFT_EP_SCALE_UE8M0_32 ? 32 : 128;
    memset(scales, 0, (size_t)ep_scale_words(to) * sizeof *scales);
    for (int group = 0; group < (payload->hidden + each - 1) / each; group++) {
        uint32_t bits;
        float inverse = scale_of(payload, rank, row, group, each, rounds_up, &bits);
        if (to->scale_type == WEFT_EP_SCALE_F32_POW2) {
            scales[group] = bits << 23;
        } else if (rounds_up) {
            scales[group / 4] |= bits << group % 4 * 8;
        } else {
            scales[group] = bits;
        }
        for (int i = each * group; i < payload->hidden && i < each * (group + 1); i++) {
            float value = (float)ep_bits_value(payload->dtype, ep_row_element(payload, rank, row, i));
            elements[i] = (unsigned char)ep_value_bits(WEFT_EP_FP8_E4M3, ep_multiply(value, inverse));
        }
    }
}

/* ---- sums ---- */

/* What of a token is on one owner: the rows, in ascending choice, and the weight of each. */
typedef struct token_rows {
    int owner;
    int count;
    int row[64];
    float weight[64];
} token_rows;

/* Whether the choice takes part in the call. */
static int participates(const ep_routing *routing, const ep_combining *combining, int token, int choice)
{
    return combining == NULL || combining->absent == NULL ||
           !combining->absent[token * routing->one->plan.topk + choice];
}

static token_rows rows_on(const ep_routing *routing, const ep_combining *combining, int owner, int source, int token)
{
    int topk = routing->one->plan.topk;
    token_rows rows = {.owner = owner};
    for (int k = 0; k < topk; k++) {
        int row = ep_row_of(routing, source, token, k);
        if (row >= 0 && ep_owner_of(routing->one, source, token, k) == owner &&
            participates(routing, combining, token, k)) {
            rows.row[rows.count] = row;
            rows.weight[rows.count++] = combining != NULL && combining->weights != NULL
                                            ? combining->weights[token * topk + k]
                                            : ep_weight(routing->one, source, token, k);
        }
    }
    return rows;
}

/* Each row once. */
static void leave_distinct(token_rows *rows)
{
    int count = 0;
    for (int i = 0; i < rows->count; i++) {
        int seen = 0;
        for (int j = 0; j < count; j++) {
            seen |= rows->row[j] == rows->row[i];
        }
        if (!seen) {
            rows->row[count++] = rows->row[i];
        }
    }
    rows->count = count;
}

static float sum_weights(const token_rows *rows)
{
    float sum = 0.0f;
    for (int i = 0; i < rows->count; i++) {
        sum = ep_add(sum, rows->weight[i]);
    }
    return sum;
}

/* One element of the partial sum of an owner. */
typedef struct partial {
    float sum; /* in the order stated, not yet rounded to the rows' type */
    double exact;
    double terms; /* the sum of the magnitudes of what is added */
} partial;

static double element(const ep_payload *payload, int rank, int row, int column)
{
    return ep_bits_value(payload->dtype, ep_row_element(payload, rank, row, column));
}

static partial add_choices(const ep_payload *payload, const token_rows *rows, int weighted, int column)
{
    partial of = {0.0f, 0.0, 0.0};
    for (int i = 0; i < rows->count; i++) {
        double value = element(payload, rows->owner, rows->row[i], column);
        double term = weighted ? (double)rows->weight[i] * value : value;
        of.sum = weighted ? fmaf(rows->weight[i], (float)value, of.sum) : ep_add(of.sum, (float)value);
        of.exact += term;
        of.terms += fabs(term);
    }
    return of;
}

static partial take_one(const ep_payload *payload, const token_rows *rows, int weighted, int column)
{
    double value = element(payload, rows->owner, rows->row[0], column);
    partial of = {(float)value, value, fabs(value)};
    if (weighted) {
        double weights = 0.0;
        of.terms = 0.0;
        for (int i = 0; i < rows->count; i++) {
            weights += (double)rows->weight[i];
            of.terms += fabs((double)rows->weight[i] * value);
        }
        of.exact = weights * value;
        of.sum = ep_multiply(sum_weights(rows), (float)value);
    }
    return of;
}

/* Sums over the ranks of one element. */
typedef struct total {
    float sum;
    double exact;
    double partials; /* the sum of the magnitudes of the partial sums */
    double terms;
    int count;
} total;

static float rounded(weft_ep_dtype dtype, float value)
{
    return (float)ep_bits_value(dtype, ep_value_bits(dtype, value));
}

/* What has been added in a domain, rounded: its partial sums are terms of the bound as those of its ranks are. */
static void add_domain(const ep_payload *payload, const total *of, total *sum)
{
    sum->sum = ep_add(sum->sum, rounded(payload->dtype, of->sum));
    sum->exact += of->exact;
    sum->partials += of->partials + fabs(of->exact) + of->partials * ep_unit_roundoff(payload->dtype);
    sum->terms += of->terms;
    sum->count += of->count + 1;
}

static void add_partial(const ep_payload *payload, const partial *of, total *sum)
{
    sum->sum = ep_add(sum->sum, rounded(payload->dtype, of->sum));
    sum->exact += of->exact;
    sum->partials += fabs(of->exact);
    sum->terms += of->terms;
    sum->count++;
}

/* The bound of DESIGN: 2^-8 (|exact| + the sum of |partial|) in bf16, and accordingly with the roundoff of other types,
 * beside what sums in float32 lose: 2^-23 of all magnitudes a term. In float32 only the latter is left. */
static ep_sum finish(const ep_routing *routing, const ep_payload *payload, weft_ep_dtype out, const total *sum)
{
    double in_float = 0x1p-23 * (routing->one->plan.topk + routing->one->setup->ranks + 2) * sum->terms;
    double in_type = (ep_unit_roundoff(payload->dtype) + (out != payload->dtype ? ep_unit_roundoff(out) : 0.0)) *
                         (fabs(sum->exact) + sum->partials) +
                     (sum->count + 1) * (ep_least_roundoff(payload->dtype) + ep_least_roundoff(out));
    return (ep_sum){.bits = ep_value_bits(out, sum->sum),
                    .exact = sum->exact,
                    .bound = payload->dtype == WEFT_EP_F32 && out == WEFT_EP_F32 ? in_float : in_type + in_float};
}

/* The last choice of the token on the owner that takes part, or -1. */
static int last_choice(const ep_routing *routing, const ep_combining *combining, int owner, int rank, int token)
{
    int last = -1;
    for (int k = 0; k < routing->one->plan.topk; k++) {
        if (ep_row_of(routing, rank, token, k) >= 0 && ep_owner_of(routing->one, rank, token, k) == owner &&
            participates(routing, combining, token, k)) {
            last = k;
        }
    }
    return last;
}

/* The ranks in the order of their domains, there in that of the plan; those without a choice come somewhere. */
static void order_owners(const ep_routing *routing, const ep_combining *combining, int rank, int token, int *order)
{
    int last[EP_RANKS_MAX];
    int ranks = routing->one->setup->ranks;
    for (int owner = 0; owner < ranks; owner++) {
        last[owner] = routing->one->plan.order == WEFT_EP_ORDER_CHOICE
                          ? last_choice(routing, combining, owner, rank, token)
                          : owner;
    }
    const int *domain = routing->one->setup->domain;
    for (int owner = 0; owner < ranks; owner++) {
        int before = 0;
        for (int other = 0; other < ranks; other++) {
            int sooner = last[other] < last[owner] || (last[other] == last[owner] && other < owner);
            before += domain[other] < domain[owner] || (domain[other] == domain[owner] && sooner);
        }
        order[before] = owner;
    }
}

/* The biases, as they are. */
static void add_biases(const ep_combining *combining, int rank, int token, int hidden, total *totals)
{
    for (int i = 0; combining != NULL && i < combining->biases; i++) {
        for (int column = 0; column < hidden; column++) {
            double value = element(&combining->bias[i], rank, token, column);
            add_partial(&combining->bias[i], &(partial){(float)value, value, fabs(value)}, &totals[column]);
        }
    }
}

static void add_owners(const ep_routing *routing, const ep_payload *payload, int rank, int token, int weighted,
                       int distinct, const ep_combining *combining, ep_sum *sums)
{
    int by_expert = ep_is_by_expert(routing->one->plan.layout);
    int order[EP_RANKS_MAX];
    const int *domain = routing->one->setup->domain;
    int ranks = routing->one->setup->ranks;
    int is_one_domain = ep_domains(routing->one->setup) == 1;
    total *totals = calloc((size_t)payload->hidden, sizeof *totals);
    total *within = calloc((size_t)payload->hidden, sizeof *within); /* a domain */
    int biases_first = routing->one->plan.order == WEFT_EP_ORDER_CHOICE;
    if (biases_first) {
        add_biases(combining, rank, token, payload->hidden, totals);
    }
    order_owners(routing, combining, rank, token, order);
    for (int number = 0; number < ranks; number++) {
        int owner = order[number];
        token_rows rows = rows_on(routing, combining, owner, rank, token);
        rows.count = routing->masked[owner] ? 0 : rows.count;
        if (distinct) {
            leave_distinct(&rows);
        }
        for (int column = 0; column < payload->hidden && rows.count > 0; column++) {
            partial of =
                by_expert ? add_choices(payload, &rows, weighted, column) : take_one(payload, &rows, weighted, column);
            add_partial(payload, &of, is_one_domain ? &totals[column] : &within[column]);
        }
        int is_last = number + 1 == ranks || domain[order[number + 1]] != domain[owner];
        for (int column = 0; column < payload->hidden && is_last && !is_one_domain; column++) {
            add_domain(payload, &within[column], &totals[column]);
            within[column] = (total){0};
        }
    }
    if (!biases_first) {
        add_biases(combining, rank, token, payload->hidden, totals);
    }
    for (int column = 0; column < payload->hidden; column++) {
        weft_ep_dtype out = combining != NULL && combining->out_dtype != 0 ? combining->out_dtype : payload->dtype;
        sums[column] = finish(routing, payload, out, &totals[column]);
    }
    free(totals);
    free(within);
}

void ep_reference_combine(const ep_routing *routing, const ep_payload *payload, int rank, int token, unsigned flags,
                          const ep_combining *combining, ep_sum *sums)
{
    add_owners(routing, payload, rank, token, (flags & WEFT_EP_WEIGHTED) != 0, 0, combining, sums);
}

void ep_reference_values(const ep_routing *routing, const ep_combining *combining, int rank, int token, float *sums)
{
    int topk = routing->one->plan.topk;
    int by_expert = ep_is_by_expert(routing->one->plan.layout);
    int order[EP_RANKS_MAX];
    int first_row[EP_RANKS_MAX];
    order_owners(routing, combining, rank, token, order);
    for (int owner = 0; owner < routing->one->setup->ranks; owner++) {
        token_rows rows = rows_on(routing, NULL, owner, rank, token);
        first_row[owner] = rows.count > 0 ? rows.row[0] : -1;
    }
    const int *domain = routing->one->setup->domain;
    for (int k = 0; k < topk; k++) {
        float within = 0.0f; /* a domain */
        sums[k] = 0.0f;
        for (int number = 0; number < routing->one->setup->ranks; number++) {
            int owner = order[number];
            if (number > 0 && domain[order[number - 1]] != domain[owner]) {
                sums[k] = ep_add(sums[k], within);
                within = 0.0f;
            }
            int is_own = ep_owner_of(routing->one, rank, token, k) == owner;
            int row = by_expert ? (is_own ? ep_row_of(routing, rank, token, k) : -1) : first_row[owner];
            if (row >= 0 && !routing->masked[owner]) {
                within = ep_add(within, (float)element(&combining->values, owner, row, by_expert ? 0 : k));
            }
        }
        sums[k] = ep_add(sums[k], within);
    }
}

/* ---- gradients ---- */

void ep_reference_dispatch_bwd(const ep_routing *routing, const ep_payload *payload, int rank, int token, ep_sum *sums)
{
    add_owners(routing, payload, rank, token, 0, 1, NULL, sums);
}

void ep_reference_combine_bwd(const ep_routing *routing, const ep_payload *payload, int rank, int64_t row,
                              unsigned flags, uint32_t *bits)
{
    const ep_row *what = &routing->side[rank].row[row];
    token_rows all = rows_on(routing, NULL, rank, what->source, what->token);
    token_rows rows = {.owner = rank};
    for (int i = 0; i < all.count; i++) {
        if (all.row[i] == row) {
            rows.weight[rows.count++] = all.weight[i];
        }
    }
    /* How often combine adds the row: once a choice, where a row is of one expert. */
    int times = ep_is_by_expert(routing->one->plan.layout) ? rows.count : 1;
    float factor = (flags & WEFT_EP_WEIGHTED) != 0 ? sum_weights(&rows) : (float)times;
    for (int column = 0; column < payload->hidden; column++) {
        uint32_t gradient = ep_row_element(payload, what->source, what->token, column);
        float product = ep_multiply(factor, (float)ep_bits_value(payload->dtype, gradient));
        int is_copy = (flags & WEFT_EP_WEIGHTED) == 0 && times == 1;
        bits[column] = is_copy ? gradient : ep_value_bits(payload->dtype, product);
    }
}

/* The products of a row summed in the stated order: 256 sums by fma, element i into sum i mod 256, then these in a
 * tree. */
float ep_reference_weight_bwd(const ep_routing *routing, const ep_payload *payload, const ep_payload *rows, int rank,
                              int token, int choice)
{
    float sums[256] = {0};
    int owner = ep_owner_of(routing->one, rank, token, choice);
    int row = ep_row_of(routing, rank, token, choice);
    if (row < 0 || routing->masked[owner]) {
        return 0.0f;
    }
    for (int i = 0; i < payload->hidden; i++) {
        float gradient = (float)element(payload, rank, token, i);
        sums[i % 256] = fmaf((float)element(rows, owner, row, i), gradient, sums[i % 256]);
    }
    for (int width = 1; width < 8; width *= 2) { /* of eight neighbours each */
        for (int i = 0; i < 256; i += 2 * width) {
            sums[i] = ep_add(sums[i], sums[i + width]);
        }
    }
    for (int width = 16; width > 0; width /= 2) {
        for (int j = 0; j < width; j++) {
            sums[8 * j] = ep_add(sums[8 * j], sums[8 * (j + width)]);
        }
    }
    return sums[0];
}
