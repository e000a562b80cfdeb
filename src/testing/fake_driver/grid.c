/* testing/fake_driver/grid.c: the threads of a grid, in turn. */
#include "testing/fake_driver/grid.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "testing/sim/coroutine.h"

#define STACK_BYTES ((size_t)128 << 10)
/* Of one PE's stacks: each costs two mappings, and a process of 128 PEs may have 65,530. */
#define GUARDS_MAX 128
#define STORES_MAX 64 /* of a thread, not yet done */

typedef struct fake_store {
    void *to;
    const void *from;
    unsigned bytes;
    unsigned group;
} fake_store;

typedef struct fake_thread {
    fake_place place; /* first */
    wefti_coroutine coroutine;
    struct fake_grid *grid;
    struct fake_thread *next; /* of those that may run */
    unsigned turn; /* exchanges it has made */
    fake_store stores[STORES_MAX];
    unsigned stores_count;
    unsigned groups; /* of stores, ended */
} fake_thread;

typedef struct fake_warp {
    uint64_t values[2][FAKE_WARP]; /* of this exchange and of the one before, which some lanes may still read */
    int kind;
    int arrived;
} fake_warp;

typedef struct fake_grid {
    void (*body)(const void *args);
    const void *args;
    unsigned threads;
    fake_thread *all;
    fake_warp *warps;
    unsigned *arrived; /* at the barrier, by block */
    unsigned char *shared;
    fake_thread *first; /* of those that may run */
    fake_thread **last;
    unsigned left;
    unsigned pauses; /* since somebody got on */
    wefti_coroutine launcher;
} fake_grid;

/* What a launch needs for each of its threads. It is kept for the next one: to map and clear it anew would take a third
 * of a short kernel's time. */
typedef struct fake_kept {
    wefti_stacks stacks;
    fake_thread *threads;
    fake_warp *warps;
} fake_kept;

static __thread fake_thread *self;
static __thread fake_kept kept;
static __thread unsigned drawn = 1; /* the last random number */

static void fail(const char *what)
{
    fprintf(stderr, "fake GPU: %s: block %u, thread %u\n", what, self->place.block.x, self->place.thread.x);
    abort();
}

/* ---- in turn ---- */

static void let_run(fake_grid *grid, fake_thread *thread)
{
    thread->next = NULL;
    *grid->last = thread;
    grid->last = &thread->next;
}

static fake_thread *take_next(fake_grid *grid)
{
    fake_thread *next = grid->first;
    if (next == NULL) {
        fail("all threads wait for each other");
    }
    grid->first = next->next;
    if (grid->first == NULL) {
        grid->last = &grid->first;
    }
    return next;
}

/* A random number below `end`; the same numbers in each run of a program. */
static unsigned draw(unsigned end)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)drawn * end >> 32);
}

/* Run another thread; returns when this one has been made ready and its turn has come. */
static void give_way(void)
{
    fake_thread *from = self;
    fake_thread *to = take_next(from->grid);
    if (to != from) {
        self = to;
        wefti_coroutine_switch(&from->coroutine, &to->coroutine);
    }
}

static void thread_main(void *argument)
{
    fake_thread *thread = argument;
    fake_grid *grid = thread->grid;
    grid->body(grid->args);
    fake_stores_wait(0);
    if (--grid->left == 0) {
        self = NULL;
        wefti_coroutine_switch_last(&thread->coroutine, &grid->launcher);
    }
    self = take_next(grid);
    wefti_coroutine_switch_last(&thread->coroutine, &self->coroutine);
}

/* Make the threads that met ready, this one among them, in a random order: what one does without waiting for another
 * may happen before or after what the other does. */
static void let_run_those_who_met(fake_grid *grid, unsigned first, unsigned count, unsigned step)
{
    unsigned turn = draw(count / step) * step;
    for (unsigned i = 0; i < count; i++) {
        let_run(grid, &grid->all[first + (i + turn) % count]);
    }
    give_way();
}

/* Warps begin in an order that differs from launch to launch. */
static void start(fake_grid *grid, unsigned blocks)
{
    static __thread unsigned launches;
    unsigned count = blocks * grid->threads;
    unsigned turn = launches++ % (count / FAKE_WARP) * FAKE_WARP;
    grid->last = &grid->first;
    for (unsigned i = 0; i < count; i++) {
        fake_thread *thread = &grid->all[i];
        thread->grid = grid;
        thread->turn = 0;
        thread->stores_count = 0;
        thread->groups = 0;
        wefti_coroutine_init(&thread->coroutine, wefti_stacks_at(&kept.stacks, i), STACK_BYTES, thread_main, thread);
    }
    for (unsigned i = 0; i < count / FAKE_WARP; i++) {
        grid->warps[i].arrived = 0;
    }
    for (unsigned i = 0; i < count; i++) {
        let_run(grid, &grid->all[(i + turn) % count]);
    }
}

static void place_all(fake_grid *grid, unsigned blocks, size_t shared_bytes)
{
    size_t stride = FAKE_FIXED_SHARED + (shared_bytes + 127) / 128 * 128;
    for (unsigned i = 0; i < blocks * grid->threads; i++) {
        unsigned char *shared = grid->shared + i / grid->threads * stride;
        grid->all[i].place = (fake_place){
            .thread = {i % grid->threads},
            .block = {i / grid->threads},
            .threads = {grid->threads, 1, 1},
            .blocks = {blocks, 1, 1},
            .fixed_shared = shared,
            .dynamic_shared = shared + FAKE_FIXED_SHARED,
        };
    }
}

static void *take(size_t count, size_t bytes)
{
    void *memory = aligned_alloc(128, (count * bytes + 127) / 128 * 128);
    if (memory == NULL) {
        fprintf(stderr, "fake GPU: no memory for a grid\n");
        abort();
    }
    memset(memory, 0, count * bytes);
    return memory;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* For `count` threads in place of fewer. */
static void keep(size_t count)
{
    if (kept.stacks.count > 0) {
        munmap(kept.threads, kept.stacks.count * sizeof *kept.threads);
        munmap(kept.warps, kept.stacks.count / FAKE_WARP * sizeof *kept.warps);
    }
    wefti_stacks_fini(&kept.stacks);
    kept.threads = map(count * sizeof *kept.threads);
    kept.warps = map(count / FAKE_WARP * sizeof *kept.warps);
    if (kept.threads == NULL || kept.warps == NULL ||
        !wefti_stacks_init(&kept.stacks, count, STACK_BYTES, 1 + count / GUARDS_MAX)) {
        fprintf(stderr, "fake GPU: no memory for %zu threads\n", count);
        abort();
    }
}

static unsigned running; /* kernels of this process */

void fake_kernels_count(int more)
{
    (void)__atomic_add_fetch(&running, (unsigned)more, __ATOMIC_ACQ_REL);
}

unsigned fake_kernels_running(void)
{
    return __atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

void fake_grid_run(void (*body)(const void *args), const void *args, unsigned blocks, unsigned threads,
                   size_t shared_bytes)
{
    size_t count = (size_t)blocks * threads;
    if (kept.stacks.count < count) {
        keep(count);
    }
    fake_grid grid = {
        .body = body,
        .args = args,
        .threads = threads,
        .all = kept.threads,
        .warps = kept.warps,
        .left = blocks * threads,
    };
    grid.arrived = take(blocks, sizeof *grid.arrived);
    grid.shared = take(blocks, FAKE_FIXED_SHARED + (shared_bytes + 127) / 128 * 128);
    place_all(&grid, blocks, shared_bytes);
    start(&grid, blocks);
    wefti_coroutine_init_thread(&grid.launcher);
    fake_kernels_count(1);
    self = take_next(&grid);
    wefti_coroutine_switch(&grid.launcher, &self->coroutine);
    fake_kernels_count(-1);
    for (size_t i = 0; i < count; i++) {
        wefti_coroutine_fini(&grid.all[i].coroutine);
    }
    free(grid.arrived);
    free(grid.shared);
}

/* ---- by a thread ---- */

const fake_place *fake_here(void)
{
    return &self->place;
}

void fake_pause(void)
{
    fake_grid *grid = self->grid;
    if (++grid->pauses > grid->left) {
        grid->pauses = 0;
        sched_yield();
    }
    let_run(grid, self);
    give_way();
}

void fake_sync_block(void)
{
    fake_grid *grid = self->grid;
    unsigned block = self->place.block.x;
    if (++grid->arrived[block] < grid->threads) {
        give_way();
        return;
    }
    grid->arrived[block] = 0;
    grid->pauses = 0;
    let_run_those_who_met(grid, block * grid->threads, grid->threads, FAKE_WARP);
}

const uint64_t *fake_exchange(int kind, uint64_t value)
{
    fake_grid *grid = self->grid;
    unsigned number = (unsigned)(self - grid->all);
    fake_warp *warp = &grid->warps[number / FAKE_WARP];
    unsigned turn = self->turn++ & 1;
    warp->values[turn][number % FAKE_WARP] = value;
    if (warp->arrived > 0 && warp->kind != kind) {
        fail("lanes of a warp meet in different places");
    }
    warp->kind = kind;
    if (++warp->arrived < FAKE_WARP) {
        give_way();
        return warp->values[turn];
    }
    warp->arrived = 0;
    grid->pauses = 0;
    let_run_those_who_met(grid, number / FAKE_WARP * FAKE_WARP, FAKE_WARP, 1);
    return warp->values[turn];
}

/* ---- bulk stores ---- */

void fake_store_add(void *to, const void *from, unsigned bytes)
{
    if (self->stores_count == STORES_MAX) {
        fail("too many bulk stores that nobody waits for");
    }
    self->stores[self->stores_count++] = (fake_store){to, from, bytes, self->groups};
}

void fake_stores_commit(void)
{
    self->groups++;
}

void fake_stores_wait(unsigned groups_left)
{
    unsigned done = 0;
    while (done < self->stores_count && self->stores[done].group + groups_left < self->groups) {
        memcpy(self->stores[done].to, self->stores[done].from, self->stores[done].bytes);
        done++;
    }
    if (done == 0) {
        return;
    }
    memmove(self->stores, self->stores + done, (self->stores_count - done) * sizeof *self->stores);
    self->stores_count -= done;
}
