/* Goal: the calls that TransformerEngine's backend makes of this interface, in its order, give what its layers want:
 * one group, a handle a layer in memory of the caller's, layers of several top-k and alignments, with counters and with
 * none; all are prepared, go forward, and go backward in the opposite order, twice, on handles that are made anew on
 * memory that has moved meanwhile; then the group is made again, of another size.
 *
 * Method: two PEs as threads, with the stand-in for NCCL and the fake driver, whose device memory is this machine's.
 * Experts multiply rows by their weights; weights are powers of two, so that sums are exact. With the argument
 * "threads" the communicator tells its GPU, while none or another one is current, and all calls of a round and the
 * destroying ones come from threads of their own, which have none: the fake driver refuses their own calls of it. */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/rank_threads.h"
#include "weft.h"
#include <nccl_ep.h>

enum { RANKS = 2, EXPERTS = 4, MOST = 8, TOPK = 2, HIDDEN = 32, ROWS = RANKS * MOST * TOPK + EXPERTS * 8, LAYERS = 3 };

/* A layer, and what its calls are given and give. */
typedef struct layer {
    size_t topk;
    size_t alignment;
    int is_counted;
    void *memory;
    ncclEpHandle_t handle;
    int64_t ids[MOST * TOPK];
    float weights[MOST * TOPK];
    float weights_back[MOST * TOPK];
    int32_t counts[EXPERTS / RANKS];
    float row_weights[ROWS];
    _Alignas(16) float rows[ROWS * HIDDEN];
} layer;

typedef struct rig {
    int rank;
    int failures;
    int is_threaded;
    int round;
    ncclComm_t comm;
    ncclEpGroup_t group;
    size_t tokens;
    size_t hidden;
    _Alignas(16) float x[MOST * HIDDEN];
    _Alignas(16) float y[MOST * HIDDEN];
    layer layers[LAYERS];
} rig;

#define CHECK(is) ((is) ? (void)0 : fail(r, __LINE__, #is))

static void fail(rig *r, int line, const char *what)
{
    (void)fprintf(stderr, "rank %d, line %d: not so: %s\n", r->rank, line, what);
    r->failures++;
}

/* In new memory, with what was in the old, which is freed; NULL: none. */
static void open_handle(rig *r, layer *l, void *old)
{
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    size_t bytes = 0;
    config.dispatch_output_per_expert_alignment = l->alignment;
    OK(ncclEpHandleMemSize(r->group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &config, &bytes, (int)l->topk));
    l->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (old != NULL) {
        memcpy(l->memory, old, bytes);
        memset(old, 0xff, bytes);
        free(old);
    }
    ncclEpTensor_t memory = tensor(l->memory, ncclUint8, 1, &bytes);
    OK(ncclEpInitHandle(&l->handle, r->group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &config, (int)l->topk, &memory));
}

static void prepare(rig *r, layer *l, int round)
{
    size_t idx_sizes[2] = {r->tokens, l->topk};
    size_t counts = EXPERTS / RANKS;
    ncclEpTensor_t idx = tensor(l->ids, ncclInt64, 2, idx_sizes);
    ncclEpTensor_t experts = tensor(l->counts, ncclInt32, 1, &counts);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    info.expert_counters = l->is_counted ? &experts : NULL;
    for (size_t i = 0; i < r->tokens * l->topk; i++) {
        l->ids[i] = (int64_t)(i * 3 + (size_t)round + (size_t)r->rank) % (EXPERTS + 1) - 1;
        l->weights[i] = 1.0f / (float)(1 << (i + (size_t)round) % 4);
    }
    if (l->handle == NULL) {
        open_handle(r, l, NULL);
    }
    OK(ncclEpUpdateHandle(l->handle, &idx, &info, NULL));
}

/* A handle on memory to which all that the layer's has was copied, as frameworks do. */
static void relocate(rig *r, layer *l)
{
    OK(ncclEpHandleDestroy(l->handle));
    open_handle(r, l, l->memory);
}

/* What both calls take, with its shapes: rows of tokens and a weight for each choice, on this rank and where the
 * experts are. */
typedef struct operands {
    size_t token_sizes[2];
    size_t choice_sizes[2];
    size_t row_sizes[2];
    ncclEpTensor_t tokens;
    ncclEpTensor_t weights;
    ncclEpTensor_t rows;
    ncclEpTensor_t row_weights;
} operands;

static operands *operands_of(rig *r, layer *l, float *tokens, float *weights, operands *o)
{
    *o = (operands){
        .token_sizes = {r->tokens, r->hidden}, .choice_sizes = {r->tokens, l->topk}, .row_sizes = {ROWS, r->hidden}};
    o->tokens = tensor(tokens, ncclFloat32, 2, o->token_sizes);
    o->weights = tensor(weights, ncclFloat32, 2, o->choice_sizes);
    o->rows = tensor(l->rows, ncclFloat32, 2, o->row_sizes);
    o->row_weights = tensor(l->row_weights, ncclFloat32, 1, o->row_sizes);
    return o;
}

static void dispatch(rig *r, layer *l, ncclEpPassDir_t direction)
{
    operands o;
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    const int is_weighted = direction == NCCL_EP_FWD_PASS;
    inputs.tokens = &operands_of(r, l, r->x, l->weights, &o)->tokens;
    inputs.topk_weights = is_weighted ? &o.weights : NULL;
    outputs.tokens = &o.rows;
    outputs.topk_weights = is_weighted ? &o.row_weights : NULL;
    config.pass_direction = direction;
    memset(l->rows, 0, sizeof l->rows);
    OK(ncclEpDispatch(l->handle, &inputs, &outputs, NULL, &config, NULL));
}

static void combine(rig *r, layer *l, ncclEpPassDir_t direction)
{
    operands o;
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    const int is_weighted = direction == NCCL_EP_BWD_PASS;
    inputs.tokens = &operands_of(r, l, r->y, l->weights_back, &o)->rows;
    inputs.topk_weights = is_weighted ? &o.row_weights : NULL;
    outputs.tokens = &o.tokens;
    outputs.topk_weights = is_weighted ? &o.weights : NULL;
    config.pass_direction = direction;
    memset(r->y, 0xff, sizeof r->y);
    OK(ncclEpCombine(l->handle, &inputs, &outputs, is_weighted ? &config : NULL, NULL));
}

/* Each token is this many times what it was: the sum of its weights, or the number of its rows. */
static void check(rig *r, const layer *l, int is_backward)
{
    for (size_t t = 0; t < r->tokens; t++) {
        float times = 0;
        for (size_t k = t * l->topk; k < (t + 1) * l->topk; k++) {
            const float weight = l->ids[k] < 0 ? 0 : l->weights[k];
            times += is_backward ? (float)(l->ids[k] >= 0) : weight;
            CHECK(!is_backward || l->weights_back[k] == weight);
        }
        for (size_t h = 0; h < r->hidden; h++) {
            CHECK(r->y[t * r->hidden + h] == times * r->x[t * r->hidden + h]);
        }
    }
}

static void forward(rig *r, layer *l)
{
    dispatch(r, l, NCCL_EP_FWD_PASS);
    size_t came = 0;
    for (size_t row = 0; row < ROWS; row++) {
        came += l->row_weights[row] != 0;
        for (size_t h = 0; h < r->hidden; h++) {
            l->rows[row * r->hidden + h] *= l->row_weights[row];
        }
    }
    for (int e = 0; l->is_counted && e < EXPERTS / RANKS; e++) {
        CHECK((size_t)l->counts[e] % l->alignment == 0 && l->counts[e] >= 0);
    }
    CHECK(!l->is_counted || came <= (size_t)(l->counts[0] + l->counts[1]));
    combine(r, l, NCCL_EP_FWD_PASS);
    check(r, l, 0);
}

static void backward(rig *r, layer *l)
{
    dispatch(r, l, NCCL_EP_BWD_PASS); /* the backward of combine */
    combine(r, l, NCCL_EP_BWD_PASS); /* that of dispatch, with the weights that came as gradients */
    check(r, l, 1);
}

/* Memory that has been moved is taken to hold a routing, but not one of as many tokens as none has had. */
static void refuse(rig *r, layer *l)
{
    operands o;
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    relocate(r, l);
    inputs.tokens = &operands_of(r, l, r->x, l->weights, &o)->rows;
    outputs.tokens = &o.tokens;
    o.token_sizes[0] = 1;
    EXPECT(ncclEpCombine(l->handle, &inputs, &outputs, NULL, NULL), ncclInvalidUsage, "no routing of 1 tokens");
}

static int turn(void *argument)
{
    rig *r = argument;
    for (int i = 0; i < LAYERS; i++) {
        prepare(r, &r->layers[i], r->round);
    }
    for (int i = 0; i < LAYERS; i++) {
        forward(r, &r->layers[i]);
    }
    for (int i = LAYERS - 1; i >= 0; i--) {
        relocate(r, &r->layers[i]);
        backward(r, &r->layers[i]);
    }
    relocate(r, &r->layers[1]);
    forward(r, &r->layers[1]);
    refuse(r, &r->layers[0]);
    return 0;
}

static int destroy(void *argument)
{
    rig *r = argument;
    for (int i = 0; i < LAYERS; i++) {
        OK(ncclEpHandleDestroy(r->layers[i].handle));
        free(r->layers[i].memory);
        r->layers[i].handle = NULL;
    }
    OK(ncclEpGroupDestroy(r->group));
    return 0;
}

static void run_on_thread(rig *r, int (*body)(void *rig))
{
    (void)(r->is_threaded ? run_rank_threads(1, body, r, sizeof *r) : body(r));
}

static void train(rig *r, size_t most, size_t hidden)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = NCCL_EP_ALGO_HIGH_THROUGHPUT;
    config.num_experts = EXPERTS;
    config.max_dispatch_tokens_per_rank = (unsigned)most;
    config.max_recv_tokens_per_rank = ROWS;
    config.max_token_bytes = (unsigned)(hidden * sizeof(float));
    config.zero_copy = NCCL_EP_ZERO_COPY_OFF;
    r->group = NULL;
    r->tokens = most - (size_t)r->rank;
    r->hidden = hidden;
    for (size_t i = 0; i < most * hidden; i++) {
        r->x[i] = (float)(1 + (i + (size_t)r->rank) % 5);
    }
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    CHECK(standin_current_gpu() == r->rank);
    for (r->round = 0; r->round < 2 && r->group != NULL; r->round++) {
        run_on_thread(r, turn);
    }
    run_on_thread(r, destroy);
}

/* Of a communicator that tells its GPU; none is current on rank 0, and another one on the next. */
static int run_on_threads(rig *r)
{
    standin_tell_gpu(r->comm, r->rank);
    CHECK(r->rank == 0 || standin_choose_gpu(r->rank - 1));
    train(r, MOST, HIDDEN);
    return r->failures;
}

static int run(void *argument)
{
    rig *r = argument;
    if (r->is_threaded) {
        return run_on_threads(r);
    }
    if (!standin_choose_gpu(r->rank)) {
        (void)fprintf(stderr, "rank %d: no fake driver\n", r->rank);
        r->failures++;
        return r->failures;
    }
    train(r, MOST, HIDDEN);
    train(r, MOST - 3, HIDDEN / 2);
    return r->failures;
}

int main(int count, char **arguments)
{
    static const layer kinds[LAYERS] = {{.topk = 1, .alignment = 1, .is_counted = 1},
                                        {.topk = 2, .alignment = 4, .is_counted = 1},
                                        {.topk = 2, .alignment = 8}};
    static rig rigs[RANKS];
    ncclComm_t comms[RANKS];
    standin_comms(RANKS, comms);
    for (int i = 0; i < RANKS; i++) {
        rigs[i].rank = i;
        rigs[i].comm = comms[i];
        rigs[i].is_threaded = count > 1 && strcmp(arguments[1], "threads") == 0;
        memcpy(rigs[i].layers, kinds, sizeof kinds);
    }
    return run_rank_threads(RANKS, run, rigs, sizeof rigs[0]) != 0;
}
