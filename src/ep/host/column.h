/* ep/host/column.h: the counts of one owner: the messages of all sources to it, {tokens, rows of each of its experts},
 * and what follows from them. On private memory; no protocol. */
#ifndef WEFTI_EP_HOST_COLUMN_H
#define WEFTI_EP_HOST_COLUMN_H

#include "ep/route.h"

typedef struct wefti_ep_column {
    uint32_t *messages; /* that of source s at messages + s * pitch */
    size_t pitch; /* words */
    int ranks;
    int experts; /* the owner's */
    uint32_t own_places; /* of each source; 0: as many as it sends tokens */
    weft_ep_plan plan;
    int64_t *of_expert; /* [experts] working memory */
} wefti_ep_column;

static inline uint32_t *wefti_ep_column_message(const wefti_ep_column *column, int source)
{
    return column->messages + (size_t)source * column->pitch;
}

/* Of all sources: their tokens, and the rows that the owner's layout needs for them, padding included. of_expert gets
 * the rows of each expert. */
typedef struct wefti_ep_column_sum {
    int64_t tokens;
    int64_t rows;
    int64_t filled; /* of the rows, those that are no padding */
} wefti_ep_column_sum;
wefti_ep_column_sum wefti_ep_column_add_up(const wefti_ep_column *column);

/* The rows that the layout needs for `tokens` tokens with of_expert rows of each expert. */
int64_t wefti_ep_column_rows(const wefti_ep_column *column, int64_t tokens);

/* The source with whose tokens the rows become more than `limit`, or -1. Its message is replaced by what those before
 * it send, those of the sources after it by zeros. Slot layouts have no limit. */
int wefti_ep_column_cut(const wefti_ep_column *column, int64_t limit);

/* Replace the message of every source by the answer to it: {place of its first token, its first row of each expert}. */
void wefti_ep_column_answer(const wefti_ep_column *column);

/* The first row of expert `expert` + 1, given that of `expert` and how many rows it has. */
int64_t wefti_ep_expert_end(const weft_ep_plan *plan, int ranks, int64_t first, int64_t rows);

#endif
