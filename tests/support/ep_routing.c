/* support/ep_routing.c: who receives which row. */
#include "support/ep_routing.h"

#include <stdlib.h>
#include <string.h>

int ep_is_by_expert(weft_ep_layout layout)
{
    return layout == WEFT_EP_EXPERT_MAJOR || layout == WEFT_EP_SLOTS_EXPERT;
}

int ep_is_slots(weft_ep_layout layout)
{
    return layout == WEFT_EP_SLOTS_SOURCE || layout == WEFT_EP_SLOTS_EXPERT;
}

int ep_row_width(const weft_ep_plan *plan)
{
    return ep_is_by_expert(plan->layout) ? 1 : plan->topk;
}

/* The rank that owns the expert of a choice, or -1. */
int ep_owner_of(const ep_case *one, int source, int token, int choice)
{
    int64_t id = ep_id(one, source, token, choice);
    if (one->plan.flags & WEFT_EP_DESTINATIONS) {
        return (int)id;
    }
    return id >= 0 && id < one->setup->config.experts ? one->setup->owner[id] : -1;
}

/* The local expert of a choice that has an owner. */
int ep_expert_of(const ep_case *one, int source, int token, int choice)
{
    int64_t id = ep_id(one, source, token, choice);
    if (one->plan.flags & WEFT_EP_DESTINATIONS) {
        return 0;
    }
    return (int)id - one->setup->first[one->setup->owner[id]];
}

static int *place_of(const ep_routing *routing, int source, int token, int choice)
{
    return &routing->row_of[source][(size_t)token * (size_t)routing->one->plan.topk + (size_t)choice];
}

#define DROPPED (-2) /* in row_of, until all is placed: a choice that is dropped by itself */

/* The rank that is to receive a choice, or -1. */
static int owner_of(const ep_routing *routing, int source, int token, int choice)
{
    return *place_of(routing, source, token, choice) == DROPPED ? -1 : ep_owner_of(routing->one, source, token, choice);
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

/* The source's tokens to the rank, by their numbers. Those of each number are a list, made in one pass: looking at all
 * tokens for each number would be much of the time of a random case. */
static void visit_positions(ep_routing *routing, int source, int owner,
                            void (*visit)(ep_routing *routing, const token_to *to))
{
    const ep_case *one = routing->one;
    const int tokens = one->tokens[source];
    int *first = calloc((size_t)tokens + 1, 2 * sizeof *first);
    int *next = first + tokens;
    for (int position = 0; position < tokens; position++) {
        first[position] = -1;
    }
    for (int token = tokens - 1; token >= 0; token--) {
        const int position = one->positions[source][token * one->plan.topk + owner];
        if (owner_of(routing, source, token, owner) == owner && position >= 0 && position < tokens) {
            next[token] = first[position];
            first[position] = token;
        }
    }
    for (int position = 0; position < tokens; position++) {
        for (int token = first[position]; token >= 0; token = next[token]) {
            visit(routing, &(token_to){source, token, owner, owner});
        }
    }
    free(first);
}

/* Visit each of them, by source, then token. */
static void visit_all(ep_routing *routing, void (*visit)(ep_routing *routing, const token_to *to))
{
    const ep_case *one = routing->one;
    for (int source = 0; source < one->setup->ranks; source++) {
        for (int owner = 0; owner < one->setup->ranks && one->positions[source] != NULL; owner++) {
            visit_positions(routing, source, owner, visit);
        }
        for (int token = 0; token < one->tokens[source] && one->positions[source] == NULL; token++) {
            int visited[EP_RANKS_MAX] = {0};
            for (int k = 0; k < one->plan.topk; k++) {
                int owner = owner_of(routing, source, token, k);
                if (owner >= 0 && !visited[owner]) {
                    visited[owner] = 1;
                    visit(routing, &(token_to){source, token, owner, k});
                }
            }
        }
    }
}

/* An earlier choice of the same expert, whose row a slot layout by expert has this one share; or `choice`. */
static int first_alike(const ep_case *one, const token_to *to, int choice)
{
    int k = one->plan.layout == WEFT_EP_SLOTS_EXPERT ? to->first : choice;
    while (ep_id(one, to->source, to->token, k) != ep_id(one, to->source, to->token, choice)) {
        k++;
    }
    return k;
}

/* Count the token's rows, or take them back: sign -1. How many they are. */
static int add_rows(ep_routing *routing, const token_to *to, int sign)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    int rows = 0;
    for (int k = to->first; k < one->plan.topk; k++) {
        if (owner_of(routing, to->source, to->token, k) == to->owner && first_alike(one, to, k) == k &&
            !(one->plan.flags & WEFT_EP_DESTINATIONS)) {
            int expert = ep_expert_of(one, to->source, to->token, k);
            side->rows_of_expert[expert] += sign;
            side->rows_of_expert_source[expert * one->setup->ranks + to->source] += sign;
            rows++;
        }
    }
    side->rows_of_source[to->source] += sign;
    side->tokens += sign;
    return ep_is_by_expert(one->plan.layout) ? rows : 1;
}

static int64_t rows_with_padding(const ep_case *one, int rank, const int *rows_of_expert, int64_t tokens)
{
    int64_t rows = 0;
    for (int expert = 0; expert < one->setup->table[rank]; expert++) {
        rows += round_up(rows_of_expert[expert], one->plan.alignment);
    }
    return one->plan.layout == WEFT_EP_EXPERT_MAJOR ? rows : tokens;
}

/* The token's rows are wanted, whether they are dropped or not. */
static void want(ep_routing *routing, const token_to *to)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    side->wanted_tokens++;
    for (int k = to->first; k < one->plan.topk && one->plan.layout == WEFT_EP_EXPERT_MAJOR; k++) {
        if (owner_of(routing, to->source, to->token, k) == to->owner) {
            side->wanted_of_expert[ep_expert_of(one, to->source, to->token, k)]++;
        }
    }
}

/* Whether rows are dropped by themselves. */
static int drops_rows(const ep_case *one)
{
    return one->setup->config.overflow == WEFT_EP_OVERFLOW_DROP_ROWS && one->setup->config.rows_max > 0 &&
           one->plan.layout == WEFT_EP_EXPERT_MAJOR;
}

/* Drop the token's choices that have no place, or a row that does not lie within the limits, were all received. */
static void drop_choices(ep_routing *routing, const token_to *to)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    int64_t most = (int64_t)one->setup->config.rows_max;
    int64_t end = one->plan.alignment > 1 ? most / one->plan.alignment * one->plan.alignment : most;
    int64_t place = side->seen_tokens++;
    for (int k = to->first; k < one->plan.topk; k++) {
        if (owner_of(routing, to->source, to->token, k) == to->owner) {
            int64_t row = side->next_of_expert[ep_expert_of(one, to->source, to->token, k)]++;
            if (place >= most || row >= end) {
                *place_of(routing, to->source, to->token, k) = DROPPED;
                side->dropped_rows++;
            }
        }
    }
}

/* Of all that is wanted: where the rows of each expert would begin. */
static void lay_out_wanted(ep_routing *routing, int rank)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[rank];
    int row = 0;
    for (int expert = 0; expert < one->setup->table[rank]; expert++) {
        side->next_of_expert[expert] = row;
        row += round_up(side->wanted_of_expert[expert], one->plan.alignment);
    }
}

/* Whether the token is kept: all are where rows are not dropped; else those before the first that does not fit. */
static void count(ep_routing *routing, const token_to *to)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    int rows = add_rows(routing, to, 1);
    if (one->setup->config.overflow != WEFT_EP_OVERFLOW_ERROR && side->limit >= 0) {
        int64_t all = rows_with_padding(one, to->owner, side->rows_of_expert, side->tokens);
        side->is_full = side->is_full || all > side->limit;
    }
    if (side->is_full) {
        add_rows(routing, to, -1);
        side->dropped_rows += rows;
        return;
    }
    for (int k = to->first; k < one->plan.topk; k++) {
        if (owner_of(routing, to->source, to->token, k) == to->owner) {
            *place_of(routing, to->source, to->token, k) = 0; /* the row itself is set later */
        }
    }
}

/* Where the rows of each expert and source begin. */
static void add_up(ep_routing *routing, int rank)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[rank];
    int by_expert = ep_is_by_expert(one->plan.layout);
    int experts = one->setup->table[rank];
    int ranks = one->setup->ranks;
    int slots = ep_slot_tokens(one->setup, &one->plan);
    for (int source = 0; source < ranks; source++) {
        int rows = one->plan.layout == WEFT_EP_SLOTS_SOURCE ? slots : side->rows_of_source[source];
        side->offset_of_source[source + 1] = side->offset_of_source[source] + rows;
    }
    for (int expert = 0; expert < experts && by_expert; expert++) {
        int rows = one->plan.layout == WEFT_EP_SLOTS_EXPERT
                       ? ranks * slots
                       : round_up(side->rows_of_expert[expert], one->plan.alignment);
        side->offset_of_expert[expert + 1] = side->offset_of_expert[expert] + rows;
    }
    side->rows = by_expert ? side->offset_of_expert[experts] : side->offset_of_source[ranks];
    side->wanted_rows = ep_is_slots(one->plan.layout)
                            ? side->rows
                            : rows_with_padding(one, rank, side->wanted_of_expert, side->wanted_tokens);
    routing->overflow |= side->limit >= 0 && side->rows > side->limit;
}

/* Give the token's choices on this rank their rows: each the next of its expert, or all the next of their source. */
static void place(ep_routing *routing, const token_to *to)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[to->owner];
    if (*place_of(routing, to->source, to->token, to->first) < 0) {
        return; /* dropped */
    }
    int shared = side->next_of_source[to->source]++;
    for (int k = to->first; k < one->plan.topk; k++) {
        if (owner_of(routing, to->source, to->token, k) != to->owner) {
            continue;
        }
        int alike = first_alike(one, to, k);
        int expert = ep_is_by_expert(one->plan.layout) ? ep_expert_of(one, to->source, to->token, k) : -1;
        int row = expert < 0  ? shared
                  : alike < k ? *place_of(routing, to->source, to->token, alike)
                              : side->next_of_expert[expert]++;
        side->row[row] = (ep_row){to->source, to->token, expert};
        *place_of(routing, to->source, to->token, k) = row;
    }
}

static void create_side(ep_routing *routing, int rank, const int64_t *capacity)
{
    const ep_case *one = routing->one;
    ep_side *side = &routing->side[rank];
    size_t experts = (size_t)one->setup->table[rank];
    size_t ranks = (size_t)one->setup->ranks;
    size_t choices = (size_t)one->tokens[rank] * (size_t)one->plan.topk;
    side->rows_of_expert = calloc(experts + 1, sizeof(int));
    side->wanted_of_expert = calloc(experts + 1, sizeof(int));
    side->offset_of_expert = calloc(experts + 1, sizeof(int));
    side->next_of_expert = calloc(experts + 1, sizeof(int));
    side->rows_of_source = calloc(ranks, sizeof(int));
    side->offset_of_source = calloc(ranks + 1, sizeof(int));
    side->next_of_source = calloc(ranks, sizeof(int));
    side->rows_of_expert_source = calloc(experts * ranks + 1, sizeof(int));
    side->limit = one->setup->config.rows_max > 0 ? (int64_t)one->setup->config.rows_max : -1;
    if (capacity != NULL && (side->limit < 0 || capacity[rank] < side->limit)) {
        side->limit = capacity[rank];
    }
    if (ep_is_slots(one->plan.layout)) {
        side->limit = -1;
    }
    routing->row_of[rank] = malloc((choices + 1) * sizeof(int));
    for (size_t i = 0; i < choices; i++) {
        int64_t id = one->ids[rank][i];
        routing->row_of[rank][i] = -1;
        side->out_of_range +=
            !(one->plan.flags & WEFT_EP_DESTINATIONS) && (id < -1 || id >= one->setup->config.experts);
    }
    side->is_clamped =
        one->is_told[rank] && (one->tokens_told[rank] < 0 || one->tokens_told[rank] > one->tokens_most[rank]);
}

static void create_rows(ep_side *side, int experts, int ranks)
{
    side->row = malloc(((size_t)side->rows + 1) * sizeof *side->row);
    for (int64_t i = 0; i < side->rows; i++) {
        side->row[i] = (ep_row){-1, -1, -1};
    }
    memcpy(side->next_of_expert, side->offset_of_expert, (size_t)experts * sizeof(int));
    memcpy(side->next_of_source, side->offset_of_source, (size_t)ranks * sizeof(int));
}

ep_routing *ep_routing_create(const ep_case *one, const int64_t *capacity)
{
    ep_routing *routing = calloc(1, sizeof *routing);
    routing->one = one;
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        create_side(routing, rank, capacity);
    }
    visit_all(routing, want);
    routing->drops_rows = drops_rows(one);
    for (int rank = 0; rank < one->setup->ranks && routing->drops_rows; rank++) {
        lay_out_wanted(routing, rank);
    }
    if (routing->drops_rows) {
        visit_all(routing, drop_choices);
    }
    visit_all(routing, count);
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        add_up(routing, rank);
        create_rows(&routing->side[rank], one->setup->table[rank], one->setup->ranks);
    }
    visit_all(routing, place);
    return routing;
}

void ep_routing_destroy(ep_routing *routing)
{
    for (int rank = 0; routing != NULL && rank < EP_RANKS_MAX; rank++) {
        free(routing->side[rank].row);
        free(routing->side[rank].rows_of_expert);
        free(routing->side[rank].wanted_of_expert);
        free(routing->side[rank].offset_of_expert);
        free(routing->side[rank].next_of_expert);
        free(routing->side[rank].rows_of_source);
        free(routing->side[rank].offset_of_source);
        free(routing->side[rank].next_of_source);
        free(routing->side[rank].rows_of_expert_source);
        free(routing->row_of[rank]);
    }
    free(routing);
}

int ep_row_of(const ep_routing *routing, int source, int token, int choice)
{
    int row = *place_of(routing, source, token, choice);
    return row >= 0 ? row : -1;
}
