/* sim/threads.c: threads of a PE use its world at once. Each one's quiet completes what that thread has put, whatever
 * the others do meanwhile, and each hears the answers to what it has asked. */
#include <string.h>

#include "os/os.h"
#include "sim/cases.h"
#include "weft/slab.h"

#define THREADS 3
#define ROUNDS 4
#define PUTS 5
#define LARGE 320 /* words: a network may move them by itself */

/* What a thread has put into a PE; the words of the PE's board tell where those are. */
typedef struct words {
    uint64_t put[THREADS][PUTS];
    uint64_t large[THREADS][LARGE];
    uint64_t added[THREADS];
} words;

typedef struct one_thread {
    wefti_os_thread *thread;
    const case_run *run;
    weft_world *world;
    words *of_sources; /* [PEs] */
    int number;
} one_thread;

/* The words of this PE's threads at PE `to`, in its memory itself: what is there has arrived. */
static const volatile words *arrived(const one_thread *one, int to)
{
    const words *there = (const words *)(uintptr_t)one->run->board[to];
    return &there[weft_world_pe(one->world)];
}

static void put_some(const one_thread *one, int to, uint64_t round)
{
    const int pe = weft_world_pe(one->world);
    uint64_t *at = one->of_sources[pe].put[one->number];
    uint64_t values[PUTS];
    for (int i = 0; i < PUTS; i++) {
        values[i] = case_value(pe, to, round) + (uint64_t)i;
    }
    if (weft_sim_random(2) == 0) {
        MUST(weft_uint64_put_nbi(one->world, at, values, PUTS, to));
        return;
    }
    for (int i = 0; i < PUTS; i++) { /* which a network may gather */
        MUST(weft_uint64_p(one->world, &at[i], values[i], to));
    }
}

/* What a thread has put is there for it at once, also while others put and complete. */
static void put_and_get(const one_thread *one, int to, uint64_t round)
{
    const int pe = weft_world_pe(one->world);
    uint64_t *at = one->of_sources[pe].large[one->number];
    uint64_t values[LARGE];
    uint64_t seen[LARGE];
    for (int i = 0; i < LARGE; i++) {
        values[i] = case_value(pe, to, round * LARGE + (uint64_t)i);
    }
    MUST(weft_fence(one->world));
    MUST(weft_uint64_put(one->world, at, values, LARGE, to));
    if (!one->run->messages) { /* which keep a PE's reads behind its puts by themselves */
        MUST(weft_fence(one->world));
    }
    MUST(weft_getmem(one->world, seen, at, sizeof seen, to));
    if (memcmp(seen, values, sizeof seen) != 0) {
        weft_sim_fail("round %d: thread %d of PE %d does not find what it has put to PE %d", (int)round, one->number,
                      pe, to);
    }
}

static void work(void *argument)
{
    const one_thread *one = argument;
    const int pe = weft_world_pe(one->world);
    uint64_t added[64] = {0};
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const int to = (pe + 1 + (int)weft_sim_random((uint64_t)one->run->pes - 1)) % one->run->pes;
        uint64_t before = 0;
        put_some(one, to, round);
        dawdle(4, 3000);
        if (weft_sim_random(3) == 0) {
            put_and_get(one, to, round);
        }
        if (weft_sim_random(2) == 0) {
            MUST(weft_uint64_atomic_fetch_add(one->world, &one->of_sources[pe].added[one->number], 1, to, &before));
            if (before != added[to]++) {
                weft_sim_fail("round %d: PE %d has %d from thread %d, and it is told %d", (int)round, to,
                              (int)added[to] - 1, one->number, (int)before);
            }
        }
        MUST(weft_quiet(one->world));
        for (int i = 0; i < PUTS; i++) {
            const uint64_t seen = arrived(one, to)->put[one->number][i];
            if (seen != case_value(pe, to, round) + (uint64_t)i) {
                weft_sim_fail("round %d: after a quiet of thread %d word %d at PE %d is %llx", (int)round, one->number,
                              i, to, (unsigned long long)seen);
            }
        }
    }
}

/* ---- a slab ---- */

#define SLAB_BYTES 4096
#define SLAB_TURNS 24
#define SLAB_KEPT 4

typedef struct slab_thread {
    wefti_os_thread *thread;
    weft_slab *slab;
    void **shared; /* a piece that all of them give back */
    int *given; /* how many of them were told that they have */
    int *tried;
    int number;
} slab_thread;

static void give_back_once(const slab_thread *one)
{
    const weft_status status = weft_slab_free(one->slab, *one->shared);
    *one->given += status == WEFT_OK;
    if (status != WEFT_ERR_ARGUMENT) {
        must(status, "to give back a piece that others may have given back");
    }
    ++*one->tried;
    while (*one->tried < THREADS) { /* then it may be another's */
        weft_sim_sleep_ns(100);
    }
}

/* Pieces of this thread alone hold its number as long as it has them. */
static void take_pieces(void *argument)
{
    const slab_thread *one = argument;
    unsigned char *kept[SLAB_KEPT] = {NULL};
    size_t bytes[SLAB_KEPT] = {0};
    give_back_once(one);
    for (int turn = 0; turn < SLAB_TURNS + SLAB_KEPT; turn++) {
        const int slot = turn % SLAB_KEPT;
        for (size_t i = 0; kept[slot] != NULL && i < bytes[slot]; i++) {
            if (kept[slot][i] != one->number + 1) {
                weft_sim_fail("byte %zu of a piece of thread %d is %d", i, one->number, kept[slot][i]);
            }
        }
        MUST(weft_slab_free(one->slab, kept[slot]));
        kept[slot] = NULL;
        if (turn < SLAB_TURNS) {
            bytes[slot] = 1 + (size_t)weft_sim_random(900);
            MUST(weft_slab_alloc(one->slab, bytes[slot], (size_t)64 << weft_sim_random(3), (void **)&kept[slot]));
        }
        if (kept[slot] != NULL) {
            memset(kept[slot], one->number + 1, bytes[slot]);
        }
    }
}

/* Each piece is one thread's; of those that give back the same one is told that it was a piece; at last all is free. */
static void share_a_slab(void)
{
    static const weft_slab_use start = WEFT_SLAB_USE_INIT;
    _Alignas(64) unsigned char block[SLAB_BYTES];
    slab_thread threads[THREADS];
    weft_slab *slab;
    weft_slab_use use = start;
    void *shared;
    int given = 0;
    int tried = 0;
    MUST(weft_slab_create(block, sizeof block, &slab));
    MUST(weft_slab_alloc(slab, 200, 0, &shared));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (slab_thread){.slab = slab, .shared = &shared, .given = &given, .tried = &tried, .number = i};
    }
    for (int i = 0; i < THREADS; i++) {
        MUST(wefti_os_thread_start(&threads[i].thread, take_pieces, &threads[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(threads[i].thread);
    }
    MUST(weft_slab_query(slab, &use));
    if (given != 1 || use.pieces != 0 || use.bytes_used != 0) {
        weft_sim_fail("%d threads have given a piece back, and %zu pieces of %zu bytes are left", given, use.pieces,
                      use.bytes_used);
    }
    MUST(weft_slab_destroy(slab));
}

/* ---- the records of a slab ---- */

#define UNIT 64
#define UNITS 40 /* of the memory, which the slab has a part of */
#define RECORD_TURNS 60

/* What a slab of any place and length should have given. */
typedef struct slab_model {
    const unsigned char *base; /* the first multiple of a unit */
    size_t bytes; /* from there to the end of the memory that it was given */
    unsigned char taken[UNITS];
    void *pieces[UNITS];
    size_t units[UNITS];
    size_t count;
} slab_model;

static size_t units_of(size_t bytes)
{
    return (bytes + UNIT - 1) / UNIT;
}

/* The first place for a piece, or NULL. */
static const unsigned char *place_of(const slab_model *m, size_t bytes, size_t alignment)
{
    for (size_t at = 0; at * UNIT + bytes <= m->bytes; at++) {
        size_t i = 0;
        while (i < units_of(bytes) && m->taken[at + i] == 0) {
            i++;
        }
        if (i == units_of(bytes) && (uintptr_t)(m->base + at * UNIT) % alignment == 0) {
            return m->base + at * UNIT;
        }
    }
    return NULL;
}

static void mark_piece(slab_model *m, const unsigned char *piece, size_t units, int is_taken)
{
    memset(&m->taken[(size_t)(piece - m->base) / UNIT], is_taken, units);
}

static void take_by_model(slab_model *m, weft_slab *slab)
{
    void *piece;
    const size_t bytes = 1 + (size_t)weft_sim_random(6 * UNIT);
    const size_t alignment = weft_sim_random(2) == 0 ? 0 : (size_t)1 << weft_sim_random(10);
    const unsigned char *place = place_of(m, bytes, alignment < UNIT ? UNIT : alignment);
    MUST(weft_slab_alloc(slab, bytes, alignment, &piece));
    if (piece != (const void *)place) {
        weft_sim_fail("a piece of %zu bytes at a multiple of %zu of a slab of %zu bytes at %p lies at %p, not at %p",
                      bytes, alignment, m->bytes, (const void *)m->base, piece, (const void *)place);
    }
    if (piece != NULL) {
        m->pieces[m->count] = piece;
        m->units[m->count++] = units_of(bytes);
        mark_piece(m, place, units_of(bytes), 1);
    }
}

static void give_by_model(slab_model *m, weft_slab *slab)
{
    const size_t which = (size_t)weft_sim_random(m->count);
    unsigned char *piece = m->pieces[which];
    if (weft_slab_free(slab, piece + UNIT / 2) != WEFT_ERR_ARGUMENT) {
        weft_sim_fail("what is no piece of a slab was given back");
    }
    MUST(weft_slab_free(slab, piece));
    mark_piece(m, piece, m->units[which], 0);
    m->pieces[which] = m->pieces[--m->count];
    m->units[which] = m->units[m->count];
}

static void check_slab(const slab_model *m, weft_slab *slab)
{
    static const weft_slab_use start = WEFT_SLAB_USE_INIT;
    weft_slab_use use = start;
    size_t units = 0;
    for (size_t i = 0; i < m->count; i++) {
        units += m->units[i];
    }
    MUST(weft_slab_query(slab, &use));
    if (use.bytes != m->bytes || use.pieces != m->count || use.bytes_used != units * UNIT) {
        weft_sim_fail("a slab of %zu bytes with %zu pieces of %zu units says %zu, %zu and %zu", m->bytes, m->count,
                      units, use.bytes, use.pieces, use.bytes_used);
    }
    if (weft_slab_contains(slab, m->base - 1) || weft_slab_contains(slab, m->base) != (m->bytes > 0) ||
        weft_slab_contains(slab, m->base + m->bytes) ||
        (m->bytes > 0 && !weft_slab_contains(slab, m->base + m->bytes - 1))) {
        weft_sim_fail("a slab of %zu bytes at %p has what lies beside it, or lacks what is in it", m->bytes,
                      (const void *)m->base);
    }
}

/* A slab of memory at any address and of any length: its pieces lie in that memory, each at the first place for it. */
static void use_a_slab(void)
{
    _Alignas(UNIT) unsigned char memory[UNITS * UNIT];
    slab_model m = {0};
    weft_slab *slab;
    const size_t from = 1 + (size_t)weft_sim_random(2 * UNIT);
    const size_t bytes = 1 + (size_t)weft_sim_random(weft_sim_random(4) == 0 ? UNIT : sizeof memory - from);
    const size_t shift = (UNIT - from % UNIT) % UNIT;
    m.base = memory + from + shift;
    m.bytes = bytes > shift ? bytes - shift : 0;
    MUST(weft_slab_create(memory + from, bytes, &slab));
    check_slab(&m, slab);
    for (int turn = 0; turn < RECORD_TURNS; turn++) {
        if (m.count > 0 && weft_sim_random(3) == 0) {
            give_by_model(&m, slab);
        } else {
            take_by_model(&m, slab);
        }
        check_slab(&m, slab);
    }
    if (m.count > 0 && weft_slab_destroy(slab) != WEFT_ERR_STATE) {
        weft_sim_fail("a slab with %zu pieces was ended", m.count);
    }
    while (m.count > 0) {
        give_by_model(&m, slab);
    }
    MUST(weft_slab_destroy(slab));
}

void case_threads(void *argument)
{
    case_run *run = argument;
    if (run->seed % 8 == 0) {
        share_a_slab();
        use_a_slab();
    }
    one_thread threads[THREADS];
    weft_world *world = case_world("threads");
    words *of_sources;
    MUST(weft_calloc(world, (size_t)run->pes, sizeof *of_sources, (void **)&of_sources));
    run->board[weft_sim_pe()] = (uint64_t)(uintptr_t)of_sources;
    MUST(weft_sync(world));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (one_thread){.run = run, .world = world, .of_sources = of_sources, .number = i};
        MUST(wefti_os_thread_start(&threads[i].thread, work, &threads[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(threads[i].thread);
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}
