/* Goal: a rank that does not come is told by ncclEpGetAsyncError as soon as the call has met its deadline, without a
 * further call. In LL the call has masked it then and is complete, and those after it go on without the rank; in HT the
 * next call is ncclRemoteError until the caller masks it. After ncclEpMaskClean all ranks make steps again.
 *
 * Method: two PEs as threads on the fake driver; the second makes the group and no step before that. NCCL_EP_TIMEOUT_MS
 * of the test is short. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <nccl_ep.h>

#define RANKS 2
#define TOKENS 2
#define HIDDEN 16

static int failures;
static pthread_barrier_t meeting;
static ncclComm_t comms[RANKS];

static void check(int line, int got, int wanted)
{
    if (got != wanted) {
        (void)fprintf(stderr, "line %d: %d, wanted %d; text \"%s\"\n", line, got, wanted, weft_last_error());
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    }
}

#define IS(value, wanted) check(__LINE__, (int)(value), (int)(wanted))

static ncclEpGroup_t make_group(int rank, ncclEpAlgorithm_t algorithm)
{
    ncclEpGroup_t group = NULL;
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = algorithm;
    config.num_experts = RANKS;
    config.max_dispatch_tokens_per_rank = TOKENS;
    config.max_token_bytes = HIDDEN * sizeof(float);
    config.num_topk = 1;
    config.enable_mask = 1;
    IS(ncclEpCreateGroup(&group, comms[rank], &config), ncclSuccess);
    if (group == NULL) {
        exit(1);
    }
    return group;
}

/* What a rank's calls take: token 0 goes to rank 0, token 1 to rank 1. */
typedef struct rig {
    ncclEpGroup_t group;
    int is_ll;
    ncclEpLayout_t layout;
    ncclEpHandle_t handle;
    _Alignas(16) float x[TOKENS][HIDDEN];
    _Alignas(16) float y[TOKENS][HIDDEN];
    _Alignas(16) float rows[RANKS * TOKENS][HIDDEN];
    float weights[TOKENS];
    float row_weights[RANKS * TOKENS];
    int64_t row_ids[RANKS * TOKENS];
    int64_t ids[TOKENS];
    int counts[RANKS];
    size_t sizes[2];
    size_t choice_sizes[2];
    size_t row_sizes[3];
    size_t flat_sizes[2];
    size_t count_sizes[1];
    ncclEpTensor_t in;
    ncclEpTensor_t out;
    ncclEpTensor_t there;
    ncclEpTensor_t in_weights;
    ncclEpTensor_t there_weights;
    ncclEpTensor_t there_ids;
    ncclEpTensor_t idx;
    ncclEpTensor_t counters;
} rig;

static void fill(rig *r, int rank, ncclEpLayout_t layout)
{
    const rig none = {0};
    *r = none;
    r->layout = layout;
    r->is_ll = layout != NCCL_EP_LAYOUT_FLAT;
    for (int token = 0; token < TOKENS; token++) {
        r->x[token][0] = (float)(10 * rank + token + 1);
        r->weights[token] = 1;
        r->ids[token] = token;
    }
    r->sizes[0] = r->choice_sizes[0] = r->row_sizes[1] = TOKENS;
    r->sizes[1] = r->row_sizes[2] = r->flat_sizes[1] = HIDDEN;
    r->choice_sizes[1] = 1;
    r->row_sizes[0] = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? 1 : RANKS; /* experts of a rank, or sources */
    r->row_sizes[1] = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? RANKS * TOKENS : TOKENS;
    r->flat_sizes[0] = RANKS * TOKENS;
    r->count_sizes[0] = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? 1 : RANKS;
    r->in = tensor(r->x, ncclFloat32, 2, r->sizes);
    r->out = tensor(r->y, ncclFloat32, 2, r->sizes);
    r->there = tensor(r->rows, ncclFloat32, r->is_ll ? 3 : 2, r->is_ll ? r->row_sizes : r->flat_sizes);
    r->in_weights = tensor(r->weights, ncclFloat32, 2, r->choice_sizes);
    r->there_weights = tensor(r->row_weights, ncclFloat32, 1, r->flat_sizes);
    r->there_ids = tensor(r->row_ids, ncclInt64, 1, r->flat_sizes);
    r->idx = tensor(r->ids, ncclInt64, 2, r->choice_sizes);
    r->counters = tensor(r->counts, ncclInt32, 1, r->count_sizes);
}

static ncclResult_t dispatch(rig *r)
{
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    inputs.tokens = &r->in;
    inputs.topk_weights = &r->in_weights;
    outputs.tokens = &r->there;
    if (r->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR) {
        info.expert_counters = &r->counters;
    } else if (r->is_ll) {
        info.src_rank_counters = &r->counters;
    } else {
        outputs.topk_weights = &r->there_weights;
        outputs.topk_idx = &r->there_ids;
    }
    return ncclEpDispatch(r->handle, &inputs, &outputs, r->is_ll ? &info : NULL, NULL, NULL);
}

static ncclResult_t combine(rig *r)
{
    ncclEpCombineInputs_t results = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    results.tokens = &r->there;
    sums.tokens = &r->out;
    if (r->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR) {
        sums.topk_weights = &r->in_weights;
    }
    memset(r->y, 0x5a, sizeof r->y);
    return ncclEpCombine(r->handle, &results, &sums, NULL, NULL);
}

/* A whole step, of which the tokens that went to ranks of `alive` come back as they were. */
static void expect_step(rig *r, unsigned alive)
{
    IS(dispatch(r), ncclSuccess);
    IS(combine(r), ncclSuccess);
    for (int token = 0; token < TOKENS; token++) {
        IS(r->y[token][0] == ((alive >> token & 1) != 0 ? r->x[token][0] : 0), 1);
    }
}

static void expect_error(const rig *r, int wanted)
{
    int error = 7;
    IS(ncclEpGetAsyncError(r->group, &error), ncclSuccess);
    IS(error, wanted);
}

static void expect_mask(const rig *r, int other)
{
    int mask[RANKS] = {7, 7};
    IS(ncclEpMaskQuery(r->group, mask, NULL), ncclSuccess);
    IS(mask[0], 1);
    IS(mask[1], other);
}

/* LL: the call that waits in vain masks the rank and is complete. */
static void masked_by_itself(rig *r)
{
    const int is_by_expert = r->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    expect_error(r, 0);
    expect_mask(r, 1);
    expect_step(r, 1);
    IS(r->counts[0], 1);
    IS(is_by_expert || r->counts[1] == 0, 1);
    expect_error(r, 1);
    expect_mask(r, 0);
    expect_step(r, 1);
    IS(ncclEpErrorClear(r->group), ncclSuccess);
    expect_error(r, 0);
    expect_step(r, 1);
    expect_error(r, 0);
    expect_mask(r, 0);
}

/* HT: the caller masks it. */
static void masked_by_caller(rig *r)
{
    const int mask[RANKS] = {1, 0};
    expect_error(r, 0);
    IS(dispatch(r), ncclSuccess); /* enqueued */
    expect_error(r, 1);
    IS(dispatch(r), ncclRemoteError);
    IS(strstr(weft_last_error(), "rank") != NULL, 1);
    IS(ncclEpErrorClear(r->group), ncclSuccess);
    expect_error(r, 1); /* it is so still */
    IS(ncclEpMaskUpdate(r->group, mask, NULL), ncclSuccess);
    expect_error(r, 1);
    IS(ncclEpErrorClear(r->group), ncclSuccess);
    expect_error(r, 0);
    expect_mask(r, 0);
    IS(ncclEpUpdateHandle(r->handle, &r->idx, NULL, NULL), ncclSuccess);
    expect_step(r, 1);
    expect_error(r, 0);
}

/* The second rank makes no call until all clean their masks. */
static void lose_one(int rank, ncclEpLayout_t layout)
{
    rig r;
    fill(&r, rank, layout);
    r.group = make_group(rank, r.is_ll ? NCCL_EP_ALGO_LOW_LATENCY : NCCL_EP_ALGO_HIGH_THROUGHPUT);
    IS(ncclEpCreateHandle(&r.handle, r.group, layout, &r.idx, NULL, NULL, NULL), ncclSuccess);
    if (rank == 0 && r.is_ll) {
        masked_by_itself(&r);
    } else if (rank == 0) {
        masked_by_caller(&r);
    }
    (void)pthread_barrier_wait(&meeting);
    IS(ncclEpMaskClean(r.group, NULL), ncclSuccess);
    expect_error(&r, 0);
    expect_mask(&r, 1);
    IS(ncclEpUpdateHandle(r.handle, &r.idx, NULL, NULL), ncclSuccess);
    expect_step(&r, 3);
    expect_step(&r, 3);
    expect_error(&r, 0);
    (void)pthread_barrier_wait(&meeting);
    IS(ncclEpHandleDestroy(r.handle), ncclSuccess);
    IS(ncclEpGroupDestroy(r.group), ncclSuccess);
}

static void *run(void *argument)
{
    int rank = argument != NULL;
    if (!standin_choose_gpu(rank)) {
        IS(0, 1);
        exit(1);
    }
    lose_one(rank, NCCL_EP_LAYOUT_RANK_MAJOR);
    lose_one(rank, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    lose_one(rank, NCCL_EP_LAYOUT_FLAT);
    return NULL;
}

int main(void)
{
    pthread_t threads[RANKS];
    standin_comms(RANKS, comms);
    if (pthread_barrier_init(&meeting, NULL, RANKS) != 0) {
        return 1;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        if (pthread_create(&threads[rank], NULL, run, rank == 0 ? NULL : comms) != 0) {
            return 1;
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        (void)pthread_join(threads[rank], NULL);
    }
    return failures != 0;
}
