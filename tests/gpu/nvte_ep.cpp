/* Goal: a layer's steps by TransformerEngine's calls of expert parallelism come out right on GPUs, forward and
 * backward, prepared apart and on the way, with and without alignment, in a graph, and in groups made again of another
 * size; and how long the calls take.
 *
 * Method: the program is compiled against TransformerEngine's own headers (which are C++) and linked to its library, so
 * that the one binary runs three ways: its backend loads weft's libnccl_ep.so or NVIDIA's, or libweft_nvte_ep.so is
 * preloaded, which has the calls themselves. scripts/gpu_nvte_ep.sh does all three. A process a GPU; rows are bf16, and
 * begin with what they are of; each has to come once to each of its experts, and sums to be right but for what rounding
 * partial ones to bf16 makes. Usage: nvte_ep RANKS [ITERATIONS]. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <transformer_engine/ep.h>
#include <unistd.h>

#define RANKS_MOST 8
#define BF16_BYTES 2

typedef struct setup {
    const char *name;
    int tokens;
    int hidden;
    int experts;
    int topk;
    size_t alignment;
    int in_one; /* prepare_and_dispatch */
    int in_graph;
} setup;

/* What the processes share. */
typedef struct meeting {
    pthread_barrier_t barrier;
    ncclUniqueId id;
    double times[RANKS_MOST][5];
} meeting;

static meeting *met;
static int rank;
static int ranks;
static int failures;
static ncclComm_t comm;
static cudaStream_t stream;
static const NVTECommWindow none = {};

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            (void)fprintf(stderr, "rank %d, line %d: " #call ": %s\n", rank, __LINE__, cudaGetErrorString(error_));    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define NCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result_ = (call);                                                                                 \
        if (result_ != ncclSuccess) {                                                                                  \
            (void)fprintf(stderr, "rank %d, line %d: " #call ": %s\n", rank, __LINE__, ncclGetErrorString(result_));   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void fail(int line, const setup *s, const char *what)
{
    if (failures++ < 5) {
        (void)fprintf(stderr, "rank %d, line %d, %s: %s\n", rank, line, s->name, what);
    }
}

static void meet(void)
{
    (void)pthread_barrier_wait(&met->barrier);
}

static uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float value_of(uint16_t bf16)
{
    const uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- tensors ---- */

typedef struct array {
    NVTETensor tensor;
    void *device;
    void *host;
    size_t bytes;
} array;

/* Of `columns` columns; 0: of one dimension. Poisoned. */
static void make(array *of, NVTEDType type, size_t element, size_t rows, size_t columns)
{
    const size_t sizes[2] = {rows, columns};
    of->bytes = rows * (columns != 0 ? columns : 1) * element;
    CUDA(cudaMalloc(&of->device, of->bytes));
    CUDA(cudaMemset(of->device, 0x5a, of->bytes));
    of->host = calloc(1, of->bytes);
    of->tensor = nvte_create_tensor(NVTE_DELAYED_TENSOR_SCALING);
    NVTEBasicTensor basic = {of->device, type, nvte_make_shape(sizes, columns != 0 ? 2 : 1)};
    nvte_set_tensor_param_v2(of->tensor, kNVTERowwiseData, &basic, sizeof basic);
}

static void release(array *of)
{
    nvte_destroy_tensor(of->tensor);
    CUDA(cudaFree(of->device));
    free(of->host);
}

static void up(array *of)
{
    CUDA(cudaMemcpyAsync(of->device, of->host, of->bytes, cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void down(array *of)
{
    CUDA(cudaMemcpyAsync(of->host, of->device, of->bytes, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
}

/* ---- a layer ---- */

typedef struct layer {
    setup s;
    size_t rows; /* of the receive buffer */
    NVTEEpLayerConfig config;
    array memory, ids, weights, x, y, received, received_weights, counts, total, grad_weights;
} layer;

static int local_of(const setup *s)
{
    return s->experts / ranks;
}

static void open_layer(layer *l, const setup *s)
{
    NVTEEpGroupConfig group = {};
    const size_t tokens = (size_t)s->tokens;
    *l = layer();
    group.struct_size = sizeof group;
    l->s = *s;
    l->rows = (size_t)ranks * tokens * (size_t)s->topk + (size_t)local_of(s) * s->alignment;
    group.ep_size = ranks;
    group.num_experts = s->experts;
    group.max_tokens_per_rank = s->tokens;
    group.max_recv_tokens_per_rank = (int)l->rows;
    group.hidden_dim = s->hidden;
    group.max_token_dtype = kNVTEBFloat16;
    group.num_topk = s->topk;
    nvte_ep_initialize(comm, &group);
    l->config.struct_size = sizeof l->config;
    l->config.top_k = s->topk;
    l->config.dispatch_output_per_expert_alignment = s->alignment;
    make(&l->memory, kNVTEByte, 1, nvte_ep_handle_mem_size(&l->config), 0);
    make(&l->ids, kNVTEInt64, 8, tokens, (size_t)s->topk);
    make(&l->weights, kNVTEFloat32, 4, tokens, (size_t)s->topk);
    make(&l->grad_weights, kNVTEFloat32, 4, tokens, (size_t)s->topk);
    make(&l->x, kNVTEBFloat16, BF16_BYTES, tokens, (size_t)s->hidden);
    make(&l->y, kNVTEBFloat16, BF16_BYTES, tokens, (size_t)s->hidden);
    make(&l->received, kNVTEBFloat16, BF16_BYTES, l->rows, (size_t)s->hidden);
    make(&l->received_weights, kNVTEFloat32, 4, l->rows, 0);
    make(&l->counts, kNVTEInt64, 8, (size_t)local_of(s), 0);
    make(&l->total, kNVTEInt64, 8, 1, 0);
}

static void close_layer(layer *l)
{
    array *const all[] = {&l->memory,           &l->ids,    &l->weights, &l->x,           &l->y, &l->received,
                          &l->received_weights, &l->counts, &l->total,   &l->grad_weights};
    CUDA(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        release(all[i]);
    }
    nvte_ep_shutdown();
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The k-th choice of a rank's token: distinct ones, whose first and distance are drawn. */
static int64_t choice_of(const setup *s, unsigned seed, int source, int t, int k)
{
    const uint64_t draw = mix(seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)source * 1000003 + (uint64_t)t);
    const int step = s->experts / s->topk;
    return (int64_t)((draw + (uint64_t)k * (uint64_t)step) % (uint64_t)s->experts);
}

/* A row begins with what it is of. */
enum { OF_LOW, OF_HIGH, OF_SOURCE, OF_WORDS };

static float x_of(int source, int t, int h)
{
    switch (h) {
    case OF_LOW:
        return (float)(t % 128);
    case OF_HIGH:
        return (float)(t / 128);
    case OF_SOURCE:
        return (float)source;
    default:
        return (float)((source * 5 + t * 3 + h) % 8);
    }
}

static float weight_of(int k)
{
    return k % 2 == 0 ? 0.5f : 0.25f;
}

static void choose(layer *l, unsigned seed)
{
    for (int t = 0; t < l->s.tokens; t++) {
        for (int k = 0; k < l->s.topk; k++) {
            ((int64_t *)l->ids.host)[t * l->s.topk + k] = choice_of(&l->s, seed, rank, t, k);
            ((float *)l->weights.host)[t * l->s.topk + k] = weight_of(k);
        }
        for (int h = 0; h < l->s.hidden; h++) {
            ((uint16_t *)l->x.host)[(size_t)t * (size_t)l->s.hidden + (size_t)h] = bf16_of(x_of(rank, t, h));
        }
    }
    up(&l->ids);
    up(&l->weights);
    up(&l->x);
}

/* ---- the calls ---- */

static void prepare(layer *l)
{
    nvte_ep_prepare(l->memory.tensor, l->ids.tensor, l->counts.tensor, l->total.tensor, &l->config, stream);
}

static void dispatch(layer *l)
{
    nvte_ep_dispatch(l->memory.tensor, l->ids.tensor, l->x.tensor, none, l->weights.tensor, none, l->received.tensor,
                     none, l->received_weights.tensor, none, stream);
}

static void prepare_and_dispatch(layer *l)
{
    nvte_ep_prepare_and_dispatch(l->memory.tensor, l->ids.tensor, l->x.tensor, none, l->weights.tensor, none,
                                 l->received.tensor, none, l->received_weights.tensor, none, l->counts.tensor,
                                 l->total.tensor, &l->config, stream);
}

static void combine(layer *l)
{
    nvte_ep_combine(l->memory.tensor, l->received.tensor, none, l->y.tensor, stream);
}

static void combine_bwd(layer *l)
{
    nvte_ep_combine_bwd(l->memory.tensor, l->x.tensor, none, l->received.tensor, none, stream);
}

static void dispatch_bwd(layer *l)
{
    nvte_ep_dispatch_bwd(l->memory.tensor, l->received.tensor, none, l->received_weights.tensor, none, l->y.tensor,
                         l->grad_weights.tensor, stream);
}

/* ---- what they come to ---- */

/* The k of token t's choice of that expert, or -1. */
static int k_of(const setup *s, unsigned seed, int source, int t, int expert)
{
    for (int k = 0; k < s->topk; k++) {
        if (choice_of(s, seed, source, t, k) == expert) {
            return k;
        }
    }
    return -1;
}

static int64_t rows_of_expert(const setup *s, unsigned seed, int expert)
{
    int64_t rows = 0;
    for (int i = 0; i < ranks * s->tokens; i++) {
        rows += k_of(s, seed, i / s->tokens, i % s->tokens, expert) >= 0;
    }
    return rows;
}

/* Check a row of an expert, which becomes what the expert makes of it: times the weight, if there is one, and twice
 * that of an odd local expert. `seen` [ranks * tokens]: of which tokens the expert has had rows. */
static void check_row(const layer *l, unsigned seed, int expert, uint16_t *row, const float *weight, char *seen)
{
    const setup *s = &l->s;
    const int source = (int)value_of(row[OF_SOURCE]);
    const int t = (int)(value_of(row[OF_HIGH]) * 128 + value_of(row[OF_LOW]));
    const int is = source >= 0 && source < ranks && t >= 0 && t < s->tokens;
    const int k = is ? k_of(s, seed, source, t, expert) : -1;
    if (k < 0 || seen[source * s->tokens + t]++ || (weight != NULL && *weight != weight_of(k))) {
        fail(__LINE__, s, k < 0 ? "a row came that was not sent here" : "a row came twice, or its weight is another");
        return;
    }
    int wrong = 0;
    for (int h = 0; h < s->hidden; h++) {
        wrong |= value_of(row[h]) != x_of(source, t, h);
        row[h] = bf16_of(value_of(row[h]) * (weight != NULL ? *weight * (float)(1 + expert % local_of(s) % 2) : 1));
    }
    if (wrong) {
        fail(__LINE__, s, "a received row is another");
    }
}

/* Rows by expert, each expert's in any order, then what makes their number a multiple of the alignment. */
static void check_received(layer *l, unsigned seed, int with_weights)
{
    const setup *s = &l->s;
    const size_t alignment = s->alignment > 1 ? s->alignment : 1;
    int64_t begin = 0;
    down(&l->counts);
    down(&l->total);
    down(&l->received);
    down(&l->received_weights);
    for (int e = 0; e < local_of(s); e++) {
        const int expert = rank * local_of(s) + e;
        const int64_t rows = rows_of_expert(s, seed, expert);
        char *seen = (char *)calloc((size_t)ranks, (size_t)s->tokens);
        for (int64_t row = begin; row < begin + rows; row++) {
            check_row(l, seed, expert, (uint16_t *)l->received.host + (size_t)row * (size_t)s->hidden,
                      with_weights ? (const float *)l->received_weights.host + row : NULL, seen);
        }
        free(seen);
        const int64_t padded = (rows + (int64_t)alignment - 1) / (int64_t)alignment * (int64_t)alignment;
        if (((const int64_t *)l->counts.host)[e] != padded) {
            fail(__LINE__, s, "an expert has another count");
        }
        begin += padded;
    }
    if (((const int64_t *)l->total.host)[0] != begin) {
        fail(__LINE__, s, "the total is another");
    }
    up(&l->received);
}

static void check_sums(layer *l, unsigned seed, int is_backward)
{
    const setup *s = &l->s;
    down(&l->y);
    for (int t = 0; t < s->tokens; t++) {
        float factor = 0;
        int wrong = 0;
        for (int k = 0; k < s->topk; k++) {
            const int parity = (int)(choice_of(s, seed, rank, t, k) % local_of(s) % 2);
            factor += is_backward ? 1 : weight_of(k) * (float)(1 + parity);
        }
        for (int h = 0; h < s->hidden; h++) {
            const float sum = value_of(((uint16_t *)l->y.host)[(size_t)t * (size_t)s->hidden + (size_t)h]);
            const float wanted = factor * x_of(rank, t, h);
            const float error = sum > wanted ? sum - wanted : wanted - sum;
            wrong |= !(error <= wanted / 64); /* partial sums may be rounded */
        }
        if (wrong) {
            fail(__LINE__, s, "a sum is another");
        }
    }
}

static void check_weights_back(layer *l)
{
    down(&l->grad_weights);
    for (int i = 0; i < l->s.tokens * l->s.topk; i++) {
        if (((float *)l->grad_weights.host)[i] != weight_of(i % l->s.topk)) {
            fail(__LINE__, &l->s, "a weight came back as another");
        }
    }
}

static void route_and_dispatch(layer *l)
{
    if (l->s.in_one) {
        prepare_and_dispatch(l);
    } else {
        prepare(l);
        dispatch(l);
    }
}

static void forward(layer *l, cudaGraphExec_t graph)
{
    if (graph != NULL) {
        CUDA(cudaGraphLaunch(graph, stream));
    } else {
        route_and_dispatch(l);
    }
    CUDA(cudaStreamSynchronize(stream));
}

static cudaGraphExec_t capture(layer *l)
{
    cudaGraph_t graph;
    cudaGraphExec_t made;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    route_and_dispatch(l);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&made, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return made;
}

static void prove(const setup *s)
{
    layer l;
    const int before = failures;
    cudaGraphExec_t graph = NULL;
    open_layer(&l, s);
    for (unsigned seed = 0; seed < 3; seed++) {
        choose(&l, seed);
        if (s->in_graph && seed == 1) {
            graph = capture(&l);
        }
        forward(&l, graph);
        check_received(&l, seed, 1);
        combine(&l);
        check_sums(&l, seed, 0);
        combine_bwd(&l);
        CUDA(cudaStreamSynchronize(stream));
        check_received(&l, seed, 0);
        dispatch_bwd(&l);
        check_sums(&l, seed, 1);
        check_weights_back(&l);
    }
    if (graph != NULL) {
        CUDA(cudaGraphExecDestroy(graph));
    }
    close_layer(&l);
    meet();
    if (rank == 0) {
        (void)printf("%-36s %s\n", s->name, failures == before ? "right" : "WRONG");
        (void)fflush(stdout);
    }
}

static void measure(const setup *s, int iterations)
{
    void (*const calls[5])(layer *) = {prepare, dispatch, combine, prepare_and_dispatch, dispatch_bwd};
    layer l;
    cudaEvent_t events[2];
    CUDA(cudaEventCreate(&events[0]));
    CUDA(cudaEventCreate(&events[1]));
    open_layer(&l, s);
    choose(&l, 1);
    memset(met->times[rank], 0, sizeof met->times[rank]);
    for (int i = -10; i < iterations; i++) {
        for (int c = 0; c < 5; c++) {
            float ms;
            meet();
            CUDA(cudaEventRecord(events[0], stream));
            calls[c](&l);
            CUDA(cudaEventRecord(events[1], stream));
            CUDA(cudaStreamSynchronize(stream));
            CUDA(cudaEventElapsedTime(&ms, events[0], events[1]));
            met->times[rank][c] += i >= 0 ? (double)ms * 1000 / iterations : 0;
        }
    }
    close_layer(&l);
    meet();
    if (rank == 0) {
        double mean[5] = {0};
        for (int i = 0; i < ranks * 5; i++) {
            mean[i % 5] += met->times[i / 5][i % 5] / ranks;
        }
        (void)printf("%-36s prepare %6.1f dispatch %6.1f combine %6.1f in one %6.1f dispatch_bwd %6.1f us\n", s->name,
                     mean[0], mean[1], mean[2], mean[3], mean[4]);
        (void)fflush(stdout);
    }
}

static int run(int iterations)
{
    const setup plain = {"plain", 40, 512, 32, 4, 0, 0, 0};
    const setup large = {"T=4096 H=7168 E=256 K=8", 4096, 7168, 256, 8, 0, 0, 0};
    setup s = plain;
    CUDA(cudaSetDevice(rank));
    CUDA(cudaStreamCreate(&stream));
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&met->id));
    }
    meet();
    NCCL(ncclCommInitRank(&comm, ranks, met->id, rank));
    prove(&s);
    s.name = "aligned to 16";
    s.alignment = 16;
    prove(&s);
    s.name = "aligned, in one call";
    s.in_one = 1;
    prove(&s);
    s.name = "in one call, in a graph, larger";
    s.in_graph = 1;
    s.alignment = 0;
    s.tokens = 128;
    s.hidden = 1024;
    prove(&s);
    if (iterations > 0) {
        measure(&large, iterations);
    }
    NCCL(ncclCommDestroy(comm));
    return failures != 0;
}

int main(int argc, char **argv)
{
    pthread_barrierattr_t shared;
    int failed = 0;
    const int iterations = argc > 2 ? atoi(argv[2]) : 0;
    ranks = argc > 1 ? atoi(argv[1]) : 0;
    if (ranks < 1 || ranks > RANKS_MOST) {
        (void)fprintf(stderr, "usage: nvte_ep RANKS [ITERATIONS], RANKS 1 .. %d and as many GPUs\n", RANKS_MOST);
        return 2;
    }
    met = (meeting *)mmap(NULL, sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (met == MAP_FAILED || pthread_barrierattr_init(&shared) != 0 ||
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&met->barrier, &shared, (unsigned)ranks) != 0) {
        return 1;
    }
    for (rank = 0; rank < ranks; rank++) {
        if (fork() == 0) {
            (void)alarm(200); /* a rank that waits for one that failed */
            exit(run(iterations));
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
