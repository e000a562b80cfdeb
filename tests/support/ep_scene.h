/* support/ep_scene.h: a small step of expert parallelism written out by hand: what each rank's gate chooses and what
 * the experts make of it; and what every rank saw. Rows hold one value in all their elements. */
#ifndef SUPPORT_EP_SCENE_H
#define SUPPORT_EP_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "weft_ep.h"

#define SCENE_RANKS_MAX 4
#define SCENE_TOKENS_MAX 8
#define SCENE_ROWS_MAX 128
#define SCENE_TOPK_MAX 4
#define SCENE_ROW_BYTES 32

/* What one rank saw. */
typedef struct scene_seen {
    weft_status status; /* of the route */
    int64_t rows;
    int64_t dropped;
    int64_t dropped_rows;
    weft_status dispatched; /* what the calls returned */
    weft_status combined;
    float received[SCENE_ROWS_MAX]; /* the value of each row, SCENE_UNTOUCHED where nothing was written */
    int32_t source_rank[SCENE_ROWS_MAX];
    int32_t source_token[SCENE_ROWS_MAX];
    int32_t experts[SCENE_ROWS_MAX][SCENE_TOPK_MAX]; /* by expert: [row][0] */
    float weights[SCENE_ROWS_MAX][SCENE_TOPK_MAX];
    int rows_of_source[SCENE_RANKS_MAX];
    int rows_of_expert[SCENE_ROWS_MAX];
    float out[SCENE_TOKENS_MAX];
    /* backward, where every gradient that is given is 1 */
    float grad_in[SCENE_TOKENS_MAX];
    float grad_weights[SCENE_TOKENS_MAX * SCENE_TOPK_MAX]; /* from dispatch_bwd: those that come with rows */
    float grad_rows[SCENE_ROWS_MAX]; /* SCENE_UNTOUCHED where nothing was written */
    float dots[SCENE_TOKENS_MAX * SCENE_TOPK_MAX]; /* from a weighted combine_bwd of the results */
} scene_seen;

#define SCENE_UNTOUCHED (-7.0f)

typedef struct scene {
    int ranks;
    int experts;
    int topk;
    weft_ep_dtype dtype;
    weft_ep_layout layout;
    int alignment;
    unsigned plan_flags;
    int slot_tokens;
    size_t rows_max;
    const int *domain_of; /* or NULL */
    weft_ep_overflow overflow;
    unsigned flags; /* of combine */
    int tokens[SCENE_RANKS_MAX];
    int32_t ids[SCENE_RANKS_MAX][SCENE_TOKENS_MAX * SCENE_TOPK_MAX]; /* [T][K] */
    float weights[SCENE_RANKS_MAX][SCENE_TOKENS_MAX * SCENE_TOPK_MAX]; /* used if weighted */
    int weighted;
    int backward; /* make the backward calls as well */
    const int32_t *tokens_at; /* as in weft_ep_choices, of rank 0 */
    /* The result of the experts for a row: that of (source, token) with these experts, [K] or one. NULL: the row
     * itself, which is 10 * source + token + 1. */
    float (*result)(int rank, int row, const scene_seen *seen);
    scene_seen seen[SCENE_RANKS_MAX];
} scene;

/* Run it: an update, a dispatch, a combine; the backward calls if wanted. */
void scene_run(scene *s);

#endif
