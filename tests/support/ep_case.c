/* support/ep_case.c: random cases for expert parallelism. */
#include "support/ep_case.h"

#include <stdlib.h>
#include <string.h>

#include "support/ep_draw.h"

const ep_size ep_size_full = {300, 32, 300, 1024, (size_t)24 << 20};
const ep_size ep_size_small = {40, 6, 24, 64, (size_t)1 << 20};

/* ---- a group ---- */

static void draw_table(uint64_t *state, ep_setup *setup)
{
    int left = setup->config.experts;
    for (int rank = 0; rank < setup->ranks; rank++) {
        int count = rank + 1 == setup->ranks ? left : ep_draw_skewed(state, left + 1);
        setup->table[rank] = count;
        left -= count;
    }
    int order[EP_RANKS_MAX];
    int drawn[EP_RANKS_MAX];
    memcpy(drawn, setup->table, sizeof drawn);
    random_order(state, order, setup->ranks);
    for (int rank = 0; rank < setup->ranks; rank++) {
        setup->table[rank] = drawn[order[rank]];
    }
}

static void fill_even_table(ep_setup *setup)
{
    for (int rank = 0; rank < setup->ranks; rank++) {
        setup->table[rank] = setup->config.experts / setup->ranks + (rank < setup->config.experts % setup->ranks);
    }
}

/* A cap that some routings exceed, and some barely do not. */
static size_t draw_cap(uint64_t *state, const ep_setup *setup)
{
    int worst = setup->ranks * setup->config.tokens_max * setup->config.topk_max;
    int usual = setup->config.tokens_max * setup->config.topk_max;
    return 1 + random_below(state, (unsigned)(ep_draw_one_in(state, 2) ? worst : usual) + 16);
}

ep_setup ep_setup_draw(uint64_t seed, int ranks, const ep_size *size)
{
    ep_setup setup;
    uint64_t state = seed;
    memset(&setup, 0, sizeof setup);
    setup.ranks = ranks;
    setup.config.size = sizeof setup.config;
    setup.config.experts = 1 + ep_draw_skewed(&state, size->experts_max);
    setup.config.tokens_max = ep_draw_one_in(&state, 2) ? ep_draw_skewed(&state, size->tokens_max + 1)
                                                        : (int)random_below(&state, (unsigned)size->tokens_max + 1);
    setup.config.topk_max = 1 + ep_draw_skewed(&state, size->topk_max);
    size_t copies = (size_t)ranks * (size_t)ranks * (size_t)(setup.config.tokens_max + 1);
    size_t row_bytes = size->bytes_max / copies / 16 * 16;
    size_t row_bytes_max = (size_t)size->hidden_max * 4;
    setup.config.row_bytes_max = row_bytes < 16 ? 16 : row_bytes > row_bytes_max ? row_bytes_max : row_bytes;
    if (ep_draw_one_in(&state, 3)) {
        draw_table(&state, &setup);
        setup.uneven = 1;
    } else {
        fill_even_table(&setup);
    }
    for (int rank = 0; rank < ranks; rank++) {
        setup.first[rank + 1] = setup.first[rank] + setup.table[rank];
        for (int expert = setup.first[rank]; expert < setup.first[rank + 1]; expert++) {
            setup.owner[expert] = rank;
        }
    }
    if (ep_draw_one_in(&state, 3)) {
        setup.config.rows_max = draw_cap(&state, &setup);
        setup.config.overflow = (weft_ep_overflow)random_below(&state, WEFT_EP_OVERFLOW_DROP_ROWS + 1);
    }
    if (ep_draw_one_in(&state, 2)) {
        setup.config.slot_tokens_max = (int)random_below(&state, (unsigned)setup.config.tokens_max + 1);
    }
    if (ep_draw_one_in(&state, 4)) {
        setup.config.scale_bytes_max = 4 * (int)random_below(&state, 65);
    }
    return setup;
}

/* ---- domains ---- */

int ep_domains(const ep_setup *setup)
{
    int count = 0;
    for (int rank = 0; rank < setup->ranks; rank++) {
        count += setup->domain[rank] == rank;
    }
    return count;
}

static void draw_labels(uint64_t *state, ep_setup *setup)
{
    int domains = 1 + (int)random_below(state, (unsigned)setup->ranks);
    int consecutive = ep_draw_one_in(state, 2);
    for (int rank = 0; rank < setup->ranks; rank++) {
        int same = rank > 0 && consecutive && !ep_draw_one_in(state, 3);
        setup->labels[rank] = same ? setup->labels[rank - 1] : (int)random_below(state, (unsigned)domains);
        setup->domain[rank] = rank;
        for (int other = rank - 1; other >= 0; other--) {
            setup->domain[rank] = setup->labels[other] == setup->labels[rank] ? other : setup->domain[rank];
        }
    }
    setup->has_map = 1;
}

void ep_setup_divide(uint64_t *state, ep_setup *setup)
{
    if (ep_draw_one_in(state, 4)) {
        int each = 1 + (int)random_below(state, (unsigned)setup->ranks);
        while (setup->ranks % each != 0) {
            each++;
        }
        setup->config.domain_ranks = each;
        for (int rank = 0; rank < setup->ranks; rank++) {
            setup->domain[rank] = rank / each * each;
        }
    } else if (ep_draw_one_in(state, 2)) {
        draw_labels(state, setup);
    }
}

void ep_config_forget(uint64_t *state, weft_ep_config *config)
{
    const int knows_all = config->pairs_max == 2 && random_below(state, 2) == 0; /* for two pairs */
    config->bytes_max = (size_t)1 << 40;
    if (knows_all) {
        config->slot_tokens_max = config->rows_max == 0 ? config->tokens_max : config->slot_tokens_max;
        return;
    }
    config->tokens_max = (int)random_below(state, (unsigned)config->tokens_max + 1);
    config->topk_max = (int)random_below(state, (unsigned)config->topk_max + 1);
    config->row_bytes_max = 16 * (size_t)random_below(state, (unsigned)(config->row_bytes_max / 16) + 1);
    config->slot_tokens_max =
        config->slot_tokens_max < config->tokens_max ? config->slot_tokens_max : config->tokens_max;
    config->scale_bytes_max = 4 * (int)random_below(state, (unsigned)config->scale_bytes_max / 4 + 1);
}

int ep_slot_tokens(const ep_setup *setup, const weft_ep_plan *plan)
{
    const weft_ep_config *config = &setup->config;
    int most = config->slot_tokens_max > 0 ? config->slot_tokens_max : config->rows_max == 0 ? config->tokens_max : -1;
    return plan->slot_tokens > 0 ? plan->slot_tokens : most;
}

/* ---- a routing ---- */

/* How a gate chooses. */
typedef struct gate {
    enum { GATE_UNIFORM, GATE_SKEWED, GATE_ONE_EXPERT, GATE_ONE_RANK, GATE_DISTINCT, GATES } kind;
    int first; /* of the experts to choose from */
    int count;
    unsigned flaws; /* of 100 choices, so many are none, or no expert */
    int spared; /* of 100 tokens, so many have no choice at all */
} gate;

static gate draw_gate(uint64_t *state, const ep_setup *setup, unsigned flaws)
{
    gate drawn = {.kind = random_below(state, GATES), .count = setup->config.experts, .flaws = flaws};
    if (drawn.kind == GATE_ONE_EXPERT) {
        drawn.first = (int)random_below(state, (unsigned)setup->config.experts);
        drawn.count = 1;
    } else if (drawn.kind == GATE_ONE_RANK) {
        int rank = (int)random_below(state, (unsigned)setup->ranks);
        drawn.first = setup->table[rank] > 0 ? setup->first[rank] : 0;
        drawn.count = setup->table[rank] > 0 ? setup->table[rank] : setup->config.experts;
    }
    if (ep_draw_one_in(state, 4)) {
        drawn.spared = (int)random_below(state, 100);
    }
    return drawn;
}

static int64_t draw_wrong(uint64_t *state, const ep_case *one)
{
    const int64_t wrong[] = {-2, INT32_MIN, INT32_MAX, one->setup->config.experts};
    int64_t id = wrong[random_below(state, 4)];
    if (one->id_type == WEFT_EP_INT64 && id == INT32_MAX) {
        return (INT64_C(1) << 32) + 1; /* an id that would be 1 if its upper half were lost */
    }
    return one->id_type == WEFT_EP_INT64 && id == INT32_MIN ? INT64_MIN : id;
}

static int is_among(const int64_t *ids, int count, int64_t id)
{
    for (int i = 0; i < count; i++) {
        if (ids[i] == id) {
            return 1;
        }
    }
    return 0;
}

static void draw_token(uint64_t *state, const ep_case *one, const gate *how, int64_t *ids)
{
    int spared = (int)random_below(state, 100) < how->spared;
    for (int k = 0; k < one->plan.topk; k++) {
        int pick = how->kind == GATE_SKEWED ? ep_draw_skewed(state, how->count)
                                            : (int)random_below(state, (unsigned)how->count);
        ids[k] = how->first + pick;
        if (how->kind == GATE_DISTINCT) {
            for (int tries = 0; tries < how->count && is_among(ids, k, ids[k]); tries++) {
                ids[k] = (ids[k] + 1) % how->count;
            }
        }
        if (spared || random_below(state, 100) < how->flaws) {
            ids[k] = spared || ep_draw_one_in(state, 2) ? -1 : draw_wrong(state, one);
        }
    }
}

int ep_is_many(int ranks)
{
    const char *few = getenv("WEFT_EP_FEW_RANKS");
    return ranks > (few != NULL ? atoi(few) : 32);
}

/* Turn the choices into destinations: choice k becomes rank k or -1. Perhaps number the tokens to each rank in another
 * order. */
static void draw_destinations(uint64_t *state, ep_case *one, int rank)
{
    int ranks = one->plan.topk;
    int tokens = one->tokens[rank];
    int64_t *ids = one->ids[rank];
    int drawn = ep_draw_one_in(state, 2);
    int on_device = one->setup->config.on_device; /* then all ranks number tokens or none */
    int numbered = on_device && rank > 0 ? one->positions[0] != NULL : drawn;
    int32_t *positions = numbered ? malloc(((size_t)tokens * (size_t)ranks + 1) * sizeof *positions) : NULL;
    one->positions[rank] = positions;
    for (int to = 0; to < ranks; to++) {
        int count = 0;
        for (int token = 0; token < tokens; token++) {
            int at = token * ranks + to;
            ids[at] = ids[at] >= 0 && ids[at] % 2 == 0 ? to : -1;
            if (positions != NULL) {
                positions[at] = ids[at] >= 0 ? count : -1;
            }
            count += ids[at] >= 0;
        }
        for (int token = 0; token < tokens && positions != NULL; token++) { /* swap with any before */
            int other = (int)random_below(state, (unsigned)token + 1);
            int32_t position = positions[token * ranks + to];
            if (position >= 0 && positions[other * ranks + to] >= 0) {
                positions[token * ranks + to] = positions[other * ranks + to];
                positions[other * ranks + to] = position;
            }
        }
    }
}

static float draw_weight(uint64_t *state)
{
    return (float)((int)random_below(state, 4001) - 1000) / 3000.0f;
}

/* What one rank's gate chose. */
static void draw_choices(uint64_t *state, ep_case *one, int rank, int weighted, const gate *how)
{
    size_t topk = (size_t)one->plan.topk;
    size_t count = (size_t)one->tokens[rank] * topk;
    one->ids[rank] = malloc((count + 1) * sizeof *one->ids[rank]);
    one->weights[rank] = weighted ? malloc((count + 1) * sizeof *one->weights[rank]) : NULL;
    for (int token = 0; token < one->tokens[rank]; token++) {
        draw_token(state, one, how, &one->ids[rank][(size_t)token * topk]);
    }
    if (one->plan.flags & WEFT_EP_DESTINATIONS) {
        draw_destinations(state, one, rank);
    }
    for (size_t i = 0; i < count && weighted; i++) {
        one->weights[rank][i] = draw_weight(state);
    }
}

void ep_case_weigh(ep_case *one, uint64_t seed, const int *masked)
{
    uint64_t state = seed;
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        const size_t count = (size_t)one->tokens[rank] * (size_t)one->plan.topk;
        if (one->weights[rank] == NULL) {
            one->weights[rank] = malloc((count + 1) * sizeof *one->weights[rank]);
            for (size_t i = 0; i < count; i++) {
                one->weights[rank][i] = 1.0f;
            }
        }
        for (size_t i = 0; i < count && !masked[rank]; i++) {
            one->weights[rank][i] = draw_weight(&state);
        }
    }
}

static int is_slots(weft_ep_layout layout)
{
    return layout == WEFT_EP_SLOTS_SOURCE || layout == WEFT_EP_SLOTS_EXPERT;
}

weft_ep_plan ep_plan_draw(uint64_t seed, const ep_setup *setup)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    uint64_t state = seed;
    plan.topk = 1 + ep_draw_skewed(&state, setup->config.topk_max);
    int slots = ep_slot_tokens(setup, &plan);
    plan.layout = (weft_ep_layout)random_below(&state, slots > 0 ? 4 : 2);
    if (setup->config.overflow == WEFT_EP_OVERFLOW_DROP_ROWS && ep_draw_one_in(&state, 2)) {
        plan.layout = WEFT_EP_EXPERT_MAJOR;
    }
    if (plan.layout == WEFT_EP_EXPERT_MAJOR) {
        plan.alignment = ep_draw_one_in(&state, 2) ? 0 : 1 + ep_draw_skewed(&state, 128);
        plan.flags = ep_draw_one_in(&state, 2) ? WEFT_EP_ZERO_PADDING : 0;
    }
    if (is_slots(plan.layout) && ep_draw_one_in(&state, 2)) {
        plan.slot_tokens = 1 + (int)random_below(&state, (unsigned)slots);
    }
    return plan;
}

void ep_plan_vary(uint64_t *state, const ep_setup *setup, weft_ep_plan *plan)
{
    int fits = plan->layout == WEFT_EP_RANK_MAJOR || plan->layout == WEFT_EP_SLOTS_SOURCE;
    if (random_below(state, 3) == 0) {
        plan->order = WEFT_EP_ORDER_CHOICE;
    }
    if (fits && random_below(state, 3) == 0) {
        plan->flags |= WEFT_EP_ALL_WEIGHTS;
    }
    if (fits && setup->config.topk_max >= setup->ranks && random_below(state, 2) == 0) {
        plan->flags |= WEFT_EP_DESTINATIONS;
        plan->topk = setup->ranks;
    }
}

/* How many tokens a rank has, and how it says so. */
static void draw_tokens(uint64_t *state, ep_case *one, int rank, int most)
{
    int tokens = ep_draw_one_in(state, 4) ? most : (int)random_below(state, (unsigned)most + 1);
    one->tokens[rank] = tokens;
    one->tokens_most[rank] = tokens;
    if (ep_draw_one_in(state, 4)) {
        const int wrong[] = {-1, INT32_MIN, most + 1, INT32_MAX};
        one->is_told[rank] = 1;
        one->tokens_most[rank] = tokens + (int)random_below(state, (unsigned)(most - tokens) + 1);
        one->tokens_told[rank] = tokens;
        if (ep_draw_one_in(state, 4)) {
            int told = wrong[random_below(state, 4)];
            one->tokens_told[rank] = told;
            one->tokens[rank] = told < 0 ? 0 : one->tokens_most[rank];
        }
    }
}

ep_case ep_case_draw(uint64_t seed, const ep_setup *setup, const weft_ep_plan *plan)
{
    ep_case one;
    uint64_t state = seed;
    memset(&one, 0, sizeof one);
    one.setup = setup;
    one.plan = *plan;
    one.id_type = ep_draw_one_in(&state, 2) ? WEFT_EP_INT32 : WEFT_EP_INT64;
    int weighted = !ep_draw_one_in(&state, 3);
    unsigned flaws = ep_draw_one_in(&state, 2) ? 0 : random_below(&state, 101);
    int all_empty = ep_draw_one_in(&state, 16);
    gate common = draw_gate(&state, setup, flaws);
    int most = is_slots(plan->layout) ? ep_slot_tokens(setup, plan) : setup->config.tokens_max;
    int alike = ep_draw_one_in(&state, 2); /* all ranks to the same expert or rank */
    for (int rank = 0; rank < setup->ranks; rank++) {
        gate own = draw_gate(&state, setup, flaws);
        draw_tokens(&state, &one, rank, all_empty ? 0 : most);
        draw_choices(&state, &one, rank, weighted, alike ? &common : &own);
    }
    return one;
}

void ep_case_mask(ep_case *one, const int *masked)
{
    for (int rank = 0; rank < one->setup->ranks; rank++) {
        if (masked[rank]) {
            one->tokens[rank] = one->tokens_most[rank] = one->is_told[rank] = 0;
        }
        for (size_t i = 0; i < (size_t)one->tokens[rank] * (size_t)one->plan.topk; i++) {
            int64_t id = one->ids[rank][i];
            if (id >= 0 && one->plan.flags & WEFT_EP_DESTINATIONS) {
                one->ids[rank][i] = masked[id] ? -1 : id;
            } else if (id >= 0 && id < one->setup->config.experts && masked[one->setup->owner[id]]) {
                one->ids[rank][i] = -1;
            }
        }
    }
}

void ep_case_free(ep_case *one)
{
    for (int rank = 0; rank < EP_RANKS_MAX; rank++) {
        free(one->ids[rank]);
        free(one->positions[rank]);
        free(one->weights[rank]);
    }
    memset(one, 0, sizeof *one);
}
