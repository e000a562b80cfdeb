/* weft-ep-bench/device.c: GPUs: one a PE. A call is timed as a graph of {the caches flushed, a barrier of the streams,
 * an event, the call, an event}; where the driver cannot capture, the same without a graph. The floor is the bytes over
 * the rate at which all GPUs store to each other by the copy engines of so many multiprocessors, in the same run. */
#include <stdlib.h>

#include "tools/lib/kernels.h"
#include "tools/lib/pes.h"
#include "tools/lib/stats.h"
#include "tools/weft-ep-bench/backend.h"
#include "weft/coll.h"
#include "weft/device.h"
#include "weft/stream.h"

#define FLUSHES 3 /* as many bytes as the caches hold */
#define CHUNK ((size_t)256 << 10)
#define RATE_BYTES_MAX ((size_t)192 << 20) /* a GPU sends so much at most */
#define RATE_SHARE 8 /* and no more than this part of what its heap can be */
/* The same to GPUs that are not mapped, which stores reach through the host. */
#define FAR_CHUNK ((size_t)16 << 10)
#define FAR_RATE_BYTES ((size_t)4 << 20)
#define RATE_RUNS 5
#define BULK_SHARED_BYTES (65536 + 128)

static weft_status device_alloc(bench_backend *backend, size_t bytes, int is_symmetric, void **at)
{
    bytes = bytes > 0 ? bytes : 1;
    return is_symmetric ? weft_device_malloc(backend->world, bytes, at) : tool_gpu_malloc(backend->gpu, bytes, at);
}

static weft_status device_free(bench_backend *backend, void *at, int is_symmetric)
{
    return is_symmetric ? weft_device_free(backend->world, at) : tool_gpu_free(backend->gpu, at);
}

static weft_status device_copy(bench_backend *backend, void *to, const void *from, size_t bytes)
{
    return tool_gpu_copy(backend->gpu, to, from, bytes);
}

static weft_status device_fill(bench_backend *backend, void *at, unsigned char value, size_t bytes)
{
    weft_status status = tool_gpu_fill(backend->gpu, at, value, bytes);
    return status != WEFT_OK ? status : tool_gpu_synchronise(backend->gpu);
}

static weft_status device_finish(bench_backend *backend)
{
    weft_status status = tool_gpu_synchronise(backend->gpu);
    return status != WEFT_OK ? status : weft_world_fault(backend->world, NULL);
}

/* ---- time ---- */

static weft_status enqueue(bench_backend *backend, weft_status (*call)(void *context), void *context)
{
    weft_status status = tool_gpu_fill(backend->gpu, backend->flush, 1, backend->flush_bytes);
    status = status != WEFT_OK ? status : weft_barrier_on_stream(backend->world, backend->stream);
    status = status != WEFT_OK ? status : tool_gpu_begin(backend->gpu);
    status = status != WEFT_OK ? status : call(context);
    return status != WEFT_OK ? status : tool_gpu_end(backend->gpu);
}

/* *graph stays NULL where there are no graphs. */
static weft_status capture(bench_backend *backend, weft_status (*call)(void *context), void *context, void **graph)
{
    *graph = NULL;
    weft_status status = tool_gpu_capture_begin(backend->gpu);
    if (status != WEFT_OK) {
        return status == WEFT_ERR_UNSUPPORTED ? WEFT_OK : status;
    }
    status = enqueue(backend, call, context);
    weft_status ended = tool_gpu_capture_end(backend->gpu, graph);
    return status != WEFT_OK ? status : ended;
}

static weft_status run_once(bench_backend *backend, void *graph, weft_status (*call)(void *context), void *context,
                            double *us)
{
    weft_status status = weft_barrier(backend->world);
    status = status != WEFT_OK ? status
             : graph != NULL   ? tool_gpu_graph_launch(backend->gpu, graph)
                               : enqueue(backend, call, context);
    status = status != WEFT_OK ? status : device_finish(backend);
    return status != WEFT_OK ? status : tool_gpu_elapsed(backend->gpu, us);
}

static weft_status device_time(bench_backend *backend, weft_status (*call)(void *context), void *context, int warmup,
                               int repeats, double *us)
{
    void *graph;
    double unused;
    weft_status status = capture(backend, call, context, &graph);
    for (int i = -warmup; i < repeats && status == WEFT_OK; i++) {
        status = run_once(backend, graph, call, context, i >= 0 ? &us[i] : &unused);
    }
    tool_gpu_graph_free(backend->gpu, graph);
    return status;
}

/* ---- the floor ---- */

typedef struct store_all {
    bench_backend *backend;
    void *kernel;
    int blocks;
    tool_kernel_args args;
} store_all;

static weft_status launch_stores(void *context)
{
    store_all *job = context;
    weft_status status = tool_gpu_fill(job->backend->gpu, (void *)(uintptr_t)job->args.taken, 0, sizeof(unsigned));
    return status != WEFT_OK
               ? status
               : tool_gpu_launch(job->backend->gpu, job->kernel, job->blocks, 32, BULK_SHARED_BYTES, &job->args);
}

static weft_status time_stores(store_all *job, double *rate)
{
    bench_backend *backend = job->backend;
    double us[RATE_RUNS];
    tool_figure figure;
    double *slowest;
    weft_status status = weft_malloc(backend->world, sizeof us, (void **)&slowest);
    status = status != WEFT_OK ? status : device_time(backend, launch_stores, job, 1, RATE_RUNS, slowest);
    status = status != WEFT_OK ? status
                               : weft_double_max_reduce(weft_team_world(backend->world), slowest, slowest, RATE_RUNS);
    if (status == WEFT_OK) {
        for (int i = 0; i < RATE_RUNS; i++) {
            us[i] = slowest[i];
        }
        tool_figure_of(&figure, us, RATE_RUNS);
        *rate = (double)job->args.chunks * (double)job->args.chunk_bytes / figure.median;
        status = weft_free(backend->world, slowest);
    }
    return status;
}

static int is_mapped_by_all(const weft_world *world, const void *block)
{
    int is_mapped = 1;
    for (int pe = 0; pe < weft_world_pes(world); pe++) {
        is_mapped &= weft_ptr(world, block, pe) != NULL;
    }
    return is_mapped;
}

static weft_status measure_rate(bench_backend *backend, int sms)
{
    weft_device_info info;
    void *block;
    store_all job = {.backend = backend, .blocks = sms > 0 ? sms : tool_gpu_multiprocessors(backend->gpu)};
    weft_status status = tool_gpu_kernel(backend->gpu, "tool_put_bulk_bw_warp", BULK_SHARED_BYTES, &job.kernel);
    status = status != WEFT_OK ? status : weft_device_query(backend->world, &info);
    if (status != WEFT_OK) {
        return status;
    }
    size_t bytes =
        info.heap_max_bytes / RATE_SHARE < RATE_BYTES_MAX ? info.heap_max_bytes / RATE_SHARE : RATE_BYTES_MAX;
    bytes = bytes / CHUNK * CHUNK;
    status = weft_device_malloc(backend->world, 2 * bytes + CHUNK, &block);
    if (status != WEFT_OK) {
        return status;
    }
    const size_t chunk = is_mapped_by_all(backend->world, block) ? CHUNK : FAR_CHUNK;
    const size_t sent = chunk == CHUNK || bytes < FAR_RATE_BYTES ? bytes : FAR_RATE_BYTES;
    job.args = (tool_kernel_args){.dest = (uintptr_t)block,
                                  .source = (uintptr_t)block + bytes,
                                  .taken = (uintptr_t)block + 2 * bytes,
                                  .chunk_bytes = chunk,
                                  .chunks = (unsigned)(sent / chunk),
                                  .shared_bytes = BULK_SHARED_BYTES,
                                  .spread = weft_world_pes(backend->world) - 1};
    status = device_fill(backend, (unsigned char *)block + bytes, 1, bytes);
    status = status != WEFT_OK ? status : weft_world_dev(backend->world, &job.args.team.world);
    status = status != WEFT_OK ? status : time_stores(&job, &backend->rate);
    backend->rate_sms = sms;
    weft_status freed = weft_device_free(backend->world, block);
    return status != WEFT_OK ? status : freed;
}

static weft_status device_floor(bench_backend *backend, size_t bytes, int sms, int repeats, double *us)
{
    weft_status status = backend->rate_sms == sms ? WEFT_OK : measure_rate(backend, sms);
    for (int i = 0; i < repeats && status == WEFT_OK; i++) {
        us[i] = (double)bytes / backend->rate;
    }
    return status;
}

/* ---- its life ---- */

int bench_device_open(bench_backend *backend, weft_world *world, int is_threads)
{
    static const bench_backend_ops ops = {
        .alloc = device_alloc,
        .free = device_free,
        .write = device_copy,
        .read = device_copy,
        .fill = device_fill,
        .finish = device_finish,
        .time = device_time,
        .floor = device_floor,
    };
    const char *local = getenv("WEFT_LOCAL_PE");
    int number = is_threads || local == NULL ? weft_world_pe(world) : atoi(local);
    int gpus = tool_gpu_count();
    weft_device_config config = WEFT_DEVICE_CONFIG_INIT;
    *backend = (bench_backend){.ops = &ops, .world = world, .on_device = 1, .rate_sms = -1};
    config.choice = WEFT_DEVICE_ORDINAL; /* so that the world keeps the context by itself */
    config.ordinal = gpus > 0 ? number % gpus : 0;
    if (tool_gpu_open(config.ordinal, &backend->gpu) != WEFT_OK) {
        return 1;
    }
    backend->stream = tool_gpu_stream(backend->gpu);
    backend->flush_bytes = FLUSHES * tool_gpu_cache_bytes(backend->gpu);
    return tool_failed(weft_device_attach(world, &config), "weft_device_attach") ||
           tool_gpu_malloc(backend->gpu, backend->flush_bytes, &backend->flush) != WEFT_OK ||
           tool_failed(weft_barrier_on_stream(world, backend->stream), "a barrier") ||
           tool_failed(device_finish(backend), "a barrier");
}

void bench_backend_close(bench_backend *backend)
{
    if (backend->gpu != NULL && backend->flush != NULL) {
        (void)tool_gpu_free(backend->gpu, backend->flush);
    }
    tool_gpu_close(backend->gpu);
}
