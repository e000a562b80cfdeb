/* part/ep_case.h: random cases for expert parallelism: a group, the routings of its steps, and what the rows hold. Each is
 * a pure function of a seed, so that every rank knows what all ranks do, and a failing case is repeated from its seed. */
#ifndef PART_EP_CASE_H
#define PART_EP_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "part/ep_number.h"
#include "weft_ep.h"

#define EP_RANKS_MAX 80
#define EP_TOKENS_MAX 300
#define EP_EXPERTS_MAX 300
#define EP_TOPK_MAX 64
#define EP_SCALE_WORDS_MAX 64

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
} ep_setup;

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
    float *weights[EP_RANKS_MAX]; /* [T][K]; NULL on all ranks or on none */
} ep_case;

/* Tmax of a plan with slots; -1 when the group has none. */
int ep_slot_tokens(const ep_setup *setup, const weft_ep_plan *plan);

weft_ep_plan ep_plan_draw(uint64_t seed, const ep_setup *setup);
ep_case ep_case_draw(uint64_t seed, const ep_setup *setup, const weft_ep_plan *plan);
void ep_case_free(ep_case *one);

static inline int64_t ep_id(const ep_case *one, int source, int token, int choice)
{
    return one->ids[source][(size_t)token * (size_t)one->plan.topk + (size_t)choice];
}

static inline float ep_weight(const ep_case *one, int source, int token, int choice)
{
    const float *weights = one->weights[source];
    return weights != NULL ? weights[(size_t)token * (size_t)one->plan.topk + (size_t)choice] : 1.0f;
}

/* ---- the rows of a call ---- */

typedef enum ep_fill {
    EP_FILL_PATTERN, /* 32-bit words that name rank, row and place: for what is moved */
    EP_FILL_REAL, /* finite values of moderate size: for what is added */
    EP_FILL_INTEGER, /* from -4 to 4, so that sums of products are exact */
    EP_FILL_WILD /* any bits: infinities, NaN, denormals, zeros of both signs */
} ep_fill;

typedef struct ep_payload {
    weft_ep_dtype dtype; /* of the rows that are there before the call */
    weft_ep_scale_type scale_type; /* of them */
    int hidden;
    ep_fill fill;
    unsigned salt; /* of the call: tells its rows from those of the calls before */
} ep_payload;

/* For a call that adds, or a dispatch: bit patterns then, or, with *received of another type, values. */
ep_payload ep_payload_draw(uint64_t seed, const ep_setup *setup, const ep_size *size, const weft_ep_plan *plan,
                           int adds, unsigned salt, ep_payload *received);

size_t ep_row_bytes(const ep_payload *payload);
/* Scales a row: one for 128 elements; and the words that hold them. */
int ep_scale_groups(int hidden);
int ep_scale_words(const ep_payload *payload);
/* The words of scales that come with a row of fp8. */
uint32_t ep_row_scale(const ep_payload *payload, int rank, int row, int word);

/* The row number `row` of `rank`: row_bytes bytes. */
void ep_row_fill(const ep_payload *payload, int rank, int row, void *bytes);
/* The bits of one element of it. */
uint32_t ep_row_element(const ep_payload *payload, int rank, int row, int column);

uint32_t ep_element_get(weft_ep_dtype dtype, const void *row, int column);
void ep_element_set(weft_ep_dtype dtype, void *row, int column, uint32_t bits);

/* What a word of EP_FILL_PATTERN says, as text. */
const char *ep_pattern_text(uint32_t pattern, char *text, size_t bytes);

/* A finite value of moderate size made of these numbers. */
uint32_t ep_result(weft_ep_dtype dtype, int rank, int source, int token, int choice, int column, unsigned salt);

#endif
