/* support/ep_routing.h: who receives which row, worked out serially by one who sees all ranks. Straightforward on
 * purpose; shares nothing with src/ep or the protocol headers.
 *
 * A rank's rows are numbered. Everything follows from two lists: what each row of a rank is (`row`), and in which row
 * of its owner each choice ended up (`row_of`). */
#ifndef SUPPORT_EP_ROUTING_H
#define SUPPORT_EP_ROUTING_H

#include "support/ep_case.h"

/* One row that a rank receives. */
typedef struct ep_row {
    int source; /* -1: padding, or a slot that nobody fills */
    int token;
    int expert; /* local, where a row is of one expert; else -1 */
} ep_row;

/* What one rank receives. */
typedef struct ep_side {
    int64_t rows; /* N: padding and all slots included */
    ep_row *row; /* [N] */
    int *rows_of_expert; /* [L] */
    int *offset_of_expert; /* [L + 1] */
    int *rows_of_source; /* [R] */
    int *offset_of_source; /* [R + 1] */
    int *rows_of_expert_source; /* [L][R] */
    int64_t tokens; /* (source, token) pairs */
    int64_t dropped_rows; /* because they did not fit */
    int64_t wanted_rows; /* N as it would be, had all fit */
    int out_of_range; /* of this rank's own choices */
    int is_clamped; /* this rank's number of tokens was out of range */
    /* while rows are counted and placed */
    int64_t limit; /* rows that fit; -1: any number */
    int is_full; /* the rest is dropped */
    int *next_of_source;
    int *next_of_expert;
    int *wanted_of_expert; /* [L] rows, dropped ones too */
    int64_t wanted_tokens;
    int64_t seen_tokens; /* of these, those that have been looked at */
} ep_side;

typedef struct ep_routing {
    const ep_case *one;
    int drops_rows; /* by themselves */
    int overflow; /* on any rank: nothing moves */
    int masked[EP_RANKS_MAX]; /* since the routing was agreed on: receives, adds and sends nothing any more */
    ep_side side[EP_RANKS_MAX];
    int *row_of[EP_RANKS_MAX]; /* [T][K] of each source: the row on the owner, or -1 */
} ep_routing;

/* `capacity`: NULL, or the rows that each rank's receive buffer holds, where that limits them too. */
ep_routing *ep_routing_create(const ep_case *one, const int64_t *capacity);
void ep_routing_destroy(ep_routing *routing);

/* Whether a row stands for one expert, or for all of its token's choices on the rank. */
int ep_is_by_expert(weft_ep_layout layout);
int ep_is_slots(weft_ep_layout layout);
/* Weights and experts received a row: 1 or K. */
int ep_row_width(const weft_ep_plan *plan);

/* The rank that owns the expert of a choice, or -1; and, where there is one, the expert's number there. */
int ep_owner_of(const ep_case *one, int source, int token, int choice);
int ep_expert_of(const ep_case *one, int source, int token, int choice);

/* The row on its owner that a choice ended up in, or -1. */
int ep_row_of(const ep_routing *routing, int source, int token, int choice);

#endif
