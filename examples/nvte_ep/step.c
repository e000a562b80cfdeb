/* A layer's step, forward and backward, by TransformerEngine's calls of expert parallelism, on two GPUs of one process,
 * a thread each: 64 tokens a rank choose two of four experts, an expert multiplies a row by its number plus one and by
 * the choice's weight, and each token gets the sum, which the host checks; then the gradients of the sums go back.
 *
 *     cc step.c -I$PREFIX/include/nvte_ep -I$PREFIX/include -L$PREFIX/lib -lweft_nvte_ep -lweft -lnccl -lcuda -lpthread
 */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nccl.h>
#include <weft_nvte.h>

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
    float grad_weights[TOKENS][TOPK];
    int32_t counts[LOCAL];
} layer;

static void check_nccl(ncclResult_t result, const char *call)
{
    if (result != ncclSuccess) {
        fprintf(stderr, "%s: result %d\n", call, (int)result);
        exit(1);
    }
}

/* The calls return nothing. */
static void check_nvte(const char *call)
{
    if (weft_nvte_status() != WEFT_OK) {
        fprintf(stderr, "%s: %s: %s\n", call, weft_status_name(weft_nvte_status()), weft_last_error());
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
#define NVTE(call) ((call), check_nvte(#call))

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

/* Of `columns` columns; 0: of one dimension. */
static NVTETensor tensor(CUdeviceptr data, NVTEDType type, size_t rows, size_t columns)
{
    size_t sizes[2] = {rows, columns};
    NVTETensor made = nvte_create_tensor(NVTE_DELAYED_TENSOR_SCALING);
    NVTEBasicTensor basic = {(void *)(uintptr_t)data, type, nvte_make_shape(sizes, columns == 0 ? 1 : 2)};
    nvte_set_tensor_param(&made, kNVTERowwiseData, &basic);
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

/* Gradients of the sums are x: each choice adds one x to its token, and the weights come back. */
static void check_gradients(layer *l)
{
    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HIDDEN; h++) {
            l->wrong += l->y[t][h] != TOPK * l->x[t][h];
        }
        for (int k = 0; k < TOPK; k++) {
            l->wrong += l->grad_weights[t][k] != l->weights[t][k];
        }
    }
}

static void step(layer *l, CUstream stream)
{
    static const NVTECommWindow none;
    NVTEEpLayerConfig config = NVTE_EP_LAYER_CONFIG_INIT;
    config.top_k = TOPK;
    size_t bytes = nvte_ep_handle_mem_size(&config); /* stands for the layer: give exactly so many */
    check_nvte("nvte_ep_handle_mem_size");
    CUdeviceptr memory;
    CUDA(cuMemAlloc(&memory, bytes));
    CUdeviceptr x = to_device(l->x, sizeof l->x, stream), y = to_device(l->y, sizeof l->y, stream);
    CUdeviceptr ids = to_device(l->ids, sizeof l->ids, stream),
                weights = to_device(l->weights, sizeof l->weights, stream);
    CUdeviceptr received = to_device(l->rows, sizeof l->rows, stream);
    CUdeviceptr row_weights = to_device(l->row_weights, sizeof l->row_weights, stream);
    CUdeviceptr grad_weights = to_device(l->grad_weights, sizeof l->grad_weights, stream);
    CUdeviceptr counts = to_device(l->counts, sizeof l->counts, stream);
    NVTETensor handle_mem = tensor(memory, kNVTEByte, bytes, 0);
    NVTETensor tokens = tensor(x, kNVTEFloat32, TOKENS, HIDDEN), sums = tensor(y, kNVTEFloat32, TOKENS, HIDDEN);
    NVTETensor topk_idx = tensor(ids, kNVTEInt64, TOKENS, TOPK);
    NVTETensor topk_weights = tensor(weights, kNVTEFloat32, TOKENS, TOPK);
    NVTETensor rows = tensor(received, kNVTEFloat32, ROWS, HIDDEN),
               rows_of = tensor(row_weights, kNVTEFloat32, ROWS, 0);
    NVTETensor back = tensor(grad_weights, kNVTEFloat32, TOKENS, TOPK), experts = tensor(counts, kNVTEInt32, LOCAL, 0);

    NVTE(nvte_ep_prepare(handle_mem, topk_idx, experts, NULL, &config, stream));
    NVTE(nvte_ep_dispatch(handle_mem, topk_idx, tokens, none, topk_weights, none, rows, none, rows_of, none, stream));
    to_host(l->counts, counts, sizeof l->counts, stream);
    to_host(l->rows, received, sizeof l->rows, stream);
    to_host(l->row_weights, row_weights, sizeof l->row_weights, stream);
    run_experts(l);
    CUDA(cuMemcpyAsync(received, (CUdeviceptr)(uintptr_t)l->rows, sizeof l->rows, stream));
    NVTE(nvte_ep_combine(handle_mem, rows, none, sums, stream));
    to_host(l->y, y, sizeof l->y, stream);
    check_sums(l);

    NVTE(nvte_ep_combine_bwd(handle_mem, tokens, none, rows, none, stream));
    NVTE(nvte_ep_dispatch_bwd(handle_mem, rows, none, rows_of, none, sums, back, stream));
    to_host(l->y, y, sizeof l->y, stream);
    to_host(l->grad_weights, grad_weights, sizeof l->grad_weights, stream);
    check_gradients(l);

    NVTETensor tensors[] = {handle_mem, tokens, sums, topk_idx, topk_weights, rows, rows_of, back, experts};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        nvte_destroy_tensor(tensors[i]);
    }
    CUdeviceptr all[] = {memory, x, y, ids, weights, received, row_weights, grad_weights, counts};
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
    CUDA(cuDeviceGet(&device, l->rank));
    CUDA(cuDevicePrimaryCtxRetain(&context, device));
    CUDA(cuCtxPushCurrent(context));
    CUDA(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));

    NVTEEpGroupConfig config = NVTE_EP_GROUP_CONFIG_INIT;
    config.ep_size = RANKS;
    config.num_experts = EXPERTS;
    config.max_tokens_per_rank = TOKENS;
    config.max_recv_tokens_per_rank = ROWS;
    config.hidden_dim = HIDDEN;
    config.max_token_dtype = kNVTEFloat32;
    NVTE(nvte_ep_initialize(l->comm, &config)); /* the group of this thread's device */
    fill(l);
    step(l, stream);
    NVTE(nvte_ep_shutdown());
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
    printf("nvte_ep: %d ranks, %d tokens each: %s\n", RANKS, TOKENS,
           wrong == 0 ? "all sums and gradients are right" : "WRONG");
    return wrong != 0;
}
