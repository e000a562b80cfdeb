/* What weft costs over a network beside bare calls of the library that carries it (bare.h): two PEs on two hosts, or
 * for a barrier two on each, in one run. Built and run by scripts/bench_network.sh. Each figure is taken by both in
 * turn, round by round, in the same processes: the bare end is one of this program's own; its address goes over by
 * weft. Bare calls wait by looking: for completions and, of a put, at the word that it writes. The rate of small puts
 * is beside puts of weft's that are a message each, that of small gets beside gets of weft's that are waited for. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peers/bare.h"
#include "weft.h"

#define MIB ((size_t)1 << 20)
#define ROUNDS_MAX 101
#define WORDS 64

typedef struct bench {
    weft_world *world;
    weft_ctx *ctx; /* of all PEs */
    int me;
    int pes;
    int other; /* of two */
    /* weft's, and the bare ones: word 0 is told by the peer, 1 an atomic; the bare ones also 2 to 7 of this PE alone,
     * and from 8 on one a step of a barrier */
    uint64_t *words;
    uint64_t *bare;
    unsigned char *data;
    uint64_t told;
    uint64_t bare_told;
    uint64_t barriers;
} bench;

void bare_fail(const char *what, const char *why)
{
    fprintf(stderr, "network: %s: %s\n", what, why);
    exit(1);
}

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        bare_fail(weft_status_name(status), weft_last_error());
    }
}

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* ---- by bare calls ---- */

static void meet(bench *b)
{
    bare_contact mine = {{0}};
    bare_contact *all;
    bare_open(&mine);
    check(weft_calloc(b->world, (size_t)b->pes, sizeof mine, (void **)&all));
    for (int pe = 0; pe < b->pes; pe++) {
        check(weft_putmem(b->world, all + b->me, &mine, sizeof mine, pe));
    }
    check(weft_barrier(b->world));
    for (int pe = 0; pe < b->pes; pe++) {
        if (pe != b->me) {
            bare_connect(pe, all + pe);
        }
    }
    b->bare = (uint64_t *)(void *)bare_memory();
}

static void bare_tell(bench *b, int pe, size_t word, uint64_t value)
{
    b->bare[2] = value;
    bare_put(pe, word * sizeof value, b->bare + 2, sizeof value);
    bare_settle(0);
}

static void bare_hear(const bench *b, size_t word, uint64_t value)
{
    while (__atomic_load_n(b->bare + word, __ATOMIC_ACQUIRE) < value) {
        bare_look();
        if (b->pes > 2) { /* two share a core */
            (void)sched_yield();
        }
    }
}

static void bare_ping_pong(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->bare_told++;
        if (b->me == 0) {
            bare_tell(b, b->other, 0, b->bare_told);
        }
        bare_hear(b, 0, b->bare_told);
        if (b->me == 1) {
            bare_tell(b, b->other, 0, b->bare_told);
        }
    }
}

/* What a put of weft's is at least: a message, with a header, that the other side stores. */
static void bare_messages(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        for (int turn = 0; turn < 2; turn++) {
            if (turn == b->me) {
                bare_send(b->other);
            } else {
                bare_receive();
            }
        }
    }
}

static void bare_gets(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        bare_get(b->other, 8, b->bare + 3, 8);
        bare_settle(0);
    }
}

static void bare_fetches(bench *b, int count)
{
    b->bare[4] = 1;
    for (int i = 0; i < count; i++) {
        bare_fetch_add(b->other, 8, b->bare + 4, b->bare + 5);
        bare_settle(0);
    }
}

/* Each MiB in pieces, which keep the processor's caches warm on both sides. */
static size_t piece_at(size_t number)
{
    return 4096 + number % (MIB / bare_piece) * bare_piece;
}

static void bare_stream(bench *b, int count)
{
    for (size_t i = 0; i < (size_t)count * (MIB / bare_piece); i++) {
        bare_put(b->other, piece_at(i), bare_memory() + piece_at(i), bare_piece);
        bare_settle(BARE_OPEN_MAX - 1);
    }
    bare_flush(b->other);
}

static void bare_fetch_stream(bench *b, int count)
{
    for (size_t i = 0; i < (size_t)count * (MIB / bare_piece); i++) {
        bare_get(b->other, piece_at(i), bare_memory() + piece_at(i), bare_piece);
        bare_settle(BARE_OPEN_MAX - 1);
    }
    bare_settle(0);
}

/* Log2 steps, each a word to the PE that is twice as far. */
static void bare_barriers(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->barriers++;
        for (int step = 0; 1 << step < b->pes; step++) {
            bare_tell(b, (b->me + (1 << step)) % b->pes, 8 + (size_t)step, b->barriers);
            bare_hear(b, 8 + (size_t)step, b->barriers);
        }
    }
}

/* ---- by weft ---- */

static void own_ping_pong(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->told++;
        if (b->me == 0) {
            check(weft_uint64_p(b->world, b->words, b->told, b->other));
        }
        check(weft_uint64_wait_until(b->world, b->words, WEFT_CMP_GE, b->told));
        if (b->me == 1) {
            check(weft_uint64_p(b->world, b->words, b->told, b->other));
        }
    }
}

static void own_signals(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        b->told++;
        if (b->me == 0) {
            check(
                weft_putmem_signal(b->world, b->words + 8, &b->told, 8, b->words, b->told, WEFT_SIGNAL_SET, b->other));
        }
        check(weft_uint64_wait_until(b->world, b->words, WEFT_CMP_GE, b->told));
        if (b->me == 1) {
            check(
                weft_putmem_signal(b->world, b->words + 8, &b->told, 8, b->words, b->told, WEFT_SIGNAL_SET, b->other));
        }
    }
}

static void own_gets(bench *b, int count)
{
    uint64_t value;
    for (int i = 0; i < count; i++) {
        check(weft_getmem(b->world, &value, b->words + 1, 8, b->other));
    }
}

static void own_fetches(bench *b, int count)
{
    uint64_t value;
    for (int i = 0; i < count; i++) {
        check(weft_uint64_atomic_fetch_add(b->world, b->words + 1, 1, b->other, &value));
    }
}

static void own_stream(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_putmem_nbi(b->world, b->data, b->data, MIB, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_fetch_stream(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_getmem_nbi(b->world, b->data, b->data, MIB, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_small(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_putmem_nbi(b->world, b->words + 16 + i % 32, &b->told, 8, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_begun_gets(bench *b, int count)
{
    static uint64_t values[WORDS];
    for (int i = 0; i < count; i++) {
        check(weft_getmem_nbi(b->world, &values[i % WORDS], b->words + 1, 8, b->other));
    }
    check(weft_quiet(b->world));
}

static void own_session(bench *b, int count)
{
    check(weft_ctx_session_start(b->ctx, WEFT_SESSION_BATCH, (size_t)count));
    for (int i = 0; i < count; i++) {
        check(weft_ctx_putmem_nbi(b->ctx, b->words + 16 + i % 32, &b->told, 8, b->other));
    }
    check(weft_ctx_session_stop(b->ctx));
    check(weft_ctx_quiet(b->ctx));
}

static void own_one_by_one(bench *b, int count)
{
    static const uint64_t zero;
    for (int i = 0; i < count; i++) { /* with its signal each is a message */
        check(weft_putmem_signal(b->world, b->words + 16 + i % 32, &zero, 8, b->words + 60, 1, WEFT_SIGNAL_SET,
                                 b->other));
    }
    check(weft_quiet(b->world));
}

static void own_barriers(bench *b, int count)
{
    for (int i = 0; i < count; i++) {
        check(weft_barrier(b->world));
    }
}

/* ---- rounds ---- */

typedef struct row {
    const char *name;
    void (*mine)(bench *b, int count);
    void (*theirs)(bench *b, int count);
    int both; /* PE 1 takes part, too; else it waits in a barrier */
    int count;
    double bar; /* weft's time over the other's */
} row;

static const row rows[] = {
    {"put and wait, one way", own_ping_pong, bare_ping_pong, 1, 200, 1.25},
    {"put beside a message of 72 B", own_ping_pong, bare_messages, 1, 200, 1.25},
    {"get of 8 B", own_gets, bare_gets, 0, 200, 1.25},
    {"fetch_add", own_fetches, bare_fetches, 0, 200, 1.25},
    {"put of 1 MiB", own_stream, bare_stream, 0, 16, 1 / 0.9},
    {"get of 1 MiB", own_fetch_stream, bare_fetch_stream, 0, 16, 1 / 0.9},
    {"put_signal beside weft's put", own_signals, own_ping_pong, 1, 200, 1.2},
    {"8 B puts beside a message each", own_small, own_one_by_one, 0, 4000, 1 / 5.0},
    {"the same in a session", own_session, own_one_by_one, 0, 4000, 1 / 5.0},
    {"8 B gets_nbi beside a get each", own_begun_gets, own_gets, 0, 4000, 1 / 1.5},
};
static const row barrier = {"barrier", own_barriers, bare_barriers, 1, 200, 1.5};

static int is_bare(void (*of)(bench *b, int count))
{
    return of == bare_gets || of == bare_fetches || of == bare_stream || of == bare_fetch_stream;
}

static double time_of(bench *b, const row *r, void (*of)(bench *b, int count))
{
    check(weft_barrier(b->world));
    const double start = now_us();
    if (r->both || b->me == 0) {
        of(b, r->count);
    }
    const double took = now_us() - start;
    if (!r->both && b->me == 1) { /* bare calls need the target's looks */
        while (__atomic_load_n(b->words + 62, __ATOMIC_ACQUIRE) == 0) {
            if (is_bare(of)) {
                bare_look(); /* the word comes by weft's thread */
            } else {
                check(weft_uint64_wait_until(b->world, b->words + 62, WEFT_CMP_NE, 0));
            }
        }
        b->words[62] = 0;
    } else if (!r->both) {
        check(weft_uint64_p(b->world, b->words + 62, 1, b->other));
    }
    check(weft_barrier(b->world));
    return took / r->count;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts them. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void measure(bench *b, const row *r, int rounds)
{
    double mine[ROUNDS_MAX];
    double theirs[ROUNDS_MAX];
    double ratios[ROUNDS_MAX];
    for (int round = -1; round < rounds; round++) { /* the first is to warm up */
        const double other = time_of(b, r, r->theirs);
        const double own = time_of(b, r, r->mine);
        if (round >= 0) {
            mine[round] = own;
            theirs[round] = other;
            ratios[round] = own / other;
        }
    }
    if (b->me == 0) {
        const double ratio = median(ratios, rounds);
        const double half = r->both && b->pes == 2 ? 2 : 1; /* there and back */
        const double middle = median(mine, rounds) / half;
        const double other = median(theirs, rounds) / half;
        printf("%-30s %9.2f us, beside %9.2f us: %.2f (bar %.2f)%s; the least %.2f beside %.2f\n", r->name, middle,
               other, ratio, r->bar, ratio > r->bar ? "  MISSED" : "", mine[0] / half, theirs[0] / half);
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 15;
    bench b = {0};
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        bare_fail("rounds", "1 to 101");
    }
    check(weft_world_create(NULL, &b.world));
    b.me = weft_world_pe(b.world);
    b.pes = weft_world_pes(b.world);
    b.other = 1 - b.me;
    if (b.pes != 2 && b.pes != BARE_PES_MAX) {
        bare_fail("PEs", "two or four");
    }
    check(weft_ctx_create(weft_team_world(b.world), 0, &b.ctx));
    check(weft_calloc(b.world, WORDS, 8, (void **)&b.words));
    check(weft_malloc(b.world, MIB, (void **)&b.data));
    memset(b.data, 1, MIB);
    meet(&b);
    if (b.me == 0) {
        printf("%d PEs, beside %s\n", b.pes, bare_library);
    }
    if (b.pes == 2) {
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            measure(&b, &rows[r], rounds);
        }
    } else {
        measure(&b, &barrier, rounds);
    }
    check(weft_world_destroy(b.world));
    return 0;
}
