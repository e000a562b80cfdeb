/* A layer's step by NCCL EP's interface, on two GPUs of one process, a thread each: 64 tokens a rank choose two of four
 * experts, an expert multiplies a row by its number plus one and by the choice's weight, and each token gets the sum,
 * which the host checks.
 *
 *     cc step.c -I$PREFIX/include/nccl_ep -I$PREFIX/include -L$PREFIX/lib -lweft_nccl_ep -lweft -lnccl -lcuda -lpthread
 */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nccl_ep.h>
#include <weft/status.h>

enum {
    RANKS = 2,
    TOKENS = 64,
    TOPK = 2,
    HIDDEN = 256,
    EXPERTS = 4,
    LOCAL = EXPERTS / RANKS,
    ROWS = RANKS * TOKENS * TOPK
};

typedef struct layer {
    int rank;
    int wrong;
    ncclComm_t comm;
    float x[TOKENS][HIDDEN], y[TOKENS][HIDDEN], weights[TOKENS][TOPK];
    float rows[ROWS][HIDDEN], row_weights[ROWS];
    int64_t ids[TOKENS][TOPK];
    int32_t counts[LOCAL];
} layer;

static void check_nccl(ncclResult_t result, const char *call)
{
    if (result != ncclSuccess) {
        fprintf(stderr, "%s: result %d: %s\n", call, (int)result, weft_last_error());
        exit(1);
    }
}

static void check_cuda(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "%s: CUDA error %d\n", call, (int)result);
        exit(1);
    }
}

#define NCCL(call) check_nccl(call, #call)
#define CUDA(call) check_cuda(call, #call)

/* Device memory with that content. */
static CUdeviceptr to_device(const void *host, size_t bytes, CUstream stream)
{
    CUdeviceptr device;
    CUDA(cuMemAlloc(&device, bytes));
    CUDA(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)host, bytes, stream));
    return device;
}

static void to_host(void *host, CUdeviceptr device, size_t bytes, CUstream stream)
{
    CUDA(cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, device, bytes, stream));
    CUDA(cuStreamSynchronize(stream));
}

static ncclEpTensor_t tensor(CUdeviceptr data, ncclDataType_t type, unsigned dimensions, size_t *sizes)
{
    ncclEpTensor_t made = NCCL_EP_TENSOR_INIT;
    made.ndim = dimensions;
    made.datatype = type;
    made.data = (void *)(uintptr_t)data;
    made.sizes = sizes;
    return made;
}

static void fill(layer *l)
{
    for (int t = 0; t < TOKENS; t++) {
        for (int k = 0; k < TOPK; k++) {
            l->ids[t][k] = (l->rank + t + 3 * k) % EXPERTS;
            l->weights[t][k] = 0.25f * (float)(1 + (t + k) % 3);
        }
        for (int h = 0; h < HIDDEN; h++) {
            l->x[t][h] = (float)((t + h) % 7);
        }
    }
}

/* What would be a grouped GEMM: rows lie by expert, as many as were counted. */
static void run_experts(layer *l)
{
    int row = 0;
    for (int e = 0; e < LOCAL; e++) {
        for (int i = 0; i < l->counts[e]; i++, row++) {
            for (int h = 0; h < HIDDEN; h++) {
                l->rows[row][h] *= l->row_weights[row] * (float)(1 + l->rank * LOCAL + e);
            }
        }
    }
}

static void check_sums(layer *l)
{
    for (int t = 0; t < TOKENS; t++) {
        float factor = 0;
        for (int k = 0; k < TOPK; k++) {
            factor += l->weights[t][k] * (float)(1 + l->ids[t][k]);
        }
        for (int h = 0; h < HIDDEN; h++) {
            l->wrong += l->y[t][h] != factor * l->x[t][h];
        }
    }
}

static void step(layer *l, ncclEpGroup_t group, CUstream stream)
{
    size_t token_sizes[2] = {TOKENS, HIDDEN}, choice_sizes[2] = {TOKENS, TOPK}, row_sizes[2] = {ROWS, HIDDEN};
    size_t rows = ROWS, local = LOCAL;
    CUdeviceptr x = to_device(l->x, sizeof l->x, stream), y = to_device(l->y, sizeof l->y, stream);
    CUdeviceptr ids = to_device(l->ids, sizeof l->ids, stream),
                weights = to_device(l->weights, sizeof l->weights, stream);
    CUdeviceptr received = to_device(l->rows, sizeof l->rows, stream);
    CUdeviceptr row_weights = to_device(l->row_weights, sizeof l->row_weights, stream);
    CUdeviceptr counts = to_device(l->counts, sizeof l->counts, stream);
    ncclEpTensor_t tokens_in = tensor(x, ncclFloat32, 2, token_sizes), sums = tensor(y, ncclFloat32, 2, token_sizes);
    ncclEpTensor_t topk_idx = tensor(ids, ncclInt64, 2, choice_sizes);
    ncclEpTensor_t topk_weights = tensor(weights, ncclFloat32, 2, choice_sizes);
    ncclEpTensor_t tokens_out = tensor(received, ncclFloat32, 2, row_sizes);
    ncclEpTensor_t weights_out = tensor(row_weights, ncclFloat32, 1, &rows);
    ncclEpTensor_t experts = tensor(counts, ncclInt32, 1, &local);

    /* Who sends what to whom. The counts are on the device; the expert's kernels would read them there. */
    ncclEpHandle_t handle;
    ncclEpLayoutInfo_t info = NCCL_EP_LAYOUT_INFO_INIT;
    info.expert_counters = &experts;
    NCCL(ncclEpCreateHandle(&handle, group, NCCL_EP_LAYOUT_EXPERT_MAJOR, &topk_idx, &info, NULL, stream));

    ncclEpDispatchInputs_t dispatched = NCCL_EP_DISPATCH_INPUTS_INIT;
    ncclEpDispatchOutputs_t arrived = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    dispatched.tokens = &tokens_in;
    dispatched.topk_weights = &topk_weights;
    arrived.tokens = &tokens_out;
    arrived.topk_weights = &weights_out;
    NCCL(ncclEpDispatch(handle, &dispatched, &arrived, NULL, NULL, stream));

    to_host(l->counts, counts, sizeof l->counts, stream);
    to_host(l->rows, received, sizeof l->rows, stream);
    to_host(l->row_weights, row_weights, sizeof l->row_weights, stream);
    run_experts(l);
    CUDA(cuMemcpyAsync(received, (CUdeviceptr)(uintptr_t)l->rows, sizeof l->rows, stream));

    ncclEpCombineInputs_t results = NCCL_EP_COMBINE_INPUTS_INIT;
    ncclEpCombineOutputs_t combined = NCCL_EP_COMBINE_OUTPUTS_INIT;
    results.tokens = &tokens_out;
    combined.tokens = &sums;
    NCCL(ncclEpCombine(handle, &results, &combined, NULL, stream));
    to_host(l->y, y, sizeof l->y, stream);
    check_sums(l);

    NCCL(ncclEpHandleDestroy(handle));
    CUdeviceptr all[] = {x, y, ids, weights, received, row_weights, counts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CUDA(cuMemFree(all[i]));
    }
}

static void *run(void *argument)
{
    layer *l = argument;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    ncclEpGroup_t group;
    CUDA(cuDeviceGet(&device, l->rank));
    CUDA(cuDevicePrimaryCtxRetain(&context, device));
    CUDA(cuCtxPushCurrent(context));
    CUDA(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));

    ncclEpGroupConfig_t config = NCCL_EP_GROUP_CONFIG_INIT;
    config.algorithm = NCCL_EP_ALGO_HIGH_THROUGHPUT;
    config.num_experts = EXPERTS;
    config.max_dispatch_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = ROWS;
    config.max_token_bytes = sizeof l->x[0];
    config.num_topk = TOPK;
    NCCL(ncclEpCreateGroup(&group, l->comm, &config));
    fill(l);
    step(l, group, stream);
    NCCL(ncclEpGroupDestroy(group));
    CUDA(cuStreamDestroy(stream));
    return NULL;
}

int main(void)
{
    static layer layers[RANKS];
    ncclComm_t comms[RANKS];
    pthread_t threads[RANKS];
    int wrong = 0;
    CUDA(cuInit(0));
    NCCL(ncclCommInitAll(comms, RANKS, NULL));
    for (int rank = 0; rank < RANKS; rank++) {
        layers[rank].rank = rank;
        layers[rank].comm = comms[rank];
        if (pthread_create(&threads[rank], NULL, run, &layers[rank]) != 0) {
            return 1;
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        pthread_join(threads[rank], NULL);
        wrong += layers[rank].wrong;
        NCCL(ncclCommDestroy(comms[rank]));
    }
    printf("nccl_ep: %d ranks, %d tokens each: %s\n", RANKS, TOKENS, wrong == 0 ? "all sums are right" : "WRONG");
    return wrong != 0;
}
