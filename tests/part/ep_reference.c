/* part/ep_reference.c: expert parallelism done serially by one who sees all ranks. */
#include "part/ep_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which partial sum is meant. */
typedef struct ep_place {
    int owner;
    int source;
    int token;
    int weighted;
    unsigned salt;
} ep_place;

static int is_expert(const ep_case *one, int64_t id)
{
    return id >= 0 && id < one->setup->config.experts;
}

static int64_t id_of(const ep_case *one, int source, int token, int choice)
{
    return one->ids[source][(size_t)token * (size_t)one->plan.topk + (size_t)choice];
}

static float weight_of(const ep_case *one, int source, int token, int choice)
{
    const float *weights = one->weights[source];
    return weights != NULL ? weights[(size_t)token * (size_t)one->plan.topk + (size_t)choice] : 1.0f;
}

/* The local expert on `rank` of a choice, or -1. */
static int local_expert(const ep_case *one, int rank, int source, int token, int choice)
{
    int64_t id = id_of(one, source, token, choice);
    int64_t first = one->setup->first[rank];
    return is_expert(one, id) && id >= first && id < first + one->setup->table[rank] ? (int)(id - first) : -1;
}

static int goes_to(const ep_case *one, int rank, int source, int token)
{
    for (int k = 0; k < one->plan.topk; k++) {
        if (local_expert(one, rank, source, token, k) >= 0) {
            return 1;
        }
    }
    return 0;
}

static int round_up(int count, int alignment)
{
    return alignment > 1 ? (count + alignment - 1) / alignment * alignment : count;
}

/* The choices of each expert, by all ranks; to be freed. */
static int *count_choices(const ep_case *one)
{
    int *counts = calloc((size_t)one->setup->config.experts, sizeof *counts);
    for (int source = 0; source < one->setup->ranks; source++) {
        for (size_t i = 0; i < (size_t)one->tokens[source] * (size_t)one->plan.topk; i++) {
            if (is_expert(one, one->ids[source][i])) {
                counts[one->ids[source][i]]++;
            }
        }
    }
    return counts;
}

static int count_of_source(const ep_case *one, int rank, int source)
{
    int count = 0;
    for (int token = 0; token < one->tokens[source]; token++) {
        count += goes_to(one, rank, source, token);
    }
    return count;
}

int64_t ep_reference_rows(const ep_case *one, int rank)
{
    int64_t rows = 0;
    if (one->plan.layout == WEFT_EP_EXPERT_MAJOR) {
        int *counts = count_choices(one);
        for (int expert = 0; expert < one->setup->table[rank]; expert++) {
            rows += round_up(counts[one->setup->first[rank] + expert], one->plan.alignment);
        }
        free(counts);
        return rows;
    }
    for (int source = 0; source < one->setup->ranks; source++) {
        rows += count_of_source(one, rank, source);
    }
    return rows;
}

static void list_rank_major(const ep_case *one, int rank, ep_expected *expected)
{
    int row = 0;
    for (int source = 0; source < one->setup->ranks; source++) {
        for (int token = 0; token < one->tokens[source]; token++) {
            if (goes_to(one, rank, source, token)) {
                expected->row[row++] = (ep_row){source, token, 0, -1};
            }
        }
    }
}

static void list_expert(const ep_case *one, int rank, int expert, ep_row *row)
{
    for (int source = 0; source < one->setup->ranks; source++) {
        for (int token = 0; token < one->tokens[source]; token++) {
            for (int k = 0; k < one->plan.topk; k++) {
                if (local_expert(one, rank, source, token, k) == expert) {
                    *row++ = (ep_row){source, token, k, expert};
                }
            }
        }
    }
}

static void count_all(const ep_case *one, int rank, ep_expected *expected)
{
    int expert_major = one->plan.layout == WEFT_EP_EXPERT_MAJOR;
    int local = one->setup->table[rank];
    int end = 0;
    int *counts = count_choices(one);
    for (int expert = 0; expert < local; expert++) {
        expected->rows_of_expert[expert] = counts[one->setup->first[rank] + expert];
        expected->offset_of_expert[expert] = expert_major ? end : 0;
        end += round_up(expected->rows_of_expert[expert], one->plan.alignment);
    }
    expected->offset_of_expert[local] = expert_major ? end : 0;
    free(counts);
    for (int source = 0; source < one->setup->ranks; source++) {
        expected->rows_of_source[source] = count_of_source(one, rank, source);
        expected->offset_of_source[source + 1] = expected->offset_of_source[source] + expected->rows_of_source[source];
    }
}

ep_expected ep_reference_route(const ep_case *one, int rank)
{
    ep_expected expected;
    int ranks = one->setup->ranks;
    int local = one->setup->table[rank];
    memset(&expected, 0, sizeof expected);
    for (int i = 0; i < ranks; i++) {
        size_t rows_max = one->setup->config.rows_max;
        expected.overflow |= rows_max != 0 && (size_t)ep_reference_rows(one, i) > rows_max;
    }
    for (size_t i = 0; i < (size_t)one->tokens[rank] * (size_t)one->plan.topk; i++) {
        expected.dropped += one->ids[rank][i] != -1 && !is_expert(one, one->ids[rank][i]);
    }
    expected.rows = (int)ep_reference_rows(one, rank);
    expected.row = calloc((size_t)expected.rows + 1, sizeof *expected.row);
    expected.rows_of_expert = calloc((size_t)local + 1, sizeof(int));
    expected.offset_of_expert = calloc((size_t)local + 1, sizeof(int));
    expected.rows_of_source = calloc((size_t)ranks, sizeof(int));
    expected.offset_of_source = calloc((size_t)ranks + 1, sizeof(int));
    count_all(one, rank, &expected);
    for (int i = 0; i < expected.rows; i++) {
        expected.row[i] = (ep_row){-1, -1, -1, -1};
    }
    if (one->plan.layout == WEFT_EP_RANK_MAJOR) {
        list_rank_major(one, rank, &expected);
    }
    for (int expert = 0; expert < local && one->plan.layout == WEFT_EP_EXPERT_MAJOR; expert++) {
        list_expert(one, rank, expert, &expected.row[expected.offset_of_expert[expert]]);
    }
    return expected;
}

void ep_expected_free(ep_expected *expected)
{
    free(expected->row);
    free(expected->rows_of_expert);
    free(expected->offset_of_expert);
    free(expected->rows_of_source);
    free(expected->offset_of_source);
    memset(expected, 0, sizeof *expected);
}

double ep_bits_value(weft_ep_dtype dtype, uint32_t bits)
{
    uint32_t wide = dtype == WEFT_EP_BF16 ? bits << 16 : bits;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* The value of a bf16 magnitude, infinity counted as the power of two that it stands for in rounding. */
static double magnitude(uint32_t bits)
{
    return bits == 0x7f80 ? ldexp(1.0, 128) : ep_bits_value(WEFT_EP_BF16, bits);
}

uint32_t ep_value_bits(weft_ep_dtype dtype, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == WEFT_EP_F32 || isinf(value)) {
        return dtype == WEFT_EP_F32 ? bits : bits >> 16;
    }
    if (isnan(value)) {
        return 0x7fff;
    }
    uint32_t below = bits >> 16 & 0x7fff;
    double under = fabs((double)value) - magnitude(below);
    double over = magnitude(below + 1) - fabs((double)value);
    uint32_t nearest = under < over ? below : over < under ? below + 1 : below + (below & 1);
    return (bits >> 31) << 15 | nearest;
}

static float rounded(weft_ep_dtype dtype, float value)
{
    return (float)ep_bits_value(dtype, ep_value_bits(dtype, value));
}

/* a + b in float: exact in double, rounded once more without harm. */
static float add(float a, float b)
{
    return (float)((double)a + (double)b);
}

/* One element of a partial sum. */
typedef struct ep_partial {
    float rounded; /* in the order stated */
    double exact;
    double terms; /* the sum of the magnitudes */
} ep_partial;

/* That of `owner`, whose choices k have here[k]. */
static ep_partial sum_choices(const ep_case *one, const ep_place *place, const int *here, int column)
{
    int expert_major = one->plan.layout == WEFT_EP_EXPERT_MAJOR;
    ep_partial partial = {0.0f, 0.0, 0.0};
    float sum = 0.0f;
    float weights = 0.0f;
    for (int k = 0; k < one->plan.topk; k++) {
        if (!here[k]) {
            continue;
        }
        float weight = weight_of(one, place->source, place->token, k);
        uint32_t bits =
            ep_result(one->dtype, place->owner, place->source, place->token, expert_major ? k : 0, column, place->salt);
        float value = (float)ep_bits_value(one->dtype, bits);
        double term = place->weighted ? (double)weight * (double)value : (double)value;
        weights = add(weights, weight);
        if (expert_major) {
            sum = place->weighted ? fmaf(weight, value, sum) : add(sum, value);
        } else {
            sum = place->weighted ? (float)((double)weights * (double)value) : value;
        }
        partial.exact = expert_major || place->weighted ? partial.exact + term : term;
        partial.terms += fabs(term);
    }
    partial.rounded = rounded(one->dtype, sum);
    return partial;
}

static void add_partial(const ep_case *one, const ep_place *place, float *totals, ep_sum *row)
{
    int *here = calloc((size_t)one->plan.topk, sizeof *here);
    for (int k = 0; k < one->plan.topk; k++) {
        here[k] = local_expert(one, place->owner, place->source, place->token, k) >= 0;
    }
    for (int column = 0; column < one->hidden; column++) {
        ep_partial partial = sum_choices(one, place, here, column);
        totals[column] = add(totals[column], partial.rounded);
        row[column].exact += partial.exact;
        row[column].partials += fabs(partial.exact);
        row[column].terms += partial.terms;
    }
    free(here);
}

void ep_reference_combine(const ep_case *one, int rank, int token, int weighted, unsigned salt, ep_sum *row)
{
    float *totals = calloc((size_t)one->hidden, sizeof *totals);
    memset(row, 0, (size_t)one->hidden * sizeof *row);
    for (int owner = 0; owner < one->setup->ranks; owner++) {
        ep_place place = {owner, rank, token, weighted, salt};
        if (goes_to(one, owner, rank, token)) {
            add_partial(one, &place, totals, row);
        }
    }
    for (int column = 0; column < one->hidden; column++) {
        row[column].bits = ep_value_bits(one->dtype, totals[column]);
    }
    free(totals);
}
