/* Goal: expert parallelism beside other kernels on the same GPUs. Calls and NCCL's all_reduce, each on a stream of its
 * own and enqueued in opposite orders on odd ranks, end, and are right; so do captured graphs of a dispatch, a matrix
 * product and a combine that are replayed beside all_reduces, in opposite orders, too; and a matrix product beside
 * dispatches and combines of few multiprocessors loses no more time than these take.
 *
 * Method: weftrun -n RANKS test_ep_beside [ROUNDS [REPLAYS]], a GPU a rank. Rows are small integers, which bf16 holds
 * exactly; experts double them, by a product with a matrix that has 2 in its diagonal; so a token comes back as twice
 * itself for each rank that had it. Kernels compare, and count steps and what is wrong. The world has a deadline, so
 * that calls which can never run together are told. libnccl.so.2 is loaded at run time. Without arguments it is short;
 * scripts/gpu_ep_long.sh asks for 10,000 rounds and 100,000 replays. Exit 77: no GPU a rank, or no NCCL. */
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <mma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft/device.h"
#include "weft_ep.h"

#define SETS 16 /* of choices */
#define TOPK 4
#define EXPERTS_A_RANK 16
#define HIDDEN 1024
#define TILE 16
#define IN_FLIGHT 64 /* rounds or replays between two looks at what was wrong */
#define PRODUCT 4096 /* rows and columns of the product that is timed */
#define PRODUCTS 7 /* times, of which the median counts */
#define STEPS 300 /* beside each, on all ranks: they take longer than it */
#define DEADLINE_NS UINT64_C(10000000000)

static int me;
static int ranks;
static weft_world *world;

static void fail(int line, const char *what, const char *why)
{
    fprintf(stderr, "rank %d, line %d: %s: %s\n", me, line, what, why);
    exit(1);
}

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fail(__LINE__, #call, cudaGetErrorString(error_));                                                         \
        }                                                                                                              \
    } while (0)

#define WEFT(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != WEFT_OK) {                                                                                       \
            fail(__LINE__, #call, weft_last_error());                                                                  \
        }                                                                                                              \
    } while (0)

/* ---- NCCL, as its documentation has it ---- */

typedef struct nccl_id {
    char bytes[128];
} nccl_id;

enum { NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

typedef struct nccl {
    int (*get_id)(nccl_id *id);
    int (*init)(void **comm, int ranks, nccl_id id, int rank);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream);
    int (*destroy)(void *comm);
    void *comm;
} nccl;

template <class F> static void find(void *library, const char *name, F *function)
{
    *function = (F)dlsym(library, name);
    if (*function == NULL) {
        fail(__LINE__, name, "not in libnccl.so.2");
    }
}

#define NCCL(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != 0) {                                                                                             \
            fail(__LINE__, #call, "failed");                                                                           \
        }                                                                                                              \
    } while (0)

static void open_nccl(nccl *of)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(77);
    }
    find(library, "ncclGetUniqueId", &of->get_id);
    find(library, "ncclCommInitRank", &of->init);
    find(library, "ncclAllReduce", &of->all_reduce);
    find(library, "ncclCommDestroy", &of->destroy);
    void *shared;
    nccl_id id;
    WEFT(weft_malloc(world, sizeof id, &shared));
    if (me == 0) {
        NCCL(of->get_id(&id));
        for (int rank = 0; rank < ranks; rank++) {
            WEFT(weft_putmem(world, shared, &id, sizeof id, rank));
        }
    }
    WEFT(weft_barrier(world));
    memcpy(&id, shared, sizeof id);
    NCCL(of->init(&of->comm, ranks, id, me));
    WEFT(weft_free(world, shared));
}

/* ---- kernels ---- */

__host__ __device__ static int value_of(int rank, int token, int round)
{
    return 1 + (rank * 31 + token * 7 + round * 3) % 30;
}

__global__ static void fill_rows(__nv_bfloat16 *rows, int tokens, int rank, int round)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)tokens * HIDDEN;
         i += (size_t)gridDim.x * blockDim.x) {
        rows[i] = __float2bfloat16((float)value_of(rank, (int)(i / HIDDEN), round));
    }
}

__global__ static void fill_diagonal(__nv_bfloat16 *matrix, int side)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)side * (size_t)side;
         i += (size_t)gridDim.x * blockDim.x) {
        matrix[i] = __float2bfloat16(i / side == i % side ? 2.f : 0.f);
    }
}

/* to = from * matrix, of [rows][side] and [side][side]: a warp a tile. */
__global__ static void multiply(const __nv_bfloat16 *from, const __nv_bfloat16 *matrix, __nv_bfloat16 *to, int rows,
                                int side)
{
    using namespace nvcuda;
    __shared__ float stage[8][TILE * TILE];
    const int warp = (int)threadIdx.x / 32;
    const int tiles = side / TILE;
    const int tile = (int)blockIdx.x * 8 + warp;
    const int row = tile / tiles * TILE;
    const int column = tile % tiles * TILE;
    if (row >= rows) {
        return;
    }
    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum;
    wmma::fill_fragment(sum, 0.f);
    for (int k = 0; k < side; k += TILE) {
        wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major> right;
        wmma::load_matrix_sync(left, from + (size_t)row * side + k, (unsigned)side);
        wmma::load_matrix_sync(right, matrix + (size_t)k * side + column, (unsigned)side);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(stage[warp], sum, TILE, wmma::mem_row_major);
    __syncwarp();
    for (int i = (int)threadIdx.x % 32; i < TILE * TILE; i += 32) {
        to[(size_t)(row + i / TILE) * side + column + i % TILE] = __float2bfloat16(stage[warp][i]);
    }
}

static void enqueue_product(const __nv_bfloat16 *from, const __nv_bfloat16 *matrix, __nv_bfloat16 *to, int rows,
                            int side, cudaStream_t stream)
{
    const int tiles = rows / TILE * (side / TILE);
    multiply<<<(unsigned)((tiles + 7) / 8), 256, 0, stream>>>(from, matrix, to, rows, side);
    CUDA(cudaGetLastError());
}

/* What kernels count. */
typedef struct tally {
    unsigned long long wrong; /* elements */
    unsigned long long steps; /* that were compared */
} tally;

/* Each token is twice itself for each rank that had it: copies[token]. */
__global__ static void check_rows(const __nv_bfloat16 *rows, const int *copies, int tokens, int rank, int round,
                                  tally *seen)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        seen->steps++;
    }
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)tokens * HIDDEN;
         i += (size_t)gridDim.x * blockDim.x) {
        const int token = (int)(i / HIDDEN);
        if (__bfloat162float(rows[i]) != (float)(2 * value_of(rank, token, round) * copies[token])) {
            atomicAdd(&seen->wrong, 1ull);
        }
    }
}

__global__ static void check_sum(const float *sums, size_t count, float expected, unsigned long long *wrong)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        if (sums[i] != expected) {
            atomicAdd(wrong, 1ull);
        }
    }
}

__global__ static void fill_floats(float *values, size_t count, float value)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        values[i] = value;
    }
}

/* ---- a group and its buffers ---- */

typedef struct layer {
    int tokens;
    int capacity; /* rows received, at most */
    weft_ep *ep;
    weft_ep_route *route;
    __nv_bfloat16 *in;
    __nv_bfloat16 *out;
    __nv_bfloat16 *received; /* in the device heap */
    __nv_bfloat16 *answers; /* as well */
    __nv_bfloat16 *matrix;
    int *ids[SETS];
    int *copies[SETS];
    tally *seen;
    unsigned long long steps; /* enqueued */
} layer;

static weft_ep_rows rows_of(__nv_bfloat16 *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_BF16;
    rows.hidden = HIDDEN;
    return rows;
}

static void draw_choices(layer *of, int set)
{
    int *ids = (int *)malloc(sizeof(int) * (size_t)of->tokens * TOPK);
    int *copies = (int *)calloc((size_t)of->tokens, sizeof(int));
    for (int token = 0; token < of->tokens; token++) {
        unsigned seen = 0;
        for (int k = 0; k < TOPK; k++) {
            const int id = rand() % (ranks * EXPERTS_A_RANK);
            ids[token * TOPK + k] = id;
            seen |= 1u << (id / EXPERTS_A_RANK);
        }
        copies[token] = __builtin_popcount(seen);
    }
    CUDA(cudaMalloc(&of->ids[set], sizeof(int) * (size_t)of->tokens * TOPK));
    CUDA(cudaMalloc(&of->copies[set], sizeof(int) * (size_t)of->tokens));
    CUDA(cudaMemcpy(of->ids[set], ids, sizeof(int) * (size_t)of->tokens * TOPK, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(of->copies[set], copies, sizeof(int) * (size_t)of->tokens, cudaMemcpyHostToDevice));
    free(ids);
    free(copies);
}

static void open_layer(layer *of, int tokens, weft_ep_layout layout, int sms)
{
    memset(of, 0, sizeof *of);
    of->tokens = tokens;
    of->capacity = ranks * tokens;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.on_device = 1;
    config.experts = ranks * EXPERTS_A_RANK;
    config.tokens_max = tokens;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(__nv_bfloat16);
    config.slot_tokens_max = layout == WEFT_EP_SLOTS_SOURCE ? tokens : 0;
    WEFT(weft_ep_create(weft_team_world(world), &config, &of->ep));
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = TOPK;
    plan.layout = layout;
    plan.sms = sms;
    WEFT(weft_ep_route_create(of->ep, &plan, NULL, &of->route));
    const size_t row = HIDDEN * sizeof(__nv_bfloat16);
    void *block;
    WEFT(weft_device_malloc(world, (size_t)of->capacity * row, &block));
    of->received = (__nv_bfloat16 *)block;
    WEFT(weft_device_malloc(world, (size_t)of->capacity * row, &block));
    of->answers = (__nv_bfloat16 *)block;
    CUDA(cudaMalloc(&of->in, (size_t)tokens * row));
    CUDA(cudaMalloc(&of->out, (size_t)tokens * row));
    CUDA(cudaMalloc(&of->matrix, HIDDEN * row));
    CUDA(cudaMalloc(&of->seen, sizeof *of->seen));
    CUDA(cudaMemset(of->seen, 0, sizeof *of->seen));
    fill_diagonal<<<64, 256>>>(of->matrix, HIDDEN);
    srand(1 + (unsigned)me);
    for (int set = 0; set < SETS; set++) {
        draw_choices(of, set);
    }
    CUDA(cudaDeviceSynchronize());
}

static void close_layer(layer *of)
{
    CUDA(cudaDeviceSynchronize());
    WEFT(weft_ep_route_destroy(of->route));
    WEFT(weft_ep_destroy(of->ep));
    WEFT(weft_device_free(world, of->answers));
    WEFT(weft_device_free(world, of->received));
    for (int set = 0; set < SETS; set++) {
        CUDA(cudaFree(of->ids[set]));
        CUDA(cudaFree(of->copies[set]));
    }
    CUDA(cudaFree(of->in));
    CUDA(cudaFree(of->out));
    CUDA(cudaFree(of->matrix));
    CUDA(cudaFree(of->seen));
}

/* A step: tokens, dispatch, product, combine, comparison. */
static void enqueue_step(layer *of, int set, int round, cudaStream_t stream)
{
    weft_stream *queue = (weft_stream *)stream;
    fill_rows<<<8, 256, 0, stream>>>(of->in, of->tokens, me, round);
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = of->tokens;
    choices.ids = of->ids[set];
    WEFT(weft_ep_route_choose(of->route, &choices));
    const weft_ep_rows in = rows_of(of->in);
    const weft_ep_rows answers = rows_of(of->answers);
    const weft_ep_rows out = rows_of(of->out);
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_of(of->received);
    received.rows_capacity = (size_t)of->capacity;
    WEFT(weft_ep_dispatch(of->route, &in, &received, queue));
    enqueue_product(of->received, of->matrix, of->answers, of->capacity, HIDDEN, stream);
    CUDA(cudaMemsetAsync(of->out, 0xff, (size_t)of->tokens * HIDDEN * sizeof(__nv_bfloat16), stream));
    WEFT(weft_ep_combine(of->route, &answers, &out, 0, queue));
    check_rows<<<8, 256, 0, stream>>>(of->out, of->copies[set], of->tokens, me, round, of->seen);
    of->steps++;
}

/* Whether a step was not made, or something in one is wrong, or in what was added up beside. */
static int is_wrong(const layer *of, const char *what)
{
    tally seen;
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(&seen, of->seen, sizeof seen, cudaMemcpyDeviceToHost));
    if (seen.wrong != 0 || seen.steps != of->steps) {
        fprintf(stderr, "rank %d: %s: %llu elements are wrong after %llu of %llu steps\n", me, what, seen.wrong,
                seen.steps, of->steps);
    }
    return seen.wrong != 0 || seen.steps != of->steps;
}

/* ---- all_reduce beside ---- */

typedef struct reduction {
    const nccl *library;
    size_t count;
    float *from;
    float *to;
    cudaStream_t stream;
} reduction;

static void open_reduction(reduction *of, const nccl *library, size_t count)
{
    of->library = library;
    of->count = count;
    CUDA(cudaMalloc(&of->from, count * sizeof(float)));
    CUDA(cudaMalloc(&of->to, count * sizeof(float)));
    CUDA(cudaStreamCreateWithFlags(&of->stream, cudaStreamNonBlocking));
    fill_floats<<<64, 256>>>(of->from, count, (float)(me + 1));
    CUDA(cudaDeviceSynchronize());
}

static void enqueue_reduction(const reduction *of, unsigned long long *wrong)
{
    CUDA(cudaMemsetAsync(of->to, 0xff, of->count * sizeof(float), of->stream));
    NCCL(of->library->all_reduce(of->from, of->to, of->count, NCCL_FLOAT32, NCCL_SUM, of->library->comm, of->stream));
    check_sum<<<8, 256, 0, of->stream>>>(of->to, of->count, (float)(ranks * (ranks + 1) / 2), wrong);
}

static void close_reduction(reduction *of)
{
    CUDA(cudaStreamDestroy(of->stream));
    CUDA(cudaFree(of->from));
    CUDA(cudaFree(of->to));
}

/* ---- in opposite orders ---- */

static int in_opposite_orders(const nccl *library, int tokens, weft_ep_layout layout, size_t count, int rounds)
{
    layer of;
    reduction beside;
    cudaStream_t stream;
    char what[96];
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    open_layer(&of, tokens, layout, 0);
    open_reduction(&beside, library, count);
    snprintf(what, sizeof what, "layout %d, %d tokens, all_reduce of %zu bytes", layout, tokens, count * sizeof(float));
    for (int round = 0; round < rounds; round++) {
        if (round % 4 == 0) {
            CUDA(cudaDeviceSynchronize()); /* both find an idle GPU */
        }
        if ((me + round / 2) % 2 == 0) {
            enqueue_step(&of, round % SETS, round, stream);
            enqueue_reduction(&beside, &of.seen->wrong);
        } else {
            enqueue_reduction(&beside, &of.seen->wrong);
            enqueue_step(&of, round % SETS, round, stream);
        }
        if (round % IN_FLIGHT == 0 && is_wrong(&of, what)) {
            return 1;
        }
    }
    const int failed = is_wrong(&of, what);
    close_reduction(&beside);
    close_layer(&of);
    CUDA(cudaStreamDestroy(stream));
    if (me == 0) {
        printf("%s: %d rounds in opposite orders\n", what, rounds);
        fflush(stdout);
    }
    return failed;
}

/* ---- graphs ---- */

/* A graph of each set of choices, which take turns. */
static int in_graphs(const nccl *library, int tokens, int replays)
{
    layer of;
    reduction beside;
    cudaStream_t stream;
    cudaGraphExec_t step_of[SETS];
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    open_layer(&of, tokens, WEFT_EP_RANK_MAJOR, 0);
    open_reduction(&beside, library, 65536);
    enqueue_step(&of, 0, 0, stream); /* what a first call loads */
    CUDA(cudaDeviceSynchronize());
    for (int set = 0; set < SETS; set++) {
        cudaGraph_t graph;
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        enqueue_step(&of, set, set, stream);
        CUDA(cudaStreamEndCapture(stream, &graph));
        CUDA(cudaGraphInstantiate(&step_of[set], graph, 0));
        CUDA(cudaGraphUpload(step_of[set], stream));
        CUDA(cudaGraphDestroy(graph));
    }
    CUDA(cudaDeviceSynchronize());
    of.steps = 1; /* the captured ones were not made */
    int failed = 0;
    for (int replay = 0; replay < replays && !failed; replay++) {
        const int is_first = (me + replay / 2) % 2 == 0;
        if (!is_first) {
            enqueue_reduction(&beside, &of.seen->wrong);
        }
        CUDA(cudaGraphLaunch(step_of[replay % SETS], stream));
        of.steps++;
        if (is_first) {
            enqueue_reduction(&beside, &of.seen->wrong);
        }
        failed = replay % IN_FLIGHT == 0 && is_wrong(&of, "a graph");
    }
    failed = failed || is_wrong(&of, "a graph");
    for (int set = 0; set < SETS; set++) {
        CUDA(cudaGraphExecDestroy(step_of[set]));
    }
    close_reduction(&beside);
    close_layer(&of);
    CUDA(cudaStreamDestroy(stream));
    if (me == 0) {
        printf("graphs of a step of %d tokens: %d replays beside all_reduces\n", tokens, replays);
        fflush(stdout);
    }
    return failed;
}

/* ---- a product ---- */

static int by_size(const void *a, const void *b)
{
    const float left = *(const float *)a;
    const float right = *(const float *)b;
    return left < right ? -1 : left > right;
}

/* Milliseconds of a product, while `steps` steps run on another stream. */
static float time_product(layer *of, int steps, __nv_bfloat16 *from, __nv_bfloat16 *matrix, __nv_bfloat16 *to,
                          cudaStream_t stream, cudaStream_t other)
{
    float times[PRODUCTS];
    cudaEvent_t begin;
    cudaEvent_t end;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    for (int i = 0; i < PRODUCTS; i++) {
        for (int step = 0; step < steps; step++) {
            weft_ep_rows in = rows_of(of->in);
            const weft_ep_rows out = rows_of(of->out);
            weft_ep_received received = WEFT_EP_RECEIVED_INIT;
            received.rows = rows_of(of->received);
            received.rows_capacity = (size_t)of->capacity;
            WEFT(weft_ep_dispatch(of->route, &in, &received, (weft_stream *)stream));
            WEFT(weft_ep_combine(of->route, &received.rows, &out, 0, (weft_stream *)stream));
        }
        CUDA(cudaEventRecord(begin, other));
        enqueue_product(from, matrix, to, PRODUCT, PRODUCT, other);
        CUDA(cudaEventRecord(end, other));
        CUDA(cudaEventSynchronize(end));
        if (steps > 0 && cudaStreamQuery(stream) == cudaSuccess) {
            fail(__LINE__, "the steps", "ended before the product");
        }
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaEventElapsedTime(&times[i], begin, end));
    }
    qsort(times, PRODUCTS, sizeof times[0], by_size);
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return times[PRODUCTS / 2];
}

/* At most 5 % more than the multiprocessors that the calls take. */
static int beside_a_product(int sms)
{
    layer of;
    cudaStream_t stream;
    cudaStream_t other;
    __nv_bfloat16 *matrix;
    __nv_bfloat16 *from;
    __nv_bfloat16 *to;
    int all;
    CUDA(cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, 0));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&matrix, (size_t)PRODUCT * PRODUCT * sizeof *matrix));
    CUDA(cudaMalloc(&from, (size_t)PRODUCT * PRODUCT * sizeof *from));
    CUDA(cudaMalloc(&to, (size_t)PRODUCT * PRODUCT * sizeof *to));
    fill_diagonal<<<64, 256>>>(matrix, PRODUCT);
    CUDA(cudaMemset(from, 0, (size_t)PRODUCT * PRODUCT * sizeof *from));
    open_layer(&of, 4096, WEFT_EP_RANK_MAJOR, sms);
    enqueue_step(&of, 0, 0, stream); /* routes */
    CUDA(cudaDeviceSynchronize());
    const float alone = time_product(&of, 0, from, matrix, to, stream, other);
    WEFT(weft_barrier(world));
    const float beside = time_product(&of, STEPS, from, matrix, to, stream, other);
    const float allowed = 1.05f * (float)all / (float)(all - sms);
    const int failed = beside > allowed * alone;
    printf("rank %d: a product takes %.3f ms alone, %.3f beside calls of %d multiprocessors: x %.3f (allowed %.3f)\n",
           me, alone, beside, sms, beside / alone, allowed);
    fflush(stdout);
    CUDA(cudaDeviceSynchronize());
    close_layer(&of);
    CUDA(cudaFree(matrix));
    CUDA(cudaFree(from));
    CUDA(cudaFree(to));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(other));
    return failed;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    const int replays = argc > 2 ? atoi(argv[2]) : 10000;
    int gpus = 0;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch must not wait for running kernels */
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.deadline_ns = DEADLINE_NS;
    WEFT(weft_world_create(&config, &world));
    me = weft_world_pe(world);
    ranks = weft_world_pes(world);
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < ranks) {
        printf("%d ranks and %d GPUs\n", ranks, gpus);
        return 77;
    }
    CUDA(cudaSetDevice(me));
    CUDA(cudaFree(NULL));
    WEFT(weft_device_attach(world, NULL));
    nccl library;
    open_nccl(&library);
    int failed = 0;
    for (int i = 0; i < 8 && !failed; i++) {
        const int tokens[4] = {8, 128, 1024, 4096};
        const weft_ep_layout layout = i >= 4 || tokens[i] > 128 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE;
        failed = in_opposite_orders(&library, tokens[i % 4], layout, i % 2 == 0 ? 1 << 20 : 1 << 10, rounds / 8);
    }
    failed = failed || in_graphs(&library, 64, replays);
    const int sms[3] = {8, 24, 64};
    for (int i = 0; i < 3 && !failed; i++) {
        failed = beside_a_product(sms[i]);
    }
    NCCL(library.destroy(library.comm));
    WEFT(weft_barrier(world));
    WEFT(weft_world_destroy(world));
    if (me == 0) {
        printf("%s\n", failed ? "FAILED" : "all right");
    }
    return failed;
}
