/* Goal: a layer's step through the NCCL EP face gives each token x * sum over its choices of weight * (1 + expert), in
 * all layouts, whole and in halves, and the backward gives the weights back; wrong uses of groups and handles that live
 * are result codes with a text and leave the next step right; the communicator gathers at creation only.
 *
 * Method: PEs as threads, with the stand-in for NCCL and the fake driver (src/testing/fake_driver), whose device memory
 * is this machine's. Small integers, so that sums are exact. Usage: steps RANKS. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/check.h"
#include "faces/nccl_ep/libnccl.h"
#include "weft.h"
#include <nccl_ep.h>

#define MOST 8 /* tokens */
#define TOPK 2
#define HIDDEN 32
#define LOCAL 2 /* experts */
#define RANKS_MOST 4
#define SLOTS (LOCAL * RANKS_MOST * MOST)
#define ROWS (RANKS_MOST * MOST * TOPK + LOCAL * 8)

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

static pthread_barrier_t turns;

/* ---- a step ---- */

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

static step step_of(rig *r, ncclEpLayout_t layout, int is_ll)
{
    step s = {.layout = layout, .is_ll = is_ll, .dims = is_ll ? 3 : 2};
    size_t slots = (size_t)r->ranks * MOST;
    memcpy(s.token_sizes, (size_t[]){r->tokens, HIDDEN}, sizeof s.token_sizes);
    memcpy(s.choice_sizes, (size_t[]){r->tokens, TOPK}, sizeof s.choice_sizes);
    if (!is_ll) {
        memcpy(s.row_sizes, (size_t[]){ROWS, HIDDEN, 0}, sizeof s.row_sizes);
    } else if (layout == NCCL_EP_LAYOUT_EXPERT_MAJOR) {
        memcpy(s.row_sizes, (size_t[]){LOCAL, slots, HIDDEN}, sizeof s.row_sizes);
    } else {
        memcpy(s.row_sizes, (size_t[]){(size_t)r->ranks, MOST, HIDDEN}, sizeof s.row_sizes);
    }
    memcpy(s.place_sizes, s.row_sizes, sizeof s.place_sizes);
    s.place_sizes[s.dims - 1] = TOPK;
    return s;
}

static void fill_tensors(rig *r, step *s)
{
    int is_packed = !s->is_ll && s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    s->x = tensor(r->x, ncclFloat32, 2, s->token_sizes);
    s->y = tensor(r->y, ncclFloat32, 2, s->token_sizes);
    s->ids = tensor(r->ids, ncclInt64, 2, s->choice_sizes);
    s->weights = tensor(r->weights, ncclFloat32, 2, s->choice_sizes);
    s->rows = tensor(r->received, ncclFloat32, s->dims, s->row_sizes);
    s->row_weights = tensor(r->received_weights, ncclFloat32, is_packed ? 1 : s->dims, s->place_sizes);
    s->row_ids = s->is_ll ? tensor(r->received_ids, ncclInt32, s->dims, s->place_sizes)
                          : tensor(r->wide_ids, ncclInt64, s->dims, s->place_sizes);
    if (r->tokens == 0) { /* what cudaMalloc gives for no bytes */
        s->x.data = s->y.data = s->ids.data = s->weights.data = NULL;
    }
}

static void scale_row(rig *r, size_t row, float factor)
{
    for (int h = 0; h < HIDDEN; h++) {
        r->received[row][h] *= factor;
    }
}

/* What a row's places say its experts do. */
static void expert_of_places(rig *r, size_t row)
{
    float factor = 0;
    for (int k = 0; k < TOPK; k++) {
        int32_t id = r->received_ids[row * TOPK + (size_t)k];
        if (id >= 0) {
            factor += r->received_weights[row * TOPK + (size_t)k] * (float)(1 + r->rank * LOCAL + id);
        }
    }
    scale_row(r, row, factor);
}

/* Received ids as local ones; behind the rows that came there is none. */
static void take_ids(rig *r, const step *s)
{
    int32_t first = s->is_global ? r->rank * LOCAL : 0;
    for (size_t i = 0; i < ROWS * TOPK && !s->is_ll; i++) {
        r->received_ids[i] = (int32_t)r->wide_ids[i];
        r->failures += i >= (size_t)r->total * TOPK && r->wide_ids[i] != -1;
    }
    for (size_t i = 0; i < (SLOTS + ROWS) * TOPK; i++) {
        r->received_ids[i] -= r->received_ids[i] >= 0 ? first : 0;
    }
}

/* LL by source: weights of all choices, whoever has them. */
static void check_weights(rig *r, size_t row)
{
    const float *weights = &r->received_weights[row * TOPK];
    if (weights[0] != 0.5f || (weights[1] != 0.25f && weights[1] != 0.5f)) {
        (void)fprintf(stderr, "rank %d: row %zu has weights %g and %g\n", r->rank, row, (double)weights[0],
                      (double)weights[1]);
        r->failures++;
    }
}

/* Padding included; expert_counters, expert_offsets and recv_total_counter agree. */
static void check_counts(rig *r)
{
    int32_t end = 0;
    for (int e = 0; e < LOCAL; e++) {
        r->failures += r->offsets[e] != end || r->padded[e] % 4 != 0;
        end += r->padded[e];
    }
    r->failures += end != r->total;
}

static void work(rig *r, const step *s)
{
    if (s->layout != NCCL_EP_LAYOUT_EXPERT_MAJOR) {
        take_ids(r, s);
    }
    if (!s->is_ll && s->layout == NCCL_EP_LAYOUT_FLAT) {
        for (size_t row = 0; row < (size_t)r->total; row++) {
            expert_of_places(r, row);
        }
    } else if (s->layout == NCCL_EP_LAYOUT_RANK_MAJOR) {
        for (size_t source = 0; source < (size_t)r->ranks; source++) {
            for (size_t i = 0; i < (size_t)r->sources[source]; i++) {
                check_weights(r, source * MOST + i);
                expert_of_places(r, source * MOST + i);
            }
            for (size_t i = (size_t)r->sources[source] * TOPK; i < MOST * TOPK; i++) { /* slots that stay empty */
                r->failures += r->received_ids[source * MOST * TOPK + i] != -1;
            }
        }
    } else if (s->is_ll) { /* weighted by the combine */
        for (size_t e = 0; e < LOCAL; e++) {
            for (size_t i = 0; i < (size_t)r->experts[e]; i++) {
                scale_row(r, e * (size_t)r->ranks * MOST + i, (float)(1 + r->rank * LOCAL) + (float)e);
            }
        }
    } else {
        check_counts(r);
        for (size_t e = 0; e < LOCAL; e++) {
            size_t end = e + 1 < LOCAL ? (size_t)r->offsets[e + 1] : (size_t)r->total;
            for (size_t row = (size_t)r->offsets[e]; row < end; row++) {
                scale_row(r, row, r->received_weights[row] * ((float)(1 + r->rank * LOCAL) + (float)e));
            }
        }
    }
}

static void dispatch(rig *r, step *s, ncclEpHandle_t handle)
{
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    size_t local = LOCAL;
    size_t ranks = (size_t)r->ranks;
    ncclEpTensor_t experts = tensor(r->experts, ncclInt32, 1, &local);
    ncclEpTensor_t sources = tensor(r->sources, ncclInt32, 1, &ranks);
    int by_expert = s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    inputs.tokens = &s->x;
    inputs.topk_weights = &s->weights;
    outputs.tokens = &s->rows;
    outputs.topk_weights = s->is_ll && by_expert ? NULL : &s->row_weights;
    outputs.topk_idx = by_expert ? NULL : &s->row_ids;
    info.expert_counters = by_expert ? &experts : NULL;
    info.src_rank_counters = by_expert ? NULL : &sources;
    info.recv_topk_idx_kind = s->is_global ? NCCL_EP_EXPERT_ID_GLOBAL : NCCL_EP_EXPERT_ID_AUTO;
    config.send_only = (unsigned)s->in_halves;
    OK(ncclEpDispatch(handle, &inputs, &outputs, s->is_ll || s->is_global ? &info : NULL, &config, NULL));
    if (s->in_halves) {
        EXPECT(ncclEpHandleDestroy(handle), ncclInvalidUsage, "still to come");
        OK(ncclEpComplete(handle, NULL, r->behind));
    }
    OK(ncclEpComplete(handle, NULL, NULL)); /* nothing is outstanding */
}

static void combine(rig *r, step *s, ncclEpHandle_t handle)
{
    ncclEpCombineInputs_t inputs = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t outputs = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t config = NCCL_EP_COMBINE_CONFIG_INIT;
    inputs.tokens = &s->rows;
    outputs.tokens = &s->y;
    outputs.topk_weights = &s->weights; /* read in LL expert-major, left alone elsewhere */
    config.send_only = (unsigned)s->in_halves;
    OK(ncclEpCombine(handle, &inputs, &outputs, &config, NULL));
    if (s->in_halves) {
        OK(ncclEpComplete(handle, NULL, r->behind));
    }
}

static void check_result(rig *r, int line)
{
    for (size_t t = 0; t < r->tokens; t++) {
        float factor = 0;
        for (int k = 0; k < TOPK; k++) {
            factor += r->ids[t][k] < 0 ? 0 : r->weights[t][k] * (float)(1 + r->ids[t][k]);
        }
        for (int h = 0; h < HIDDEN; h++) {
            if (r->y[t][h] != r->x[t][h] * factor) {
                (void)fprintf(stderr, "rank %d, line %d: token %zu [%d] is %g, not %g\n", r->rank, line, t, h,
                              (double)r->y[t][h], (double)(r->x[t][h] * factor));
                r->failures++;
                return;
            }
        }
    }
}

static int64_t choice_of(const rig *r, unsigned seed, int source, unsigned t, int k)
{
    unsigned experts = (unsigned)r->ranks * LOCAL;
    unsigned first = (seed + 3 * t + (unsigned)source) % experts;
    return k == 0 ? first : t % 3 == 1 ? -1 : (int64_t)((first + 1 + t % (experts - 1)) % experts);
}

static void choose(rig *r, unsigned seed)
{
    for (unsigned t = 0; t < MOST; t++) {
        r->ids[t][0] = choice_of(r, seed, r->rank, t, 0);
        r->ids[t][1] = choice_of(r, seed, r->rank, t, 1);
        r->weights[t][0] = 0.5f;
        r->weights[t][1] = 0.25f * (float)(1 + t % 2);
        for (unsigned h = 0; h < HIDDEN; h++) {
            r->x[t][h] = (float)(1 + (t + h + seed) % 7);
        }
    }
}

static void one_step(rig *r, step *s, ncclEpHandle_t handle, int line)
{
    memset(r->y, 0xff, sizeof r->y);
    memset(r->received, 0xff, sizeof r->received);
    memset(r->received_ids, 0x11, sizeof r->received_ids);
    memset(r->wide_ids, 0x11, sizeof r->wide_ids);
    dispatch(r, s, handle);
    work(r, s);
    combine(r, s, handle);
    check_result(r, line);
}

/* Other weights of the same choices: a dispatch brings its own. */
static void weigh(rig *r, float factor)
{
    for (unsigned t = 0; t < MOST; t++) {
        for (int k = 0; k < TOPK; k++) {
            r->weights[t][k] *= factor;
        }
    }
}

static ncclEpGroupConfig_t config_of(const rig *r, ncclEpAlgorithm_t algorithm)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = algorithm;
    config.num_experts = (unsigned)r->ranks * LOCAL;
    config.max_dispatch_tokens_per_rank = MOST;
    config.max_token_bytes = HIDDEN * sizeof(float);
    config.num_topk = TOPK;
    config.enable_mask = 1;
    return config;
}

/* ---- HT ---- */

static void backward(rig *r, step *s, ncclEpHandle_t handle)
{
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpCombineInputs_t back = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t grads = NCCL_EP_COMBINE_OUTPUTS_INIT;
    ncclEpCombineConfig_t combine_config = NCCL_EP_COMBINE_CONFIG_INIT;
    ncclEpTensor_t weights_back = tensor(r->weights_back, ncclFloat32, 2, s->choice_sizes);
    inputs.tokens = &s->x;
    outputs.tokens = &s->rows;
    config.pass_direction = NCCL_EP_BWD_PASS;
    OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
    inputs.topk_weights = &s->weights;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "BWD_PASS");
    back.tokens = &s->rows;
    back.topk_weights = &s->row_weights; /* as the forward has left them */
    grads.tokens = &s->y;
    EXPECT(ncclEpCombine(handle, &back, &grads, NULL, NULL), ncclInvalidArgument, "of NCCL_EP_BWD_PASS");
    combine_config.pass_direction = NCCL_EP_BWD_PASS;
    EXPECT(ncclEpCombine(handle, &back, &grads, &combine_config, NULL), ncclInvalidArgument, "is needed");
    grads.topk_weights = &weights_back;
    OK(ncclEpCombine(handle, &back, &grads, &combine_config, NULL));
    for (size_t t = 0; t < r->tokens; t++) {
        for (int k = 0; k < TOPK; k++) {
            float wanted = r->ids[t][k] < 0 ? 0 : r->weights[t][k];
            if (r->weights_back[t][k] != wanted) {
                (void)fprintf(stderr, "rank %d: weight %zu %d came back as %g, not %g\n", r->rank, t, k,
                              (double)r->weights_back[t][k], (double)wanted);
                r->failures++;
            }
        }
    }
}

enum { MANY_SCALES = 128 }; /* of a row: more than the group has memory for */

/* They move by a call of their own, which has no halves. */
static void many_scales(rig *r, const step *s, ncclEpHandle_t handle, ncclEpDispatchInputs_t *inputs,
                        ncclEpDispatchOutputs_t *outputs, ncclEpDispatchConfig_t *config, size_t rows_there)
{
    static _Alignas(16) unsigned char there[RANKS_MOST][SLOTS + ROWS][MANY_SCALES];
    _Alignas(16) unsigned char scales[MOST][MANY_SCALES];
    size_t in_sizes[2] = {r->tokens, MANY_SCALES};
    size_t out_sizes[3] = {s->row_sizes[0], s->dims == 3 ? s->row_sizes[1] : MANY_SCALES, MANY_SCALES};
    ncclEpTensor_t in = tensor(scales, ncclUint8, 2, in_sizes);
    ncclEpTensor_t out = tensor(there[r->rank], ncclUint8, s->dims, out_sizes);
    ncclEpTensor_t *few_in = inputs->scales;
    ncclEpTensor_t *few_out = outputs->scales;
    size_t came = 0;
    memset(scales, 7, sizeof scales);
    memset(there[r->rank], 0, sizeof there[0]);
    inputs->scales = &in;
    outputs->scales = &out;
    OK(ncclEpDispatch(handle, inputs, outputs, NULL, config, NULL));
    for (size_t row = 0; row < SLOTS + ROWS; row++) {
        came += there[r->rank][row][0] == 7 && there[r->rank][row][MANY_SCALES - 1] == 7;
    }
    r->failures += came != rows_there;
    if (s->dims == 3) {
        config->send_only = 1;
        EXPECT(ncclEpDispatch(handle, inputs, outputs, NULL, config, NULL), ncclInvalidUsage, "call it whole");
        config->send_only = 0;
    }
    inputs->scales = few_in;
    outputs->scales = few_out;
}

/* Rows of two 4-bit numbers a byte, or of fp8 without scales, that say who sent them, and scales that say the same,
 * move as they are, by handle's routing. */
static void forwarded(rig *r, ncclEpLayout_t layout, int is_ll, ncclEpHandle_t handle, size_t rows_there)
{
    enum { BYTES = 64, SCALES = 8 }; /* as of NVFP4 */
    static _Alignas(16) unsigned char there[RANKS_MOST][SLOTS + ROWS][BYTES];
    static _Alignas(16) unsigned char scales_there[RANKS_MOST][SLOTS + ROWS][SCALES];
    _Alignas(16) unsigned char bytes[MOST][BYTES];
    _Alignas(16) unsigned char scales[MOST][SCALES];
    step s = step_of(r, layout, is_ll);
    fill_tensors(r, &s);
    size_t in_sizes[2] = {r->tokens, BYTES};
    size_t in_scale_sizes[2] = {r->tokens, SCALES};
    size_t out_sizes[3] = {s.row_sizes[0], is_ll ? s.row_sizes[1] : BYTES, BYTES};
    size_t out_scale_sizes[3] = {s.row_sizes[0], is_ll ? s.row_sizes[1] : SCALES, SCALES};
    ncclEpTensor_t in = tensor(bytes, ncclFloat4x2, 2, in_sizes);
    ncclEpTensor_t in_scales = tensor(scales, ncclUint8, 2, in_scale_sizes);
    ncclEpTensor_t out = tensor(there[r->rank], ncclFloat4x2, s.dims, out_sizes);
    ncclEpTensor_t out_scales = tensor(scales_there[r->rank], ncclUint8, s.dims, out_scale_sizes);
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    size_t came = 0;
    for (size_t t = 0; t < r->tokens; t++) {
        memset(bytes[t], 1 + 16 * r->rank + (int)t, BYTES);
        memset(scales[t], 101 + 16 * r->rank + (int)t, SCALES);
    }
    memset(there[r->rank], 0, sizeof there[0]);
    memset(scales_there[r->rank], 0, sizeof scales_there[0]);
    inputs.tokens = &in;
    inputs.scales = &in_scales;
    inputs.topk_weights = &s.weights;
    outputs.tokens = &out;
    outputs.scales = &out_scales;
    config.quant_recipe = NCCL_EP_DISP_QUANT_FWD;
    OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
    for (size_t row = 0; row < SLOTS + ROWS; row++) {
        const unsigned char *at = there[r->rank][row];
        came += at[0] != 0;
        for (size_t i = 0; i < BYTES; i++) {
            r->failures += at[i] != at[0];
        }
        for (size_t i = 0; i < SCALES; i++) {
            r->failures += scales_there[r->rank][row][i] != (at[0] != 0 ? at[0] + 100 : 0);
        }
    }
    if (came != rows_there) {
        (void)fprintf(stderr, "rank %d: %zu rows came, not %zu\n", r->rank, came, rows_there);
        r->failures++;
    }
    if (is_ll) { /* in halves */
        config.send_only = 1;
        memset(there[r->rank], 0, sizeof there[0]);
        OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
        OK(ncclEpComplete(handle, NULL, NULL));
        config.send_only = 0;
        size_t sent = 0;
        for (size_t row = 0; row < SLOTS + ROWS; row++) {
            sent += there[r->rank][row][0] != 0 && scales_there[r->rank][row][0] == there[r->rank][row][0] + 100;
        }
        r->failures += sent != came;
    }
    many_scales(r, &s, handle, &inputs, &outputs, &config, rows_there);
    inputs.scales = outputs.scales = NULL; /* as declared */
    config.quant_recipe = NCCL_EP_DISP_QUANT_NONE;
    for (int i = 0; i < 2; i++) {
        in.datatype = out.datatype = i == 0 ? ncclFloat8e5m2 : ncclUint8;
        memset(there[r->rank], 0, sizeof there[0]);
        OK(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL));
        size_t here = 0;
        for (size_t row = 0; row < SLOTS + ROWS; row++) {
            here += there[r->rank][row][BYTES - 1] != 0;
        }
        r->failures += here != came;
    }
    inputs.scales = &in_scales;
    outputs.scales = &out_scales;
    config.quantization_recipe = NCCL_EP_DISPATCH_QUANT_SCALES_FORWARD; /* by its names before the release of 0.2.0 */
    in_scale_sizes[1] = out_scale_sizes[s.dims - 1] = SCALES - 1;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "multiples of 16");
    in_scale_sizes[1] = SCALES;
    out_scale_sizes[s.dims - 1] = 2 * SCALES;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "another width");
}

/* Without counters the routing is agreed on once, by the dispatch: each rank's update is done while the others wait. */
static void update_in_turn(rig *r, ncclEpHandle_t handle, const ncclEpTensor_t *ids)
{
    for (int turn = 0; turn < r->ranks; turn++) {
        if (turn == r->rank) {
            OK(ncclEpUpdateHandle(handle, ids, NULL, NULL));
        }
        (void)pthread_barrier_wait(&turns);
    }
}

static void ht_layout(rig *r, ncclEpLayout_t layout)
{
    size_t one = 1;
    size_t local = LOCAL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t padded = tensor(r->padded, ncclInt32, 1, &local);
    ncclEpTensor_t offsets = tensor(r->offsets, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    config.dispatch_output_per_expert_alignment = 4;
    info.recv_total_counter = &total;
    info.expert_offsets = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? &offsets : NULL;
    info.expert_counters = &padded;
    choose(r, 1);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &config, NULL));
    one_step(r, &s, handle, __LINE__);
    s.is_global = 1;
    weigh(r, 4);
    one_step(r, &s, handle, __LINE__);
    backward(r, &s, handle);
    choose(r, 5);
    info.size = NCCL_EP_LAYOUT_INFO_V1_SIZE; /* an older caller's */
    OK(ncclEpUpdateHandle(handle, &s.ids, &info, NULL));
    one_step(r, &s, handle, __LINE__);
    if (layout == NCCL_EP_LAYOUT_FLAT) {
        forwarded(r, layout, 0, handle, (size_t)r->total);
    }
    update_in_turn(r, handle, &s.ids); /* the counters are as they were, and so are the choices */
    one_step(r, &s, handle, __LINE__);
    weigh(r, 0.5f);
    one_step(r, &s, handle, __LINE__);
    update_in_turn(r, handle, &s.ids);
    backward(r, &s, handle); /* which has the weights of the step before */
    padded.datatype = ncclInt64;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, &info, NULL), ncclInvalidArgument, "two types");
    EXPECT(ncclEpGroupDestroy(r->group), ncclInvalidUsage, "1 handles");
    OK(ncclEpHandleDestroy(handle));
    EXPECT(ncclEpHandleDestroy(handle), ncclInvalidArgument, "was destroyed");
}

/* All tokens to the first two experts: the other ranks receive nothing, in buffers of no rows at NULL, forward and
 * backward. */
static void nothing_received(rig *r, ncclEpLayout_t layout)
{
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    if (r->rank != 0) {
        s.row_sizes[0] = s.place_sizes[0] = 0;
    }
    fill_tensors(r, &s);
    if (r->rank != 0) {
        s.rows.data = s.row_weights.data = s.row_ids.data = NULL;
    }
    choose(r, 1);
    for (unsigned t = 0; t < MOST; t++) {
        r->ids[t][0] = 0;
        r->ids[t][1] = 1;
    }
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    dispatch(r, &s, handle);
    backward(r, &s, handle);
    OK(ncclEpHandleDestroy(handle));
}

/* How many rows come to this rank, if all do. */
static int wanted_rows(const rig *r, ncclEpLayout_t layout, unsigned seed)
{
    int rows = 0;
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            int64_t first = choice_of(r, seed, source, t, 0);
            int64_t second = choice_of(r, seed, source, t, 1);
            int here = (first / LOCAL == r->rank) + (second >= 0 && second / LOCAL == r->rank);
            rows += layout == NCCL_EP_LAYOUT_FLAT ? here != 0 : here;
        }
    }
    return rows;
}

/* Counters of either type, with room for one more, which is left alone. */
typedef struct room {
    ncclDataType_t type;
    union {
        int32_t narrow[LOCAL + 1];
        int64_t wide[LOCAL + 1];
    };
    size_t count;
    ncclEpTensor_t tensor;
} room;

static void open_room(room *m, ncclDataType_t type, size_t count)
{
    memset(m, 0xff, sizeof *m);
    m->type = type;
    m->count = count + 1;
    m->tensor = tensor(m->wide, type, 1, &m->count);
}

static int64_t count_in(const room *m, size_t at)
{
    return m->type == ncclInt64 ? m->wide[at] : m->narrow[at];
}

/* The choices of local expert `expert` of all ranks. */
static int64_t wanted_choices(const rig *r, unsigned seed, int expert)
{
    int64_t all = 0;
    for (int source = 0; source < r->ranks; source++) {
        for (unsigned t = 0; t < MOST - (unsigned)source; t++) {
            for (int k = 0; k < TOPK; k++) {
                all += choice_of(r, seed, source, t, k) == r->rank * LOCAL + expert;
            }
        }
    }
    return all;
}

/* What an update counts: by expert padding included, flat choices, and rows. */
static void check_counters(rig *r, ncclEpLayout_t layout, const room *experts, const room *offsets, const room *total)
{
    int by_expert = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    int64_t end = 0;
    for (int e = 0; e < LOCAL; e++) {
        int64_t wanted = wanted_choices(r, 3, e);
        wanted = by_expert ? (wanted + 3) / 4 * 4 : wanted;
        if (count_in(experts, (size_t)e) != wanted || (by_expert && count_in(offsets, (size_t)e) != end)) {
            (void)fprintf(stderr, "rank %d: expert %d has count %lld, not %lld, and offset %lld, not %lld\n", r->rank,
                          e, (long long)count_in(experts, (size_t)e), (long long)wanted,
                          (long long)count_in(offsets, (size_t)e), (long long)end);
            r->failures++;
        }
        end += wanted;
    }
    end = by_expert ? end : wanted_rows(r, layout, 3);
    if (count_in(total, 0) != end || count_in(total, 1) != -1 || count_in(experts, LOCAL) != -1 ||
        count_in(offsets, LOCAL) != -1) {
        (void)fprintf(stderr, "rank %d: total %lld, not %lld, or counts behind the last\n", r->rank,
                      (long long)count_in(total, 0), (long long)end);
        r->failures++;
    }
}

static void counted(rig *r, ncclEpLayout_t layout, ncclDataType_t of_experts, ncclDataType_t of_total)
{
    room experts;
    room offsets;
    room total;
    ncclEpGroupConfig_t group = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    open_room(&experts, of_experts, LOCAL);
    open_room(&offsets, of_experts, LOCAL);
    open_room(&total, of_total, 1);
    info.expert_counters = &experts.tensor;
    info.expert_offsets = layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? &offsets.tensor : NULL;
    info.recv_total_counter = &total.tensor;
    config.dispatch_output_per_expert_alignment = 4;
    OK(ncclEpCreateGroup(&r->group, r->comm, &group));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, &config, NULL));
    check_counters(r, layout, &experts, &offsets, &total);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

/* A group that drops what is beyond MOST rows: the total tells how many would have come. */
static void dropped(rig *r, ncclEpLayout_t layout)
{
    size_t one = 1;
    size_t local = LOCAL;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    ncclEpTensor_t total = tensor(&r->total, ncclInt32, 1, &one);
    ncclEpTensor_t experts = tensor(r->experts, ncclInt32, 1, &local);
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    ncclEpHandle_t handle = NULL;
    step s = step_of(r, layout, 0);
    fill_tensors(r, &s);
    config.max_recv_tokens_per_rank = MOST;
    config.overflow_policy = NCCL_EP_OVERFLOW_DROP;
    info.recv_total_counter = &total;
    info.expert_counters = &experts;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    choose(r, 3);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, &info, NULL, NULL));
    int wanted = wanted_rows(r, layout, 3);
    int kept = r->experts[0] + r->experts[1];
    if (r->total != wanted || (layout == NCCL_EP_LAYOUT_EXPERT_MAJOR && (kept > MOST || kept < MOST - 1))) {
        (void)fprintf(stderr, "rank %d: total %d, not %d; %d rows of experts are kept\n", r->rank, (int)r->total,
                      wanted, kept);
        r->failures++;
    }
    dispatch(r, &s, handle);
    combine(r, &s, handle);
    OK(ncclEpHandleDestroy(handle));
    OK(ncclEpGroupDestroy(r->group));
}

static void ht(rig *r, unsigned most_rows)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    config.max_recv_tokens_per_rank = most_rows;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    int gathers = standin_gathers(r->comm);
    if (r->group == NULL) {
        return;
    }
    ht_layout(r, NCCL_EP_LAYOUT_FLAT);
    ht_layout(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    if (most_rows == NCCL_EP_AUTO) {
        nothing_received(r, NCCL_EP_LAYOUT_FLAT);
        nothing_received(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    }
    if (standin_gathers(r->comm) != gathers) {
        (void)fprintf(stderr, "rank %d: the communicator gathered after creation\n", r->rank);
        r->failures++;
    }
    ncclEpGroup_t gone = r->group;
    OK(ncclEpGroupDestroy(r->group));
    EXPECT(ncclEpGroupDestroy(gone), ncclInvalidArgument, "was destroyed");
}

/* ---- LL ---- */

static void wrong_routings(rig *r, const step *good, ncclEpHandle_t handle)
{
    step s = *good;
    size_t sizes[2] = {MOST + 1, TOPK};
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    EXPECT(ncclEpUpdateHandle(handle, NULL, NULL, NULL), ncclInvalidArgument, "NULL");
    s.ids.magic = 7;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "not initialised");
    s.ids = good->ids;
    s.ids.datatype = ncclFloat32;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "has type 7");
    s.ids = good->ids;
    s.ids.sizes = sizes;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "has 9 tokens");
    sizes[0] = 1;
    sizes[1] = TOPK + 1;
    EXPECT(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL), ncclInvalidArgument, "3 choices");
    EXPECT(ncclEpUpdateHandle(handle, &good->ids, &info, NULL), ncclInvalidArgument, "layout_info");
}

static void wrong_dispatches(rig *r, const step *good, ncclEpHandle_t handle)
{
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t outputs = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    ncclEpDispatchConfig_t config = NCCL_EP_DISPATCH_CONFIG_INIT;
    ncclEpTensor_t x = good->x;
    ncclEpTensor_t rows = good->rows;
    ncclEpTensor_t ids = good->row_ids;
    ncclEpTensor_t weights = good->weights;
    inputs.topk_weights = &weights;
    outputs.tokens = &rows;
    EXPECT(ncclEpDispatch(handle, NULL, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "'inputs' is NULL");
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "needed");
    inputs.tokens = &x;
    x.datatype = ncclInt8;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "has type 0");
    x = good->x;
    x.data = NULL;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "neither data");
    x.win_hdl = (ncclWindow_t)&x; /* the stand-in is an older NCCL, which says no address */
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidUsage, "2.29.2");
    x = good->x;
    rows.ndim = 2;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "rows, not");
    rows = good->rows;
    ids.datatype = ncclFloat32;
    outputs.topk_idx = &ids;
    if (good->layout == NCCL_EP_LAYOUT_RANK_MAJOR) {
        EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "ncclInt64 or");
    } else {
        EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "expert-major");
    }
    outputs.topk_idx = NULL;
    weights.datatype = ncclFloat16;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, NULL, NULL), ncclInvalidArgument, "ncclFloat32");
    weights = good->weights;
    config.quant_recipe = NCCL_EP_DISP_QUANT_FWD;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "scales");
    config.size = 8;
    EXPECT(ncclEpDispatch(handle, &inputs, &outputs, NULL, &config, NULL), ncclInvalidArgument, "8 bytes");
}

static void wrong_handles(rig *r)
{
    size_t bytes = 0;
    ncclEpHandle_t handle = NULL;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    OK(ncclEpHandleMemSize(r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, &bytes, TOPK));
    size_t small = bytes - 1;
    ncclEpTensor_t memory = tensor(aligned_alloc(64, (bytes + 63) / 64 * 64), ncclUint8, 1, &small);
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL), ncclInvalidArgument,
           "layout is 3");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_UNSET, NULL, TOPK, NULL), ncclInvalidArgument, "layout");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, -1, NULL), ncclInvalidArgument, "topk");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, 3, NULL), ncclInvalidArgument, "topk");
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, &memory), ncclInvalidArgument,
           "at least");
    config.dispatch_output_per_expert_alignment = 3;
    EXPECT(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, &config, TOPK, NULL), ncclInvalidArgument,
           "power of two");
    small = bytes;
    OK(ncclEpInitHandle(&handle, r->group, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, &memory));
    ncclEpDispatchInputs_t inputs = NCCL_EP_DISPATCH_INPUTS_INIT;
    EXPECT(ncclEpDispatch(handle, &inputs, NULL, NULL, NULL, NULL), ncclInvalidUsage, "no routing");
    OK(ncclEpHandleDestroy(handle));
    free(memory.data);
}

static void ll_layout(rig *r, ncclEpLayout_t layout)
{
    step s = step_of(r, layout, 1);
    ncclEpHandle_t handle = NULL;
    fill_tensors(r, &s);
    choose(r, 2);
    OK(ncclEpCreateHandle(&handle, r->group, layout, &s.ids, NULL, NULL, NULL));
    one_step(r, &s, handle, __LINE__);
    wrong_routings(r, &s, handle);
    if (r->tokens != 0) { /* whose rows may be NULL */
        wrong_dispatches(r, &s, handle);
    }
    choose(r, 4);
    OK(ncclEpUpdateHandle(handle, &s.ids, NULL, NULL));
    one_step(r, &s, handle, __LINE__);
    if (layout == NCCL_EP_LAYOUT_RANK_MAJOR) {
        size_t came = 0;
        for (int source = 0; source < r->ranks; source++) {
            came += (size_t)r->sources[source];
        }
        forwarded(r, layout, 1, handle, came);
    }
    s.in_halves = 1;
    s.is_global = 1;
    one_step(r, &s, handle, __LINE__);
    OK(ncclEpHandleDestroy(handle));
}

static void masks(rig *r)
{
    int mask[RANKS_MOST] = {0};
    int error = 7;
    OK(ncclEpMaskQuery(r->group, mask, NULL));
    for (int i = 0; i < r->ranks; i++) {
        r->failures += mask[i] != 1;
    }
    OK(ncclEpMaskUpdate(r->group, mask, NULL));
    EXPECT(ncclEpMaskUpdate(r->group, NULL, NULL), ncclInvalidArgument, "NULL");
    mask[r->rank] = 0;
    EXPECT(ncclEpMaskUpdate(r->group, mask, NULL), ncclInvalidArgument, "mask itself");
    OK(ncclEpMaskClean(r->group, NULL));
    OK(ncclEpGetAsyncError(r->group, &error));
    EXPECT(ncclEpGetAsyncError(r->group, NULL), ncclInvalidArgument, "NULL");
    OK(ncclEpErrorClear(r->group));
    r->failures += error != 0;
}

static void wrong_groups(rig *r)
{
    ncclEpGroup_t group = NULL;
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    config.algorithm = NCCL_EP_ALGO_HIGH_THROUGHPUT;
    config.max_token_bytes = 15;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "max_token_bytes");
    config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    config.max_dispatch_tokens_per_rank = 0;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "max_dispatch_tokens_per_rank");
    config = config_of(r, (ncclEpAlgorithm_t)2);
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "algorithm is 2");
    config = config_of(r, NCCL_EP_ALGO_HIGH_THROUGHPUT);
    config.max_recv_tokens_per_rank = 1;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidArgument, "max_recv_tokens_per_rank is 1");
    config.max_recv_tokens_per_rank = 0;
    config.overflow_policy = NCCL_EP_OVERFLOW_DROP;
    EXPECT(ncclEpCreateGroup(&group, r->comm, &config), ncclInvalidUsage, "OVERFLOW_DROP");
}

static void ll(rig *r)
{
    ncclEpGroupConfig_t config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    config.size = NCCL_EP_GROUP_CONFIG_V1_SIZE; /* an older caller's: no num_topk */
    config.version = 1;
    r->group = NULL;
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    if (r->group == NULL) {
        return;
    }
    if (r->ranks > 1) { /* 16 or all experts is the group's most */
        ll_layout(r, NCCL_EP_LAYOUT_RANK_MAJOR);
        ll_layout(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    }
    OK(ncclEpGroupDestroy(r->group));
    config = config_of(r, NCCL_EP_ALGO_LOW_LATENCY);
    OK(ncclEpCreateGroup(&r->group, r->comm, &config));
    ll_layout(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    wrong_handles(r);
    masks(r);
    OK(ncclEpGroupDestroy(r->group));
}

/* ---- threads ---- */

static void *run(void *argument)
{
    rig *r = argument;
    if (!standin_choose_gpu(r->rank)) {
        (void)fprintf(stderr, "rank %d: no fake driver\n", r->rank);
        r->failures++;
        return NULL;
    }
    r->behind = standin_stream();
    wrong_groups(r);
    ht(r, NCCL_EP_AUTO);
    ht(r, ROWS);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt32, ncclInt32);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt32, ncclInt64);
    counted(r, NCCL_EP_LAYOUT_FLAT, ncclInt64, ncclInt64);
    counted(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, ncclInt32, ncclInt32);
    counted(r, NCCL_EP_LAYOUT_EXPERT_MAJOR, ncclInt64, ncclInt64);
    dropped(r, NCCL_EP_LAYOUT_FLAT);
    dropped(r, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    ll(r);
    r->tokens = r->rank == r->ranks - 1 ? 0 : r->tokens; /* a rank without any, or nobody has one */
    ht(r, NCCL_EP_AUTO);
    ht(r, ROWS);
    ll(r);
    return NULL;
}

int main(int argc, char **argv)
{
    static rig rigs[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    ncclComm_t comms[RANKS_MOST];
    int ranks = argc == 2 ? atoi(argv[1]) : 0;
    int failures = 0;
    if (ranks < 1 || ranks > RANKS_MOST) {
        (void)fprintf(stderr, "usage: steps RANKS (1 .. %d)\n", RANKS_MOST);
        return 2;
    }
    standin_comms(ranks, comms);
    if (pthread_barrier_init(&turns, NULL, (unsigned)ranks) != 0) {
        abort();
    }
    for (int i = 0; i < ranks; i++) {
        rigs[i].rank = i;
        rigs[i].ranks = ranks;
        rigs[i].comm = comms[i];
        rigs[i].tokens = (size_t)(MOST - i); /* unequal */
        if (pthread_create(&threads[i], NULL, run, &rigs[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < ranks; i++) {
        (void)pthread_join(threads[i], NULL);
        failures += rigs[i].failures;
    }
    return failures != 0;
}
