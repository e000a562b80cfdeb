/* sim/gets.c: over messages, threads of a PE begin gets of any sizes from any PEs, many at once, and do something else
 * meanwhile. After a quiet of any of them what all had begun before is there, and nothing beside it was written. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "sim/cases.h"

#define THREADS 2
#define EPOCHS 2 /* of what is in the sources */
#define ROUNDS 3
#define PIECES 70 /* more than may be under way at once */
#define WORDS 6000 /* more than three messages hold */
#define SOURCE_BYTES (WORDS * sizeof(uint64_t))
#define ROOM_BYTES ((size_t)256 << 10)
#define POISON 0xab

typedef struct piece {
    int pe;
    size_t from; /* in the source */
    size_t at; /* in the thread's room */
    size_t bytes;
} piece;

typedef struct getter {
    wefti_os_thread *thread;
    const case_run *run;
    weft_world *world;
    uint64_t *source;
    uint64_t *added;
    struct getter *other;
    uint64_t common; /* drawn from alike by all threads of a PE */
    uint64_t epoch;
    int number;
    uint64_t begun; /* rounds in which this thread has begun its gets */
    uint64_t seen; /* rounds in which they were compared */
    piece pieces[PIECES];
    int count;
    unsigned char *room;
} getter;

/* ---- what is got ---- */

static size_t draw_bytes(void)
{
    switch (weft_sim_random(12)) {
    case 0:
        return 1 + (size_t)weft_sim_random(SOURCE_BYTES);
    case 1:
        return 1 + (size_t)weft_sim_random(4000);
    default:
        return 1 + (size_t)weft_sim_random(64);
    }
}

static void begin_gets(getter *one)
{
    const int most = 1 + (int)weft_sim_random(PIECES);
    size_t at = 0;
    memset(one->room, POISON, ROOM_BYTES);
    for (one->count = 0; one->count < most; one->count++) {
        const size_t bytes = draw_bytes();
        piece *p = &one->pieces[one->count];
        at += 1 + (size_t)weft_sim_random(9);
        if (at + bytes + 1 > ROOM_BYTES) {
            return;
        }
        *p = (piece){.pe = (int)weft_sim_random((uint64_t)one->run->pes),
                     .from = (size_t)weft_sim_random(SOURCE_BYTES - bytes + 1),
                     .at = at,
                     .bytes = bytes};
        MUST(weft_getmem_nbi(one->world, one->room + at, (unsigned char *)one->source + p->from, bytes, p->pe));
        at += bytes;
        dawdle(30, 2000);
    }
}

static unsigned char right_byte(const getter *one, const piece *p, size_t i)
{
    const uint64_t word = case_value(p->pe, (int)one->epoch, (p->from + i) / sizeof word);
    return ((const unsigned char *)&word)[(p->from + i) % sizeof word];
}

static void check_gets(const getter *one, const char *by)
{
    size_t end = 0;
    for (int number = 0; number < one->count; number++) {
        const piece *p = &one->pieces[number];
        for (; end < p->at; end++) {
            if (one->room[end] != POISON) {
                weft_sim_fail("byte %zu before get %d is written", end, number);
            }
        }
        for (size_t i = 0; i < p->bytes; i++, end++) {
            if (one->room[end] != right_byte(one, p, i)) {
                weft_sim_fail("after a quiet of %s byte %zu of the %zu of get %d from PE %d is %d", by, i, p->bytes,
                              number, p->pe, one->room[end]);
            }
        }
    }
    for (; end < ROOM_BYTES; end++) {
        if (one->room[end] != POISON) {
            weft_sim_fail("byte %zu behind all gets is written", end);
        }
    }
}

/* ---- a thread ---- */

/* Other requests have places beside those of gets, and a fence ends none. */
static void do_something_else(const getter *one)
{
    const int to = (int)weft_sim_random((uint64_t)one->run->pes);
    uint64_t value = 0;
    switch (weft_sim_random(4)) {
    case 0:
        MUST(weft_fence(one->world));
        return;
    case 1:
        MUST(weft_uint64_atomic_fetch_add(one->world, one->added, 1, to, &value));
        return;
    case 2:
        MUST(weft_getmem(one->world, &value, &one->source[7], sizeof value, to));
        if (value != case_value(to, (int)one->epoch, 7)) {
            weft_sim_fail("a get from PE %d, beside others, gave %llx", to, (unsigned long long)value);
        }
        return;
    default:
        MUST(weft_uint64_p(one->world, &one->added[1 + one->number], 1, to));
    }
}

static void await(const uint64_t *word, uint64_t value)
{
    while (*word < value) {
        weft_sim_sleep_ns(500);
    }
}

/* In each round both have begun before one of them, as drawn, waits and compares for both; or each for itself. */
static void work(void *argument)
{
    getter *one = argument;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const int who = common_below(&one->common, THREADS + 1);
        begin_gets(one);
        one->begun = round;
        do_something_else(one);
        if (who == THREADS) {
            MUST(weft_quiet(one->world));
            check_gets(one, "the same thread");
            one->seen = round;
        } else if (who == one->number) {
            await(&one->other->begun, round);
            MUST(weft_quiet(one->world));
            check_gets(one, "the same thread");
            check_gets(one->other, "the other thread");
            one->seen = one->other->seen = round;
        }
        await(&one->seen, round);
    }
}

static void run_epoch(getter threads[THREADS], uint64_t epoch)
{
    weft_world *world = threads[0].world;
    uint64_t *source = threads[0].source;
    for (uint64_t i = 0; i < WORDS; i++) {
        source[i] = case_value(weft_world_pe(world), (int)epoch, i);
    }
    MUST(weft_barrier(world));
    for (int i = 0; i < THREADS; i++) {
        threads[i].epoch = epoch;
        threads[i].begun = threads[i].seen = 0;
    }
    for (int i = 0; i < THREADS; i++) {
        MUST(wefti_os_thread_start(&threads[i].thread, work, &threads[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        wefti_os_thread_join(threads[i].thread);
    }
    MUST(weft_barrier(world));
}

/* A barrier, too, waits for them; a world ends with gets for which nobody has waited. */
static void end_without_quiet(getter *one, uint64_t common)
{
    begin_gets(one);
    if (common_below(&common, 2) == 0) {
        MUST(weft_barrier(one->world));
        check_gets(one, "a barrier");
        begin_gets(one);
    }
    MUST(weft_sync(one->world)); /* who leaves answers nothing that comes after */
}

void case_gets(void *argument)
{
    const case_run *run = argument;
    getter *threads = calloc(THREADS, sizeof *threads);
    unsigned char *rooms = malloc(THREADS * ROOM_BYTES);
    weft_world *world = case_world("gets");
    uint64_t *source;
    uint64_t *added;
    if (threads == NULL || rooms == NULL) {
        abort(); /* a test program without memory */
    }
    MUST(weft_malloc(world, SOURCE_BYTES, (void **)&source));
    MUST(weft_calloc(world, 1 + THREADS, sizeof *added, (void **)&added));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (getter){.run = run,
                              .world = world,
                              .source = source,
                              .added = added,
                              .other = &threads[1 - i],
                              .common = run->seed + (uint64_t)weft_sim_pe(),
                              .number = i,
                              .room = rooms + (size_t)i * ROOM_BYTES};
    }
    for (uint64_t epoch = 1; epoch <= EPOCHS; epoch++) {
        run_epoch(threads, epoch);
    }
    threads[0].epoch = EPOCHS;
    end_without_quiet(&threads[0], run->seed);
    MUST(weft_world_destroy(world));
    free(rooms);
    free(threads);
}
