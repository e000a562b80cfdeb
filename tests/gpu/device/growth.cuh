/* device/growth.cuh: teams that make the device heap grow: alone, beside each other, into each other, in vain. */
#ifndef DEVICE_GROWTH_CUH
#define DEVICE_GROWTH_CUH

#include "device/words.cuh"
#include "support/memory.h"

/* A world whose heap begins with one granule, and teams of it. */
typedef struct growth {
    bench all;
    weft_team *half; /* the even PEs, or the odd ones */
} growth;

static weft_team *team_of(test_pe *pe, weft_world *world, int start, int stride, int size)
{
    weft_team *team = NULL;
    OK(pe, weft_team_split_strided(weft_team_world(world), start, stride, size, &team));
    return team;
}

static size_t heap_bytes(test_pe *pe, weft_world *world)
{
    weft_device_info info;
    OK(pe, weft_device_query(world, &info));
    return info.heap_bytes;
}

static uint64_t mark_of(int from, int to, int which)
{
    return UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(from + 1) + (uint64_t)(1000 * to + which);
}

/* Every member writes to the last words of every member's block, by the host and by a kernel; each finds them. */
static void use_block(test_pe *pe, const bench *all, weft_team *team, void *block, size_t bytes)
{
    const int pes = weft_team_pes(team);
    const int own = weft_team_pe(team);
    uint64_t *words = (uint64_t *)((unsigned char *)block + bytes) - 2 * pes;
    for (int i = 0; i < pes; i++) {
        const int to = weft_team_translate(team, i, weft_team_world(all->world));
        OK(pe, weft_uint64_p(all->world, words + own, mark_of(own, i, 0), to));
        LAUNCH((p_kernel<uint64_t>), 1, 1, 0, pe, all->dev, words + pes + own, mark_of(own, i, 1), to, all->status);
        CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    }
    OK(pe, weft_team_barrier(team));
    for (int i = 0; i < 2 * pes; i++) {
        uint64_t seen = 0;
        OK(pe, weft_uint64_g(all->world, words + i, pe->pe, &seen));
        CHECK_SAY(pe, seen == mark_of(i % pes, own, i / pes), "word %d: %llx", i, (unsigned long long)seen);
    }
    OK(pe, weft_team_barrier(team));
}

static void *grow_and_use(test_pe *pe, const bench *all, weft_team *team, size_t bytes)
{
    void *block = NULL;
    OK(pe, weft_device_team_malloc(team, bytes, &block));
    if (block != NULL) {
        CHECK(pe, heap_bytes(pe, all->world) >= bytes);
        use_block(pe, all, team, block, bytes);
    }
    return block;
}

/* Both halves at once, again and again; each gets the same block when it has freed it. */
static void test_halves(test_pe *pe, const growth *g)
{
    pe->stage = "growth of disjoint teams";
    for (size_t mib = 3; mib <= 30; mib += 9) {
        OK(pe, weft_barrier(g->all.world));
        void *block = grow_and_use(pe, &g->all, g->half, (mib + (size_t)(pe->pe % 2) * 4) << 20);
        void *again = NULL;
        OK(pe, weft_device_team_free(g->half, block));
        OK(pe, weft_device_team_malloc(g->half, mib << 20, &again));
        CHECK(pe, again == block);
        OK(pe, weft_device_team_free(g->half, again));
    }
}

/* One half grows further: what it has is nothing of the others', who are told so. */
static void test_others(test_pe *pe, const growth *g)
{
    pe->stage = "growth and those that are not in it";
    const size_t before = heap_bytes(pe, g->all.world);
    const size_t bytes = (size_t)44 << 20;
    const int right = (pe->pe + 1) % pe->pes;
    OK(pe, weft_barrier(g->all.world));
    if (pe->pe % 2 == 0) {
        void *block = grow_and_use(pe, &g->all, g->half, bytes);
        if (right % 2 != 0 && block != NULL) {
            uint64_t *last = (uint64_t *)((unsigned char *)block + bytes) - 1;
            CHECK(pe, weft_ptr(g->all.world, last, right) == NULL);
            CHECK(pe, weft_uint64_p(g->all.world, last, 1, right) == WEFT_ERR_RANGE);
        }
        OK(pe, weft_device_team_free(g->half, block));
    } else {
        CHECK(pe, heap_bytes(pe, g->all.world) == before);
    }
    OK(pe, weft_barrier(g->all.world));
}

/* A PE is in the teams of its neighbours on both sides, and the halves have grown differently: pieces that some
 * processes have and others lack. Then the world, over all of it. */
static void test_overlaps(test_pe *pe, const growth *g)
{
    pe->stage = "growth of teams that share members";
    weft_team *pairs[8] = {};
    for (int i = 0; i + 1 < pe->pes; i++) {
        pairs[i] = team_of(pe, g->all.world, i, 1, 2);
    }
    for (int i = 0; i + 1 < pe->pes; i++) {
        if (pairs[i] != NULL) {
            void *block = grow_and_use(pe, &g->all, pairs[i], (size_t)(18 + 8 * i) << 20);
            OK(pe, weft_device_team_free(pairs[i], block));
        }
    }
    OK(pe, weft_barrier(g->all.world));
    void *block = grow_and_use(pe, &g->all, weft_team_world(g->all.world), (size_t)46 << 20);
    OK(pe, weft_device_free(g->all.world, block));
    for (int i = 0; i + 1 < pe->pes; i++) {
        OK(pe, weft_team_destroy(pairs[i]));
    }
}

/* Two threads of each PE, over two teams of the same members; which of them begins differs. */
#define THREAD_BLOCKS 5
typedef struct thread_growth {
    test_pe pe; /* of its own: failures are added up */
    weft_team *team;
    size_t bytes;
    void *blocks[THREAD_BLOCKS];
} thread_growth;

static void *grow_in_thread(void *argument)
{
    thread_growth *t = (thread_growth *)argument;
#if ON_GPU
    GPU(&t->pe, cudaSetDevice(t->pe.gpu));
#endif
    for (int i = 0; i < THREAD_BLOCKS; i++) {
        OK(&t->pe, weft_device_team_malloc(t->team, t->bytes, &t->blocks[i]));
    }
    return NULL;
}

static void test_two_threads(test_pe *pe)
{
    pe->stage = "growth by two threads of a PE";
    bench all = {};
    pthread_t handles[2];
    thread_growth threads[2];
    bench_open(pe, &all, test_world(pe, "threads", (size_t)110 << 20, 0));
    for (int i = 0; i < 2; i++) {
        threads[i] = (thread_growth){.pe = *pe, .bytes = (size_t)(9 + i) << 20};
        threads[i].pe.failures = 0;
        threads[i].team = team_of(pe, all.world, 0, 1, pe->pes);
    }
    OK(pe, weft_barrier(all.world));
    for (int i = 0; i < 2; i++) {
        pthread_create(&handles[(i + pe->pe) % 2], NULL, grow_in_thread, &threads[(i + pe->pe) % 2]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(handles[i], NULL);
        pe->failures += threads[i].pe.failures;
    }
    for (int i = 0; i < 2 * THREAD_BLOCKS; i++) {
        if (threads[i % 2].blocks[i / 2] != NULL) {
            use_block(pe, &all, threads[i % 2].team, threads[i % 2].blocks[i / 2], threads[i % 2].bytes);
        }
    }
    OK(pe, weft_world_destroy(all.world));
}

/* All memory of this PE's GPU but a little, which others may fill too; NULL after the last. */
#define FILL_MAX 32
static void fill_gpu(test_pe *pe, void *taken[FILL_MAX])
{
    (void)pe;
    int count = 0;
#if !ON_GPU
    void *context = NULL;
    (void)((int (*)(void **, int))gpu_driver("cuDevicePrimaryCtxRetain"))(&context, pe->gpu);
    (void)((int (*)(void *))gpu_driver("cuCtxPushCurrent_v2"))(context);
#endif
    for (size_t bytes = (size_t)64 << 30; bytes >= (size_t)16 << 20 && count < FILL_MAX - 1;) {
        void *memory = NULL;
#if ON_GPU
        const int is_there = cudaMalloc(&memory, bytes) == cudaSuccess;
        (void)cudaGetLastError();
#else
        const int is_there = ((int (*)(void **, size_t))gpu_driver("cuMemAlloc_v2"))(&memory, bytes) == 0;
#endif
        if (is_there) {
            taken[count++] = memory;
        } else {
            bytes /= 2;
        }
    }
    taken[count] = NULL;
#if !ON_GPU
    (void)((int (*)(void **))gpu_driver("cuCtxPopCurrent_v2"))(&context);
#endif
}

/* The GPU of the half's last member is full: no member gets anything, all are told why, and nothing has changed. */
static void test_full(test_pe *pe, const growth *g)
{
    pe->stage = "growth for which a GPU has no memory";
    const size_t bytes = (size_t)72 << 20;
    const int last = weft_team_translate(g->half, weft_team_pes(g->half) - 1, weft_team_world(g->all.world));
    void *taken[FILL_MAX] = {};
    void *none = NULL;
    OK(pe, weft_barrier(g->all.world));
    const size_t before = heap_bytes(pe, g->all.world);
    if (pe->pe == last) {
        fill_gpu(pe, taken);
    }
    OK(pe, weft_barrier(g->all.world));
    CHECK(pe, weft_device_team_malloc(g->half, bytes, &none) == WEFT_ERR_MEMORY && none == NULL);
    CHECK_SAY(pe, strstr(weft_last_error(), "cuMemCreate") != NULL, "%s", weft_last_error());
    CHECK(pe, heap_bytes(pe, g->all.world) == before);
    OK(pe, weft_barrier(g->all.world));
    for (int i = 0; i < FILL_MAX && taken[i] != NULL; i++) {
        gpu_free(taken[i]);
    }
    OK(pe, weft_barrier(g->all.world));
    void *block = grow_and_use(pe, &g->all, g->half, bytes);
    OK(pe, weft_device_team_free(g->half, block));
    OK(pe, weft_barrier(g->all.world));
}

/* A process cannot take what the others offer: they let go of what they have taken, and of what they have made, so that
 * what comes to lie there next is what all see. */
static void test_not_taken(test_pe *pe, const growth *g)
{
#if !ON_GPU
    pe->stage = "growth that a process cannot map";
    void *none = NULL;
    void *even =
        grow_and_use(pe, &g->all, weft_team_world(g->all.world), (size_t)72 << 20); /* no process lacks a piece */
    OK(pe, weft_device_free(g->all.world, even));
    OK(pe, weft_barrier(g->all.world));
    if (pe->pe == pe->pes - 1) {
        setenv("WEFT_FAKE_NO_IMPORT", "1", 1);
    }
    OK(pe, weft_barrier(g->all.world));
    CHECK(pe, weft_device_malloc(g->all.world, (size_t)84 << 20, &none) == WEFT_ERR_MEMORY && none == NULL);
    CHECK_SAY(pe, strstr(weft_last_error(), "cuMemImport") != NULL, "%s", weft_last_error());
    OK(pe, weft_barrier(g->all.world));
    unsetenv("WEFT_FAKE_NO_IMPORT");
    OK(pe, weft_barrier(g->all.world));
    void *block = grow_and_use(pe, &g->all, weft_team_world(g->all.world), (size_t)78 << 20);
    OK(pe, weft_device_free(g->all.world, block));
#else
    (void)pe, (void)g;
#endif
}

static void test_team_growth(test_pe *pe)
{
    growth g = {};
    pe->stage = "growth";
    bench_open(pe, &g.all, test_world(pe, "growth", (size_t)100 << 20, 0));
    weft_team *const evens = team_of(pe, g.all.world, 0, 2, (pe->pes + 1) / 2);
    weft_team *const odds = pe->pes > 1 ? team_of(pe, g.all.world, 1, 2, pe->pes / 2) : NULL;
    weft_device_info info;
    OK(pe, weft_device_query(g.all.world, &info));
    g.half = pe->pe % 2 == 0 ? evens : odds;
    if (strcmp(info.memory, "ipc") == 0) {
        void *none = NULL;
        CHECK(pe, weft_device_team_malloc(g.half, info.heap_bytes, &none) == WEFT_ERR_MEMORY && none == NULL);
    } else {
        test_halves(pe, &g);
        test_others(pe, &g);
        test_overlaps(pe, &g);
        test_full(pe, &g);
        if (pe->meeting == NULL && g.all.dev.near_count == (unsigned)pe->pes) {
            test_not_taken(pe, &g);
        }
    }
    OK(pe, weft_world_destroy(g.all.world));
    for (int round = 0; round < 3 && strcmp(info.memory, "ipc") != 0; round++) {
        test_two_threads(pe);
    }
}

#endif
