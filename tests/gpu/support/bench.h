/* support/bench.h: one world with what the tests of the device API need: symmetric buffers on it, kernels at each
 * scope, and device memory from the host, through the API under test. */
#ifndef GPU_SUPPORT_BENCH_H
#define GPU_SUPPORT_BENCH_H

#include "support/launch.h"

#define POISON 0xa5
#define ROOM 70000

#define KINDS (ON_GPU ? 3 : 1)

static void fill(test_pe *pe, weft_world *world, void *block, int value, size_t bytes)
{
    unsigned char *bytes_of = (unsigned char *)malloc(bytes);
    memset(bytes_of, value, bytes);
    OK(pe, weft_putmem(world, block, bytes_of, bytes, pe->pe));
    free(bytes_of);
}

static int read_status(test_pe *pe, weft_world *world, const int *status)
{
    int value = 1;
    finish(pe);
    OK(pe, weft_getmem(world, &value, status, sizeof value, pe->pe));
    return value;
}

/* What all tests of one world share. */
typedef struct bench {
    weft_world *world;
    weft_dev dev;
    unsigned char *target; /* symmetric device memory, ROOM bytes a PE */
    unsigned char *source; /* symmetric device memory, used locally */
    unsigned char *host_target; /* the same on the host heap */
    int *status;
    uint64_t *words;
} bench;

/* WEFT_CUDA_DOMAIN makes PEs far that load and store would reach. */
static int is_far(const bench *all, int pe)
{
    return (unsigned)pe - all->dev.near_first >= all->dev.near_count;
}

static void bench_open(test_pe *pe, bench *all, weft_world *world)
{
    all->world = world;
    all->target = (unsigned char *)test_malloc(pe, world, (size_t)ROOM * (size_t)pe->pes);
    all->source = (unsigned char *)test_malloc(pe, world, (size_t)ROOM * 2);
    all->status = (int *)test_malloc(pe, world, 4096);
    all->words = (uint64_t *)test_malloc(pe, world, 8192);
    OK(pe, weft_malloc(world, (size_t)ROOM * (size_t)pe->pes, (void **)&all->host_target));
    OK(pe, weft_world_dev(world, &all->dev));
    fill(pe, world, all->words, 0, 8192);
    OK(pe, weft_barrier(world));
}

#endif
