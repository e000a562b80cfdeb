/* weft-ep-bench/counts.c: how soon the host has the counts of a new routing. */
#include "tools/weft-ep-bench/counts.h"

#include <stdio.h>
#include <string.h>

#include "tools/lib/clock.h"
#include "tools/lib/kernels.h"

#define POLLS_MANY 1000000
#define NO_COUNT 0xff /* each byte of a count that is not there: -1 */

/* Pinned memory, which both write. */
typedef struct told {
    uint64_t generations[2];
    uint64_t rows[2]; /* told with them: some array must be */
    uint64_t there; /* the generation whose counts are in the route's own arrays */
} told;

typedef struct watch {
    const bench_counts *of;
    told *told;
    void *kernel; /* NULL: kernels of two streams do not run at once */
    weft_ep_counts counts; /* the route's own arrays */
    int experts;
} watch;

/* ---- the kernel beside the call ---- */

static weft_status clear(const watch *w, const int32_t *counts, int count)
{
    return tool_gpu_fill(w->of->backend->gpu, (void *)(uintptr_t)counts, NO_COUNT, (size_t)count * sizeof *counts);
}

/* On the second stream, behind what clears the route's own counts of before. */
static weft_status watch_begin(const watch *w, uint64_t generation)
{
    weft_stream *beside;
    tool_gpu *gpu = w->of->backend->gpu;
    const tool_kernel_args args = {.source = (uintptr_t)w->counts.rows_of_expert,
                                   .bytes = (wefti_u64)w->experts,
                                   .dest = (uintptr_t)w->counts.rows,
                                   .flag = (uintptr_t)&w->told->there,
                                   .first = generation};
    if (w->kernel == NULL) {
        return WEFT_OK;
    }
    weft_status status = clear(w, w->counts.rows_of_expert, w->experts);
    status = status != WEFT_OK ? status : clear(w, w->counts.rows, 1);
    status = status != WEFT_OK ? status : tool_gpu_fork(gpu, &beside);
    return status != WEFT_OK ? status : tool_gpu_launch_beside(gpu, w->kernel, TOOL_WATCHING_THREADS, &args);
}

static weft_status watch_end(const watch *w)
{
    weft_status status = w->kernel == NULL ? WEFT_OK : tool_gpu_join(w->of->backend->gpu);
    return status != WEFT_OK ? status : w->of->backend->ops->finish(w->of->backend);
}

static weft_status watch_open(watch *w)
{
    weft_ep_host_counts counts;
    bench_backend *backend = w->of->backend;
    weft_status status = tool_gpu_kernel(backend->gpu, "tool_counts_there_block", 0, &w->kernel);
    w->kernel = status == WEFT_OK ? w->kernel : NULL;
    status = status == WEFT_ERR_UNSUPPORTED ? WEFT_OK : status;
    status = status != WEFT_OK ? status : weft_ep_route_counts(w->of->route, &w->counts);
    status = status != WEFT_OK ? status : weft_ep_route_query(w->of->route, backend->stream, &counts);
    w->experts = status == WEFT_OK ? counts.local_experts : 0;
    return status;
}

/* ---- the host beside the call ---- */

/* Looking all the time, as a program does that waits for nothing else; the library's wait rests in between, and is for
 * what does not come. *told_us, *there_us: when the host saw either. */
static weft_status await(const watch *w, uint64_t generation, double *told_us, double *there_us)
{
    const uint64_t *word = &w->told->generations[generation % 2];
    *told_us = *there_us = 0;
    for (int polls = 0; polls < POLLS_MANY && (*told_us == 0 || (*there_us == 0 && w->kernel != NULL)); polls++) {
        if (*told_us == 0 && __atomic_load_n(word, __ATOMIC_ACQUIRE) == generation) {
            *told_us = tool_now_us();
        }
        if (*there_us == 0 && __atomic_load_n(&w->told->there, __ATOMIC_ACQUIRE) == generation) {
            *there_us = tool_now_us();
        }
    }
    weft_status status = weft_ep_route_counts_wait(w->of->route, generation);
    if (status == WEFT_OK && (*told_us == 0 || (*there_us == 0 && w->kernel != NULL))) {
        fprintf(stderr, "weft-ep-bench: the counts of routing %llu did not come while the host looked\n",
                (unsigned long long)generation);
        return WEFT_ERR_TIMEOUT;
    }
    return status;
}

static weft_status time_once(const watch *w, uint64_t generation, double *us, double *behind)
{
    double told_us = 0;
    double there_us = 0;
    const bench_counts *of = w->of;
    weft_status status = watch_begin(w, generation);
    status = status != WEFT_OK ? status : weft_barrier(of->backend->world);
    const double start = tool_now_us();
    status = status != WEFT_OK ? status : of->call(of->context);
    status = status != WEFT_OK ? status : await(w, generation, &told_us, &there_us);
    *us = told_us - start;
    *behind = told_us - there_us;
    weft_status ended = watch_end(w);
    return status != WEFT_OK ? status : ended;
}

static weft_status time_all(watch *w, int warmup, int repeats, double *us, double *behind)
{
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    double unused;
    arrays.generation = w->told->generations;
    arrays.rows = w->told->rows;
    weft_status status = watch_open(w);
    status = status != WEFT_OK ? status : weft_ep_route_counts_to(w->of->route, &arrays);
    for (int i = -warmup; i < repeats && status == WEFT_OK; i++) {
        status = time_once(w, (uint64_t)(warmup + i) + 1, i >= 0 ? &us[i] : &unused, i >= 0 ? &behind[i] : &unused);
    }
    weft_status ended = status == WEFT_OK ? weft_ep_route_counts_to(w->of->route, NULL) : WEFT_OK;
    return status != WEFT_OK ? status : ended;
}

weft_status bench_counts_time(const bench_counts *of, int warmup, int repeats, double *us, double *behind,
                              int *has_behind)
{
    void *memory;
    watch w = {.of = of};
    weft_status status = tool_gpu_host_malloc(of->backend->gpu, sizeof(told), &memory);
    if (status != WEFT_OK) {
        return status;
    }
    memset(memory, 0, sizeof(told));
    w.told = memory;
    status = time_all(&w, warmup, repeats, us, behind);
    if (status != WEFT_OK) {
        return status; /* kernels may still write there: the context's end frees it */
    }
    *has_behind = w.kernel != NULL;
    return tool_gpu_host_free(of->backend->gpu, memory);
}
