/* Goal: ncclEpMaskClean is made by the ranks that are left: of four, one misses a dispatch and another the combine
 * after it, as in NCCL EP's benchmark; the other two clean without them, sooner than any deadline, and have no masks
 * and no error then. The two that were late clean after them, or at the same time, and all make steps again. One that
 * stays away is masked anew by the next call, and cleaned away as before. Who is left alone waits for the others in
 * vain, and goes on.
 *
 * Method: PEs as threads on the fake driver. NCCL_EP_TIMEOUT_MS of the test is short. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/rank_threads.h"
#include <nccl_ep.h>

#define RANKS 4
#define HIDDEN 16
#define FIRST_LATE 1
#define SECOND_LATE 3

static pthread_barrier_t meeting;

/* A rank, with a token for each rank: low latency, by source. */
typedef struct rig {
    int rank;
    int failures;
    ncclComm_t comm;
    ncclEpGroup_t group;
    ncclEpHandle_t handle;
    _Alignas(16) float x[RANKS][HIDDEN];
    _Alignas(16) float y[RANKS][HIDDEN];
    _Alignas(16) float rows[RANKS][RANKS][HIDDEN];
    float weights[RANKS];
    int64_t ids[RANKS];
    int counts[RANKS];
} rig;

static size_t token_sizes[2] = {RANKS, HIDDEN};
static size_t choice_sizes[2] = {RANKS, 1};
static size_t row_sizes[3] = {RANKS, RANKS, HIDDEN};
static size_t count_sizes[1] = {RANKS};

static void check(rig *r, int line, int is, const char *what)
{
    if (!is) {
        (void)fprintf(stderr, "rank %d, line %d: %s\n", r->rank, line, what);
        r->failures++;
    }
}

#define CHECK(is) check(r, __LINE__, is, #is)

static void meet(void)
{
    (void)pthread_barrier_wait(&meeting);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void open_group(rig *r)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    ncclEpTensor_t ids = tensor(r->ids, ncclInt64, 2, choice_sizes);
    config.algorithm = NCCL_EP_ALGO_LOW_LATENCY;
    config.num_experts = RANKS;
    config.max_dispatch_tokens_per_rank = RANKS;
    config.max_token_bytes = HIDDEN * sizeof(float);
    config.num_topk = 1;
    config.enable_mask = 1;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    for (int token = 0; token < RANKS; token++) {
        r->x[token][0] = (float)(10 * r->rank + token + 1);
        r->weights[token] = 1;
        r->ids[token] = token;
    }
    OK(ncclEpCreateHandle(&r->handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, &ids, NULL, NULL, NULL));
}

static void dispatch(rig *r)
{
    ncclEpTensor_t in = tensor(r->x, ncclFloat32, 2, token_sizes);
    ncclEpTensor_t weights = tensor(r->weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t rows = tensor(r->rows, ncclFloat32, 3, row_sizes);
    ncclEpTensor_t counts = tensor(r->counts, ncclInt32, 1, count_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    inputs.tokens = &in;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    info.src_rank_counters = &counts;
    OK(ncclEpDispatch(r->handle, &inputs, &outputs, &info, NULL, NULL));
}

static void combine(rig *r)
{
    ncclEpTensor_t rows = tensor(r->rows, ncclFloat32, 3, row_sizes);
    ncclEpTensor_t out = tensor(r->y, ncclFloat32, 2, token_sizes);
    ncclEpCombineInputs_t results = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    results.tokens = &rows;
    sums.tokens = &out;
    OK(ncclEpCombine(r->handle, &results, &sums, NULL, NULL));
}

/* A step, of which the tokens that went to ranks of `alive` come back. */
static void step(rig *r, unsigned alive)
{
    dispatch(r);
    combine(r);
    for (int token = 0; token < RANKS; token++) {
        CHECK(r->y[token][0] == ((alive >> token & 1) != 0 ? r->x[token][0] : 0));
    }
}

static void expect_masks(rig *r, unsigned alive, int error)
{
    int mask[RANKS];
    int told = 7;
    OK(ncclEpMaskQuery(r->group, mask, NULL));
    for (int rank = 0; rank < RANKS; rank++) {
        CHECK(mask[rank] == (int)(alive >> rank & 1));
    }
    OK(ncclEpGetAsyncError(r->group, &told));
    CHECK(told == error);
}

static void clean(rig *r)
{
    OK(ncclEpMaskClean(r->group, NULL));
    OK(ncclEpErrorClear(r->group));
    expect_masks(r, 15, 0);
}

static int is_late(const rig *r)
{
    return r->rank == FIRST_LATE || r->rank == SECOND_LATE;
}

/* Of two ranks one misses the dispatch and both the combine. */
static void lose_two(rig *r)
{
    if (r->rank != FIRST_LATE) {
        dispatch(r);
    }
    meet();
    if (r->rank != FIRST_LATE) {
        expect_masks(r, 15 & ~(1u << FIRST_LATE), 1);
    }
    meet();
    if (!is_late(r)) {
        combine(r);
        expect_masks(r, 15 & ~(1u << FIRST_LATE) & ~(1u << SECOND_LATE), 1);
    }
    meet();
}

/* Those that are left clean first. */
static void clean_and_come_back(rig *r)
{
    lose_two(r);
    if (!is_late(r)) {
        const double start = seconds();
        clean(r);
        CHECK(seconds() - start < 0.001 * atof(getenv("NCCL_EP_TIMEOUT_MS")));
    }
    meet();
    if (is_late(r)) {
        clean(r);
    }
    meet();
    step(r, 15);
    meet();
    lose_two(r);
    clean(r); /* all at once */
    meet();
    step(r, 15);
    meet();
}

/* The last rank makes no call any more. */
static void stay_away(rig *r)
{
    for (int i = 0; i < 2 && r->rank != SECOND_LATE; i++) {
        step(r, 7);
        expect_masks(r, 7, 1);
        step(r, 7);
        clean(r);
    }
    meet();
    /* And all but the first do not. */
    if (r->rank == 0) {
        step(r, 1);
        expect_masks(r, 1, 1);
        clean(r);
    }
    meet();
}

/* One that nobody has masked is waited for. */
static void wait_in_vain(rig *r)
{
    if (!is_late(r)) {
        const int mask[RANKS] = {1, 0, 1, 1};
        OK(ncclEpMaskUpdate(r->group, mask, NULL));
        EXPECT(ncclEpMaskClean(r->group, NULL), ncclRemoteError, "rank 3");
    }
    meet();
    clean(r);
    meet();
    step(r, 15);
    meet();
}

static int run(void *argument)
{
    rig *r = argument;
    CHECK(standin_choose_gpu(r->rank));
    open_group(r);
    step(r, 15);
    meet();
    clean_and_come_back(r);
    wait_in_vain(r);
    stay_away(r);
    OK(ncclEpHandleDestroy(r->handle));
    OK(ncclEpGroupDestroy(r->group));
    return r->failures;
}

int main(void)
{
    static rig rigs[RANKS];
    static ncclComm_t comms[RANKS];
    standin_comms(RANKS, comms);
    if (pthread_barrier_init(&meeting, NULL, RANKS) != 0) {
        return 1;
    }
    for (int i = 0; i < RANKS; i++) {
        rigs[i].rank = i;
        rigs[i].comm = comms[i];
    }
    return run_rank_threads(RANKS, run, rigs, sizeof rigs[0]) != 0;
}
