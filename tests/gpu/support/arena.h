/* support/arena.h: device memory for the arrays of calls: in the device heap, registered, and neither. */
#ifndef GPU_SUPPORT_ARENA_H
#define GPU_SUPPORT_ARENA_H

#include "support/memory.h"
#undef CHECK /* from here on those of support/check.h */
#undef CHECK_SAY

extern "C" {
#include "support/check.h"
#include "support/ep_arrays.h"
#include "support/ep_workers.h"
}

#define ARENA ((size_t)(ON_GPU ? 96 : 48) << 20)

/* Memory of the arrays of a call: three blocks of which they take parts, one behind the other. */
enum { HEAP, REGISTERED, PLAIN, KINDS };

typedef struct arena {
    test_pe *pe;
    unsigned char *pinned; /* copies go through it */
    size_t pinned_used; /* by copies that may not have ended */
    unsigned char *base[KINDS];
    size_t used[KINDS];
    int live;
} arena;

static inline void *arena_place(void *context, const void *image, size_t bytes, unsigned random)
{
    arena *all = (arena *)context;
    int kind = (int)(random % KINDS);
    size_t at = all->used[kind] + (random / KINDS % 8) * 16;
    if (at + bytes > ARENA) {
        fprintf(stderr, "the arena is too small\n");
        exit(1);
    }
    all->used[kind] = (at + bytes + 15) / 16 * 16;
    all->live++;
    if (all->pinned_used + bytes > ARENA) {
        gpu_wait(all->pe);
        all->pinned_used = 0;
    }
    unsigned char *from = all->pinned + all->pinned_used;
    all->pinned_used += (bytes + 63) / 64 * 64;
    memcpy(from, image, bytes);
    gpu_copy_later(all->pe, all->base[kind] + at, from, bytes);
    return all->base[kind] + at;
}

static inline void arena_fetch(void *context, void *image, const void *there, size_t bytes)
{
    arena *all = (arena *)context;
    gpu_copy(all->pe, all->pinned, there, bytes); /* behind those from there */
    all->pinned_used = 0;
    memcpy(image, all->pinned, bytes);
}

static inline void arena_release(void *context, void *there, size_t bytes)
{
    arena *all = (arena *)context;
    gpu_set_later(all->pe, there, 0x5a, bytes); /* before what is placed or called next */
    if (--all->live == 0) {
        memset(all->used, 0, sizeof all->used);
    }
}

static inline void arena_open(arena *all, test_pe *pe, weft_world *world, ep_memory *memory)
{
    all->pe = pe;
    all->base[HEAP] = (unsigned char *)test_malloc(pe, world, ARENA);
    all->pinned = gpu_alloc_pinned(ARENA);
    gpu_set(pe, all->base[HEAP], 0, ARENA);
    all->base[REGISTERED] = gpu_alloc(ARENA);
    all->base[PLAIN] = gpu_alloc(ARENA);
    CHECK_OK(weft_device_register(world, all->base[REGISTERED], ARENA));
    memory->context = all;
    memory->place = arena_place;
    memory->fetch = arena_fetch;
    memory->release = arena_release;
#if ON_GPU
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    __atomic_store_n(&ep_workers_wanted, cores > pe->pes ? (int)(cores / pe->pes) : 1, __ATOMIC_RELAXED);
#endif
}

/* Before the world ends. */
static inline void arena_deregister(arena *all, weft_world *world)
{
    gpu_wait(all->pe);
    CHECK_OK(weft_device_unregister(world, all->base[REGISTERED]));
}

/* After. */
static inline void arena_close(arena *all)
{
    gpu_free(all->base[REGISTERED]);
    gpu_free(all->base[PLAIN]);
    gpu_free_pinned(all->pinned);
}

#endif
