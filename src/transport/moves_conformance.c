/* The part of the suite of transports on what moves data: puts and gets, signals, fences and quiet, of one thread and
 * of several. See conformance.c. */
#include "transport/tester_conformance.h"

#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/pattern.h"

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

void conformance_reaches(tester *t)
{
    for (int look = 0; look < 3; look++) {
        for (int pe = 0; pe < t->pes; pe++) {
            int reaches = conformance_ops->reaches(&t->transport, pe) != 0;
            CHECK_SAY(reaches == must_reach(t->pe, pe), "reaches(%d) gave %d", pe, reaches);
        }
        CHECK(!conformance_ops->reaches(&t->transport, -1));
        CHECK(!conformance_ops->reaches(&t->transport, t->pes));
        CHECK(!conformance_ops->reaches(&t->transport, INT32_MIN));
        CHECK(!conformance_ops->reaches(&t->transport, INT32_MAX));
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

void conformance_put(tester *t)
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
    CHECK_OK(conformance_ops->quiet(&t->transport));
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

void conformance_get(tester *t)
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
            CHECK_OK(conformance_ops->get(&t->transport, of, offset, dest + p.at, p.bytes));
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

static weft_status begin_get(tester *t, int pe, const void *source, void *dest, size_t bytes)
{
    return conformance_ops->get_nbi(&t->transport, pe, offset_of(t, source), dest, bytes);
}

static weft_status end_gets(tester *t)
{
    WEFT_TRY(conformance_ops->quiet(&t->transport));
    return conformance_ops->end_gets(&t->transport, WEFT_OK);
}

/* All pieces of all PEs are begun before the first is waited for, each behind a put to the same place. */
void conformance_get_nbi(tester *t)
{
    unsigned char *dest = malloc((size_t)t->pes * INBOX_BYTES);
    unsigned char *source = malloc(INBOX_BYTES);
    memset(dest, POISON, (size_t)t->pes * INBOX_BYTES);
    memset(t->block, POISON, (size_t)t->pes * INBOX_BYTES);
    CHECK_OK(weft_barrier(t->world));
    for (int of = 0; of < t->pes; of++) {
        unsigned char *to = dest + (size_t)of * INBOX_BYTES;
        piece p = before_first;
        while (must_reach(t->pe, of) && next_piece(&p)) {
            pattern_fill(source, p.bytes, of, p.at);
            CHECK_OK(put(t, of, inbox(t, t->pe) + p.at, source, p.bytes));
            CHECK_OK(p.number % 50 == 0 ? conformance_ops->quiet(&t->transport) : WEFT_OK);
        }
        CHECK_OK(conformance_ops->fence(&t->transport));
        p = before_first;
        while (must_reach(t->pe, of) && next_piece(&p)) {
            CHECK_OK(begin_get(t, of, inbox(t, t->pe) + p.at, to + p.at, p.bytes));
        }
    }
    CHECK_OK(end_gets(t));
    for (int of = 0; of < t->pes; of++) {
        if (must_reach(t->pe, of)) {
            check_pieces(dest + (size_t)of * INBOX_BYTES, of, "gets that were begun");
        }
    }
    CHECK_OK(end_gets(t)); /* there is nothing to wait for */
    CHECK_OK(weft_barrier(t->world));
    free(source);
    free(dest);
}

/* ---- aligned words: stored whole ---- */

#ifdef WEFT_SIM
#define WHOLE_ROUNDS 20 /* each a look of all at all words; few schedules differ */
#else
#define WHOLE_ROUNDS 5000
#endif
#define WHOLE_NS UINT64_C(500000000) /* a sender's rounds; slow providers make fewer */

/* PEs whose turn is over; told past the transport. */
static uint64_t whole_turns;

/* The word of that width, at an address that divides by it and by no larger one. */
static unsigned char *word_at(const tester *t, int from, size_t bytes)
{
    return inbox(t, from) + 64 * bytes + bytes;
}

static uint64_t load(const void *at, size_t bytes)
{
    void *word = (void *)(uintptr_t)at;
    return bytes == 1   ? wefti_ld8(word, WEFTI_RELAXED)
           : bytes == 2 ? wefti_ld16(word, WEFTI_RELAXED)
           : bytes == 4 ? wefti_ld32(word, WEFTI_RELAXED)
                        : wefti_ld64(word, WEFTI_RELAXED);
}

static void alternate_words(tester *t)
{
    const uint64_t until_ns = wefti_os_now_ns() + WHOLE_NS;
    for (uint64_t round = 0; round < WHOLE_ROUNDS && wefti_os_now_ns() < until_ns; round++) {
        const uint64_t value = round % 2 == 0 ? UINT64_MAX : 0;
        for (int to = 0; to < t->pes; to++) {
            for (size_t bytes = 1; bytes <= sizeof value && must_reach(t->pe, to); bytes *= 2) {
                CHECK_OK(put(t, to, word_at(t, t->pe, bytes), &value, bytes));
            }
        }
        CHECK_OK(round % 8 == 0 ? conformance_ops->quiet(&t->transport) : conformance_ops->fence(&t->transport));
    }
}

static void look_at_words(const tester *t, int from)
{
    int are_whole = 1;
    while (wefti_ld64(&whole_turns, WEFTI_ACQUIRE) == (uint64_t)from) {
        for (size_t bytes = 1; bytes <= sizeof(uint64_t); bytes *= 2) {
            const uint64_t value = load(word_at(t, from, bytes), bytes);
            are_whole &= value == 0 || value == UINT64_MAX >> (64 - 8 * bytes);
        }
    }
    CHECK_SAY(are_whole, "a word that PE %d put was stored in pieces", from);
}

/* One PE puts, all ones and all zeroes by turns, and the others look without a call. Not by `map`: what puts words into
 * memory that it shares is inline, and stores them itself (weft/inline/rma.h). */
void conformance_whole_words(tester *t)
{
    if (conformance_ops == &wefti_transport_map) {
        return;
    }
    memset(t->block, 0, (size_t)t->pes * INBOX_BYTES);
    wefti_st64(&whole_turns, 0, WEFTI_RELEASE);
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < t->pes; from++) {
        if (t->pe == from) {
            alternate_words(t);
            CHECK_OK(conformance_ops->quiet(&t->transport));
            (void)wefti_add64(&whole_turns, 1);
        } else {
            look_at_words(t, from);
        }
        CHECK_OK(weft_barrier(t->world));
    }
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
        CHECK_OK(conformance_ops->put_signal(&t->transport, to, offset, bytes > 0 ? data : NULL, bytes, word, round,
                                             WEFT_SIGNAL_SET));
        break;
    case BY_ADD:
        CHECK_OK(conformance_ops->put_signal(&t->transport, to, offset, bytes > 0 ? data : NULL, bytes, word, 1,
                                             WEFT_SIGNAL_ADD));
        break;
    case BY_EMPTY_SIGNAL:
        CHECK_OK(conformance_ops->put_signal(&t->transport, to, 0, NULL, 0, word, round, WEFT_SIGNAL_SET));
        break;
    case BY_FLAG:
        CHECK_OK(conformance_ops->flag != NULL
                     ? conformance_ops->flag(&t->transport, to, word, round)
                     : conformance_ops->put_signal(&t->transport, to, 0, NULL, 0, word, round, WEFT_SIGNAL_SET));
        break;
    default:
        CHECK_OK(conformance_ops->fence(&t->transport));
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
    CHECK_OK(conformance_ops->put_signal(&t->transport, from, 0, NULL, 0, offset_of(t, thanks(t, t->pe)), 1,
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

void conformance_signal_set(tester *t)
{
    run_rounds(t, BY_SET);
}

void conformance_signal_add(tester *t)
{
    run_rounds(t, BY_ADD);
}

/* A word among its own data is the signal's in the end. */
void conformance_signal_in_data(tester *t)
{
    unsigned char data[64];
    const uint64_t at = (offset_of(t, inbox(t, t->pe)) + 7) / 8 * 8;
    uint64_t *word = (uint64_t *)(void *)(inbox(t, t->pe) + (at - offset_of(t, inbox(t, t->pe))) + 24);
    uint64_t seen;
    memset(data, 0xff, sizeof data);
    for (int to = 0; to < t->pes; to++) {
        if (must_reach(t->pe, to)) {
            CHECK_OK(
                conformance_ops->put_signal(&t->transport, to, at, data, sizeof data, at + 24, 5, WEFT_SIGNAL_SET));
            CHECK_OK(conformance_ops->quiet(&t->transport)); /* an atomic may come before a put */
            CHECK_OK(amo(t, to, word, WEFTI_AMO_FETCH, 64, 0, 0, &seen));
            CHECK(seen == 5);
            CHECK_OK(amo(t, to, word + 1, WEFTI_AMO_FETCH, 64, 0, 0, &seen));
            CHECK(seen == UINT64_MAX);
        }
    }
}

void conformance_empty_signal(tester *t)
{
    run_rounds(t, BY_EMPTY_SIGNAL);
}

void conformance_flag(tester *t)
{
    run_rounds(t, BY_FLAG);
}

void conformance_fence(tester *t)
{
    run_rounds(t, BY_FENCE);
}

/* ---- quiet ---- */

/* What each PE has made visible everywhere; told past the transport. */
static uint64_t quiet_rounds[PES];

void conformance_quiet(tester *t)
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
        CHECK_OK(conformance_ops->quiet(&t->transport));
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

/* Who waits for the data of a put by looking at it is in a race with it, which ThreadSanitizer tells. */
#ifdef __SANITIZE_THREAD__
enum { LOOKS_AT_DATA = 0 };
#else
enum { LOOKS_AT_DATA = 1 };
#endif

/* Many small puts and atomics of which nobody wants the value, and then no call: they arrive all the same. */
void conformance_left_alone(tester *t)
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
void conformance_few_left_alone(tester *t)
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
void conformance_small_in_order(tester *t)
{
    for (uint64_t i = 1; i <= SMALL_PUTS; i++) {
        for (int to = 0; to < t->pes; to++) {
            if (must_reach(t->pe, to)) {
                CHECK_OK(put(t, to, inbox(t, t->pe), &i, sizeof i));
            }
        }
        if (i % 3 == 0) {
            CHECK_OK(conformance_ops->fence(&t->transport));
        }
    }
    CHECK_OK(conformance_ops->fence(&t->transport));
    for (int to = 0; to < t->pes; to++) {
        const uint64_t last = SMALL_PUTS + 1;
        if (must_reach(t->pe, to)) {
            CHECK_OK(put(t, to, inbox(t, t->pe), &last, sizeof last));
        }
    }
    CHECK_OK(conformance_ops->quiet(&t->transport));
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < t->pes; from++) {
        CHECK(!must_reach(from, t->pe) || *(const uint64_t *)(const void *)inbox(t, from) == SMALL_PUTS + 1);
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
    CHECK_OK(conformance_ops->quiet(&t->transport));
}

void conformance_threads(tester *t)
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

typedef struct getters {
    tester *t;
    unsigned char *dest;
} getters;

static void begin_in_thread(int thread, void *context)
{
    const getters *g = context;
    tester *t = g->t;
    check_as_pe(t->pe);
    for (int of = 0; of < t->pes; of++) {
        for (size_t i = 0; must_reach(t->pe, of) && i < 40; i++) {
            const size_t at = (size_t)thread * PART_BYTES + i * 1000;
            const size_t bytes = i % 10 == 9 ? 900 : 1 + i;
            CHECK_OK(begin_get(t, of, inbox(t, t->pe) + at, g->dest + (size_t)of * INBOX_BYTES + at, bytes));
        }
    }
}

/* Another thread waits for what several have begun. */
void conformance_get_nbi_threads(tester *t)
{
    getters g = {.t = t, .dest = malloc((size_t)t->pes * INBOX_BYTES)};
    memset(g.dest, POISON, (size_t)t->pes * INBOX_BYTES);
    for (int reader = 0; reader < t->pes; reader++) {
        pattern_fill(inbox(t, reader), INBOX_BYTES, t->pe, 0);
    }
    CHECK_OK(weft_barrier(t->world));
    pes_each(THREADS, begin_in_thread, &g);
    CHECK_OK(end_gets(t));
    for (int of = 0; of < t->pes; of++) {
        for (size_t i = 0; must_reach(t->pe, of) && i < (size_t)THREADS * 40; i++) {
            const size_t at = i / 40 * PART_BYTES + i % 40 * 1000;
            const size_t bytes = i % 10 == 9 ? 900 : 1 + i % 40;
            const unsigned char *got = g.dest + (size_t)of * INBOX_BYTES + at;
            pattern_check(got, bytes, of, at, "gets of several threads");
            (void)poison_check(got + bytes, 1000 - bytes, "behind them");
        }
    }
    CHECK_OK(weft_barrier(t->world));
    free(g.dest);
}
