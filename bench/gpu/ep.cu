/* Expert parallelism on GPUs: dispatch and combine, by DESIGN's method: on each rank a graph of {flush the caches, a flag
 * barrier, event, the call, event}; a time is the slowest rank's, the median of the repetitions. And in the same run the
 * floor: the bytes of the rows (a token once to each distinct other rank) over the rate at which all GPUs together
 * bulk-store to each other.
 *
 * One process a GPU, by weftrun. Options: see options_of. Prints JSON lines. See README.md beside this. */
#include <getopt.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "bench/gpu/part/figures.h"
#include "weft.h"
#include "weft_device.cuh"
#include "weft_ep.h"

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        weft_status ok_status = (call);                                                                                \
        if (ok_status != WEFT_OK) {                                                                                    \
            fprintf(stderr, "%s: %s: %s\n", #call, weft_status_name(ok_status), weft_last_error());                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define FLUSH_BYTES ((size_t)192 << 20)
#define STRIPE ((size_t)256 << 20) /* what each GPU stores to each other one when the rate is measured */

typedef struct options {
    int experts = 256;
    int topk = 8;
    int hidden = 7168;
    int repeats = 50;
    int skewed = 0;
    weft_ep_layout layout = WEFT_EP_RANK_MAJOR;
    std::vector<int> tokens = {4096};
    std::vector<int> sms = {0};
    std::string calls =
        "fdc"; /* f: fresh dispatch, d: cached, c: combine, p: plain buffers, u: update, s: fresh and combine; m alone: set-up and memory */
    weft_ep_dtype dtype = WEFT_EP_BF16; /* received */
    int quantises = 0; /* from bf16 */
} options;

static std::vector<int> numbers_of(const char *text)
{
    std::vector<int> all;
    for (char *end; *text != 0; text = *end == ',' ? end + 1 : end) {
        all.push_back((int)strtol(text, &end, 10));
        if (end == text) {
            break;
        }
    }
    return all;
}

static const char *const layouts[] = {"rank-major", "expert-major", "slots", "slots by expert"}; /* as the enum */

static weft_ep_layout layout_of(const char *name)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, layouts[i]) == 0) {
            return (weft_ep_layout)i;
        }
    }
    fprintf(stderr, "no layout \"%s\": give rank-major, expert-major, slots or \"slots by expert\"\n", name);
    exit(2);
}

static options options_of(int argc, char **argv)
{
    options of;
    int option;
    while ((option = getopt(argc, argv, "t:s:c:e:k:h:n:y:x8q")) != -1) {
        switch (option) {
        case 't':
            of.tokens = numbers_of(optarg);
            break;
        case 's':
            of.sms = numbers_of(optarg);
            break;
        case 'c':
            of.calls = optarg;
            break;
        case 'e':
            of.experts = atoi(optarg);
            break;
        case 'k':
            of.topk = atoi(optarg);
            break;
        case 'h':
            of.hidden = atoi(optarg);
            break;
        case 'n':
            of.repeats = atoi(optarg);
            break;
        case '8':
            of.dtype = WEFT_EP_FP8_E4M3;
            break;
        case 'q':
            of.dtype = WEFT_EP_FP8_E4M3;
            of.quantises = 1;
            break;
        case 'y':
            of.layout = layout_of(optarg);
            break;
        case 'x':
            of.skewed = 1;
            break;
        default:
            fprintf(stderr, "bench_ep [-t T,T] [-s SMS,SMS] [-c fdcpus] [-e E] [-k K] [-h H] [-n REPEATS] [-x] [-y "
                            "LAYOUT] [-8 | -q]\n");
            exit(2);
        }
    }
    return of;
}

typedef struct bench {
    options with;
    weft_world *world;
    int pe;
    int pes;
    cudaStream_t stream;
    weft_dev_team team;
    unsigned char *flush;
    unsigned char *stripe; /* symmetric */
    double *host_words; /* symmetric, on the host */
} bench;

static __global__ void barrier_kernel(const __grid_constant__ weft_dev_team team)
{
    (void)weft_dev_barrier(weft_thread(), team);
}

/* All blocks of all GPUs store to the other GPUs in turn, in pieces. */
static __global__ void store_all(const __grid_constant__ weft_dev dev, unsigned char *data, wefti_u64 bytes)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const wefti_u64 piece = 14336 * 16;
    wefti_u64 pieces = bytes / piece;
    for (wefti_u64 i = blockIdx.x; i < pieces * (wefti_u64)(dev.pes - 1); i += gridDim.x) {
        int pe = (int)((wefti_u64)dev.pe + 1 + i % (wefti_u64)(dev.pes - 1)) % dev.pes;
        wefti_u64 at = i / (wefti_u64)(dev.pes - 1) * piece;
        unsigned char *to = data + bytes * (wefti_u64)(1 + dev.pe) + at;
        (void)weft_dev_put_bulk(weft_warp(), dev, to, data + at, piece, pe, shared, 64 * 1024);
    }
}

static __global__ void empty_kernel()
{
}

static double max_of_all(const bench *all, double value)
{
    double largest = value;
    all->host_words[0] = value;
    OK(weft_barrier(all->world));
    for (int pe = 0; pe < all->pes; pe++) {
        double other;
        OK(weft_getmem(all->world, &other, all->host_words, sizeof other, pe));
        largest = other > largest ? other : largest;
    }
    OK(weft_barrier(all->world));
    return largest;
}

/* ---- timing ---- */

typedef struct timed {
    cudaEvent_t begin;
    cudaEvent_t end;
    cudaGraphExec_t graph;
} timed;

template <class Call> static timed capture(const bench *all, Call call)
{
    timed of;
    cudaGraph_t graph;
    GPU(cudaEventCreate(&of.begin));
    GPU(cudaEventCreate(&of.end));
    GPU(cudaStreamBeginCapture(all->stream, cudaStreamCaptureModeThreadLocal));
    GPU(cudaMemsetAsync(all->flush, 1, FLUSH_BYTES, all->stream));
    barrier_kernel<<<1, 32, 0, all->stream>>>(all->team);
    GPU(cudaEventRecordWithFlags(of.begin, all->stream, cudaEventRecordExternal));
    call();
    GPU(cudaEventRecordWithFlags(of.end, all->stream, cudaEventRecordExternal));
    GPU(cudaStreamEndCapture(all->stream, &graph));
    GPU(cudaGraphInstantiate(&of.graph, graph, 0));
    GPU(cudaGraphDestroy(graph));
    return of;
}

/* us, the slowest rank's, median. Every rank gets it. */
static double time_of(const bench *all, const timed &of)
{
    std::vector<double> times;
    for (int i = 0; i < all->with.repeats + 5; i++) {
        float ms = 0;
        GPU(cudaGraphLaunch(of.graph, all->stream));
        GPU(cudaStreamSynchronize(all->stream));
        GPU(cudaEventElapsedTime(&ms, of.begin, of.end));
        double us = max_of_all(all, ms * 1e3);
        if (i >= 5) {
            times.push_back(us);
        }
    }
    GPU(cudaGraphExecDestroy(of.graph));
    GPU(cudaEventDestroy(of.begin));
    GPU(cudaEventDestroy(of.end));
    int fault = weft_world_fault(all->world, NULL);
    if (fault != WEFT_OK) {
        fprintf(stderr, "fault %s\n", weft_status_name((weft_status)fault));
        exit(1);
    }
    return median_of(times);
}

/* GB/s out of each GPU when all store to all others. */
static double store_rate(const bench *all, int blocks)
{
    weft_dev dev = all->team.world;
    GPU(cudaFuncSetAttribute(store_all, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
    wefti_u64 bytes = STRIPE / (14336 * 16) * (14336 * 16);
    timed of = capture(all, [&] { store_all<<<blocks, 32, 64 * 1024, all->stream>>>(dev, all->stripe, bytes); });
    bench fewer = *all;
    fewer.with.repeats = 5;
    return (double)bytes * (all->pes - 1) / time_of(&fewer, of) * 1e-3;
}

/* ---- the layer ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Distinct experts for each token; skewed: expert e about as often as 1 / (1 + e). */
static std::vector<int32_t> choose(const bench *all, int tokens)
{
    const options &with = all->with;
    std::vector<int32_t> ids((size_t)tokens * (size_t)with.topk);
    uint64_t state = 1000u + (uint64_t)all->pe;
    for (int t = 0; t < tokens; t++) {
        int32_t *of_token = &ids[(size_t)t * (size_t)with.topk];
        for (int k = 0; k < with.topk; k++) {
            bool repeated = true;
            while (repeated) {
                uint64_t random = next_random(&state);
                double unit = (double)(random >> 11) * 0x1p-53;
                of_token[k] =
                    with.skewed ? (int32_t)(pow((double)with.experts + 1, unit) - 1) : (int32_t)(random % with.experts);
                repeated = of_token[k] >= with.experts;
                for (int j = 0; j < k; j++) {
                    repeated = repeated || of_token[j] == of_token[k];
                }
            }
        }
    }
    return ids;
}

/* The rows that leave this rank, its own not counted. */
static size_t rows_out(const bench *all, const std::vector<int32_t> &ids)
{
    size_t rows = 0;
    int topk = all->with.topk;
    int each = all->with.experts / all->pes;
    for (size_t t = 0; t < ids.size() / (size_t)topk; t++) {
        unsigned ranks = 0;
        for (int k = 0; k < topk; k++) {
            int rank = ids[t * (size_t)topk + (size_t)k] / each;
            ranks |= 1u << (rank < all->pes ? rank : all->pes - 1);
        }
        rows += (size_t)__builtin_popcount(ranks & ~(1u << all->pe));
    }
    return rows;
}

static void *device_memory(size_t bytes)
{
    void *memory;
    GPU(cudaMalloc(&memory, bytes));
    GPU(cudaMemset(memory, 0x3c, bytes));
    return memory;
}

static void bench_tokens(const bench *all, int tokens, const std::vector<double> &rates)
{
    const options &with = all->with;
    bool is_fp8 = with.dtype == WEFT_EP_FP8_E4M3;
    size_t row_bytes = (size_t)with.hidden * (is_fp8 ? 1 : 2);
    size_t scale_words = (size_t)(with.hidden + 127) / 128;
    size_t capacity = (size_t)all->pes * (size_t)tokens; /* the worst case */
    size_t topk = (size_t)with.topk;
    size_t local = (size_t)(with.experts + all->pes - 1) / (size_t)all->pes;
    capacity *= with.layout == WEFT_EP_EXPERT_MAJOR ? topk : with.layout == WEFT_EP_SLOTS_EXPERT ? local : 1;
    std::vector<int32_t> ids = choose(all, tokens);
    double out_bytes = max_of_all(all, (double)(rows_out(all, ids) * row_bytes));
    void *device_ids = device_memory(ids.size() * 4 + 16);
    float *weights = (float *)device_memory(ids.size() * 4 + 16);
    GPU(cudaMemcpy(device_ids, ids.data(), ids.size() * 4, cudaMemcpyHostToDevice));
    void *in = device_memory((size_t)tokens * row_bytes * (with.quantises ? 2 : 1));
    void *combined = device_memory((size_t)tokens * row_bytes);
    void *received;
    OK(weft_device_malloc(all->world, capacity * row_bytes, &received));
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows.dtype = with.dtype;
    out.rows.hidden = with.hidden;
    out.rows_capacity = capacity;
    size_t wide = with.layout == WEFT_EP_RANK_MAJOR || with.layout == WEFT_EP_SLOTS_SOURCE ? topk : 1;
    out.weights = (float *)device_memory(capacity * wide * 4);
    out.experts = (int32_t *)device_memory(capacity * wide * 4);
    out.source_rank = (int32_t *)device_memory(capacity * 4);
    out.source_token = (int32_t *)device_memory(capacity * 4);

    weft_ep *group;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = with.experts;
    config.tokens_max = tokens;
    config.topk_max = with.topk;
    config.row_bytes_max = row_bytes * (with.quantises ? 2 : 1);
    config.on_device = 1;
    OK(weft_ep_create(weft_team_world(all->world), &config, &group));
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = tokens;
    choices.ids = device_ids;
    choices.weights = weights;
    weft_ep_rows rows_in = WEFT_EP_ROWS_INIT;
    rows_in.dtype = with.quantises ? WEFT_EP_BF16 : with.dtype;
    rows_in.hidden = with.hidden;
    rows_in.data = in;
    void *scales = device_memory(((size_t)tokens + capacity) * scale_words * 4);
    if (is_fp8) {
        rows_in.scale_type = with.quantises ? WEFT_EP_SCALE_NONE : WEFT_EP_SCALE_F32;
        rows_in.scales = with.quantises ? NULL : scales;
        out.rows.scale_type = WEFT_EP_SCALE_F32;
        out.rows.scales = (float *)scales + (size_t)tokens * scale_words;
    }
    for (size_t s = 0; s < with.sms.size(); s++) {
        weft_ep_plan plan = WEFT_EP_PLAN_INIT;
        weft_ep_route *route;
        plan.topk = with.topk;
        plan.sms = with.sms[s];
        plan.layout = with.layout;
        OK(weft_ep_route_create(group, &plan, NULL, &route));
        weft_stream *stream = (weft_stream *)all->stream;
        OK(weft_ep_route_update(route, &choices, stream));
        weft_ep_host_counts counts;
        OK(weft_ep_route_query(route, stream, &counts));
        for (char call : with.calls) {
            out.rows.data = received;
            const char *name = "ep_dispatch";
            const char *how = "cached";
            timed of;
            if (call == 'f') {
                how = "fresh";
                of = capture(all, [&] {
                    OK(weft_ep_route_choose(route, &choices));
                    OK(weft_ep_dispatch(route, &rows_in, &out, stream));
                });
            } else if (call == 'd') {
                of = capture(all, [&] { OK(weft_ep_dispatch(route, &rows_in, &out, stream)); });
            } else if (call == 'e') {
                name = "ep_empty";
                of = capture(all, [&] { empty_kernel<<<132, 512, 0, all->stream>>>(); });
            } else if (call == 's') {
                name = "ep_pair";
                how = "fresh";
                of = capture(all, [&] {
                    weft_ep_rows results = out.rows;
                    weft_ep_rows sums = rows_in;
                    sums.data = combined;
                    OK(weft_ep_route_choose(route, &choices));
                    OK(weft_ep_dispatch(route, &rows_in, &out, stream));
                    OK(weft_ep_combine(route, &results, &sums, WEFT_EP_WEIGHTED, stream));
                });
            } else if (call == 'u') {
                name = "ep_update";
                of = capture(all, [&] { OK(weft_ep_route_update(route, &choices, stream)); });
            } else if (call == 'p') {
                how = "fresh, plain buffers";
                out.rows.data = device_memory(capacity * row_bytes);
                of = capture(all, [&] {
                    OK(weft_ep_route_choose(route, &choices));
                    OK(weft_ep_dispatch(route, &rows_in, &out, stream));
                });
            } else {
                name = "ep_combine";
                weft_ep_rows results = out.rows;
                weft_ep_rows sums = rows_in;
                results.data = received;
                sums.data = combined;
                of = capture(all, [&] { OK(weft_ep_combine(route, &results, &sums, WEFT_EP_WEIGHTED, stream)); });
            }
            double us = time_of(all, of);
            if (out.rows.data != received) {
                GPU(cudaFree(out.rows.data));
            }
            OK(weft_ep_route_query(route, stream, &counts));
            if (all->pe == 0) {
                char more[400];
                snprintf(
                    more, sizeof more,
                    ", \"tokens\": %d, \"hidden\": %d, \"topk\": %d, \"experts\": %d, \"dtype\": \"%s\", \"layout\": "
                    "\"%s\", \"mode\": \"%s\", \"sms\": %d, \"route\": \"%s\", \"gate\": \"%s\"",
                    tokens, with.hidden, with.topk, with.experts,
                    with.quantises ? "fp8, from bf16"
                    : is_fp8       ? "fp8"
                                   : "bf16",
                    layouts[with.layout], with.layout >= WEFT_EP_SLOTS_SOURCE ? "ll" : "ht", with.sms[s], how,
                    with.skewed ? "skewed" : "uniform");
                figure(name, "weft", all->pes, (size_t)out_bytes, us, "us", with.repeats, "%s", more);
                figure(name, "floor", all->pes, (size_t)out_bytes, out_bytes / rates[s] * 1e-3, "us", 5, "%s", more);
            }
        }
        OK(weft_ep_route_destroy(route));
    }
    OK(weft_ep_destroy(group));
    OK(weft_device_free(all->world, received));
    for (void *memory : {scales, device_ids, (void *)weights, in, combined, (void *)out.weights, (void *)out.experts,
                         (void *)out.source_rank, (void *)out.source_token}) {
        GPU(cudaFree(memory));
    }
}

/* A group's creation and first step, and what GPU memory it takes with its receive buffer, in a world with nothing else. */
static void bench_setup(const bench *all, int tokens)
{
    const options &with = all->with;
    size_t row_bytes = (size_t)with.hidden * 2;
    size_t capacity = (size_t)all->pes * (size_t)tokens;
    std::vector<int32_t> ids = choose(all, tokens);
    void *device_ids = device_memory(ids.size() * 4);
    GPU(cudaMemcpy(device_ids, ids.data(), ids.size() * 4, cudaMemcpyHostToDevice));
    size_t before;
    size_t after;
    size_t total;
    struct timespec start;
    struct timespec end;
    weft_ep *group;
    weft_ep_route *route;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = with.experts;
    config.tokens_max = tokens;
    config.topk_max = with.topk;
    config.row_bytes_max = row_bytes;
    config.on_device = 1;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = with.topk;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = tokens;
    choices.ids = device_ids;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    in.dtype = WEFT_EP_BF16;
    in.hidden = with.hidden;
    in.data = device_memory((size_t)tokens * row_bytes);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = in;
    out.rows_capacity = capacity;
    weft_stream *stream = (weft_stream *)all->stream;
    GPU(cudaDeviceSynchronize());
    GPU(cudaMemGetInfo(&before, &total));
    OK(weft_barrier(all->world));
    OK(weft_device_malloc(all->world, capacity * row_bytes, &out.rows.data));
    OK(weft_barrier(all->world));
    clock_gettime(CLOCK_MONOTONIC, &start);
    OK(weft_ep_create(weft_team_world(all->world), &config, &group));
    OK(weft_ep_route_create(group, &plan, NULL, &route));
    OK(weft_ep_route_choose(route, &choices));
    OK(weft_ep_dispatch(route, &in, &out, stream));
    GPU(cudaStreamSynchronize(all->stream));
    clock_gettime(CLOCK_MONOTONIC, &end);
    GPU(cudaMemGetInfo(&after, &total));
    double ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
    ms = max_of_all(all, ms);
    double mb = max_of_all(all, (double)(before - after) * 1e-6);
    if (all->pe == 0) {
        figure("ep_setup", "weft", all->pes, 0, ms * 1e3, "us", 1, ", \"tokens\": %d", tokens);
        figure("ep_memory", "weft", all->pes, 0, mb, "MB", 1, ", \"tokens\": %d", tokens);
    }
    OK(weft_ep_route_destroy(route));
    OK(weft_ep_destroy(group));
}

int main(int argc, char **argv)
{
    bench all = {};
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    all.with = options_of(argc, argv);
    const char *local = getenv("WEFT_LOCAL_PE");
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("no GPU here\n");
        return 77;
    }
    GPU(cudaSetDevice(local != NULL ? atoi(local) % gpus : 0));
    GPU(cudaFree(0));
    GPU(cudaStreamCreateWithFlags(&all.stream, cudaStreamNonBlocking));
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.deadline_ns = UINT64_C(5000000000);
    OK(weft_world_create(&config, &all.world));
    OK(weft_device_attach(all.world, NULL));
    all.pe = weft_world_pe(all.world);
    all.pes = weft_world_pes(all.world);
    OK(weft_team_dev(weft_team_world(all.world), &all.team));
    void *block;
    OK(weft_malloc(all.world, 64, &block));
    all.host_words = (double *)block;
    all.flush = (unsigned char *)device_memory(FLUSH_BYTES);
    if (all.with.calls == "m") {
        bench_setup(&all, all.with.tokens[0]);
        OK(weft_barrier(all.world));
        OK(weft_world_destroy(all.world));
        return 0;
    }
    std::vector<double> rates;
    OK(weft_device_malloc(all.world, STRIPE * (size_t)(all.pes + 1), &block));
    all.stripe = (unsigned char *)block;
    GPU(cudaMemset(all.stripe, 0x3c, STRIPE));
    for (int sms : all.with.sms) {
        double rate = all.pes > 1 ? store_rate(&all, sms > 0 ? sms : 132) : 0;
        rates.push_back(rate);
        if (all.pe == 0) {
            figure("put_bulk_bw_all", "hardware", all.pes, STRIPE, rate, "GB/s", 5, ", \"blocks\": %d",
                   sms > 0 ? sms : 132);
        }
    }
    OK(weft_device_free(all.world, all.stripe));
    for (int tokens : all.with.tokens) {
        bench_tokens(&all, tokens, rates);
    }
    OK(weft_barrier(all.world));
    OK(weft_world_destroy(all.world));
    return 0;
}
