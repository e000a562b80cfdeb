/* Goal: a rank that does not come is told by ncclEpGetAsyncError as soon as the call has met its deadline, without a
 * further call; the next call is ncclRemoteError; masked, the other rank makes steps without it.
 *
 * Method: two PEs as threads on the fake driver; the second makes the group and no step. NCCL_EP_TIMEOUT_MS of the test
 * is short. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <nccl_ep.h>

#define RANKS 2
#define TOKENS 2
#define HIDDEN 16

static int failures;
static pthread_barrier_t meeting;
static ncclComm_t comms[RANKS];

static void expect(int line, int got, int wanted)
{
    if (got != wanted) {
        (void)fprintf(stderr, "line %d: %d, wanted %d; text \"%s\"\n", line, got, wanted, weft_last_error());
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    }
}

#define IS(value, wanted) expect(__LINE__, (int)(value), (int)(wanted))

static ncclEpTensor_t tensor(void *data, ncclDataType_t type, unsigned ndim, size_t *sizes)
{
    ncclEpTensor_t made = NCCL_EP_TENSOR_INIT;
    made.ndim = ndim;
    made.datatype = type;
    made.data = data;
    made.sizes = sizes;
    return made;
}

static ncclEpGroup_t make_group(int rank)
{
    ncclEpGroup_t group = NULL;
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = NCCL_EP_ALGO_LOW_LATENCY;
    config.num_experts = RANKS;
    config.max_dispatch_tokens_per_rank = TOKENS;
    config.max_token_bytes = HIDDEN * sizeof(float);
    config.num_topk = 1;
    config.enable_mask = 1;
    IS(ncclEpCreateGroup(&group, comms[rank], &config), ncclSuccess);
    return group;
}

/* Token 0 to this rank, token 1 to the other. */
static void steps(ncclEpGroup_t group)
{
    static _Alignas(16) float x[TOKENS][HIDDEN] = {{1}, {2}};
    static _Alignas(16) float y[TOKENS][HIDDEN];
    static _Alignas(16) float rows[RANKS][TOKENS][HIDDEN];
    static float weights[TOKENS] = {1, 1};
    static int64_t ids[TOKENS] = {0, 1};
    size_t sizes[2] = {TOKENS, HIDDEN};
    size_t choice_sizes[2] = {TOKENS, 1};
    size_t row_sizes[3] = {RANKS, TOKENS, HIDDEN};
    int mask[RANKS] = {1, 0};
    int error = 7;
    ncclEpHandle_t handle = NULL;
    ncclEpTensor_t in = tensor(x, ncclFloat32, 2, sizes);
    ncclEpTensor_t out = tensor(y, ncclFloat32, 2, sizes);
    ncclEpTensor_t there = tensor(rows, ncclFloat32, 3, row_sizes);
    ncclEpTensor_t in_weights = tensor(weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t idx = tensor(ids, ncclInt64, 2, choice_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpCombineInputs_t results = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    inputs.tokens = &in;
    inputs.topk_weights = &in_weights;
    outputs.tokens = results.tokens = &there;
    sums.tokens = &out;
    IS(ncclEpGetAsyncError(group, &error), ncclSuccess);
    IS(error, 0);
    IS(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_RANK_MAJOR, &idx, NULL, NULL, NULL), ncclSuccess);
    IS(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclSuccess); /* enqueued */
    IS(ncclEpGetAsyncError(group, &error), ncclSuccess);
    IS(error, 1);
    IS(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclRemoteError);
    IS(strstr(weft_last_error(), "rank") != NULL, 1);
    IS(ncclEpErrorClear(group), ncclSuccess);
    IS(ncclEpGetAsyncError(group, &error), ncclSuccess);
    IS(error, 1); /* it is so still */
    IS(ncclEpMaskUpdate(group, mask, NULL), ncclSuccess);
    IS(ncclEpGetAsyncError(group, &error), ncclSuccess);
    IS(error, 1);
    IS(ncclEpErrorClear(group), ncclSuccess);
    IS(ncclEpGetAsyncError(group, &error), ncclSuccess);
    IS(error, 0);
    IS(ncclEpMaskQuery(group, mask, NULL), ncclSuccess);
    IS(mask[0] == 1 && mask[1] == 0, 1);
    IS(ncclEpUpdateHandle(handle, &idx, NULL, NULL), ncclSuccess);
    IS(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclSuccess);
    IS(ncclEpCombine(handle, &results, &sums, NULL, NULL), ncclSuccess);
    IS(ncclEpGetAsyncError(group, &error), ncclSuccess);
    IS(error, 0);
    IS(y[0][0] == 1 && y[1][0] == 0, 1); /* the other's expert counts as none */
    IS(ncclEpHandleDestroy(handle), ncclSuccess);
}

static void *run(void *argument)
{
    int rank = argument != NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*retain)(void **context, int device) = NULL;
    int (*push)(void *context) = NULL;
    void *context = NULL;
    if (library != NULL) {
        *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
        *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    }
    if (retain == NULL || push == NULL || retain(&context, rank) != 0 || push(context) != 0) {
        IS(0, 1);
        exit(1);
    }
    ncclEpGroup_t group = make_group(rank);
    if (group == NULL) {
        exit(1);
    }
    if (rank == 0) {
        steps(group);
    }
    (void)pthread_barrier_wait(&meeting);
    (void)ncclEpGroupDestroy(group); /* of which the ranks have not made the same calls */
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
