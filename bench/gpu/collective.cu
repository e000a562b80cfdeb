/* Collectives and barriers on streams, as graph nodes, and inside a kernel. One process a GPU, by weftrun. Back to back: many
 * calls between two events, the slowest PE counts, median of the rounds. Bytes are a PE's total: of all blocks for alltoall
 * and fcollect, of the vector for broadcast and sum. */
#include <time.h>
#include <unistd.h>

#include "bench/gpu/part/figures.h"
#include "weft.h"
#include "weft_device.cuh"

#define ROUNDS 9
#define MOST_BYTES ((size_t)32 << 20)

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        weft_status ok_status = (call);                                                                                \
        if (ok_status != WEFT_OK) {                                                                                    \
            fprintf(stderr, "%s: %s: %s\n", #call, weft_status_name(ok_status), weft_last_error());                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct state {
    weft_world *world;
    weft_team *team;
    weft_dev_team dev;
    int pe;
    int pes;
    cudaStream_t stream;
    unsigned char *dest;
    unsigned char *source;
    double *gathered; /* symmetric host memory: one a PE */
    unsigned long long *ns; /* host memory, kernels write it */
} state;

typedef struct kind {
    const char *name;
    int divides; /* a block is a part of the bytes */
} kind;

enum { BARRIER, ALLTOALL, FCOLLECT, BROADCAST, SUM, KINDS };
static const kind kinds[KINDS] = {{"barrier", 0}, {"alltoall", 1}, {"fcollect", 1}, {"broadcast", 0}, {"sum", 0}};

static void enqueue(state *all, int what, size_t bytes)
{
    size_t block = kinds[what].divides ? bytes / (size_t)all->pes : bytes;
    switch (what) {
    case BARRIER:
        OK(weft_barrier_on_stream(all->world, all->stream));
        break;
    case ALLTOALL:
        OK(weft_alltoallmem_on_stream(all->team, all->dest, all->source, block, all->stream));
        break;
    case FCOLLECT:
        OK(weft_fcollectmem_on_stream(all->team, all->dest, all->source, block, all->stream));
        break;
    case BROADCAST:
        OK(weft_broadcastmem_on_stream(all->team, all->dest, all->source, block, 0, all->stream));
        break;
    default:
        OK(weft_float_sum_reduce_on_stream(all->team, (float *)all->dest, (float *)all->source, block / sizeof(float),
                                           all->stream));
        break;
    }
}

static double max_of_all(state *all, double mine)
{
    OK(weft_double_p(all->world, all->gathered + all->pe, mine, 0));
    OK(weft_barrier(all->world));
    double most = 0;
    for (int i = 0; i < all->pes; i++) {
        most = all->gathered[i] > most ? all->gathered[i] : most;
    }
    OK(weft_barrier(all->world));
    return most;
}

/* Microseconds a call of `calls` in one run of `go`. */
template <class Go> static double time_of(state *all, int calls, const Go &go)
{
    std::vector<double> rounds;
    cudaEvent_t start;
    cudaEvent_t end;
    GPU(cudaEventCreate(&start));
    GPU(cudaEventCreate(&end));
    for (int round = 0; round <= ROUNDS; round++) {
        float ms = 0;
        OK(weft_barrier(all->world));
        OK(weft_barrier_on_stream(all->world, all->stream));
        GPU(cudaEventRecord(start, all->stream));
        go();
        GPU(cudaEventRecord(end, all->stream));
        GPU(cudaStreamSynchronize(all->stream));
        OK(weft_world_fault(all->world, NULL));
        GPU(cudaEventElapsedTime(&ms, start, end));
        double slowest = max_of_all(all, (double)ms * 1000 / calls);
        if (round > 0) {
            rounds.push_back(slowest);
        }
    }
    GPU(cudaEventDestroy(start));
    GPU(cudaEventDestroy(end));
    return median_of(rounds);
}

static void on_stream_and_graph(state *all, int what, size_t bytes)
{
    const int calls = bytes > 1000000 ? 20 : 100;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    double stream_us = time_of(all, calls, [=] {
        for (int i = 0; i < calls; i++) {
            enqueue(all, what, bytes);
        }
    });
    GPU(cudaStreamBeginCapture(all->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; i++) {
        enqueue(all, what, bytes);
    }
    GPU(cudaStreamEndCapture(all->stream, &graph));
    GPU(cudaGraphInstantiate(&exec, graph, 0));
    double graph_us = time_of(all, calls, [=] { GPU(cudaGraphLaunch(exec, all->stream)); });
    GPU(cudaGraphExecDestroy(exec));
    GPU(cudaGraphDestroy(graph));
    if (all->pe == 0) {
        figure(kinds[what].name, "weft", all->pes, bytes, stream_us, "us", ROUNDS, ", \"scope\": \"stream\"");
        figure(kinds[what].name, "weft", all->pes, bytes, graph_us, "us", ROUNDS, ", \"scope\": \"graph\"");
    }
}

#define TRIPS 200

__global__ void sum_trips(const __grid_constant__ weft_dev_team team, float *dest, const float *source,
                          unsigned long long count, unsigned long long *ns)
{
    for (int round = 0; round <= ROUNDS; round++) {
        unsigned long long start = wefti_time_ns();
        for (int i = 0; i < TRIPS; i++) {
            if (weft_dev_reduce<WEFT_OP_SUM>(weft_block(), team, dest, source, count) != WEFT_OK) {
                return;
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = wefti_time_ns() - start;
        }
    }
}

static void inside_kernel(state *all, size_t bytes, int threads)
{
    std::vector<double> rounds;
    OK(weft_barrier(all->world));
    sum_trips<<<1, threads, 0, all->stream>>>(all->dev, (float *)all->dest, (const float *)all->source,
                                              bytes / sizeof(float), all->ns);
    GPU(cudaGetLastError());
    GPU(cudaStreamSynchronize(all->stream));
    OK(weft_world_fault(all->world, NULL));
    for (int round = 1; round <= ROUNDS; round++) {
        rounds.push_back((double)all->ns[round] / TRIPS / 1000);
    }
    double slowest = max_of_all(all, median_of(rounds));
    if (all->pe == 0) {
        figure("sum", "weft", all->pes, bytes, slowest, "us", ROUNDS, ", \"scope\": \"block\", \"threads\": %d",
               threads);
    }
}

static void open_world(state *all)
{
    int gpus = 0;
    const char *number = getenv("WEFT_LOCAL_PE");
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("no GPU here\n");
        exit(77);
    }
    GPU(cudaSetDevice(number == NULL ? 0 : atoi(number) % gpus));
    GPU(cudaFree(0));
    GPU(cudaStreamCreateWithFlags(&all->stream, cudaStreamNonBlocking));
    device.heap_bytes = 3 * MOST_BYTES;
    config.device = &device;
    config.deadline_ns = 20000000000ull;
    OK(weft_world_create(&config, &all->world));
    all->pe = weft_world_pe(all->world);
    all->pes = weft_world_pes(all->world);
    all->team = weft_team_world(all->world);
    OK(weft_calloc(all->world, (size_t)all->pes, sizeof(double), (void **)&all->gathered));
    OK(weft_device_malloc(all->world, MOST_BYTES, (void **)&all->dest));
    OK(weft_device_malloc(all->world, MOST_BYTES, (void **)&all->source));
    OK(weft_team_stream_ready(all->team));
    OK(weft_team_dev(all->team, &all->dev));
    GPU(cudaMallocHost((void **)&all->ns, (ROUNDS + 1) * sizeof *all->ns));
    GPU(cudaMemset(all->source, 1 + all->pe, MOST_BYTES));
    OK(weft_barrier(all->world));
}

int main()
{
    static const size_t sizes[] = {1024,   4096,    16384,   65536,   131072,   262144,
                                   524288, 1048576, 2097152, 4194304, 16777216, 33554432};
    state all = {};
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    open_world(&all);
    on_stream_and_graph(&all, BARRIER, 0);
    for (int what = ALLTOALL; what < KINDS; what++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            on_stream_and_graph(&all, what, sizes[i]);
        }
    }
    inside_kernel(&all, 1024, 256);
    inside_kernel(&all, 1024, 512);
    OK(weft_barrier(all.world));
    OK(weft_world_destroy(all.world));
    return 0;
}
