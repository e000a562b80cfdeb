/* part/ep_reference.c: expert parallelism done serially by one who sees all ranks. */
#include "part/ep_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int ep_is_by_expert(weft_ep_layout layout)
{
    return layout == WEFT_EP_EXPERT_MAJOR;
}

int ep_row_width(const weft_ep_plan *plan)
{
    return ep_is_by_expert(plan->layout) ? 1 : plan->topk;
}

/* The rank that owns the expert of a choice, or -1. */
static int owner_of(const ep_case *one, int source, int token, int choice)
{
    int64_t id = ep_id(one, source, token, choice);
    return id >= 0 && id < one->setup->config.experts ? one->setup->owner[id] : -1;
}

/* The local expert of a choice that has an owner. */
static int expert_of(const ep_case *one, int source, int token, int choice)
{
    int64_t id = ep_id(one, source, token, choice);
    return (int)id - one->setup->first[one->setup->owner[id]];
}

static int *row_of(const ep_routing *routing, int source, int token, int choice)
{
    return &routing->row_of[source][(size_t)token * (size_t)routing->one->plan.topk + (size_t)choice];
}

/* ---- who receives what ---- */

static int round_up(int count, int alignment)
{
    return alignment > 1 ? (count + alignment - 1) / alignment * alignment : count;
}

/* A token and a rank it goes to. */
typedef struct token_to {
    int source;
    int token;
    int owner;
    int first; /* its first choice there */
} token_to;

/* Visit each of them, by source, then token. */
static void visit_all(ep_routing *routing, void (*visit)(ep_routing *routing, const token_to *to))
{
    const ep_case *one = routing->one;
    for (int source = 0; source < one->setup->ranks; source++) {
        for (int token = 0; token < one->tokens[source]; token++) {
            int visited[EP_RANKS_MAX] = {0};
            for (int k = 0; k < one->plan.topk; k++) {
                int owner = owner_of(one, source, token, k);
                if (owner >= 0 && !visited[owner]) {
                    visited[owner] = 1;
                    visit(routing, &(token_to){source, token, owner, k});
                }
            }
        }
    }
}

static void count(ep_routing *routing, const token_to *to)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    for (int k = to->first; k < one->plan.topk; k++) {
        if (owner_of(one, to->source, to->token, k) == to->owner) {
            side->rows_of_expert[expert_of(one, to->source, to->token, k)]++;
        }
    }
    side->rows_of_source[to->source]++;
}

/* Where the rows of each expert and source begin. */
static void add_up(ep_routing *routing, int rank)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[rank];
    int by_expert = ep_is_by_expert(one->plan.layout);
    int experts = one->setup->table[rank];
    int ranks = one->setup->ranks;
    for (int source = 0; source < ranks; source++) {
        side->offset_of_source[source + 1] = side->offset_of_source[source] + side->rows_of_source[source];
    }
    for (int expert = 0; expert < experts; expert++) {
        int rows = round_up(side->rows_of_expert[expert], one->plan.alignment);
        side->offset_of_expert[expert + 1] = by_expert ? side->offset_of_expert[expert] + rows : 0;
    }
    side->rows = by_expert ? side->offset_of_expert[experts] : side->offset_of_source[ranks];
    routing->overflow |= one->setup->config.rows_max != 0 && (uint64_t)side->rows > one->setup->config.rows_max;
}

/* Give the token's choices on this rank their rows: each the next of its expert, or all the same. */
static void place(ep_routing *routing, const token_to *to)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    int shared = side->next;
    for (int k = to->first; k < one->plan.topk; k++) {
        if (owner_of(one, to->source, to->token, k) != to->owner) {
            continue;
        }
        int expert = ep_is_by_expert(one->plan.layout) ? expert_of(one, to->source, to->token, k) : -1;
        int row = expert >= 0 ? side->next_of_expert[expert]++ : shared;
        side->row[row] = (ep_row){to->source, to->token, expert};
        *row_of(routing, to->source, to->token, k) = row;
    }
    side->next++;
}

static void create_side(ep_routing *routing, int rank)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[rank];
    size_t experts = (size_t)one->setup->table[rank];
    size_t ranks = (size_t)one->setup->ranks;
    size_t choices = (size_t)one->tokens[rank] * (size_t)one->plan.topk;
    side->rows_of_expert = calloc(experts + 1, sizeof(int));
    side->offset_of_expert = calloc(experts + 1, sizeof(int));
    side->next_of_expert = calloc(experts + 1, sizeof(int));
    side->rows_of_source = calloc(ranks, sizeof(int));
    side->offset_of_source = calloc(ranks + 1, sizeof(int));
    routing->row_of[rank] = malloc((choices + 1) * sizeof(int));
    for (size_t i = 0; i < choices; i++) {
        int64_t id = one->ids[rank][i];
        routing->row_of[rank][i] = -1;
        side->out_of_range += id < -1 || id >= one->setup->config.experts;
    }
}

static void create_rows(ep_side *side, int experts)
{
    side->row = malloc(((size_t)side->rows + 1) * sizeof *side->row);
    for (int64_t i = 0; i < side->rows; i++) {
        side->row[i] = (ep_row){-1, -1, -1};
    }
    memcpy(side->next_of_expert, side->offset_of_expert, (size_t)experts * sizeof(int));
}

ep_routing *ep_routing_create(const ep_case *one)
{
    ep_routing *routing = calloc(1, sizeof *routing);
    routing->one = one;
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        create_side(routing, rank);
    }
    visit_all(routing, count);
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        add_up(routing, rank);
        create_rows(&routing->side[rank], one->setup->table[rank]);
    }
    visit_all(routing, place);
    return routing;
}

void ep_routing_destroy(ep_routing *routing)
{
    for (int rank = 0; routing != NULL && rank < EP_RANKS_MAX; rank++) {
        free(routing->side[rank].row);
        free(routing->side[rank].rows_of_expert);
        free(routing->side[rank].offset_of_expert);
        free(routing->side[rank].next_of_expert);
        free(routing->side[rank].rows_of_source);
        free(routing->side[rank].offset_of_source);
        free(routing->row_of[rank]);
    }
    free(routing);
}

void ep_reference_labels(const ep_routing *routing, int rank, int64_t row, float *weights, int32_t *experts)
{
    const ep_case *one = routing->one;
    const ep_row *what = &routing->side[rank].row[row];
    int by_expert = ep_is_by_expert(one->plan.layout);
    for (int i = 0; i < ep_row_width(&one->plan); i++) {
        weights[i] = 0.0f;
        experts[i] = by_expert ? what->expert : -1;
    }
    for (int k = 0; k < one->plan.topk && what->source >= 0; k++) {
        int owner = owner_of(one, what->source, what->token, k);
        if (owner == rank && *row_of(routing, what->source, what->token, k) == row) {
            int i = by_expert ? 0 : k;
            weights[i] = ep_add(weights[i], ep_weight(one, what->source, what->token, k));
            experts[i] = expert_of(one, what->source, what->token, k);
        }
    }
}

/* ---- sums ---- */

/* The rows of one token on one owner. */
typedef struct token_rows {
    int owner;
    int count; /* of choices there, each with its row */
    int row[64];
    float weight[64];
} token_rows;

static token_rows rows_on(const ep_routing *routing, int owner, int source, int token)
{
    token_rows rows = {.owner = owner};
    for (int k = 0; k < routing->one->plan.topk; k++) {
        int row = *row_of(routing, source, token, k);
        if (row >= 0 && owner_of(routing->one, source, token, k) == owner) {
            rows.row[rows.count] = row;
            rows.weight[rows.count++] = ep_weight(routing->one, source, token, k);
        }
    }
    return rows;
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

static partial add_choices(const ep_payload *payload, const token_rows *rows, int weighted, int column)
{
    partial of = {0.0f, 0.0, 0.0};
    for (int i = 0; i < rows->count; i++) {
        uint32_t bits = ep_row_element(payload, rows->owner, rows->row[i], column);
        double value = ep_bits_value(payload->dtype, bits);
        double term = weighted ? (double)rows->weight[i] * value : value;
        of.sum = weighted ? fmaf(rows->weight[i], (float)value, of.sum) : ep_add(of.sum, (float)value);
        of.exact += term;
        of.terms += fabs(term);
    }
    return of;
}

static partial take_one(const ep_payload *payload, const token_rows *rows, int weighted, int column)
{
    double value = ep_bits_value(payload->dtype, ep_row_element(payload, rows->owner, rows->row[0], column));
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

static void add_partial(const ep_payload *payload, const partial *of, total *sum)
{
    float rounded = (float)ep_bits_value(payload->dtype, ep_value_bits(payload->dtype, of->sum));
    sum->sum = ep_add(sum->sum, rounded);
    sum->exact += of->exact;
    sum->partials += fabs(of->exact);
    sum->terms += of->terms;
    sum->count++;
}

/* The bound of DESIGN: 2^-8 (|exact| + the sum of |partial|) in bf16, and accordingly with the roundoff of other types,
 * beside what sums in float32 lose: 2^-23 of all magnitudes a term. In float32 only the latter is left. */
static ep_sum finish(const ep_routing *routing, const ep_payload *payload, const total *sum)
{
    double in_float = 0x1p-23 * (routing->one->plan.topk + routing->one->setup->ranks) * sum->terms;
    double in_type = ep_unit_roundoff(payload->dtype) * (fabs(sum->exact) + sum->partials) +
                     (sum->count + 1) * ep_least_roundoff(payload->dtype);
    return (ep_sum){.bits = ep_value_bits(payload->dtype, sum->sum),
                    .exact = sum->exact,
                    .bound = payload->dtype == WEFT_EP_F32 ? in_float : in_type + in_float};
}

void ep_reference_combine(const ep_routing *routing, const ep_payload *payload, int rank, int token, unsigned flags,
                          ep_sum *sums)
{
    int weighted = (flags & WEFT_EP_WEIGHTED) != 0;
    int by_expert = ep_is_by_expert(routing->one->plan.layout);
    total *totals = calloc((size_t)payload->hidden, sizeof *totals);
    for (int owner = 0; owner < routing->one->setup->ranks; owner++) {
        token_rows rows = rows_on(routing, owner, rank, token);
        for (int column = 0; column < payload->hidden && rows.count > 0; column++) {
            partial of =
                by_expert ? add_choices(payload, &rows, weighted, column) : take_one(payload, &rows, weighted, column);
            add_partial(payload, &of, &totals[column]);
        }
    }
    for (int column = 0; column < payload->hidden; column++) {
        sums[column] = finish(routing, payload, &totals[column]);
    }
    free(totals);
}
