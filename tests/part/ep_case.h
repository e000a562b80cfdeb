/* part/ep_case.h: random cases for expert parallelism. A case is a pure function of its seed, so that every PE knows what
 * all PEs do, and the data of every element names where it comes from. */
#ifndef PART_EP_CASE_H
#define PART_EP_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "weft_ep.h"

#define EP_RANKS_MAX 64
#define EP_TOKENS_MAX 300

/* How large cases are drawn. */
typedef struct ep_size {
    int tokens_max; /* at most EP_TOKENS_MAX */
    int topk_max;
    int experts_max;
    int hidden_max;
    size_t bytes_max; /* of the rows received by all ranks together */
} ep_size;

extern const ep_size ep_size_full;
extern const ep_size ep_size_small; /* for sanitizers */

/* A group. */
typedef struct ep_setup {
    int ranks;
    weft_ep_config config; /* experts_of_rank is NULL: whoever creates the group sets it to the table if `uneven` */
    int uneven;
    int table[EP_RANKS_MAX];
    int first[EP_RANKS_MAX + 1]; /* the first expert of each rank */
} ep_setup;

ep_setup ep_setup_draw(uint64_t seed, int ranks, const ep_size *size);

/* What every rank's gate chose. */
typedef struct ep_case {
    const ep_setup *setup;
    weft_ep_plan plan;
    weft_ep_dtype dtype;
    int hidden;
    weft_ep_id_type id_type;
    int tokens[EP_RANKS_MAX];
    int64_t *ids[EP_RANKS_MAX]; /* [T][K], some of them -1 or out of range */
    float *weights[EP_RANKS_MAX]; /* [T][K]; NULL on all ranks or on none */
} ep_case;

weft_ep_plan ep_plan_draw(uint64_t seed, const ep_setup *setup);
ep_case ep_case_draw(uint64_t seed, const ep_setup *setup, const ep_size *size, const weft_ep_plan *plan);
void ep_case_free(ep_case *one);

size_t ep_element_bytes(weft_ep_dtype dtype);
size_t ep_row_bytes(const ep_case *one);

/* The 32-bit word `word` of the row that a dispatch sends for a token: rank, token, word and salt, to be read from a wrong
 * row by ep_pattern_text. */
uint32_t ep_pattern(int rank, int token, int word, unsigned salt);
const char *ep_pattern_text(uint32_t pattern, char *text, size_t bytes);

/* The bits of an element that the experts on `rank` made of (source, token, choice): any finite value of moderate size. */
uint32_t ep_result(weft_ep_dtype dtype, int rank, int source, int token, int choice, int column, unsigned salt);

#endif
