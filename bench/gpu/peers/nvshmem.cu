/* The same figures by NVSHMEM's public API: the peer beside which weft-perf is read. One process a GPU, started by
 * weftrun, which only numbers them; NVSHMEM meets by its unique id, through the file named by WEFT_MEETING.
 * Built by scripts/gpu.sh where the package nvidia-nvshmem is installed; nothing of weft is linked. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <time.h>
#include <unistd.h>

#include "bench/gpu/lib/figures.h"

#define TRIPS 500
#define ROUNDS 11
#define HALF ((size_t)318 << 20)

typedef unsigned long long u64;

static double now_us()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static __device__ u64 time_ns()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

__global__ void p_trips(uint64_t *flag, int pe, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (u64 i = 1 + (u64)round * TRIPS; i < 1 + (u64)(round + 1) * TRIPS; i++) {
            if (pe == 0) {
                nvshmem_uint64_p(flag, i, 1);
            }
            nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_GE, i);
            if (pe == 1) {
                nvshmem_uint64_p(flag, i, 0);
            }
        }
        ns[round] = time_ns() - start;
    }
}

__global__ void put_signal_trips(uint64_t *flag, unsigned char *data, const unsigned char *source, size_t bytes,
                                 int trips, int pe, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (u64 i = 1 + (u64)round * (u64)trips; i < 1 + (u64)(round + 1) * (u64)trips; i++) {
#pragma unroll 1
            for (int side = 0; side < 2; side++) {
                if (side == pe) {
                    nvshmemx_putmem_signal_block(data, source, bytes, flag, i, NVSHMEM_SIGNAL_SET, 1 - pe);
                } else {
                    if (threadIdx.x == 0) {
                        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, i);
                    }
                    __syncthreads();
                }
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = time_ns() - start;
        }
    }
}

/* The same by one thread. */
__global__ void put_signal_thread_trips(uint64_t *flag, unsigned char *data, const unsigned char *source, size_t bytes,
                                        int trips, int pe, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (u64 i = 1 + (u64)round * (u64)trips; i < 1 + (u64)(round + 1) * (u64)trips; i++) {
#pragma unroll 1
            for (int side = 0; side < 2; side++) {
                if (side == pe) {
                    nvshmem_putmem_signal(data, source, bytes, flag, i, NVSHMEM_SIGNAL_SET, 1 - pe);
                } else {
                    nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, i);
                }
            }
        }
        ns[round] = time_ns() - start;
    }
}

__global__ void get_trips(unsigned char *dest, const unsigned char *source, size_t bytes, int trips, int pe, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (int i = 0; i < trips; i++) {
            if (blockDim.x == 1) {
                nvshmem_getmem(dest, source, bytes, 1 - pe);
            } else {
                nvshmemx_getmem_warp(dest, source, bytes, 1 - pe);
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = time_ns() - start;
        }
    }
}

/* As many threads as the block has fetch `count` elements, again and again. */
__global__ void g_trips(int *dest, const int *source, int count, int pe, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (int i = 0; i < TRIPS; i++) {
            for (int j = threadIdx.x; j < count; j += blockDim.x) {
                dest[j] = nvshmem_int_g(source + j, 1 - pe);
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            ns[round] = time_ns() - start;
        }
    }
}

__global__ void fetch_add_trips(uint64_t *word, int pe, u64 *ns)
{
    uint64_t value = 1;
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (int i = 0; i < TRIPS; i++) {
            value = nvshmem_uint64_atomic_fetch_add(word, value & 1, 1 - pe);
        }
        ns[round] = time_ns() - start + (value >> 63);
    }
}

__global__ void barrier_trips(int which, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = time_ns();
        for (int i = 0; i < TRIPS; i++) {
            if (which == 0) {
                nvshmem_barrier_all();
            } else if (which == 1) {
                nvshmemx_barrier_all_block();
            } else if (which == 2) {
                nvshmem_sync_all();
            } else {
                nvshmemx_sync_all_block();
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = time_ns() - start;
        }
    }
}

__global__ void put_rate(unsigned char *dest, const unsigned char *source, size_t part, int pe)
{
    size_t at = blockIdx.x * part;
    nvshmemx_putmem_block(dest + at, source + at, part, 1 - pe);
    nvshmem_quiet();
}

__global__ void get_rate(unsigned char *dest, const unsigned char *source, size_t part, int pe)
{
    size_t at = blockIdx.x * part;
    nvshmemx_getmem_block(dest + at, source + at, part, 1 - pe);
}

static double ns_of(const u64 *ns, int trips)
{
    std::vector<double> rounds;
    for (int i = 1; i < ROUNDS; i++) {
        rounds.push_back((double)ns[i] / trips);
    }
    return median_of(rounds);
}

/* PE 0 makes the id and leaves it in a file; the others read it. */
static void meet(int pe, int pes)
{
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    const char *path = getenv("WEFT_MEETING");
    char part[512];
    snprintf(part, sizeof part, "%s.part", path);
    if (pe == 0) {
        nvshmemx_get_uniqueid(&id);
        FILE *file = fopen(part, "wb");
        if (file == NULL || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) != 0 || rename(part, path) != 0) {
            exit(1);
        }
    } else {
        FILE *file = NULL;
        for (int i = 0; i < 20000 && (file = fopen(path, "rb")) == NULL; i++) {
            usleep(500);
        }
        if (file == NULL || fread(&id, sizeof id, 1, file) != 1) {
            exit(1);
        }
        fclose(file);
    }
    nvshmemx_set_attr_uniqueid_args(pe, pes, &id, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
        exit(1);
    }
}

/* What all parts use. */
typedef struct bench {
    int pe;
    int pes;
    cudaStream_t stream;
    cudaEvent_t from;
    cudaEvent_t to;
    u64 *ns; /* pinned, ROUNDS of them */
    unsigned char *data; /* symmetric, of HALF bytes, as `other` */
    unsigned char *other;
    uint64_t *flags;
} bench;

static void bench_init(bench *b)
{
    b->pe = atoi(getenv("WEFT_LOCAL_PE"));
    b->pes = atoi(getenv("WEFT_LOCAL_PES"));
    GPU(cudaSetDevice(b->pe));
    GPU(cudaFree(0));
    GPU(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    GPU(cudaEventCreate(&b->from));
    GPU(cudaEventCreate(&b->to));
    GPU(cudaMallocHost((void **)&b->ns, ROUNDS * sizeof *b->ns));
}

/* Creation, and the memory that it takes; then the buffers of the other parts. */
static void create(bench *b)
{
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    GPU(cudaMemGetInfo(&before, &total));
    double start = now_us();
    meet(b->pe, b->pes);
    double created = now_us() - start;
    nvshmem_barrier_all();
    GPU(cudaMemGetInfo(&after, &total));
    if (b->pe == 0) {
        figure("world_create", "nvshmem", b->pes, 0, created * 1e-3, "ms", 1, ", \"world\": \"first\"");
        figure("device_memory_idle", "nvshmem", b->pes, 0, ((double)before - (double)after) * 1e-6, "MB", 1,
               ", \"heap_MB\": 0");
    }
    b->data = (unsigned char *)nvshmem_malloc(HALF);
    b->other = (unsigned char *)nvshmem_malloc(HALF);
    b->flags = (uint64_t *)nvshmem_malloc(8192);
    if (b->data == NULL || b->other == NULL || b->flags == NULL) {
        exit(1);
    }
    GPU(cudaMemset(b->other, 1 + b->pe, HALF));
}

#define STEP(b, launch)                                                                                                \
    do {                                                                                                               \
        GPU(cudaMemset((b)->flags, 0, 8192));                                                                          \
        GPU(cudaDeviceSynchronize());                                                                                  \
        nvshmem_barrier_all();                                                                                         \
        if ((b)->pe < 2) {                                                                                             \
            launch;                                                                                                    \
        }                                                                                                              \
        GPU(cudaGetLastError());                                                                                       \
        GPU(cudaStreamSynchronize((b)->stream));                                                                       \
        nvshmem_barrier_all();                                                                                         \
    } while (0)

/* Two PEs, inside kernels. */
static void trips(bench *b)
{
    static const size_t sizes[] = {8, 1024, 16384, 131072, 1048576};
    STEP(b, (p_trips<<<1, 1, 0, b->stream>>>(b->flags, b->pe, b->ns)));
    if (b->pe == 0) {
        figure("p_pingpong", "nvshmem", 2, 8, ns_of(b->ns, 2 * TRIPS) / 1000, "us", ROUNDS - 1,
               ", \"scope\": \"thread\"");
    }
    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
        int threads = i % 2 == 0 ? 1024 : 256;
        size_t bytes = sizes[i / 2];
        int count = bytes > 100000 ? TRIPS / 5 : TRIPS;
        STEP(b,
             (put_signal_trips<<<1, threads, 0, b->stream>>>(b->flags, b->data, b->other, bytes, count, b->pe, b->ns)));
        if (b->pe == 0) {
            figure("put_signal", "nvshmem", 2, bytes, ns_of(b->ns, 2 * count) / 1000, "us", ROUNDS - 1,
                   ", \"scope\": \"block\", \"threads\": %d", threads);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        STEP(b, (put_signal_thread_trips<<<1, 1, 0, b->stream>>>(b->flags, b->data, b->other, sizes[i], TRIPS, b->pe,
                                                                 b->ns)));
        if (b->pe == 0) {
            figure("put_signal", "nvshmem", 2, sizes[i], ns_of(b->ns, 2 * TRIPS) / 1000, "us", ROUNDS - 1,
                   ", \"scope\": \"thread\"");
        }
    }
    STEP(
        b, if (b->pe == 0) { (fetch_add_trips<<<1, 1, 0, b->stream>>>(b->flags + 64, b->pe, b->ns)); });
    if (b->pe == 0) {
        figure("fetch_add", "nvshmem", 2, 8, ns_of(b->ns, TRIPS) / 1000, "us", ROUNDS - 1, ", \"scope\": \"thread\"");
    }
}

/* PE 0 gets the same bytes again and again: the peer's loads are answered by the multiprocessor's cache while they fit
 * there. */
static void gets(bench *b)
{
    static const size_t sizes[] = {4, 64, 1024, 32768, 1048576};
    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
        int threads = i % 2 == 0 ? 1 : 32;
        size_t bytes = sizes[i / 2];
        int count = bytes > 100000 ? 1 : bytes > 10000 ? 10 : TRIPS;
        STEP(
            b, if (b->pe == 0) {
                (get_trips<<<1, threads, 0, b->stream>>>(b->data, b->other, bytes, count, b->pe, b->ns));
            });
        if (b->pe == 0) {
            figure("get", "nvshmem", 2, bytes, ns_of(b->ns, count) / 1000, "us", ROUNDS - 1, ", \"scope\": \"%s\"",
                   threads == 1 ? "thread" : "warp");
        }
    }
}

/* Elements, one by one; again the same. */
static void elements(bench *b)
{
    static const int counts[] = {1, 32, 1024};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int count = counts[i];
        STEP(
            b, if (b->pe == 0) {
                (g_trips<<<1, count, 0, b->stream>>>((int *)b->data, (const int *)b->other, count, b->pe, b->ns));
            });
        if (b->pe == 0) {
            figure("g", "nvshmem", 2, 4 * (size_t)count, ns_of(b->ns, TRIPS) / 1000, "us", ROUNDS - 1,
                   ", \"scope\": \"thread\", \"threads\": %d", count);
        }
    }
}

static void barriers(bench *b)
{
    for (int which = 0; which < 4; which++) {
        int threads = which % 2 ? 1024 : 1;
        void *arguments[] = {&which, &b->ns};
        nvshmem_barrier_all();
        if (nvshmemx_collective_launch((const void *)barrier_trips, dim3(1), dim3((unsigned)threads), arguments, 0,
                                       b->stream) != 0) {
            exit(1);
        }
        GPU(cudaStreamSynchronize(b->stream));
        if (b->pe == 0) {
            figure(which < 2 ? "barrier" : "sync", "nvshmem", b->pes, 0, ns_of(b->ns, TRIPS) / 1000, "us", ROUNDS - 1,
                   ", \"scope\": \"%s\"", which % 2 ? "block" : "thread");
        }
    }
}

static void allocations(bench *b)
{
    std::vector<double> times;
    for (int i = 0; i < 50; i++) {
        nvshmem_barrier_all();
        double from = now_us();
        void *block = nvshmem_malloc((size_t)1 << 20);
        times.push_back(now_us() - from);
        nvshmem_free(block);
    }
    if (b->pe == 0) {
        figure("device_malloc", "nvshmem", b->pes, (size_t)1 << 20, median_of(times), "us", 50,
               ", \"scope\": \"host\"");
    }
}

/* One PE of two moves `part` bytes a block. */
static void rate(bench *b, int is_get, int blocks)
{
    size_t part = ((size_t)256 << 20) / (size_t)blocks;
    part = (part > ((size_t)16 << 20) ? (size_t)16 << 20 : part) / 65536 * 65536;
    std::vector<double> rates;
    for (int round = 0; round < 6; round++) {
        float ms = 0;
        GPU(cudaEventRecord(b->from, b->stream));
        if (is_get) {
            get_rate<<<blocks, 1024, 0, b->stream>>>(b->data, b->other, part, b->pe);
        } else {
            put_rate<<<blocks, 1024, 0, b->stream>>>(b->data, b->other, part, b->pe);
        }
        GPU(cudaEventRecord(b->to, b->stream));
        GPU(cudaStreamSynchronize(b->stream));
        GPU(cudaEventElapsedTime(&ms, b->from, b->to));
        if (round > 0) {
            rates.push_back((double)part * blocks / ms * 1e-6);
        }
    }
    figure(is_get ? "get_bw" : "put_bw", "nvshmem", 2, part * (size_t)blocks, median_of(rates), "GB/s", 5,
           ", \"scope\": \"block\", \"blocks\": %d", blocks);
}

static void rates(bench *b)
{
    static const int counts[] = {1, 2, 4, 8, 16, 32, 64, 132};
    for (int is_get = 0; b->pe == 0 && is_get < 2; is_get++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            rate(b, is_get, counts[i]);
        }
    }
    nvshmem_barrier_all();
}

/* ---- on streams ---- */

static const char *const collectives[] = {"barrier", "broadcast", "fcollect", "alltoall", "sum"};

/* `bytes`: of all of a PE's data, as weft-perf has it. */
static int enqueue(bench *b, int which, size_t bytes)
{
    switch (which) {
    case 0:
        nvshmemx_barrier_all_on_stream(b->stream);
        return 0;
    case 1:
        return nvshmemx_broadcastmem_on_stream(NVSHMEM_TEAM_WORLD, b->data, b->other, bytes, 0, b->stream);
    case 2:
        return nvshmemx_fcollectmem_on_stream(NVSHMEM_TEAM_WORLD, b->data, b->other, bytes / (size_t)b->pes, b->stream);
    case 3:
        return nvshmemx_alltoallmem_on_stream(NVSHMEM_TEAM_WORLD, b->data, b->other, bytes / (size_t)b->pes, b->stream);
    default:
        return nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, (float *)b->data, (float *)b->other,
                                                   bytes / sizeof(float), b->stream);
    }
}

/* Calls back to back between two events. */
static void collective(bench *b, int which, size_t bytes)
{
    const int calls = bytes > ((size_t)1 << 20) ? 20 : 100;
    std::vector<double> times;
    for (int round = 0; round < ROUNDS; round++) {
        float ms = 0;
        nvshmem_barrier_all();
        GPU(cudaEventRecord(b->from, b->stream));
        for (int i = 0; i < calls; i++) {
            if (enqueue(b, which, bytes) != 0) {
                exit(1);
            }
        }
        GPU(cudaEventRecord(b->to, b->stream));
        GPU(cudaStreamSynchronize(b->stream));
        GPU(cudaEventElapsedTime(&ms, b->from, b->to));
        if (round > 0) {
            times.push_back((double)ms * 1000 / calls);
        }
    }
    if (b->pe == 0) {
        figure(collectives[which], "nvshmem", b->pes, bytes, median_of(times), "us", ROUNDS - 1,
               ", \"scope\": \"stream\"");
    }
}

static void on_streams(bench *b)
{
    static const size_t sizes[] = {1 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20};
    collective(b, 0, 0);
    for (int which = 1; which < 5; which++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            collective(b, which, sizes[i]);
        }
    }
}

int main()
{
    bench b = {};
    bench_init(&b);
    create(&b);
    trips(&b);
    gets(&b);
    elements(&b);
    barriers(&b);
    allocations(&b);
    rates(&b);
    on_streams(&b);
    nvshmem_barrier_all();
    double start = now_us();
    nvshmem_finalize();
    if (b.pe == 0) {
        figure("world_destroy", "nvshmem", b.pes, 0, (now_us() - start) * 1e-3, "ms", 1, "");
    }
    return 0;
}
