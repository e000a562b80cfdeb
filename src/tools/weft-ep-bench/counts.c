/* weft-ep-bench/counts.c: how soon the host has the counts of a new routing. */
#include "tools/weft-ep-bench/counts.h"

#include "tools/lib/clock.h"

#define POLLS_MANY 1000000

/* Looking all the time, as a program does that waits for nothing else; the library's wait rests in between, and is for
 * what does not come. */
static weft_status await(const bench_counts *of, const uint64_t *generations, uint64_t generation)
{
    int polls = 0;
    while (__atomic_load_n(&generations[generation % 2], __ATOMIC_ACQUIRE) != generation && polls < POLLS_MANY) {
        polls++;
    }
    return weft_ep_route_counts_wait(of->route, generation);
}

static weft_status time_once(const bench_counts *of, const uint64_t *generations, uint64_t generation, double *us)
{
    weft_status status = of->backend->ops->finish(of->backend);
    status = status != WEFT_OK ? status : weft_barrier(of->backend->world);
    const double start = tool_now_us();
    status = status != WEFT_OK ? status : of->call(of->context);
    status = status != WEFT_OK ? status : await(of, generations, generation);
    *us = tool_now_us() - start;
    return status != WEFT_OK ? status : of->backend->ops->finish(of->backend);
}

weft_status bench_counts_time(const bench_counts *of, int warmup, int repeats, double *us)
{
    weft_ep_count_arrays arrays = WEFT_EP_COUNT_ARRAYS_INIT;
    double unused;
    void *memory; /* of the heap, which GPUs reach: two generations, then the rows of both */
    weft_status status = weft_malloc(of->backend->world, 3 * sizeof(uint64_t), &memory);
    if (status != WEFT_OK) {
        return status;
    }
    arrays.generation = memory;
    arrays.rows = arrays.generation + 2;
    status = weft_ep_route_counts_to(of->route, &arrays);
    for (int i = -warmup; i < repeats && status == WEFT_OK; i++) {
        status = time_once(of, arrays.generation, (uint64_t)(warmup + i) + 1, i >= 0 ? &us[i] : &unused);
    }
    if (status != WEFT_OK) {
        return status; /* no collective frees the rest: the world's end does */
    }
    weft_status ended = weft_ep_route_counts_to(of->route, NULL);
    weft_status freed = weft_free(of->backend->world, memory);
    return ended != WEFT_OK ? ended : freed;
}
