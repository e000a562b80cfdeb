/* faces/nccl_ep/step.h: a layer's step through the NCCL EP face, of ranks that are threads: x * sum over a token's
 * choices of weight * (1 + expert), by what a call of each layout is given and gives back. Small integers, so that sums
 * are exact. */
#ifndef WEFT_TESTS_NCCL_EP_STEP_H
#define WEFT_TESTS_NCCL_EP_STEP_H

#include <pthread.h>

#include "faces/nccl_ep/check.h"
#include <nccl_ep.h>

#define MOST 8 /* tokens */
#define TOPK 2
#define HIDDEN 32
#define LOCAL 2 /* experts */
#define RANKS_MOST 4
#define SLOTS (LOCAL * RANKS_MOST * MOST)
#define ROWS (RANKS_MOST * MOST * TOPK + LOCAL * 8)

/* A rank, and its arrays. */
typedef struct rig {
    int rank;
    int ranks;
    int failures;
    ncclComm_t comm;
    ncclEpGroup_t group;
    cudaStream_t behind; /* where halves are completed: behind that of the first half, which has nothing left then */
    size_t tokens;
    _Alignas(16) float x[MOST][HIDDEN];
    _Alignas(16) float y[MOST][HIDDEN];
    int64_t ids[MOST][TOPK];
    float weights[MOST][TOPK];
    _Alignas(16) float received[SLOTS + ROWS][HIDDEN];
    float received_weights[(SLOTS + ROWS) * TOPK];
    int32_t received_ids[(SLOTS + ROWS) * TOPK];
    int64_t wide_ids[ROWS * TOPK];
    int32_t total;
    int32_t experts[LOCAL];
    int32_t offsets[LOCAL];
    int32_t padded[LOCAL];
    int32_t sources[RANKS_MOST];
    float weights_back[MOST][TOPK];
} rig;

/* All ranks meet: for what one does while the others wait. */
extern pthread_barrier_t turns;

/* A layout's step: `is_ll` or HT, and tensors on the rig's arrays, whose sizes can be changed before fill_tensors. */
typedef struct step {
    ncclEpLayout_t layout;
    int is_ll;
    int in_halves;
    int is_global; /* received ids */
    size_t token_sizes[2];
    size_t choice_sizes[2];
    size_t row_sizes[3];
    size_t place_sizes[3];
    unsigned dims; /* of rows */
    ncclEpTensor_t x, y, ids, weights, rows, row_weights, row_ids;
} step;

step step_of(rig *r, ncclEpLayout_t layout, int is_ll);
void fill_tensors(rig *r, step *s);

/* Choices of all tokens by a seed, 0.5 and 0.25 or 0.5 their weights; the k-th one of a source's token t. */
void choose(rig *r, unsigned seed);
int64_t choice_of(const rig *r, unsigned seed, int source, unsigned t, int k);
/* Other weights of the same choices: a dispatch brings its own. */
void weigh(rig *r, float factor);

/* The calls, the experts' work between them, and what it comes to; and all of that. */
void dispatch(rig *r, step *s, ncclEpHandle_t handle);
void work(rig *r, const step *s);
void combine(rig *r, step *s, ncclEpHandle_t handle);
void check_result(rig *r, int line);
void one_step(rig *r, step *s, ncclEpHandle_t handle, int line);
/* Both backwards of HT: the weights come back. */
void backward(rig *r, step *s, ncclEpHandle_t handle);

ncclEpGroupConfig_t config_of(const rig *r, ncclEpAlgorithm_t algorithm);

/* main of a program of RANKS threads that all run body, with unequal numbers of tokens. */
int run_ranks(int argc, char **argv, void (*body)(rig *r));

#endif
