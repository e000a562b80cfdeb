/* Goal: handles of one group do not disturb each other, in whatever order their calls come: in LL two of other top-k
 * dispatch, then both combine; in HT one is dispatched, another one made and dispatched, and then the first goes back.
 *
 * Method: two ranks as threads, with the stand-in for NCCL and the fake driver. Experts do nothing, so that a token
 * comes back as often as it was sent, and values tell rank, token and handle. */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/rank_threads.h"
#include "weft.h"
#include <nccl_ep.h>

#define RANKS 2
#define LOCAL 2 /* experts */
#define EXPERTS (RANKS * LOCAL)
#define TOKENS 4
#define HIDDEN 32
#define CHOICES 2 /* at most */
#define ROUNDS 4
#define SLOTS (LOCAL * RANKS * TOKENS)
#define ROWS (RANKS * TOKENS * CHOICES)

/* A handle and what its calls are given. */
typedef struct layer {
    int number;
    int topk;
    ncclEpHandle_t handle;
    int64_t ids[TOKENS * CHOICES];
    float weights[TOKENS * CHOICES];
    float row_weights[ROWS];
    float weights_back[TOKENS * CHOICES];
    int32_t counts[LOCAL];
    _Alignas(16) float x[TOKENS][HIDDEN];
    _Alignas(16) float y[TOKENS][HIDDEN];
    _Alignas(16) float rows[SLOTS + ROWS][HIDDEN];
    size_t token_sizes[2], choice_sizes[2], row_sizes[3], place_sizes[1], count_sizes[1];
    ncclEpTensor_t in, out, ids_of, weights_of, rows_of, places, back, counts_of;
} layer;

typedef struct rig {
    int rank;
    int failures;
    ncclComm_t comm;
    ncclEpGroup_t group;
    layer layers[2];
} rig;

static float value_of(int rank, int token, int number, int round)
{
    return (float)(1 + rank + 2 * token + 8 * number + 16 * round);
}

static int expert_of(const layer *l, int rank, int token, int k)
{
    return (rank + token + k + l->number) % EXPERTS;
}

static void make(rig *r, layer *l, int number, int topk, int is_ll)
{
    l->number = number;
    l->topk = topk;
    for (int i = 0; i < TOKENS * topk; i++) {
        l->ids[i] = expert_of(l, r->rank, i / topk, i % topk);
        l->weights[i] = 1.0f / (float)(topk + i % topk);
    }
    memcpy(l->token_sizes, (size_t[]){TOKENS, HIDDEN}, sizeof l->token_sizes);
    memcpy(l->choice_sizes, (size_t[]){TOKENS, (size_t)topk}, sizeof l->choice_sizes);
    memcpy(l->row_sizes, is_ll ? (size_t[]){LOCAL, RANKS * TOKENS, HIDDEN} : (size_t[]){ROWS, HIDDEN, 0},
           sizeof l->row_sizes);
    l->place_sizes[0] = ROWS;
    l->count_sizes[0] = LOCAL;
    l->in = tensor(l->x, ncclFloat32, 2, l->token_sizes);
    l->out = tensor(l->y, ncclFloat32, 2, l->token_sizes);
    l->ids_of = tensor(l->ids, ncclInt64, 2, l->choice_sizes);
    l->weights_of = tensor(l->weights, ncclFloat32, 2, l->choice_sizes);
    l->rows_of = tensor(l->rows, ncclFloat32, is_ll ? 3 : 2, l->row_sizes);
    l->places = tensor(l->row_weights, ncclFloat32, 1, l->place_sizes);
    l->back = tensor(l->weights_back, ncclFloat32, 2, l->choice_sizes);
    l->counts_of = tensor(l->counts, ncclInt32, 1, l->count_sizes);
    OK(ncclEpCreateHandle(&l->handle, r->group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &l->ids_of, NULL, NULL, NULL));
}

static void dispatch(rig *r, layer *l, int is_ll, int round, unsigned send_only, ncclEpPassDir_t pass)
{
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    int is_back = pass == NCCL_EP_BWD_PASS;
    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HIDDEN; h++) {
            l->x[t][h] = value_of(r->rank, t, l->number, round);
        }
    }
    memset(l->rows, 0, sizeof l->rows);
    inputs.tokens = &l->in;
    inputs.topk_weights = is_ll || is_back ? NULL : &l->weights_of;
    outputs.tokens = &l->rows_of;
    outputs.topk_weights = is_ll || is_back ? NULL : &l->places;
    info.expert_counters = &l->counts_of;
    config.send_only = send_only;
    config.pass_direction = pass;
    OK(ncclEpDispatch(l->handle, &inputs, &outputs, is_ll ? &info : NULL, &config, NULL));
}

/* Rows of each expert here, in order of (source, token); LL: from its first slot on, HT: behind the one before. */
static void check_rows(rig *r, const layer *l, int is_ll, int round)
{
    size_t row = 0;
    for (int e = 0; e < LOCAL; e++) {
        row = is_ll ? (size_t)e * RANKS * TOKENS : row;
        for (int i = 0; i < RANKS * TOKENS * l->topk; i++) {
            int source = i / (TOKENS * l->topk), t = i / l->topk % TOKENS;
            if (expert_of(l, source, t, i % l->topk) == r->rank * LOCAL + e) {
                float wanted = value_of(source, t, l->number, round);
                if (l->rows[row][0] != wanted || l->rows[row][HIDDEN - 1] != wanted) {
                    (void)fprintf(stderr, "rank %d, handle %d, round %d: row %zu is %g, not %g\n", r->rank, l->number,
                                  round, row, (double)l->rows[row][0], (double)wanted);
                    r->failures++;
                }
                row++;
            }
        }
    }
}

/* LL by the weights, HT by their number. */
static void combine(rig *r, layer *l, int is_ll, int round)
{
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    inputs.tokens = &l->rows_of;
    outputs.tokens = &l->out;
    outputs.topk_weights = is_ll ? &l->weights_of : NULL;
    memset(l->y, 0, sizeof l->y);
    OK(ncclEpCombine(l->handle, &inputs, &outputs, NULL, NULL));
    for (int t = 0; t < TOKENS; t++) {
        float factor = is_ll ? 0 : (float)l->topk;
        for (int k = 0; is_ll && k < l->topk; k++) {
            factor += l->weights[t * l->topk + k];
        }
        float wanted = factor * value_of(r->rank, t, l->number, round);
        float off = l->y[t][0] - wanted;
        if (off > wanted / 1024 || -off > wanted / 1024 || l->y[t][0] != l->y[t][HIDDEN - 1]) {
            (void)fprintf(stderr, "rank %d, handle %d, round %d: token %d is %g, not %g\n", r->rank, l->number, round,
                          t, (double)l->y[t][0], (double)wanted);
            r->failures++;
        }
    }
}

/* The weights that a forward dispatch brought go back, each to its choice. */
static void combine_back(rig *r, layer *l)
{
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    inputs.tokens = &l->rows_of;
    inputs.topk_weights = &l->places;
    outputs.tokens = &l->out;
    outputs.topk_weights = &l->back;
    config.pass_direction = NCCL_EP_BWD_PASS;
    memset(l->weights_back, 0xff, sizeof l->weights_back);
    OK(ncclEpCombine(l->handle, &inputs, &outputs, &config, NULL));
    if (memcmp(l->weights_back, l->weights, (size_t)l->topk * TOKENS * sizeof l->weights[0]) != 0) {
        (void)fprintf(stderr, "rank %d, handle %d: other weights came back\n", r->rank, l->number);
        r->failures++;
    }
}

static void open_group(rig *r, ncclEpAlgorithm_t algorithm)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = algorithm;
    config.num_experts = EXPERTS;
    config.max_dispatch_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = algorithm == NCCL_EP_ALGO_HIGH_THROUGHPUT ? ROWS : 0;
    config.max_token_bytes = HIDDEN * sizeof(float);
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
}

static void close_group(rig *r)
{
    OK(ncclEpHandleDestroy(r->layers[1].handle));
    OK(ncclEpHandleDestroy(r->layers[0].handle));
    OK(ncclEpGroupDestroy(r->group));
}

static void ll(rig *r)
{
    layer *a = &r->layers[0], *b = &r->layers[1];
    open_group(r, NCCL_EP_ALGO_LOW_LATENCY);
    make(r, a, 0, 1, 1);
    make(r, b, 1, 2, 1);
    for (int round = 0; round < 3 * ROUNDS; round++) { /* one after the other, both at once, and in halves */
        int way = round / ROUNDS;
        for (int i = 0; i < 2; i++) {
            layer *l = &r->layers[i];
            dispatch(r, l, 1, round, way == 2, NCCL_EP_FWD_PASS);
            OK(ncclEpComplete(l->handle, NULL, NULL));
            check_rows(r, l, 1, round);
            if (way != 1) {
                combine(r, l, 1, round);
            }
        }
        for (int i = 0; way == 1 && i < 2; i++) {
            check_rows(r, &r->layers[i], 1, round);
            combine(r, &r->layers[i], 1, round);
        }
    }
    close_group(r);
}

/* As a pipeline does with two batches: the second goes forward before the first goes back. */
static void ht(rig *r)
{
    layer *a = &r->layers[0], *b = &r->layers[1];
    open_group(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    make(r, a, 0, 2, 0);
    make(r, b, 1, 1, 0);
    dispatch(r, a, 0, 0, 0, NCCL_EP_FWD_PASS); /* made before the other, and dispatched after */
    dispatch(r, b, 0, 0, 0, NCCL_EP_FWD_PASS);
    check_rows(r, a, 0, 0);
    check_rows(r, b, 0, 0);
    combine(r, a, 0, 0);
    OK(ncclEpHandleDestroy(b->handle));
    make(r, b, 1, 2, 0); /* between the first one's forward and its backward */
    dispatch(r, b, 0, 1, 0, NCCL_EP_FWD_PASS);
    dispatch(r, a, 0, 2, 0, NCCL_EP_BWD_PASS);
    check_rows(r, a, 0, 2);
    check_rows(r, b, 0, 1);
    combine(r, b, 0, 1);
    combine_back(r, a);
    dispatch(r, b, 0, 3, 0, NCCL_EP_BWD_PASS);
    check_rows(r, b, 0, 3);
    combine_back(r, b);
    close_group(r);
}

static int run(void *argument)
{
    rig *r = argument;
    if (!standin_choose_gpu(r->rank)) {
        (void)fprintf(stderr, "rank %d: no fake driver\n", r->rank);
        r->failures++;
        return r->failures;
    }
    ll(r);
    ht(r);
    return r->failures;
}

int main(void)
{
    static rig rigs[RANKS];
    ncclComm_t comms[RANKS];
    standin_comms(RANKS, comms);
    for (int i = 0; i < RANKS; i++) {
        rigs[i].rank = i;
        rigs[i].comm = comms[i];
    }
    return run_rank_threads(RANKS, run, rigs, sizeof rigs[0]) != 0;
}
