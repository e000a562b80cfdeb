/* weft-ep-bench/host.c: the host: memory of the symmetric heap, calls that run inline, the monotonic clock. */
#include <string.h>
#include <time.h>

#include "tools/weft-ep-bench/backend.h"

#define PAGE 4096

static weft_status host_alloc(weft_world *world, size_t bytes, void **at)
{
    return weft_align(world, PAGE, bytes > 0 ? bytes : 1, at);
}

static weft_status host_free(weft_world *world, void *at)
{
    return weft_free(world, at);
}

static weft_status host_copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return WEFT_OK;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static weft_status host_time(weft_world *world, weft_status (*call)(void *context), void *context, double *us)
{
    weft_status status = weft_barrier(world);
    if (status != WEFT_OK) {
        return status;
    }
    double start = now_us();
    status = call(context);
    *us = now_us() - start;
    return status;
}

const bench_backend bench_host = {
    .on_device = 0,
    .stream = NULL,
    .alloc = host_alloc,
    .free = host_free,
    .write = host_copy,
    .read = host_copy,
    .time = host_time,
};
