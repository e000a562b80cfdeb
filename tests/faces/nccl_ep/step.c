/* faces/nccl_ep/step.c: see step.h. */
#include "faces/nccl_ep/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/rank_threads.h"

pthread_barrier_t turns;

step step_of(rig *r, ncclEpLayout_t layout, int is_ll)
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

void fill_tensors(rig *r, step *s)
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

void work(rig *r, const step *s)
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

void dispatch(rig *r, step *s, ncclEpHandle_t handle)
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

void combine(rig *r, step *s, ncclEpHandle_t handle)
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

void check_result(rig *r, int line)
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

int64_t choice_of(const rig *r, unsigned seed, int source, unsigned t, int k)
{
    unsigned experts = (unsigned)r->ranks * LOCAL;
    unsigned first = (seed + 3 * t + (unsigned)source) % experts;
    return k == 0 ? first : t % 3 == 1 ? -1 : (int64_t)((first + 1 + t % (experts - 1)) % experts);
}

void choose(rig *r, unsigned seed)
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

void one_step(rig *r, step *s, ncclEpHandle_t handle, int line)
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

void weigh(rig *r, float factor)
{
    for (unsigned t = 0; t < MOST; t++) {
        for (int k = 0; k < TOPK; k++) {
            r->weights[t][k] *= factor;
        }
    }
}

ncclEpGroupConfig_t config_of(const rig *r, ncclEpAlgorithm_t algorithm)
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

void backward(rig *r, step *s, ncclEpHandle_t handle)
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

/* ---- threads ---- */

static void (*body_of_all)(rig *r);

static int run(void *argument)
{
    rig *r = argument;
    if (!standin_choose_gpu(r->rank)) {
        (void)fprintf(stderr, "rank %d: no fake driver\n", r->rank);
        r->failures++;
        return r->failures;
    }
    r->behind = standin_stream();
    body_of_all(r);
    return r->failures;
}

int run_ranks(int argc, char **argv, void (*body)(rig *r))
{
    static rig rigs[RANKS_MOST];
    ncclComm_t comms[RANKS_MOST];
    int ranks = argc == 2 ? atoi(argv[1]) : 0;
    body_of_all = body;
    if (ranks < 1 || ranks > RANKS_MOST) {
        (void)fprintf(stderr, "usage: %s RANKS (1 .. %d)\n", argv[0], RANKS_MOST);
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
    }
    return run_rank_threads(ranks, run, rigs, sizeof rigs[0]) != 0;
}
