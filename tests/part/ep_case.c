/* part/ep_case.c: random cases for expert parallelism. */
#include "part/ep_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "part/check.h"

const ep_size ep_size_full = {300, 32, 300, 1024, (size_t)24 << 20};
const ep_size ep_size_small = {40, 6, 24, 64, (size_t)1 << 20};

/* Below `limit`, small values more often than large ones. */
static int draw_skewed(uint64_t *state, int limit)
{
    int bound = 1 + (int)random_below(state, (unsigned)limit);
    return (int)random_below(state, (unsigned)bound);
}

static void draw_table(uint64_t *state, ep_setup *setup)
{
    int left = setup->config.experts;
    for (int rank = 0; rank < setup->ranks; rank++) {
        int count = rank + 1 == setup->ranks ? left : draw_skewed(state, left + 1);
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

ep_setup ep_setup_draw(uint64_t seed, int ranks, const ep_size *size)
{
    ep_setup setup;
    uint64_t state = seed;
    memset(&setup, 0, sizeof setup);
    setup.ranks = ranks;
    setup.config.size = sizeof setup.config;
    setup.config.experts = 1 + draw_skewed(&state, size->experts_max);
    setup.config.tokens_max = draw_skewed(&state, size->tokens_max + 1);
    setup.config.topk_max = 1 + draw_skewed(&state, size->topk_max);
    size_t copies = (size_t)ranks * (size_t)ranks * (size_t)(setup.config.tokens_max + 1);
    size_t row_bytes = size->bytes_max / copies / 16 * 16;
    size_t row_bytes_max = (size_t)size->hidden_max * 4;
    setup.config.row_bytes_max = row_bytes < 16 ? 16 : row_bytes > row_bytes_max ? row_bytes_max : row_bytes;
    if (random_below(&state, 3) == 0) {
        draw_table(&state, &setup);
        setup.uneven = 1;
    } else {
        fill_even_table(&setup);
    }
    for (int rank = 0; rank < ranks; rank++) {
        setup.first[rank + 1] = setup.first[rank] + setup.table[rank];
    }
    if (random_below(&state, 3) == 0) {
        int worst = ranks * setup.config.tokens_max * setup.config.topk_max;
        setup.config.rows_max = 1 + random_below(&state, (unsigned)worst + 64);
    }
    return setup;
}

static int64_t draw_id(uint64_t *state, int experts, int skew, unsigned flaws)
{
    static const int64_t wrong[] = {-2, INT32_MIN, INT32_MAX};
    if (random_below(state, 100) < flaws) {
        unsigned kind = random_below(state, 8);
        return kind < 5 ? -1 : wrong[kind - 5];
    }
    return skew ? draw_skewed(state, experts) : (int64_t)random_below(state, (unsigned)experts);
}

/* What one rank's gate chose. */
static void draw_choices(uint64_t *state, ep_case *one, int rank, int weighted, unsigned flaws)
{
    int experts = one->setup->config.experts;
    size_t count = (size_t)one->tokens[rank] * (size_t)one->plan.topk;
    int skew = random_below(state, 2) == 0;
    one->ids[rank] = malloc((count + 1) * sizeof *one->ids[rank]);
    one->weights[rank] = weighted ? malloc((count + 1) * sizeof *one->weights[rank]) : NULL;
    for (size_t i = 0; i < count; i++) {
        one->ids[rank][i] = draw_id(state, experts, skew, flaws);
        if (one->id_type == WEFT_EP_INT64 && one->ids[rank][i] == INT32_MAX) {
            one->ids[rank][i] = (INT64_C(1) << 32) + 1; /* not to be cut to 1 */
        }
        if (weighted) {
            one->weights[rank][i] = (float)((int)random_below(state, 4001) - 1000) / 3000.0f;
        }
    }
}

weft_ep_plan ep_plan_draw(uint64_t seed, const ep_setup *setup)
{
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    uint64_t state = seed;
    plan.topk = 1 + draw_skewed(&state, setup->config.topk_max);
    plan.layout = random_below(&state, 2) == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_EXPERT_MAJOR;
    plan.alignment = random_below(&state, 2) == 0 ? 0 : 1 + draw_skewed(&state, 128);
    return plan;
}

ep_case ep_case_draw(uint64_t seed, const ep_setup *setup, const ep_size *size, const weft_ep_plan *plan)
{
    ep_case one;
    uint64_t state = seed;
    memset(&one, 0, sizeof one);
    one.setup = setup;
    one.plan = *plan;
    one.dtype = random_below(&state, 2) == 0 ? WEFT_EP_BF16 : WEFT_EP_F32;
    one.id_type = random_below(&state, 2) == 0 ? WEFT_EP_INT32 : WEFT_EP_INT64;
    int per_grain = 16 / (int)ep_element_bytes(one.dtype);
    int grains_max = size->hidden_max / per_grain;
    int grains_fit = (int)(setup->config.row_bytes_max / 16);
    int grains = grains_fit < grains_max ? grains_fit : grains_max;
    one.hidden = per_grain * (1 + draw_skewed(&state, grains));
    int weighted = random_below(&state, 3) != 0;
    unsigned flaws = random_below(&state, 2) == 0 ? 0 : random_below(&state, 101);
    int empty = random_below(&state, 8) == 0;
    for (int rank = 0; rank < setup->ranks; rank++) {
        int full = random_below(&state, 4) == 0;
        one.tokens[rank] = empty  ? 0
                           : full ? setup->config.tokens_max
                                  : (int)random_below(&state, (unsigned)setup->config.tokens_max + 1);
        draw_choices(&state, &one, rank, weighted, flaws);
    }
    return one;
}

void ep_case_free(ep_case *one)
{
    for (int rank = 0; rank < EP_RANKS_MAX; rank++) {
        free(one->ids[rank]);
        free(one->weights[rank]);
    }
    memset(one, 0, sizeof *one);
}

size_t ep_element_bytes(weft_ep_dtype dtype)
{
    return dtype == WEFT_EP_F32 ? 4 : 2;
}

size_t ep_row_bytes(const ep_case *one)
{
    return (size_t)one->hidden * ep_element_bytes(one->dtype);
}

uint32_t ep_pattern(int rank, int token, int word, unsigned salt)
{
    return (uint32_t)rank << 26 | ((uint32_t)token & 511) << 17 | ((uint32_t)word & 1023) << 7 | (salt & 127);
}

const char *ep_pattern_text(uint32_t pattern, char *text, size_t bytes)
{
    snprintf(text, bytes, "0x%08x (rank %u, token %u, word %u, salt %u)", pattern, pattern >> 26, pattern >> 17 & 511,
             pattern >> 7 & 1023, pattern & 127);
    return text;
}

uint32_t ep_result(weft_ep_dtype dtype, int rank, int source, int token, int choice, int column, unsigned salt)
{
    uint64_t state = ((uint64_t)(unsigned)rank << 58) ^ ((uint64_t)(unsigned)source << 50) ^
                     ((uint64_t)(unsigned)token << 36) ^ ((uint64_t)(unsigned)choice << 28) ^
                     ((uint64_t)(unsigned)column << 12) ^ salt;
    uint64_t bits = random_next(&state);
    uint32_t sign = bits & 1;
    uint32_t exponent = 119 + (uint32_t)(bits >> 1 & 7);
    if (dtype == WEFT_EP_F32) {
        return sign << 31 | exponent << 23 | (uint32_t)(bits >> 8 & 0x7fffff);
    }
    return sign << 15 | exponent << 7 | (uint32_t)(bits >> 8 & 0x7f);
}
