/* support/ep_case.h: random cases for expert parallelism: a group, and the routings of its steps. Each is a pure
 * function of a seed, so that every rank knows what all ranks do, and a failing case is repeated from its seed. */
#ifndef SUPPORT_EP_CASE_H
#define SUPPORT_EP_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "weft_ep.h"

#define EP_RANKS_MAX 160
#define EP_TOKENS_MAX 300
#define EP_EXPERTS_MAX 300
#define EP_TOPK_MAX 64

/* How large cases are drawn. */
typedef struct ep_size {
    int tokens_max; /* at most EP_TOKENS_MAX */
    int topk_max; /* at most EP_TOPK_MAX */
    int experts_max; /* at most EP_EXPERTS_MAX */
    int hidden_max;
    size_t bytes_max; /* of the rows received by all ranks together */
} ep_size;

extern const ep_size ep_size_full;
extern const ep_size ep_size_small; /* for sanitizers */

/* ---- a group ---- */

typedef struct ep_setup {
    int ranks;
    weft_ep_config config; /* experts_of_rank is NULL: whoever creates the group sets it to the table if `uneven` */
    int uneven;
    int table[EP_RANKS_MAX];
    int first[EP_RANKS_MAX + 1]; /* the first expert of each rank */
    int owner[EP_EXPERTS_MAX]; /* the rank of each expert */
    /* The number of each rank's domain; where it is not stated, that is learnt from the group that was created. With
     * has_map whoever creates the group sets config.domain_of to the labels. */
    int domain[EP_RANKS_MAX];
    int has_map;
    int labels[EP_RANKS_MAX];
} ep_setup;

/* Whether a group of so many ranks on GPUs has the kernels for many. */
int ep_is_many(int ranks);

/* How many domains there are. */
int ep_domains(const ep_setup *setup);

/* Perhaps state a map of domains, of any shape; or domains of as many ranks each. */
void ep_setup_divide(uint64_t *state, ep_setup *setup);

/* Take some of the limits back, of a group whose limits grow to them. */
void ep_config_forget(uint64_t *state, weft_ep_config *config);

/* The number of ranks is given, since the world is there before the case. */
ep_setup ep_setup_draw(uint64_t seed, int ranks, const ep_size *size);

/* ---- a routing ---- */

/* What every rank's gate chose. */
typedef struct ep_case {
    const ep_setup *setup;
    weft_ep_plan plan;
    weft_ep_id_type id_type;
    int tokens[EP_RANKS_MAX]; /* T */
    int tokens_most[EP_RANKS_MAX]; /* weft_ep_choices.tokens where T is told by address; else T */
    int tokens_told[EP_RANKS_MAX]; /* what is told there, perhaps outside 0 .. tokens_most */
    int is_told[EP_RANKS_MAX];
    int64_t *ids[EP_RANKS_MAX]; /* [T][K], some of them -1 or out of range */
    /* With WEFT_EP_DESTINATIONS ids are ranks or -1, and these, NULL on ranks that give none, [T][K], are the tokens'
     * numbers among those to a rank. */
    int32_t *positions[EP_RANKS_MAX];
    float *weights[EP_RANKS_MAX]; /* [T][K]; NULL on all ranks or on none */
} ep_case;

/* Tmax of a plan with slots; -1 when the group has none. */
int ep_slot_tokens(const ep_setup *setup, const weft_ep_plan *plan);

weft_ep_plan ep_plan_draw(uint64_t seed, const ep_setup *setup);

/* Perhaps let it add up in another order, or be of destinations. */
void ep_plan_vary(uint64_t *state, const ep_setup *setup, weft_ep_plan *plan);
ep_case ep_case_draw(uint64_t seed, const ep_setup *setup, const weft_ep_plan *plan);
void ep_case_free(ep_case *one);
/* What the gates' choices amount to once these ranks [ranks] are masked: they have no tokens, and their experts are
 * -1. */
void ep_case_mask(ep_case *one, const int *masked);

/* Other weights, but of ranks that are masked. */
void ep_case_weigh(ep_case *one, uint64_t seed, const int *masked);

static inline int64_t ep_id(const ep_case *one, int source, int token, int choice)
{
    return one->ids[source][(size_t)token * (size_t)one->plan.topk + (size_t)choice];
}

static inline float ep_weight(const ep_case *one, int source, int token, int choice)
{
    const float *weights = one->weights[source];
    return weights != NULL ? weights[(size_t)token * (size_t)one->plan.topk + (size_t)choice] : 1.0f;
}

#endif
