/* Goal: steps through the NCCL EP face with NVIDIA's NCCL, a process and GPU a rank, give each token x * sum over its
 * choices of weight * (1 + expert % 2), in all layouts, with all that programs of NCCL EP ask for beside; and how long
 * dispatch and combine take, measured as they measure them: events around each call, on an idle stream.
 *
 * Method: the processes are forks, which meet in shared memory; experts work on the host. Small numbers, so that sums
 * are exact. It runs with NVIDIA's libnccl_ep.so.0, too, and is then what the face is compared with.
 * Usage: nccl_ep RANKS [ITERATIONS [times]], "times": without the steps that are proved; scripts/gpu_nccl_ep.sh builds
 * it against nccl.h and nccl_ep.h. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_ep.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((weak)) const char *weft_last_error(void); /* not there with NVIDIA's library */

#define RANKS_MOST 8
#define BF16_BYTES 2

typedef struct meeting {
    pthread_barrier_t barrier;
    ncclUniqueId id;
    double times[RANKS_MOST][2];
} meeting;

static meeting *met;
static int rank;
static int ranks;
static cudaStream_t stream;
static ncclComm_t comm;
static int failures;

static void fail(int line, const char *what, const char *why)
{
    (void)fprintf(stderr, "rank %d, line %d: %s: %s\n", rank, line, what, why);
    failures++;
}

static const char *reason(ncclResult_t result)
{
    return weft_last_error != NULL ? weft_last_error() : ncclGetErrorString(result);
}

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fail(__LINE__, #call, cudaGetErrorString(error));                                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define NCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result = (call);                                                                                  \
        if (result != ncclSuccess) {                                                                                   \
            fail(__LINE__, #call, reason(result));                                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void meet(void)
{
    (void)pthread_barrier_wait(&met->barrier);
}

static uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16); /* exact here */
}

static float value_of(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- a case ---- */

typedef struct setup {
    const char *name;
    int is_ll;
    ncclEpLayout_t layout;
    int most; /* tokens a rank */
    int hidden;
    int experts;
    int topk;
    size_t alignment;
    ncclEpExpertIdKind_t kind;
    int in_halves;
    int in_graph;
    int in_window; /* received rows, in a group that asks for windows */
    int is_uneven; /* the last rank has no token */
    int loses_last; /* the last rank makes no call for a while */
} setup;

/* A tensor of its own device memory, and of the host's beside. */
typedef struct array {
    ncclEpTensor_t tensor;
    size_t sizes[3];
    size_t bytes;
    void *device;
    void *host;
    ncclWindow_t window;
} array;

static void make(array *of, ncclDataType_t type, size_t element, unsigned dims, size_t a, size_t b, size_t c)
{
    memset(of, 0, sizeof *of);
    const size_t sizes[3] = {a, dims > 1 ? b : 1, dims > 2 ? c : 1};
    memcpy(of->sizes, sizes, sizeof sizes);
    of->bytes = sizes[0] * sizes[1] * sizes[2] * element;
    CUDA(cudaMalloc(&of->device, of->bytes));
    of->host = calloc(1, of->bytes + 1);
    of->tensor = NCCL_EP_TENSOR_INIT;
    of->tensor.ndim = dims;
    of->tensor.datatype = type;
    of->tensor.data = of->device;
    of->tensor.sizes = of->sizes;
    if (of->bytes != 0) {
        CUDA(cudaMemset(of->device, 0x5a, of->bytes)); /* poison */
    }
}

static void release(array *of)
{
    if (of->window != NULL) {
        NCCL(ncclCommWindowDeregister(comm, of->window));
        NCCL(ncclMemFree(of->device));
    } else {
        CUDA(cudaFree(of->device));
    }
    free(of->host);
}

/* The same in memory of NCCL's, known by a window. Collective. */
static void move_to_window(array *of)
{
    CUDA(cudaFree(of->device));
    NCCL(ncclMemAlloc(&of->device, of->bytes));
    NCCL(ncclCommWindowRegister(comm, of->device, of->bytes, &of->window, NCCL_WIN_COLL_SYMMETRIC));
    of->tensor.data = NULL;
    of->tensor.win_hdl = of->window;
}

static void up(array *of)
{
    CUDA(cudaMemcpy(of->device, of->host, of->bytes, cudaMemcpyHostToDevice));
}

static void down(array *of)
{
    CUDA(cudaMemcpy(of->host, of->device, of->bytes, cudaMemcpyDeviceToHost));
}

typedef struct scene {
    setup s;
    int tokens;
    int local;
    size_t rows; /* of the receive buffer */
    ncclEpGroup_t group;
    ncclEpHandle_t handle;
    array x, y, ids, weights, out, out_weights, out_ids, experts, offsets, total, sources;
    ncclEpLayoutInfo_t info;
    ncclEpLayoutInfo_t ht_info; /* of a dispatch */
    ncclEpDispatchInputs_t in;
    ncclEpDispatchOutputs_t to;
    ncclEpDispatchConfig_t config;
    ncclEpCombineInputs_t back;
    ncclEpCombineOutputs_t sums;
    ncclEpCombineConfig_t combine_config;
} scene;

static int tokens_of(const setup *s, int of)
{
    return s->is_uneven && of == ranks - 1 ? 0 : s->most;
}

static int64_t choice(const setup *s, int of, int token, int k)
{
    uint32_t mixed = (uint32_t)(of * 7919 + token) * 2654435761u;
    return ((mixed >> 8) + (uint32_t)k * 3u) % (uint32_t)s->experts; /* distinct while 3 * topk is below experts */
}

static float weight(int of, int token, int k)
{
    return 0.25f * (float)(1 + (of + token + k) % 4);
}

static void fill(scene *at)
{
    for (int t = 0; t < at->tokens; t++) {
        for (int k = 0; k < at->s.topk; k++) {
            ((int64_t *)at->ids.host)[t * at->s.topk + k] = choice(&at->s, rank, t, k);
            ((float *)at->weights.host)[t * at->s.topk + k] = weight(rank, t, k);
        }
        for (int h = 0; h < at->s.hidden; h++) {
            ((uint16_t *)at->x.host)[t * at->s.hidden + h] = bf16_of((float)(1 + (rank + t + h) % 2));
        }
    }
    up(&at->ids);
    up(&at->weights);
    up(&at->x);
}

static size_t rows_of(const setup *s, int local)
{
    size_t slots = (size_t)ranks * (size_t)s->most;
    if (s->is_ll) {
        return s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? slots * (size_t)local : slots;
    }
    return s->layout == NCCL_EP_LAYOUT_FLAT ? slots : slots * (size_t)s->topk + (size_t)local * s->alignment;
}

static void make_group(scene *at)
{
    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = at->s.is_ll ? NCCL_EP_ALGO_LOW_LATENCY : NCCL_EP_ALGO_HIGH_THROUGHPUT;
    config.num_experts = (unsigned)at->s.experts;
    config.max_dispatch_tokens_per_rank = (unsigned)at->s.most;
    config.max_recv_tokens_per_rank = (unsigned)at->rows;
    config.max_token_bytes = (unsigned)at->s.hidden * BF16_BYTES;
    config.zero_copy = at->s.in_window ? NCCL_EP_ZERO_COPY_ON : NCCL_EP_ZERO_COPY_AUTO;
    config.enable_mask = (unsigned)at->s.loses_last;
    config.timeout_ns = at->s.loses_last ? 2000000000u : 0;
    NCCL(ncclEpCreateGroup(&at->group, comm, &config));
}

static void make_tensors(scene *at)
{
    const setup *s = &at->s;
    size_t hidden = (size_t)s->hidden;
    size_t topk = (size_t)s->topk;
    size_t outer = s->is_ll && s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR ? (size_t)at->local : (size_t)ranks;
    make(&at->x, ncclBfloat16, 2, 2, (size_t)at->tokens, hidden, 0);
    make(&at->y, ncclBfloat16, 2, 2, (size_t)at->tokens, hidden, 0);
    make(&at->ids, ncclInt64, 8, 2, (size_t)at->tokens, topk, 0);
    make(&at->weights, ncclFloat32, 4, 2, (size_t)at->tokens, topk, 0);
    if (s->is_ll) {
        make(&at->out, ncclBfloat16, 2, 3, outer, at->rows / outer, hidden);
        make(&at->out_weights, ncclFloat32, 4, 3, outer, at->rows / outer, topk);
        make(&at->out_ids, ncclInt32, 4, 3, outer, at->rows / outer, topk);
    } else {
        make(&at->out, ncclBfloat16, 2, 2, at->rows, hidden, 0);
        make(&at->out_weights, ncclFloat32, 4, s->layout == NCCL_EP_LAYOUT_FLAT ? 2 : 1, at->rows, topk, 0);
        make(&at->out_ids, ncclInt64, 8, 2, at->rows, topk, 0);
    }
    const int is_wide = !s->is_ll && s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR; /* NVIDIA's takes 32 bits elsewhere */
    make(&at->experts, is_wide ? ncclInt64 : ncclInt32, is_wide ? 8 : 4, 1, (size_t)at->local, 1, 0);
    make(&at->offsets, ncclInt64, 8, 1, (size_t)at->local, 1, 0);
    make(&at->total, ncclInt64, 8, 1, 1, 1, 0);
    make(&at->sources, ncclInt32, 4, 1, (size_t)ranks, 1, 0);
    if (s->in_window) {
        move_to_window(&at->out);
    }
}

/* What the calls get, and the handle. */
static void open_scene(scene *at)
{
    const setup *s = &at->s;
    int by_expert = s->layout == NCCL_EP_LAYOUT_EXPERT_MAJOR;
    ncclEpHandleConfig_t config = NCCL_EP_HANDLE_CONFIG_INIT;
    config.dispatch_output_per_expert_alignment = s->alignment;
    at->info = NCCL_EP_LAYOUT_INFO_INIT;
    at->in = NCCL_EP_DISPATCH_INPUTS_INIT;
    at->to = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    at->config = NCCL_EP_DISPATCH_CONFIG_INIT;
    at->back = NCCL_EP_COMBINE_INPUTS_INIT;
    at->sums = NCCL_EP_COMBINE_OUTPUTS_INIT;
    at->combine_config = NCCL_EP_COMBINE_CONFIG_INIT;
    at->ht_info = at->info;
    at->info.recv_topk_idx_kind = at->ht_info.recv_topk_idx_kind = s->kind;
    at->info.expert_counters = s->is_ll && !by_expert ? NULL : &at->experts.tensor;
    at->info.src_rank_counters = s->is_ll && !by_expert ? &at->sources.tensor : NULL;
    at->info.expert_offsets = !s->is_ll && by_expert ? &at->offsets.tensor : NULL;
    at->info.recv_total_counter = s->is_ll ? NULL : &at->total.tensor;
    at->in.tokens = &at->x.tensor;
    at->in.topk_weights = s->is_ll && by_expert ? NULL : &at->weights.tensor;
    at->to.tokens = &at->out.tensor;
    at->to.topk_weights = s->is_ll && by_expert ? NULL : &at->out_weights.tensor;
    at->to.topk_idx = by_expert ? NULL : &at->out_ids.tensor;
    at->config.send_only = (unsigned)s->in_halves;
    at->back.tokens = &at->out.tensor;
    at->sums.tokens = &at->y.tensor;
    at->sums.topk_weights = s->is_ll && by_expert ? &at->weights.tensor : NULL;
    at->combine_config.send_only = (unsigned)s->in_halves;
    NCCL(ncclEpInitHandle(&at->handle, at->group, s->layout, &config, s->topk, NULL));
}

static void update(scene *at)
{
    NCCL(ncclEpUpdateHandle(at->handle, &at->ids.tensor, at->s.is_ll ? NULL : &at->info, stream));
}

static void complete(const scene *at)
{
    if (at->s.is_ll) {
        NCCL(ncclEpComplete(at->handle, NULL, stream));
    }
}

static void dispatch(scene *at)
{
    NCCL(ncclEpDispatch(at->handle, &at->in, &at->to, at->s.is_ll ? &at->info : &at->ht_info, &at->config, stream));
    complete(at);
}

static void combine(scene *at)
{
    NCCL(ncclEpCombine(at->handle, &at->back, &at->sums, &at->combine_config, stream));
    complete(at);
}

/* ---- what experts do ---- */

static void scale_row(scene *at, size_t row, float factor)
{
    uint16_t *data = (uint16_t *)at->out.host + row * (size_t)at->s.hidden;
    for (int h = 0; h < at->s.hidden; h++) {
        data[h] = bf16_of(value_of(data[h]) * factor);
    }
}

static float factor_of(int64_t expert)
{
    return (float)(1 + expert % 2);
}

/* The received id of choice k of a row, as a global one, or -1. */
static int64_t id_of(const scene *at, size_t row, size_t k)
{
    size_t i = row * (size_t)at->s.topk + k;
    int64_t id = at->s.is_ll ? ((const int32_t *)at->out_ids.host)[i] : ((const int64_t *)at->out_ids.host)[i];
    int is_local = at->s.kind != NCCL_EP_EXPERT_ID_GLOBAL;
    if (id >= 0 && (is_local ? id >= at->local : id / at->local != rank)) {
        fail(__LINE__, at->s.name, "a received id is none of this rank's");
    }
    return id < 0 ? -1 : is_local ? id + (int64_t)rank * at->local : id;
}

static void work_by_choice(scene *at, size_t row)
{
    float factor = 0;
    for (size_t k = 0; k < (size_t)at->s.topk; k++) {
        int64_t id = id_of(at, row, k);
        float given = ((const float *)at->out_weights.host)[row * (size_t)at->s.topk + k];
        if (at->s.is_ll && !(given >= 0.25f && given <= 1.0f)) {
            fail(__LINE__, at->s.name, "a weight of another rank's choice is missing");
        }
        factor += id >= 0 ? given * factor_of(id) : 0;
    }
    scale_row(at, row, factor);
}

static void work_flat(scene *at)
{
    int64_t total = *(const int64_t *)at->total.host;
    for (size_t row = 0; row < at->rows; row++) {
        if (row < (size_t)total) {
            work_by_choice(at, row);
            continue;
        }
        for (size_t k = 0; k < (size_t)at->s.topk && weft_last_error != NULL; k++) { /* NVIDIA's leaves them alone */
            if (id_of(at, row, k) != -1) {
                fail(__LINE__, at->s.name, "a row that did not come has an id");
                return;
            }
        }
    }
}

static void work_by_expert(scene *at)
{
    const int64_t *counts = at->experts.host;
    const int64_t *offsets = at->offsets.host;
    int64_t end = 0;
    for (int e = 0; e < at->local; e++) {
        if (offsets[e] != end || (at->s.alignment > 1 && counts[e] % (int64_t)at->s.alignment != 0)) {
            fail(__LINE__, at->s.name, "counters and offsets disagree");
        }
        end += counts[e];
        for (int64_t row = offsets[e]; row < end && row < (int64_t)at->rows; row++) {
            float given = ((const float *)at->out_weights.host)[row];
            scale_row(at, (size_t)row, given * factor_of((int64_t)rank * at->local + e));
        }
    }
    if (end != *(const int64_t *)at->total.host) {
        fail(__LINE__, at->s.name, "the total is not the sum");
    }
    for (size_t row = (size_t)end; row < at->rows && weft_last_error != NULL; row++) { /* NVIDIA's leaves them alone */
        if (((const float *)at->out_weights.host)[row] != 0) {
            fail(__LINE__, at->s.name, "a row that did not come has a weight");
            return;
        }
    }
}

static void work_in_slots(scene *at)
{
    if (at->s.layout == NCCL_EP_LAYOUT_RANK_MAJOR) {
        for (int source = 0; source < ranks; source++) {
            for (int i = 0; i < ((const int32_t *)at->sources.host)[source]; i++) {
                work_by_choice(at, (size_t)(source * at->s.most + i));
            }
        }
        return;
    }
    for (int e = 0; e < at->local; e++) {
        for (int i = 0; i < ((const int32_t *)at->experts.host)[e]; i++) {
            scale_row(at, (size_t)(e * ranks * at->s.most + i), factor_of((int64_t)rank * at->local + e));
        }
    }
}

static void work(scene *at)
{
    array *all[] = {&at->out, &at->out_weights, &at->out_ids, &at->experts, &at->offsets, &at->total, &at->sources};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        down(all[i]);
    }
    if (at->s.is_ll) {
        work_in_slots(at);
    } else if (at->s.layout == NCCL_EP_LAYOUT_FLAT) {
        work_flat(at);
    } else {
        work_by_expert(at);
    }
    up(&at->out);
}

/* Each token, by its choices of experts of the first `alive` ranks. */
static void check_of(scene *at, int alive)
{
    down(&at->y);
    for (int t = 0; t < at->tokens; t++) {
        float factor = 0;
        for (int k = 0; k < at->s.topk; k++) {
            int64_t expert = choice(&at->s, rank, t, k);
            factor += expert < (int64_t)alive * at->local ? weight(rank, t, k) * factor_of(expert) : 0;
        }
        for (int h = 0; h < at->s.hidden; h++) {
            float wanted = factor * (float)(1 + (rank + t + h) % 2);
            float got = value_of(((const uint16_t *)at->y.host)[t * at->s.hidden + h]);
            if (got != wanted) {
                (void)fprintf(stderr, "rank %d: %s: token %d [%d] is %g, not %g\n", rank, at->s.name, t, h, (double)got,
                              (double)wanted);
                failures++;
                return;
            }
        }
    }
}

static void check(scene *at)
{
    check_of(at, ranks);
}

/* ---- runs ---- */

static void begin(scene *at, const setup *s)
{
    memset(at, 0, sizeof *at);
    at->s = *s;
    at->tokens = tokens_of(s, rank);
    at->local = s->experts / ranks;
    at->rows = rows_of(s, at->local);
    make_group(at);
    make_tensors(at);
    open_scene(at);
    fill(at);
    CUDA(cudaDeviceSynchronize());
    meet();
}

static void end(scene *at)
{
    CUDA(cudaStreamSynchronize(stream));
    meet();
    array *all[] = {&at->x,       &at->y,       &at->ids,     &at->weights, &at->out,    &at->out_weights,
                    &at->out_ids, &at->experts, &at->offsets, &at->total,   &at->sources};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        release(all[i]);
    }
    NCCL(ncclEpHandleDestroy(at->handle));
    NCCL(ncclEpGroupDestroy(at->group));
}

static void prove(const setup *s)
{
    scene at;
    int before = failures;
    begin(&at, s);
    for (int round = 0; round < 3; round++) {
        cudaGraph_t graph = NULL;
        cudaGraphExec_t exec = NULL;
        if (s->in_graph) {
            CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        }
        if (round != 1 || s->in_graph) {
            update(&at);
        }
        dispatch(&at);
        if (s->in_graph) {
            CUDA(cudaStreamEndCapture(stream, &graph));
            CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
            CUDA(cudaGraphLaunch(exec, stream));
            CUDA(cudaGraphLaunch(exec, stream));
        }
        CUDA(cudaStreamSynchronize(stream));
        work(&at);
        combine(&at);
        CUDA(cudaStreamSynchronize(stream));
        check(&at);
        if (s->in_graph) {
            CUDA(cudaGraphExecDestroy(exec));
            CUDA(cudaGraphDestroy(graph));
        }
        meet();
    }
    end(&at);
    if (rank == 0) {
        (void)printf("%-28s %s\n", s->name, failures == before ? "right" : "WRONG");
        (void)fflush(stdout);
    }
}

static void make_step(scene *at, int alive)
{
    update(at);
    dispatch(at);
    CUDA(cudaStreamSynchronize(stream));
    work(at);
    combine(at);
    CUDA(cudaStreamSynchronize(stream));
    check_of(at, alive);
}

/* Whether the group has met a timeout, and which of its ranks take part. */
static void check_masks(const scene *at, int error_wanted, int alive)
{
    int error = 7;
    int mask[RANKS_MOST] = {0};
    int *there = NULL;
    CUDA(cudaMalloc((void **)&there, sizeof mask));
    NCCL(ncclEpGetAsyncError(at->group, &error));
    NCCL(ncclEpMaskQuery(at->group, there, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(mask, there, (size_t)ranks * sizeof *mask, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(there));
    for (int i = 0; i < ranks; i++) {
        error_wanted = mask[i] == (i < alive) ? error_wanted : -1;
    }
    if (error != error_wanted) {
        fail(__LINE__, at->s.name, "the mask or the error is another");
    }
}

/* The last rank does not come to some steps, of which the first masks it, and then is back. */
static void prove_masks(const setup *s)
{
    scene at;
    int before = failures;
    begin(&at, s);
    make_step(&at, ranks);
    meet();
    if (rank != ranks - 1) {
        for (int round = 0; round < 3; round++) {
            make_step(&at, ranks - 1);
            check_masks(&at, round < 2, ranks - 1);
            NCCL(round == 1 ? ncclEpErrorClear(at.group) : ncclSuccess);
        }
    }
    meet();
    NCCL(ncclEpMaskClean(at.group, stream));
    check_masks(&at, 0, ranks);
    meet();
    make_step(&at, ranks);
    make_step(&at, ranks);
    check_masks(&at, 0, ranks);
    end(&at);
    if (rank == 0) {
        (void)printf("%-28s %s\n", s->name, failures == before ? "right" : "WRONG");
        (void)fflush(stdout);
    }
}

static void measure(const setup *s, int iterations)
{
    scene at;
    cudaEvent_t events[4];
    double sums[2] = {0, 0};
    begin(&at, s);
    for (int i = 0; i < 4; i++) {
        CUDA(cudaEventCreate(&events[i]));
    }
    for (int i = -10; i < iterations; i++) {
        float ms;
        if (i < 0) {
            update(&at);
        }
        CUDA(cudaEventRecord(events[0], stream));
        dispatch(&at);
        CUDA(cudaEventRecord(events[1], stream));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaEventRecord(events[2], stream));
        combine(&at);
        CUDA(cudaEventRecord(events[3], stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int j = 0; j < 2 && i >= 1; j++) {
            CUDA(cudaEventElapsedTime(&ms, events[2 * j], events[2 * j + 1]));
            sums[j] += (double)ms * 1000 / (iterations - 1);
        }
        meet();
    }
    memcpy(met->times[rank], sums, sizeof sums);
    meet();
    if (rank == 0) {
        double mean[2] = {0, 0};
        for (int i = 0; i < ranks; i++) {
            mean[0] += met->times[i][0] / ranks;
            mean[1] += met->times[i][1] / ranks;
        }
        (void)printf("%-28s dispatch %7.1f us, combine %7.1f us\n", s->name, mean[0], mean[1]);
        (void)fflush(stdout);
    }
    end(&at);
}

static const setup SMALL = {.most = 40, .hidden = 512, .experts = 32, .topk = 6};
static const setup HT = {.most = 4096, .hidden = 7168, .experts = 256, .topk = 8};
static const setup LL = {.is_ll = 1, .most = 128, .hidden = 7168, .experts = 256, .topk = 8};

static setup named(setup s, const char *name, int is_ll, ncclEpLayout_t layout)
{
    s.name = name;
    s.is_ll = is_ll;
    s.layout = layout;
    return s;
}

#if NCCL_VERSION_CODE >= 22902
#define HAS_WINDOWS 1
#else
#define HAS_WINDOWS 0
#endif

/* Each layout of `all` with its received rows in a window; of LL, where NVIDIA's needs more than rows there, the proof
 * alone. */
static void in_windows(const setup all[4], int iterations)
{
    static const char *const names[4] = {"HT flat, window", "HT expert-major, window", "LL rank-major, window",
                                         "LL expert-major, window"};
    for (int i = 0; i < 4 && HAS_WINDOWS; i++) {
        setup s = all[i];
        s.name = names[i];
        s.in_window = 1;
        if (iterations <= 1) {
            prove(&s);
        } else if (!s.is_ll) {
            measure(&s, iterations);
        }
    }
}

static void prove_all(void)
{
    setup s = named(SMALL, "HT flat", 0, NCCL_EP_LAYOUT_FLAT);
    prove(&s);
    s = named(SMALL, "HT flat, ids of all, uneven", 0, NCCL_EP_LAYOUT_FLAT);
    s.kind = NCCL_EP_EXPERT_ID_GLOBAL;
    s.is_uneven = 1;
    prove(&s);
    s = named(SMALL, "HT flat, graph", 0, NCCL_EP_LAYOUT_FLAT);
    s.in_graph = 1;
    prove(&s);
    s = named(SMALL, "HT expert-major", 0, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    prove(&s);
    s = named(SMALL, "HT expert-major, 16, graph", 0, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    s.alignment = 16;
    s.in_graph = 1;
    prove(&s);
    s = named(SMALL, "LL rank-major", 1, NCCL_EP_LAYOUT_RANK_MAJOR);
    prove(&s);
    s = named(SMALL, "LL rank-major, ids of all", 1, NCCL_EP_LAYOUT_RANK_MAJOR);
    s.kind = NCCL_EP_EXPERT_ID_GLOBAL;
    s.is_uneven = 1;
    prove(&s);
    s = named(SMALL, "LL rank-major, halves", 1, NCCL_EP_LAYOUT_RANK_MAJOR);
    s.in_halves = 1;
    prove(&s);
    s = named(SMALL, "LL expert-major", 1, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    prove(&s);
    s = named(SMALL, "LL expert-major, halves", 1, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    s.in_halves = 1;
    prove(&s);
    s = named(SMALL, "LL expert-major, graph", 1, NCCL_EP_LAYOUT_EXPERT_MAJOR);
    s.in_graph = 1;
    s.is_uneven = 1;
    prove(&s);
    if (ranks > 1) {
        s = named(SMALL, "LL rank-major, a rank lost", 1, NCCL_EP_LAYOUT_RANK_MAJOR);
        s.loses_last = 1;
        prove_masks(&s);
        s.name = "LL expert-major, a rank lost";
        s.layout = NCCL_EP_LAYOUT_EXPERT_MAJOR;
        prove_masks(&s);
    }
    const setup windows[4] = {
        named(SMALL, "", 0, NCCL_EP_LAYOUT_FLAT), named(SMALL, "", 0, NCCL_EP_LAYOUT_EXPERT_MAJOR),
        named(SMALL, "", 1, NCCL_EP_LAYOUT_RANK_MAJOR), named(SMALL, "", 1, NCCL_EP_LAYOUT_EXPERT_MAJOR)};
    in_windows(windows, 0);
}

static void measure_all(int iterations)
{
    const setup all[4] = {named(HT, "HT flat T=4096", 0, NCCL_EP_LAYOUT_FLAT),
                          named(HT, "HT expert-major T=4096", 0, NCCL_EP_LAYOUT_EXPERT_MAJOR),
                          named(LL, "LL rank-major T=128", 1, NCCL_EP_LAYOUT_RANK_MAJOR),
                          named(LL, "LL expert-major T=128", 1, NCCL_EP_LAYOUT_EXPERT_MAJOR)};
    for (int i = 0; i < 4; i++) {
        measure(&all[i], iterations);
    }
    in_windows(all, iterations);
}

static int run(int iterations, int only_times)
{
    CUDA(cudaSetDevice(rank));
    CUDA(cudaStreamCreate(&stream));
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&met->id));
    }
    meet();
    NCCL(ncclCommInitRank(&comm, ranks, met->id, rank));
    if (!only_times) {
        prove_all();
    }
    if (iterations > 1) {
        measure_all(iterations);
    }
    NCCL(ncclCommDestroy(comm));
    return failures != 0;
}

int main(int argc, char **argv)
{
    pthread_barrierattr_t shared;
    int failed = 0;
    ranks = argc > 1 ? atoi(argv[1]) : 0;
    int iterations = argc > 2 ? atoi(argv[2]) : 0;
    const int only_times = argc > 3 && strcmp(argv[3], "times") == 0;
    if (ranks < 1 || ranks > RANKS_MOST) {
        (void)fprintf(stderr, "usage: nccl_ep RANKS [ITERATIONS [times]], RANKS 1 .. %d and as many GPUs\n",
                      RANKS_MOST);
        return 2;
    }
    met = mmap(NULL, sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (met == MAP_FAILED || pthread_barrierattr_init(&shared) != 0 ||
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&met->barrier, &shared, (unsigned)ranks) != 0) {
        return 1;
    }
    for (rank = 0; rank < ranks; rank++) {
        if (fork() == 0) {
            (void)alarm(300); /* a rank that waits for one that failed */
            exit(run(iterations, only_times));
        }
    }
    for (int i = 0; i < ranks; i++) {
        int status = 0;
        (void)wait(&status);
        failed |= status != 0;
    }
    (void)printf("%s\n", failed ? "FAILED" : "ok");
    return failed;
}
