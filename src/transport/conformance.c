/* Goal: a transport keeps the contract written in transport/transport.h.
 * Method: a world of threads is the setting: each PE opens the transport under test beside those of its world, and the
 * world's own barrier keeps the PEs in step. Nothing but the transport under test moves data: a PE looks at its own
 * heap only, so the suite holds as well for transports that do not load and store. Destinations are poisoned and
 * compared whole; every byte names its sender. */
#include "transport/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pattern.h"
#include "support/pes.h"
#include "support/torture.h"
#include "weft/protocol/layout.h"

#define PES 3
#define INBOX_BYTES ((size_t)512 << 10) /* one a sender */
#define WORDS 64 /* 64-bit words behind the inboxes */
#define PATIENCE_NS UINT64_C(30000000000)

static const wefti_transport_ops *ops_under_test;
static conformance_reach reach_under_test;

/* A PE with the transport under test, and its block: PES inboxes, then WORDS words, zeroed. */
typedef struct tester {
    wefti_transport transport;
    weft_world *world;
    int pe;
    int pes;
    unsigned char *slot;
    unsigned char *block;
    uint64_t *words;
} tester;

typedef void (*suite_test)(tester *t);

static unsigned char *inbox(const tester *t, int from)
{
    return t->block + (size_t)from * INBOX_BYTES;
}

static uint64_t offset_of(const tester *t, const void *address)
{
    return (uint64_t)((const unsigned char *)address - t->slot);
}

static int must_reach(int from, int to)
{
    return reach_under_test == CONFORMANCE_REACHES_ALL || from == to;
}

/* The exchange of a transport between nodes: what each PE has lies here while all read. */
static const void *offers[PES];

static weft_status gather(void *context, const void *mine, void *all, size_t bytes)
{
    tester *t = context;
    offers[t->pe] = mine;
    CHECK_OK(weft_barrier(t->world));
    for (int pe = 0; pe < t->pes; pe++) {
        memcpy((unsigned char *)all + (size_t)pe * bytes, offers[pe], bytes);
    }
    CHECK_OK(weft_barrier(t->world));
    return WEFT_OK;
}

static void tester_open(tester *t, weft_world *world)
{
    const wefti_view *view = (const wefti_view *)(const void *)world;
    memset(t, 0, sizeof *t);
    t->world = world;
    t->pe = (int)view->pe;
    t->pes = (int)view->pes;
    t->slot = (unsigned char *)view->heap - wefti_layout_heap(view->pes, wefti_os_page_bytes());
    const wefti_transport_exchange exchange = {gather, t};
    static const unsigned pes_per_core = 2;
    const wefti_transport_setup setup = {.world = 7,
                                         .pes_per_core = &pes_per_core,
                                         .pe = t->pe,
                                         .pes = t->pes,
                                         .slot = t->slot,
                                         .view = view,
                                         .deadline_ns = PATIENCE_NS,
                                         .silence_ns = PATIENCE_NS,
                                         .exchange = &exchange};
    t->transport.ops = ops_under_test;
    if (!CHECK_OK(ops_under_test->open(&t->transport, &setup))) {
        abort();
    }
}

/* One world for all tests but those of opening and closing; each test has a block of its own. */
static weft_world *worlds[PES];
static tester testers[PES];

static void open_one(weft_world *world, void *context)
{
    (void)context;
    tester_open(&testers[weft_world_pe(world)], world);
}

static void close_one(weft_world *world, void *context)
{
    (void)context;
    ops_under_test->close(&testers[weft_world_pe(world)].transport);
}

static int open_all(void **state)
{
    (void)state;
    pes_create_world(PES, worlds);
    pes_run_in(PES, worlds, open_one, NULL);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    pes_run_in(PES, worlds, close_one, NULL);
    pes_destroy_world(PES, worlds);
    return 0;
}

static void work_with_transport(weft_world *world, void *context)
{
    const suite_test *test = context;
    tester *t = &testers[weft_world_pe(world)];
    void *block = NULL;
    CHECK_OK(weft_calloc(world, 1, (size_t)t->pes * INBOX_BYTES + WORDS * sizeof(uint64_t), &block));
    t->block = block;
    t->words = (uint64_t *)(void *)(t->block + (size_t)t->pes * INBOX_BYTES);
    CHECK_OK(weft_barrier(world));
    (*test)(t);
    CHECK_OK(ops_under_test->quiet(&t->transport));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, block));
}

static void run_suite_test(suite_test test)
{
    pes_run_in(PES, worlds, work_with_transport, &test);
}

static weft_status put(tester *t, int pe, const void *dest, const void *source, size_t bytes)
{
    return ops_under_test->put(&t->transport, pe, offset_of(t, dest), source, bytes);
}

static weft_status amo(tester *t, int pe, const void *word, wefti_amo_op op, int bits, uint64_t value, uint64_t cond,
                       uint64_t *old)
{
    return ops_under_test->amo(&t->transport, pe, offset_of(t, word), op, bits, value, cond, old);
}

/* Wait until this PE's own word is at least `value`, as an acquire. */
static int await(const uint64_t *word, uint64_t value, const char *what)
{
    uint64_t until = wefti_os_now_ns() + PATIENCE_NS;
    while (wefti_ld64(word, WEFTI_ACQUIRE) < value) {
        if (wefti_os_now_ns() > until) {
            return CHECK_SAY(0, "%s: the word is %llu, %llu never came", what,
                             (unsigned long long)wefti_ld64(word, WEFTI_ACQUIRE), (unsigned long long)value);
        }
        wefti_os_yield();
    }
    return 1;
}

/* ---- reaches ---- */

static void suite_reaches(tester *t)
{
    for (int look = 0; look < 3; look++) {
        for (int pe = 0; pe < t->pes; pe++) {
            int reaches = ops_under_test->reaches(&t->transport, pe) != 0;
            CHECK_SAY(reaches == must_reach(t->pe, pe), "reaches(%d) gave %d", pe, reaches);
        }
        CHECK(!ops_under_test->reaches(&t->transport, -1));
        CHECK(!ops_under_test->reaches(&t->transport, t->pes));
        CHECK(!ops_under_test->reaches(&t->transport, INT32_MIN));
        CHECK(!ops_under_test->reaches(&t->transport, INT32_MAX));
        CHECK_OK(weft_barrier(t->world));
    }
}

/* ---- put and get ---- */

/* A walk over pieces of an inbox: all sizes to 300, then large ones, with gaps of 1 to 16 bytes that stay poisoned. */
typedef struct piece {
    size_t number;
    size_t at;
    size_t bytes;
} piece;

static const size_t large_sizes[] = {511, 512, 513, 4095, 4096, 4097, 16384, 65539, 262147};
#define SMALL_SIZES ((size_t)300)
#define PIECES (SMALL_SIZES + sizeof large_sizes / sizeof *large_sizes)

static int next_piece(piece *p)
{
    if (p->number == PIECES) {
        return 0;
    }
    p->at += p->bytes + 1 + p->number * 7 % 16;
    p->bytes = p->number < SMALL_SIZES ? p->number + 1 : large_sizes[p->number - SMALL_SIZES];
    p->number++;
    return 1;
}

static const piece before_first = {.at = 0};

static void check_pieces(const unsigned char *bytes, int from, const char *what)
{
    size_t end = 0;
    piece p = before_first;
    while (next_piece(&p)) {
        if (!poison_check(bytes + end, p.at - end, what) || !pattern_check(bytes + p.at, p.bytes, from, p.at, what)) {
            return;
        }
        end = p.at + p.bytes;
    }
    (void)poison_check(bytes + end, INBOX_BYTES - end, what);
}

static void suite_put(tester *t)
{
    unsigned char *source = malloc(INBOX_BYTES);
    memset(t->block, POISON, (size_t)t->pes * INBOX_BYTES);
    CHECK_OK(weft_barrier(t->world));
    for (int to = 0; to < t->pes; to++) {
        piece p = before_first;
        while (must_reach(t->pe, to) && next_piece(&p)) {
            pattern_fill(source, p.bytes, t->pe, p.at);
            CHECK_OK(put(t, to, inbox(t, t->pe) + p.at, source, p.bytes));
            memset(source, POISON, p.bytes); /* it may be reused now */
        }
    }
    CHECK_OK(ops_under_test->quiet(&t->transport));
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < t->pes; from++) {
        if (must_reach(from, t->pe)) {
            check_pieces(inbox(t, from), from, "put");
        } else {
            poison_check(inbox(t, from), INBOX_BYTES, "an inbox that nobody reaches");
        }
    }
    free(source);
}

static void suite_get(tester *t)
{
    unsigned char *dest = malloc(INBOX_BYTES);
    for (int reader = 0; reader < t->pes; reader++) {
        pattern_fill(inbox(t, reader), INBOX_BYTES, t->pe, 0); /* inboxes hold what their owner says */
    }
    CHECK_OK(weft_barrier(t->world));
    for (int of = 0; of < t->pes; of++) {
        if (!must_reach(t->pe, of)) {
            continue;
        }
        memset(dest, POISON, INBOX_BYTES);
        piece p = before_first;
        while (next_piece(&p)) {
            uint64_t offset = offset_of(t, inbox(t, t->pe) + p.at);
            CHECK_OK(ops_under_test->get(&t->transport, of, offset, dest + p.at, p.bytes));
            pattern_check(dest + p.at, p.bytes, of, p.at, "get, on return");
        }
        check_pieces(dest, of, "get");
    }
    CHECK_OK(weft_barrier(t->world));
    for (int reader = 0; reader < t->pes; reader++) {
        pattern_check(inbox(t, reader), INBOX_BYTES, t->pe, 0, "what was got from");
    }
    free(dest);
}

/* ---- put_signal and fence: who sees the word sees the data ---- */

#define ROUNDS 60
#define SMALL_PUTS UINT64_C(3000)
#define QUIET_TIME_NS UINT64_C(20000000)

typedef enum arrival { BY_SET, BY_ADD, BY_EMPTY_SIGNAL, BY_FLAG, BY_FENCE, ARRIVALS } arrival;

/* A word that only PE `from` writes: 0 .. PES - 1 announce data, PES .. 2 PES - 1 acknowledge it. */
static uint64_t *news(const tester *t, int from)
{
    return t->words + from;
}

static uint64_t *thanks(const tester *t, int from)
{
    return t->words + PES + from;
}

static size_t bytes_of_round(uint64_t round)
{
    return round % 7 == 0 ? 70000 + round : round % 3 == 0 ? 0 : round * 37 % 600;
}

static void announce(tester *t, arrival how, int to, uint64_t round, const unsigned char *data, size_t bytes)
{
    unsigned char *dest = inbox(t, t->pe) + round % 11;
    uint64_t offset = offset_of(t, dest);
    uint64_t word = offset_of(t, news(t, t->pe));
    uint64_t old;
    if (how >= BY_EMPTY_SIGNAL && bytes > 0) {
        size_t half = bytes / 2; /* two puts, both of which come before the word */
        CHECK_OK(put(t, to, dest + half, data + half, bytes - half));
        if (half > 0) {
            CHECK_OK(put(t, to, dest, data, half));
        }
    }
    switch (how) {
    case BY_SET:
        CHECK_OK(ops_under_test->put_signal(&t->transport, to, offset, bytes > 0 ? data : NULL, bytes, word, round,
                                            WEFT_SIGNAL_SET));
        break;
    case BY_ADD:
        CHECK_OK(ops_under_test->put_signal(&t->transport, to, offset, bytes > 0 ? data : NULL, bytes, word, 1,
                                            WEFT_SIGNAL_ADD));
        break;
    case BY_EMPTY_SIGNAL:
        CHECK_OK(ops_under_test->put_signal(&t->transport, to, 0, NULL, 0, word, round, WEFT_SIGNAL_SET));
        break;
    case BY_FLAG:
        CHECK_OK(ops_under_test->flag != NULL
                     ? ops_under_test->flag(&t->transport, to, word, round)
                     : ops_under_test->put_signal(&t->transport, to, 0, NULL, 0, word, round, WEFT_SIGNAL_SET));
        break;
    default:
        CHECK_OK(ops_under_test->fence(&t->transport));
        CHECK_OK(amo(t, to, news(t, t->pe), WEFTI_AMO_SET, 64, round, 0, &old));
        break;
    }
}

static void receive(tester *t, int from, uint64_t round)
{
    size_t bytes = bytes_of_round(round);
    if (await(news(t, from), round, "a round's data")) {
        CHECK(wefti_ld64(news(t, from), WEFTI_ACQUIRE) == round);
        pattern_check(inbox(t, from) + round % 11, bytes, from, round, "data behind its signal");
    }
    memset(inbox(t, from), POISON, bytes + 16);
    CHECK_OK(ops_under_test->put_signal(&t->transport, from, 0, NULL, 0, offset_of(t, thanks(t, t->pe)), 1,
                                        WEFT_SIGNAL_ADD));
}

static void run_rounds(tester *t, arrival how)
{
    static const size_t most = 80000;
    unsigned char *data = malloc(most);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        size_t bytes = bytes_of_round(round);
        for (int to = 0; to < t->pes; to++) {
            if (must_reach(t->pe, to) && await(thanks(t, to), round - 1, "thanks")) {
                pattern_fill(data, bytes, t->pe, round);
                announce(t, how, to, round, data, bytes);
            }
        }
        for (int from = 0; from < t->pes; from++) {
            if (must_reach(from, t->pe)) {
                receive(t, from, round);
            }
        }
    }
    free(data);
}

static void suite_signal_set(tester *t)
{
    run_rounds(t, BY_SET);
}

static void suite_signal_add(tester *t)
{
    run_rounds(t, BY_ADD);
}

/* A word among its own data is the signal's in the end. */
static void suite_signal_in_data(tester *t)
{
    unsigned char data[64];
    const uint64_t at = (offset_of(t, inbox(t, t->pe)) + 7) / 8 * 8;
    uint64_t *word = (uint64_t *)(void *)(inbox(t, t->pe) + (at - offset_of(t, inbox(t, t->pe))) + 24);
    uint64_t seen;
    memset(data, 0xff, sizeof data);
    for (int to = 0; to < t->pes; to++) {
        if (must_reach(t->pe, to)) {
            CHECK_OK(ops_under_test->put_signal(&t->transport, to, at, data, sizeof data, at + 24, 5, WEFT_SIGNAL_SET));
            CHECK_OK(ops_under_test->quiet(&t->transport)); /* an atomic may come before a put */
            CHECK_OK(amo(t, to, word, WEFTI_AMO_FETCH, 64, 0, 0, &seen));
            CHECK(seen == 5);
            CHECK_OK(amo(t, to, word + 1, WEFTI_AMO_FETCH, 64, 0, 0, &seen));
            CHECK(seen == UINT64_MAX);
        }
    }
}

static void suite_empty_signal(tester *t)
{
    run_rounds(t, BY_EMPTY_SIGNAL);
}

static void suite_flag(tester *t)
{
    run_rounds(t, BY_FLAG);
}

static void suite_fence(tester *t)
{
    run_rounds(t, BY_FENCE);
}

/* ---- quiet ---- */

/* What each PE has made visible everywhere; told past the transport. */
static uint64_t quiet_rounds[PES];

static void suite_quiet(tester *t)
{
    uint64_t *mine = &quiet_rounds[t->pe];
    __atomic_store_n(mine, 0, __ATOMIC_RELEASE);
    CHECK_OK(weft_barrier(t->world));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        size_t bytes = 1 + bytes_of_round(round);
        unsigned char *data = malloc(bytes);
        pattern_fill(data, bytes, t->pe, round);
        for (int to = 0; to < t->pes; to++) {
            if (must_reach(t->pe, to)) {
                CHECK_OK(put(t, to, inbox(t, t->pe), data, bytes));
            }
        }
        CHECK_OK(ops_under_test->quiet(&t->transport));
        __atomic_store_n(mine, round, __ATOMIC_RELEASE);
        for (int from = 0; from < t->pes; from++) {
            if (must_reach(from, t->pe) && await(&quiet_rounds[from], round, "another PE's quiet")) {
                pattern_check(inbox(t, from), bytes, from, round, "data behind a quiet");
            }
        }
        CHECK_OK(weft_barrier(t->world));
        free(data);
    }
}

/* ---- amo ---- */

static uint64_t mask_of(int bits)
{
    return bits == 32 ? UINT32_MAX : UINT64_MAX;
}

/* What the word holds after the operation. */
static uint64_t model_of(wefti_amo_op op, uint64_t before, uint64_t value, uint64_t cond)
{
    switch (op) {
    case WEFTI_AMO_FETCH:
        return before;
    case WEFTI_AMO_SET:
    case WEFTI_AMO_SWAP:
        return value;
    case WEFTI_AMO_COMPARE_SWAP:
        return before == cond ? value : before;
    case WEFTI_AMO_ADD:
        return before + value;
    case WEFTI_AMO_AND:
        return before & value;
    case WEFTI_AMO_OR:
        return before | value;
    default:
        return before ^ value;
    }
}

/* One operation on the word at `at` of `to`, from `before`. For 32 bits the upper halves of the operands are noise. */
static void try_amo(tester *t, int to, void *at, wefti_amo_op op, int bits, uint64_t before, uint64_t value,
                    uint64_t cond)
{
    uint64_t mask = mask_of(bits);
    uint64_t noise = bits == 32 ? UINT64_C(0xabcdef01) << 32 : 0;
    uint64_t old = 0;
    uint64_t wanted = model_of(op, before & mask, value & mask, cond & mask) & mask;
    CHECK_OK(amo(t, to, at, WEFTI_AMO_SET, bits, before, 0, &old));
    CHECK_OK(amo(t, to, at, op, bits, (value & mask) | noise, (cond & mask) | noise, &old));
    CHECK_SAY((old & mask) == (before & mask), "amo %d of %d bits: old is %#llx, not %#llx", (int)op, bits,
              (unsigned long long)old, (unsigned long long)before);
    CHECK_OK(amo(t, to, at, WEFTI_AMO_FETCH, bits, 0, 0, &old));
    CHECK_SAY((old & mask) == wanted, "amo %d of %d bits on %#llx with %#llx, %#llx made %#llx, not %#llx", (int)op,
              bits, (unsigned long long)before, (unsigned long long)value, (unsigned long long)cond,
              (unsigned long long)old, (unsigned long long)wanted);
}

static const uint64_t extremes[] = {0,
                                    1,
                                    UINT64_MAX,
                                    INT64_MAX,
                                    (uint64_t)INT64_MIN,
                                    UINT32_MAX,
                                    INT32_MAX,
                                    UINT64_C(0x80000000),
                                    UINT64_C(0x100000000),
                                    UINT64_C(0x0123456789abcdef)};
#define EXTREMES (sizeof extremes / sizeof *extremes)

static void suite_amo_values(tester *t)
{
    uint64_t *mine = t->words + 8 * (size_t)t->pe + 4; /* the neighbours stay poisoned */
    memset(t->words, POISON, WORDS * sizeof(uint64_t));
    CHECK_OK(weft_barrier(t->world));
    for (int to = 0; to < t->pes; to++) {
        if (!must_reach(t->pe, to)) {
            continue;
        }
        for (int op = WEFTI_AMO_FETCH; op <= WEFTI_AMO_XOR; op++) {
            for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {
                uint64_t before = extremes[i / EXTREMES];
                uint64_t value = extremes[i % EXTREMES];
                try_amo(t, to, mine, (wefti_amo_op)op, 64, before, value, i % 2 == 0 ? before : before + 1);
                try_amo(t, to, (uint32_t *)mine + 3, (wefti_amo_op)op, 32, before, value,
                        i % 2 == 0 ? before : before + 1);
            }
        }
    }
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < PES; from++) {
        const unsigned char *around = (const unsigned char *)(t->words + 8 * (size_t)from);
        int reached = must_reach(from, t->pe);
        poison_check(around, 4 * sizeof(uint64_t), "the words before an atomic");
        poison_check(around + 40, 4, "the bytes between two atomics");
        poison_check(around + 48, 16, "the words after an atomic");
        CHECK(!reached || memcmp(around + 32, "\xee\xee\xee\xee", 4) != 0);
    }
}

#define ADDS 2000

/* How often each old value was seen; all PEs are threads of this process. */
static unsigned char olds_seen[PES * ADDS];

/* Everybody counts on the word of PE 0, by the transport and, its owner, also by load and store. */
static void count_together(tester *t, uint64_t *counter, int pes)
{
    uint64_t last = 0;
    for (int i = 0; i < ADDS; i++) {
        uint64_t old = UINT64_MAX;
        if (t->pe == 0 && i % 2 == 0) {
            CHECK_OK(weft_uint64_atomic_fetch_add(t->world, counter, 1, 0, &old));
        } else {
            CHECK_OK(amo(t, 0, counter, WEFTI_AMO_ADD, 64, 1, 0, &old));
        }
        if (!CHECK_SAY(old < (uint64_t)pes * ADDS, "an old value of %llu", (unsigned long long)old)) {
            return;
        }
        CHECK(i == 0 || old > last);
        last = old;
        __atomic_fetch_add(&olds_seen[old], 1, __ATOMIC_RELAXED);
    }
}

/* Each PE turns its own bits on and off, and adds 1 by compare and swap, all in words of PE 0. */
static void mix_together(tester *t, uint64_t *bits, uint32_t *swapped)
{
    uint64_t own = UINT64_C(1) << (t->pe * 3);
    uint64_t old;
    for (int i = 0; i < ADDS; i++) {
        CHECK_OK(amo(t, 0, bits, WEFTI_AMO_OR, 64, own, 0, &old));
        CHECK((old & own) == 0);
        CHECK_OK(amo(t, 0, bits, WEFTI_AMO_XOR, 64, own | own << 1, 0, &old));
        CHECK((old & own) == own);
        CHECK_OK(amo(t, 0, bits, WEFTI_AMO_AND, 64, ~(own << 1), 0, &old));
        uint64_t expected;
        CHECK_OK(amo(t, 0, swapped, WEFTI_AMO_FETCH, 32, 0, 0, &expected));
        for (;;) {
            CHECK_OK(amo(t, 0, swapped, WEFTI_AMO_COMPARE_SWAP, 32, expected + 1, expected, &old));
            if ((uint32_t)old == (uint32_t)expected) {
                break;
            }
            expected = old;
        }
    }
}

/* Who waits for the data of a put by looking at it is in a race with it, which ThreadSanitizer tells. */
#ifdef __SANITIZE_THREAD__
enum { LOOKS_AT_DATA = 0 };
#else
enum { LOOKS_AT_DATA = 1 };
#endif

/* Many small puts and atomics of which nobody wants the value, and then no call: they arrive all the same. */
static void suite_left_alone(tester *t)
{
    uint64_t *counter = &t->words[3 * PES];
    int senders = 0;
    if (!LOOKS_AT_DATA) {
        return;
    }
    memset(t->block, 0, (size_t)t->pes * INBOX_BYTES);
    wefti_st64(counter, 0, WEFTI_RELAXED);
    CHECK_OK(weft_barrier(t->world));
    for (uint64_t i = 0; i < SMALL_PUTS; i++) {
        for (int to = 0; to < t->pes; to++) {
            const uint64_t word = i + 1;
            if (must_reach(t->pe, to)) {
                CHECK_OK(put(t, to, inbox(t, t->pe) + i * sizeof word, &word, sizeof word));
            }
            if (must_reach(t->pe, to) && i % 100 == 0) {
                CHECK_OK(amo(t, to, counter, WEFTI_AMO_ADD, 64, 1, 0, NULL));
            }
        }
    }
    for (int from = 0; from < t->pes; from++) {
        const uint64_t *words = (const uint64_t *)(const void *)inbox(t, from);
        for (uint64_t i = 0; must_reach(from, t->pe) && i < SMALL_PUTS; i++) {
            CHECK(await(&words[i], i + 1, "a small put, and then nothing") &&
                  wefti_ld64(&words[i], WEFTI_RELAXED) == i + 1);
        }
        senders += must_reach(from, t->pe);
    }
    await(counter, (uint64_t)senders * ((SMALL_PUTS + 99) / 100), "atomics of which nobody wants the value");
    CHECK(wefti_ld64(counter, WEFTI_RELAXED) == (uint64_t)senders * ((SMALL_PUTS + 99) / 100));
    CHECK_OK(weft_barrier(t->world));
}

/* A few small puts by one PE while nothing else goes on anywhere, whatever the transport sleeps in: each PE in turn. */
static void suite_few_left_alone(tester *t)
{
    if (!LOOKS_AT_DATA) {
        return;
    }
    memset(t->block, 0, (size_t)t->pes * INBOX_BYTES);
    for (int sender = 0; sender < t->pes; sender++) {
        const uint64_t *words = (const uint64_t *)(const void *)inbox(t, sender);
        CHECK_OK(weft_barrier(t->world));
        wefti_os_sleep_ns(QUIET_TIME_NS);
        for (uint64_t i = 1; i <= 3 * (uint64_t)t->pes && t->pe == sender; i++) {
            const int to = (int)(i % (uint64_t)t->pes);
            if (must_reach(sender, to)) {
                CHECK_OK(put(t, to, inbox(t, sender) + (i / (uint64_t)t->pes) * sizeof i, &i, sizeof i));
            }
        }
        for (size_t i = 1; i < 3 && must_reach(sender, t->pe); i++) {
            await(&words[i], 1, "one of few small puts, and then nothing");
        }
    }
    CHECK_OK(weft_barrier(t->world));
}

/* Of small puts to one word, with a fence between them, the last one is there after a quiet. */
static void suite_small_in_order(tester *t)
{
    for (uint64_t i = 1; i <= SMALL_PUTS; i++) {
        for (int to = 0; to < t->pes; to++) {
            if (must_reach(t->pe, to)) {
                CHECK_OK(put(t, to, inbox(t, t->pe), &i, sizeof i));
            }
        }
        if (i % 3 == 0) {
            CHECK_OK(ops_under_test->fence(&t->transport));
        }
    }
    CHECK_OK(ops_under_test->fence(&t->transport));
    for (int to = 0; to < t->pes; to++) {
        const uint64_t last = SMALL_PUTS + 1;
        if (must_reach(t->pe, to)) {
            CHECK_OK(put(t, to, inbox(t, t->pe), &last, sizeof last));
        }
    }
    CHECK_OK(ops_under_test->quiet(&t->transport));
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < t->pes; from++) {
        CHECK(!must_reach(from, t->pe) || *(const uint64_t *)(const void *)inbox(t, from) == SMALL_PUTS + 1);
    }
}

static void suite_amo_contended(tester *t)
{
    int pes = reach_under_test == CONFORMANCE_REACHES_ALL ? t->pes : 1;
    uint64_t *counter = t->words;
    uint64_t *bits = t->words + 8;
    uint32_t *swapped = (uint32_t *)(t->words + 16);
    if (t->pe == 0) {
        memset(olds_seen, 0, sizeof olds_seen);
    }
    CHECK_OK(weft_barrier(t->world));
    if (must_reach(t->pe, 0)) {
        count_together(t, counter, pes);
        mix_together(t, bits, swapped);
    }
    CHECK_OK(weft_barrier(t->world));
    if (t->pe == 0) {
        CHECK(*counter == (uint64_t)pes * ADDS);
        CHECK(*bits == 0);
        CHECK(*swapped == (uint32_t)pes * ADDS && swapped[1] == 0);
        for (int i = 0; i < pes * ADDS; i++) {
            CHECK_SAY(olds_seen[i] == 1, "the old value %d was seen %d times", i, olds_seen[i]);
        }
    }
}

/* ---- several threads of one PE ---- */

#define THREADS 3
#define PART_BYTES (INBOX_BYTES / THREADS)

static void work_in_thread(int thread, void *context)
{
    tester *t = context;
    unsigned char data[1000];
    uint64_t old;
    check_as_pe(t->pe);
    for (int to = 0; to < t->pes; to++) {
        for (size_t at = 0; must_reach(t->pe, to) && at + sizeof data <= PART_BYTES; at += sizeof data) {
            size_t index = (size_t)thread * PART_BYTES + at;
            pattern_fill(data, sizeof data, t->pe, index);
            CHECK_OK(put(t, to, inbox(t, t->pe) + index, data, sizeof data));
            CHECK_OK(amo(t, to, t->words, WEFTI_AMO_ADD, 64, 1, 0, &old));
        }
    }
    CHECK_OK(ops_under_test->quiet(&t->transport));
}

static void suite_threads(tester *t)
{
    const size_t puts = PART_BYTES / 1000;
    uint64_t senders = 0;
    pes_each(THREADS, work_in_thread, t);
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < t->pes; from++) {
        for (int thread = 0; must_reach(from, t->pe) && thread < THREADS; thread++) {
            size_t index = (size_t)thread * PART_BYTES;
            pattern_check(inbox(t, from) + index, puts * 1000, from, index, "puts of several threads");
        }
        senders += must_reach(from, t->pe) ? 1 : 0;
    }
    CHECK(*t->words == senders * THREADS * puts);
}

/* ---- open and close ---- */

static void reopen(tester *t)
{
    tester again;
    tester_open(&again, t->world);
    t->transport = again.transport;
}

static void suite_reopen(tester *t)
{
    for (uint64_t round = 1; round <= 8; round++) {
        uint64_t old;
        ops_under_test->close(&t->transport);
        reopen(t);
        CHECK_OK(weft_barrier(t->world));
        CHECK_OK(amo(t, t->pe, t->words, WEFTI_AMO_ADD, 64, 1, 0, &old));
        CHECK(old == round - 1);
        CHECK_OK(ops_under_test->quiet(&t->transport));
        CHECK_OK(weft_barrier(t->world));
    }
}

/* Where a transport tells what becomes of PEs: who closes has left, and the others are there. */
static void suite_fate(tester *t)
{
    const int leaver = t->pes - 1;
    const uint64_t until_ns = wefti_os_now_ns() + PATIENCE_NS;
    wefti_transport_fate fate = WEFTI_FATE_THERE;
    if (ops_under_test->fate == NULL) {
        return;
    }
    for (int pe = 0; pe < t->pes; pe++) {
        const uint64_t one = 1;
        CHECK_OK(put(t, pe, t->words + t->pe, &one, sizeof one));
        CHECK(pe == t->pe || ops_under_test->fate(&t->transport, pe) == WEFTI_FATE_THERE);
    }
    CHECK_OK(ops_under_test->quiet(&t->transport));
    CHECK_OK(weft_barrier(t->world));
    while (t->pe != leaver && fate == WEFTI_FATE_THERE && wefti_os_now_ns() < until_ns) {
        fate = ops_under_test->fate(&t->transport, leaver);
        wefti_os_yield();
    }
    if (t->pe == leaver) {
        ops_under_test->close(&t->transport);
    } else {
        CHECK_SAY(fate == WEFTI_FATE_LEFT, "PE %d has closed, and its fate is %d", leaver, (int)fate);
        CHECK(t->pe == 0 || ops_under_test->fate(&t->transport, 0) == WEFTI_FATE_THERE);
    }
    CHECK_OK(weft_barrier(t->world));
    if (t->pe != leaver) {
        ops_under_test->close(&t->transport);
    }
    reopen(t);
    CHECK_OK(weft_barrier(t->world));
}

static weft_status gather_alone(void *context, const void *mine, void *all, size_t bytes)
{
    (void)context;
    memcpy(all, mine, bytes);
    return WEFT_OK;
}

static weft_status open_and_close(void *context)
{
    const weft_world *world = context;
    const wefti_view *view = (const wefti_view *)(const void *)world;
    unsigned char *slot = (unsigned char *)view->heap - wefti_layout_heap(view->pes, wefti_os_page_bytes());
    const wefti_transport_exchange exchange = {gather_alone, NULL};
    const wefti_transport_setup setup = {.pe = 0,
                                         .pes = 1,
                                         .slot = slot,
                                         .view = view,
                                         .deadline_ns = PATIENCE_NS,
                                         .silence_ns = PATIENCE_NS,
                                         .exchange = &exchange};
    wefti_transport transport = {.ops = ops_under_test};
    WEFT_TRY(ops_under_test->open(&transport, &setup));
    ops_under_test->close(&transport);
    return WEFT_OK;
}

static void test_open_failing(void **state)
{
    (void)state;
    weft_world *world;
    pes_create_world(1, &world);
    ledger before = ledger_read();
    (void)torture(open_and_close, world);
    ledger_assert_same(&before);
    pes_destroy_world(1, &world);
}

static void test_leaves_nothing(void **state)
{
    ledger before = ledger_read();
    (void)open_all(state);
    run_suite_test(suite_reopen);
    (void)close_all(state);
    ledger_assert_same(&before);
}

#define SUITE_TEST(name)                                                                                               \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        run_suite_test(suite_##name);                                                                                  \
    }
SUITE_TEST(reaches)
SUITE_TEST(fate)
SUITE_TEST(put)
SUITE_TEST(get)
SUITE_TEST(signal_set)
SUITE_TEST(signal_add)
SUITE_TEST(signal_in_data)
SUITE_TEST(empty_signal)
SUITE_TEST(flag)
SUITE_TEST(fence)
SUITE_TEST(quiet)
SUITE_TEST(amo_values)
SUITE_TEST(left_alone)
SUITE_TEST(few_left_alone)
SUITE_TEST(small_in_order)
SUITE_TEST(amo_contended)
SUITE_TEST(threads)

int conformance_run(const wefti_transport_ops *ops, conformance_reach reach)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_reaches),
        CHECKED_TEST(test_put),
        CHECKED_TEST(test_get),
        CHECKED_TEST(test_signal_set),
        CHECKED_TEST(test_signal_add),
        CHECKED_TEST(test_empty_signal),
        CHECKED_TEST(test_signal_in_data),
        CHECKED_TEST(test_flag),
        CHECKED_TEST(test_fence),
        CHECKED_TEST(test_quiet),
        CHECKED_TEST(test_amo_values),
        CHECKED_TEST(test_left_alone),
        CHECKED_TEST(test_few_left_alone),
        CHECKED_TEST(test_small_in_order),
        CHECKED_TEST(test_amo_contended),
        CHECKED_TEST(test_threads),
        CHECKED_TEST(test_fate),
    };
    const struct CMUnitTest ends[] = {
        CHECKED_TEST(test_leaves_nothing),
        CHECKED_TEST(test_open_failing),
    };
    ops_under_test = ops;
    reach_under_test = reach;
    const int failed = cmocka_run_group_tests_name(ops->name, tests, open_all, close_all);
    return failed + cmocka_run_group_tests_name(ops->name, ends, NULL, NULL);
}
