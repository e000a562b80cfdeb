/* The device API's figures, and the hardware's in the same run: latencies between PE 0 and PE 1, rates by number of blocks,
 * barriers of all, creation, allocation. One process a GPU, by weftrun. Latencies are timed inside the kernel
 * (globaltimer over many round trips), rates by events. See README.md beside this for predictions and outcomes. */
#include <unistd.h>

#include "bench/gpu/part/figures.h"
#include "weft.h"
#include "weft_device.cuh"

#define TRIPS 500
#define ROUNDS 11
#define HEAP ((size_t)640 << 20)

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        weft_status ok_status = (call);                                                                                \
        if (ok_status != WEFT_OK) {                                                                                    \
            fprintf(stderr, "%s: %s: %s\n", #call, weft_status_name(ok_status), weft_last_error());                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef unsigned long long u64;

static double now_us()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* ---- latencies: PE 0 sends, PE 1 answers; ns[round] is the time of TRIPS round trips ---- */

/* One value thread to thread: p and wait. */
__global__ void p_trips(const __grid_constant__ weft_dev dev, u64 *flag, u64 first, u64 *ns)
{
    int other = 1 - dev.pe;
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = wefti_time_ns();
        for (u64 i = first + (u64)round * TRIPS; i < first + (u64)(round + 1) * TRIPS; i++) {
            if (dev.pe == 0) {
                weft_dev_p(dev, flag, i, other);
            }
            if (weft_dev_wait_until(weft_thread(), dev, flag, WEFT_CMP_GE, i) != WEFT_OK) {
                return;
            }
            if (dev.pe == 1) {
                weft_dev_p(dev, flag, i, other);
            }
        }
        ns[round] = wefti_time_ns() - start;
    }
}

/* What the hardware allows: a load and a store of 8 bytes, a flag with release, a poll with acquire; by one thread, or by
 * a block with the same barriers as a block-scope call needs. No deadline, so it runs after the others have shown that both are
 * there. */
__global__ void raw_trips(const __grid_constant__ weft_dev dev, u64 *flag, uint4 *data, const uint4 *source,
                          int vectors, u64 first, u64 *ns)
{
    u64 *there = (u64 *)wefti_dev_peer(dev, flag, 8, 1 - dev.pe);
    uint4 *to = (uint4 *)wefti_dev_peer(dev, data, 16, 1 - dev.pe);
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = wefti_time_ns();
        for (u64 i = first + (u64)round * TRIPS; i < first + (u64)(round + 1) * TRIPS; i++) {
#pragma unroll 1
            for (int side = 0; side < 2; side++) {
                if (side == dev.pe) {
                    if (vectors == 0 && threadIdx.x == 0) {
                        wefti_st_relaxed((u64 *)to, *(const u64 *)source);
                    }
                    for (int v = (int)threadIdx.x; v < vectors; v += (int)blockDim.x) {
                        wefti_st_remote(to + v, source[v]);
                    }
                    __syncthreads();
                    if (threadIdx.x == 0) {
                        wefti_st_release(there, i);
                    }
                } else {
                    if (threadIdx.x == 0) {
                        while (wefti_ld_acquire(flag) < i) {
                        }
                    }
                    __syncthreads();
                }
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = wefti_time_ns() - start;
        }
    }
}

__global__ void __launch_bounds__(1024)
    put_signal_trips(const __grid_constant__ weft_dev dev, u64 *flag, unsigned char *data, const unsigned char *source,
                     u64 bytes, int trips, u64 first, u64 *ns)
{
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = wefti_time_ns();
        for (u64 i = first + (u64)round * (u64)trips; i < first + (u64)(round + 1) * (u64)trips; i++) {
#pragma unroll 1
            for (int side = 0; side < 2; side++) {
                if (side == dev.pe) {
                    weft_dev_put_signal(weft_block(), dev, data, source, bytes, flag, i, WEFT_SIGNAL_SET, 1 - dev.pe);
                } else if (weft_dev_signal_wait_until(weft_block(), dev, flag, WEFT_CMP_GE, i) != WEFT_OK) {
                    return;
                }
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = wefti_time_ns() - start;
        }
    }
}

__global__ void fetch_add_trips(const __grid_constant__ weft_dev dev, u64 *word, u64 *ns)
{
    u64 value = 1;
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = wefti_time_ns();
        for (int i = 0; i < TRIPS; i++) {
            weft_dev_atomic_fetch_add(dev, word, value & 1, 1 - dev.pe, &value);
        }
        ns[round] = wefti_time_ns() - start + (value >> 63);
    }
}

__global__ void g_trips(const __grid_constant__ weft_dev dev, u64 *word, u64 *ns)
{
    u64 value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = wefti_time_ns();
        for (int i = 0; i < TRIPS; i++) {
            weft_dev_g(dev, word + (value & 1), 1 - dev.pe, &value);
        }
        ns[round] = wefti_time_ns() - start + (value >> 63);
    }
}

template <int KIND, int QUIET> __global__ void barrier_trips(const __grid_constant__ weft_dev_team team, u64 *ns)
{
    weft_scope scope = KIND == WEFTI_SCOPE_BLOCK ? weft_block() : weft_thread();
    for (int round = 0; round < ROUNDS; round++) {
        u64 start = wefti_time_ns();
        for (int i = 0; i < TRIPS; i++) {
            if ((QUIET ? weft_dev_barrier(scope, team) : weft_dev_sync(scope, team)) != WEFT_OK) {
                return;
            }
        }
        if (threadIdx.x == 0) {
            ns[round] = wefti_time_ns() - start;
        }
    }
}

__global__ void sync_once(const __grid_constant__ weft_dev_team team)
{
    weft_dev_sync(weft_thread(), team);
}

/* ---- rates: blocks take chunks until none is left; chunk c of PE p goes to, or comes from, PE p + 1 + c % spread ---- */

enum { PUT, GET, PUT_BULK, RAW_STORE, RAW_LOAD, RAW_BULK_LOAD };

typedef struct work {
    unsigned char *dest;
    const unsigned char *source;
    unsigned *taken; /* chunks handed out */
    unsigned chunks;
    u64 chunk_bytes;
    int spread;
    unsigned shared_bytes;
} work;

static __device__ __forceinline__ int target_of(const weft_dev &dev, const work &job, unsigned chunk)
{
    return (dev.pe + 1 + (int)(chunk % (unsigned)job.spread)) % dev.pes;
}

/* The next chunk for this block, or one past the last. */
static __device__ __forceinline__ unsigned next_chunk(const work &job)
{
    __shared__ unsigned next;
    __syncthreads();
    if (threadIdx.x == 0) {
        next = atomicAdd(job.taken, 1);
    }
    __syncthreads();
    return next;
}

__global__ void __launch_bounds__(1024) put_rate(const __grid_constant__ weft_dev dev, const __grid_constant__ work job)
{
    for (unsigned c; (c = next_chunk(job)) < job.chunks;) {
        weft_dev_put(weft_block(), dev, job.dest + c * job.chunk_bytes, job.source + c * job.chunk_bytes,
                     job.chunk_bytes, target_of(dev, job, c));
    }
    weft_dev_quiet();
}

__global__ void __launch_bounds__(1024) get_rate(const __grid_constant__ weft_dev dev, const __grid_constant__ work job)
{
    for (unsigned c; (c = next_chunk(job)) < job.chunks;) {
        weft_dev_get(weft_block(), dev, job.dest + c * job.chunk_bytes, job.source + c * job.chunk_bytes,
                     job.chunk_bytes, target_of(dev, job, c));
    }
}

/* One warp a block. */
__global__ void put_bulk_rate(const __grid_constant__ weft_dev dev, const __grid_constant__ work job)
{
    extern __shared__ __align__(128) unsigned char shared[];
    for (unsigned c; (c = next_chunk(job)) < job.chunks;) {
        weft_dev_put_bulk(weft_warp(), dev, job.dest + c * job.chunk_bytes, job.source + c * job.chunk_bytes,
                          job.chunk_bytes, target_of(dev, job, c), shared, job.shared_bytes);
    }
}

__global__ void __launch_bounds__(1024)
    raw_store_rate(const __grid_constant__ weft_dev dev, const __grid_constant__ work job)
{
    uint4 value = make_uint4(threadIdx.x, blockIdx.x, 3, 4);
    for (unsigned c; (c = next_chunk(job)) < job.chunks;) {
        uint4 *to =
            (uint4 *)wefti_dev_peer(dev, job.dest + c * job.chunk_bytes, job.chunk_bytes, target_of(dev, job, c));
#pragma unroll 8
        for (u64 i = threadIdx.x; i < job.chunk_bytes / 16; i += blockDim.x) {
            wefti_st_remote(to + i, value);
        }
    }
    weft_dev_quiet();
}

__global__ void __launch_bounds__(1024)
    raw_load_rate(const __grid_constant__ weft_dev dev, const __grid_constant__ work job)
{
    unsigned sum = 0;
    for (unsigned c; (c = next_chunk(job)) < job.chunks;) {
        const uint4 *from = (const uint4 *)wefti_dev_peer(dev, job.source + c * job.chunk_bytes, job.chunk_bytes,
                                                          target_of(dev, job, c));
        for (u64 i = threadIdx.x; i + 3 * blockDim.x < job.chunk_bytes / 16; i += 4 * blockDim.x) {
            uint4 held[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                held[j] = wefti_ld_remote(from + i + j * blockDim.x);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sum ^= held[j].x ^ held[j].y ^ held[j].z ^ held[j].w;
            }
        }
    }
    if (sum == 0x12345678) {
        *job.taken = sum;
    }
}

/* Bulk loads into shared memory and nothing else. One warp, eight stages. */
__global__ void raw_bulk_load_rate(const __grid_constant__ weft_dev dev, const __grid_constant__ work job)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const u64 stages = 8;
    const u64 stage_bytes = (job.shared_bytes - 128) / stages;
    u64 *barriers = (u64 *)shared;
    u64 issued = 0; /* over all chunks */
    u64 awaited = 0;
    if (threadIdx.x == 0) {
        for (u64 i = 0; i < stages; i++) {
            wefti_load_barrier_init(&barriers[i]);
        }
        wefti_load_barrier_publish();
    }
    for (unsigned c; (c = next_chunk(job)) < job.chunks;) {
        u64 from = wefti_dev_peer(dev, job.source + c * job.chunk_bytes, job.chunk_bytes, target_of(dev, job, c));
        for (u64 at = 0; threadIdx.x == 0 && at < job.chunk_bytes; at += stage_bytes) {
            if (issued >= stages) {
                while (!wefti_load_barrier_passed(&barriers[awaited % stages], (unsigned)(awaited / stages & 1))) {
                }
                awaited++;
            }
            wefti_bulk_load(shared + 128 + issued % stages * stage_bytes, (const void *)(from + at),
                            (unsigned)stage_bytes, &barriers[issued % stages]);
            issued++;
        }
    }
    for (; threadIdx.x == 0 && awaited < issued; awaited++) {
        while (!wefti_load_barrier_passed(&barriers[awaited % stages], (unsigned)(awaited / stages & 1))) {
        }
    }
}

/* ---- the program ---- */

typedef struct state {
    weft_world *world;
    weft_dev dev;
    weft_dev_team team;
    int pe;
    int pes;
    cudaStream_t stream;
    unsigned char *data; /* symmetric, HEAP / 2 - 1 MiB */
    unsigned char *other;
    u64 *flags;
    u64 *ns; /* host memory, kernels write it */
    double *gathered; /* symmetric host memory: one a PE */
} state;

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

static void done(state *all)
{
    GPU(cudaGetLastError());
    GPU(cudaStreamSynchronize(all->stream));
    OK(weft_world_fault(all->world, NULL));
}

static double ns_of(const state *all, int trips)
{
    std::vector<double> rounds;
    for (int i = 1; i < ROUNDS; i++) { /* the first is warm-up */
        rounds.push_back((double)all->ns[i] / trips);
    }
    return median_of(rounds);
}

static void start_trips(state *all)
{
    GPU(cudaMemsetAsync(all->flags, 0, 8192, all->stream));
    done(all);
    OK(weft_barrier(all->world));
}

static void latencies(state *all)
{
    static const size_t sizes[] = {8, 1024, 16384, 131072, 1048576};
    int two = all->pe < 2;
    start_trips(all);
    if (two) {
        p_trips<<<1, 1, 0, all->stream>>>(all->dev, all->flags, 1, all->ns);
    }
    done(all);
    if (all->pe == 0) {
        figure("p_pingpong", "weft", 2, 8, ns_of(all, 2 * TRIPS) / 1000, "us", ROUNDS - 1, ", \"scope\": \"thread\"");
    }
    static const int raw[][2] = {{0, 1}, {0, 256}, {0, 1024}, {64, 256}, {64, 1024}}; /* vectors, threads */
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++) {
        start_trips(all);
        if (two) {
            raw_trips<<<1, raw[i][1], 0, all->stream>>>(all->dev, all->flags, (uint4 *)all->data, (uint4 *)all->other,
                                                        raw[i][0], 1, all->ns);
        }
        done(all);
        if (all->pe == 0) {
            figure("put_signal", "hardware", 2, raw[i][0] == 0 ? 8 : 1024, ns_of(all, 2 * TRIPS) / 1000, "us",
                   ROUNDS - 1, ", \"scope\": \"%s\", \"threads\": %d", raw[i][1] == 1 ? "thread" : "block", raw[i][1]);
        }
    }
    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
        int threads = i % 2 == 0 ? 1024 : 256;
        size_t bytes = sizes[i / 2];
        int trips = bytes > 100000 ? TRIPS / 5 : TRIPS;
        start_trips(all);
        if (two) {
            put_signal_trips<<<1, threads, 0, all->stream>>>(all->dev, all->flags, all->data, all->other, bytes, trips,
                                                             1, all->ns);
        }
        done(all);
        if (all->pe == 0) {
            figure("put_signal", "weft", 2, bytes, ns_of(all, 2 * trips) / 1000, "us", ROUNDS - 1,
                   ", \"scope\": \"block\", \"threads\": %d", threads);
        }
    }
    start_trips(all);
    if (all->pe == 0) {
        fetch_add_trips<<<1, 1, 0, all->stream>>>(all->dev, all->flags + 64, all->ns);
        done(all);
        figure("fetch_add", "weft", 2, 8, ns_of(all, TRIPS) / 1000, "us", ROUNDS - 1, ", \"scope\": \"thread\"");
        g_trips<<<1, 1, 0, all->stream>>>(all->dev, all->flags + 64, all->ns);
        done(all);
        figure("g", "weft", 2, 8, ns_of(all, TRIPS) / 1000, "us", ROUNDS - 1, ", \"scope\": \"thread\"");
    }
    OK(weft_barrier(all->world));
}

static void barriers(state *all)
{
    for (int which = 0; which < 4; which++) {
        OK(weft_barrier(all->world));
        if (which == 0) {
            barrier_trips<WEFTI_SCOPE_THREAD, 1><<<1, 1, 0, all->stream>>>(all->team, all->ns);
        } else if (which == 1) {
            barrier_trips<WEFTI_SCOPE_BLOCK, 1><<<1, 1024, 0, all->stream>>>(all->team, all->ns);
        } else if (which == 2) {
            barrier_trips<WEFTI_SCOPE_THREAD, 0><<<1, 1, 0, all->stream>>>(all->team, all->ns);
        } else {
            barrier_trips<WEFTI_SCOPE_BLOCK, 0><<<1, 1024, 0, all->stream>>>(all->team, all->ns);
        }
        done(all);
        if (all->pe == 0) {
            figure(which < 2 ? "barrier" : "sync", "weft", all->pes, 0, ns_of(all, TRIPS) / 1000, "us", ROUNDS - 1,
                   ", \"scope\": \"%s\"", which % 2 ? "block" : "thread");
        }
    }
}

/* One PE alone: each block takes one part. All at once: small chunks, so that no block is left behind. */
static work work_of(state *all, int blocks, int spread, unsigned shared_bytes)
{
    work job = {all->data, all->other, (unsigned *)all->flags + 512, (unsigned)blocks, 0, spread, shared_bytes};
    if (spread == 1) {
        u64 part = ((u64)256 << 20) / (u64)blocks;
        job.chunk_bytes = (part > ((u64)16 << 20) ? (u64)16 << 20 : part) / 65536 * 65536;
    } else {
        job.chunk_bytes = (u64)(blocks > 32 ? 256 : 1024) << 10;
        job.chunks = (unsigned)(((u64)255 << 20) / job.chunk_bytes);
    }
    return job;
}

/* GB/s of this PE; -1 on PEs that only serve. */
static double rate(state *all, int what, int blocks, int spread, int taking_part)
{
    static const struct {
        void (*kernel)(const weft_dev, const work);
        int threads;
        unsigned shared_bytes;
    } kernels[] = {{put_rate, 1024, 0},       {get_rate, 1024, 0},      {put_bulk_rate, 32, 65536 + 128},
                   {raw_store_rate, 1024, 0}, {raw_load_rate, 1024, 0}, {raw_bulk_load_rate, 32, 65536 + 128}};
    cudaEvent_t start;
    cudaEvent_t end;
    std::vector<double> rates;
    const work job = work_of(all, blocks, spread, kernels[what].shared_bytes);
    GPU(cudaEventCreate(&start));
    GPU(cudaEventCreate(&end));
    for (int round = 0; round < 6; round++) {
        GPU(cudaMemsetAsync(job.taken, 0, sizeof *job.taken, all->stream));
        sync_once<<<1, 1, 0, all->stream>>>(all->team);
        if (taking_part) {
            GPU(cudaEventRecord(start, all->stream));
            kernels[what].kernel<<<blocks, kernels[what].threads, kernels[what].shared_bytes, all->stream>>>(all->dev,
                                                                                                             job);
            GPU(cudaEventRecord(end, all->stream));
        }
        done(all);
        if (taking_part && round > 0) {
            float ms = 0;
            GPU(cudaEventElapsedTime(&ms, start, end));
            rates.push_back((double)job.chunks * (double)job.chunk_bytes / ms * 1e-6);
        }
        OK(weft_barrier(all->world));
    }
    GPU(cudaEventDestroy(start));
    GPU(cudaEventDestroy(end));
    return taking_part ? median_of(rates) : -1;
}

static void rates(state *all)
{
    static const int counts[] = {1, 2, 4, 8, 16, 32, 64, 132};
    static const struct {
        int what;
        const char *name;
        const char *impl;
        const char *more;
    } kinds[] = {
        {PUT, "put_bw", "weft", "\"scope\": \"block\""},
        {GET, "get_bw", "weft", "\"scope\": \"block\""},
        {PUT_BULK, "put_bulk_bw", "weft", "\"scope\": \"warp\""},
        {RAW_STORE, "put_bw", "hardware", "\"by\": \"16-byte stores\""},
        {RAW_LOAD, "get_bw", "hardware", "\"by\": \"16-byte loads\""},
        {RAW_BULK_LOAD, "get_bw", "hardware", "\"by\": \"bulk loads\""},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            work one_job = work_of(all, counts[c], 1, 0);
            size_t bytes = one_job.chunks * one_job.chunk_bytes;
            double one = rate(all, kinds[k].what, counts[c], 1, all->pe == 0);
            if (all->pe == 0) {
                figure(kinds[k].name, kinds[k].impl, 2, bytes, one, "GB/s", 5, ", %s, \"blocks\": %d", kinds[k].more,
                       counts[c]);
            }
            /* All at once, each to all others: the slowest PE's rate. */
            if (all->pes > 2 && counts[c] >= 4) {
                double slowest = 1e6 / max_of_all(all, 1e6 / rate(all, kinds[k].what, counts[c], all->pes - 1, 1));
                if (all->pe == 0) {
                    char name[64];
                    snprintf(name, sizeof name, "%s_all", kinds[k].name);
                    figure(name, kinds[k].impl, all->pes, (size_t)255 << 20, slowest, "GB/s", 5, ", %s, \"blocks\": %d",
                           kinds[k].more, counts[c]);
                }
            }
        }
    }
}

static void from_host(state *all)
{
    std::vector<double> put;
    std::vector<double> amo;
    std::vector<double> alloc;
    u64 old;
    uint64_t value = 1;
    for (int i = 0; i < 200; i++) {
        void *block;
        OK(weft_barrier(all->world));
        double start = now_us();
        OK(weft_device_malloc(all->world, (size_t)1 << 20, &block));
        alloc.push_back(now_us() - start);
        OK(weft_device_free(all->world, block));
    }
    double slowest = max_of_all(all, median_of(alloc));
    if (all->pe == 0) {
        figure("device_malloc", "weft", all->pes, (size_t)1 << 20, slowest, "us", 200, ", \"scope\": \"host\"");
        for (int i = 0; i < 200; i++) {
            double start = now_us();
            OK(weft_putmem(all->world, all->flags, &value, 8, 1));
            put.push_back(now_us() - start);
            start = now_us();
            OK(weft_uint64_atomic_fetch_add(all->world, (uint64_t *)all->flags, 1, 1, (uint64_t *)&old));
            amo.push_back(now_us() - start);
        }
        figure("put", "weft", 2, 8, median_of(put), "us", 200, ", \"scope\": \"host\"");
        figure("fetch_add", "weft", 2, 8, median_of(amo), "us", 200, ", \"scope\": \"host\"");
    }
    OK(weft_barrier(all->world));
}

static weft_world *create(size_t heap_bytes)
{
    weft_world *world;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    device.heap_bytes = heap_bytes;
    config.device = &device;
    OK(weft_world_create(&config, &world));
    return world;
}

int main()
{
    state all = {};
    int gpus = 0;
    const char *number = getenv("WEFT_LOCAL_PE");
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("no GPU here\n");
        return 77;
    }
    GPU(cudaSetDevice(number == NULL ? 0 : atoi(number) % gpus));
    GPU(cudaFree(0));
    GPU(cudaStreamCreateWithFlags(&all.stream, cudaStreamNonBlocking));

    /* Creation and destruction, and what an idle world takes. */
    const int worlds = 7;
    std::vector<double> created;
    std::vector<double> destroyed;
    std::vector<double> taken;
    double first = 0;
    double granted = 0;
    for (int i = 0; i < worlds; i++) {
        size_t before = 0;
        size_t after = 0;
        size_t total = 0;
        GPU(cudaMemGetInfo(&before, &total));
        double start = now_us();
        weft_world *world = create(0);
        double end = now_us();
        if (i == 0) {
            first = end - start;
            weft_world_phase phases[16];
            size_t count = weft_world_phases(world, phases, 16);
            for (size_t p = 0; weft_world_pe(world) == 0 && p < count; p++) {
                fprintf(stderr, "phase %s: %.2f ms\n", phases[p].name, (double)phases[p].ns * 1e-6);
            }
        } else {
            created.push_back(end - start);
        }
        GPU(cudaMemGetInfo(&after, &total));
        weft_device_info info;
        OK(weft_device_query(world, &info));
        granted = (double)info.heap_bytes;
        taken.push_back((double)before - (double)after);
        OK(weft_barrier(world));
        start = now_us();
        OK(weft_world_destroy(world));
        destroyed.push_back(now_us() - start);
    }

    all.world = create(HEAP);
    all.pe = weft_world_pe(all.world);
    all.pes = weft_world_pes(all.world);
    OK(weft_calloc(all.world, (size_t)all.pes, sizeof(double), (void **)&all.gathered));
    OK(weft_device_malloc(all.world, HEAP / 2 - ((size_t)2 << 20), (void **)&all.data));
    OK(weft_device_malloc(all.world, HEAP / 2 - ((size_t)2 << 20), (void **)&all.other));
    OK(weft_device_malloc(all.world, 8192, (void **)&all.flags));
    OK(weft_world_dev(all.world, &all.dev));
    OK(weft_team_dev(weft_team_world(all.world), &all.team));
    GPU(cudaMallocHost((void **)&all.ns, ROUNDS * sizeof(u64)));
    GPU(cudaMemset(all.other, 1 + all.pe, HEAP / 2 - ((size_t)2 << 20)));
    GPU(cudaFuncSetAttribute(put_bulk_rate, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536 + 128));
    GPU(cudaFuncSetAttribute(raw_bulk_load_rate, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536 + 128));
    OK(weft_barrier(all.world));

    first = max_of_all(&all, first);
    double create_us = max_of_all(&all, median_of(created));
    double destroy_us = max_of_all(&all, median_of(destroyed));
    double taken_bytes = max_of_all(&all, median_of(taken));
    if (all.pe == 0) {
        figure("world_create", "weft", all.pes, 0, first * 1e-3, "ms", 1, ", \"world\": \"first\"");
        figure("world_create", "weft", all.pes, 0, create_us * 1e-3, "ms", worlds - 1, ", \"world\": \"later\"");
        figure("world_destroy", "weft", all.pes, 0, destroy_us * 1e-3, "ms", worlds, "");
        figure("device_memory_idle", "weft", all.pes, 0, taken_bytes * 1e-6, "MB", worlds, ", \"heap_MB\": %.3g",
               granted * 1e-6);
    }
    if (all.pes >= 2) {
        latencies(&all);
    }
    barriers(&all);
    from_host(&all);
    if (all.pes >= 2) {
        rates(&all);
    }
    OK(weft_barrier(all.world));
    OK(weft_world_destroy(all.world));
    return 0;
}
