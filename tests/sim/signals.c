/* sim/signals.c: data that a signal, or a word after a fence, announces. */
#include <string.h>

#include "sim/cases.h"
#include "world/world.h"

#define WORDS 100 /* some are more than a network moves by message */
#define STRIDES 20

typedef struct mailbox {
    uint64_t data[WORDS];
    uint64_t flag; /* the round, */
    int32_t half; /* also in 32 bits, */
    uint64_t count; /* and how many letters were announced by adding to it */
    uint64_t taken; /* by the receiver, at the sender */
} mailbox;

/* How a letter is announced. */
enum {
    BY_SIGNAL_SET,
    BY_SIGNAL_ADD,
    BY_FENCE_AND_P,
    BY_STRIDES,
    BY_HALF,
    BY_CONTEXT,
    BY_CONTEXT_SIGNAL,
    BY_ATOMIC,
    WAYS
};

/* Through a context, which numbers PEs as its team does. */
static void send_by_context(weft_ctx *ctx, mailbox *box, const uint64_t *data, int to, uint64_t round, int way)
{
    weft_team *team = weft_ctx_team(ctx);
    weft_world *world = weft_team_owner(team);
    const int member = weft_team_translate(weft_team_world(world), to, team);
    if (way == BY_CONTEXT_SIGNAL) {
        MUST(weft_ctx_uint64_put_signal(ctx, box->data, data, WORDS, &box->flag, round, WEFT_SIGNAL_SET, member));
        return;
    }
    MUST(weft_ctx_uint64_put_nbi(ctx, box->data, data, WORDS, member));
    if (weft_sim_random(2) == 0) {
        MUST(weft_ctx_fence(ctx));
    } else {
        MUST(weft_ctx_quiet(ctx));
    }
    MUST(weft_ctx_uint64_p(ctx, &box->flag, round, member));
}

static void send(weft_world *world, weft_ctx *ctx, mailbox *boxes, int to, uint64_t round, int way)
{
    int pe = weft_world_pe(world);
    uint64_t data[WORDS];
    uint64_t wide[2 * STRIDES] = {0};
    mailbox *box = &boxes[pe];
    for (int i = 0; i < WORDS; i++) {
        data[i] = case_value(pe, to, round) + (uint64_t)i * 1000000;
        if (i < STRIDES) {
            wide[2 * i] = data[i];
        }
    }
    switch (way) {
    case BY_SIGNAL_SET:
        MUST(weft_putmem_signal(world, box->data, data, sizeof data, &box->flag, round, WEFT_SIGNAL_SET, to));
        break;
    case BY_SIGNAL_ADD:
        MUST(weft_putmem_signal(world, box->data, data, sizeof data, &box->count, 1, WEFT_SIGNAL_ADD, to));
        break;
    case BY_FENCE_AND_P:
        MUST(weft_putmem(world, box->data, data, sizeof data, to));
        MUST(weft_fence(world));
        MUST(weft_uint64_p(world, &box->flag, round, to));
        break;
    case BY_STRIDES:
        MUST(weft_putmem(world, box->data + STRIDES, data + STRIDES, sizeof data - STRIDES * sizeof *data, to));
        MUST(weft_uint64_iput(world, box->data, wide, 1, 2, STRIDES, to));
        MUST(weft_fence(world));
        MUST(weft_uint64_p(world, &box->flag, round, to));
        break;
    case BY_HALF:
        MUST(weft_putmem(world, box->data, data, sizeof data, to));
        MUST(weft_fence(world));
        MUST(weft_int32_p(world, &box->half, (int32_t)round, to));
        break;
    case BY_CONTEXT:
    case BY_CONTEXT_SIGNAL:
        send_by_context(ctx, box, data, to, round, way);
        break;
    default:
        MUST(weft_putmem(world, box->data, data, sizeof data, to));
        MUST(weft_fence(world));
        MUST(weft_uint64_atomic_inc(world, &box->count, to));
        break;
    }
}

/* Until a letter is announced, in any of the ways in which one can wait or look. `value`: what the flag becomes. */
static void await_word(weft_world *world, const uint64_t *flag, uint64_t value)
{
    uint64_t seen = 0;
    int has_come = 0;
    switch (weft_sim_random(4)) {
    case 0:
        MUST(weft_uint64_wait_until(world, flag, WEFT_CMP_GE, value));
        break;
    case 1:
        MUST(weft_signal_wait_until(world, flag, WEFT_CMP_GE, value, &seen));
        if (seen != value) {
            weft_sim_fail("a signal of %d is seen as %d", (int)value, (int)seen);
        }
        break;
    case 2:
        while (seen < value) {
            MUST(weft_signal_fetch(world, flag, &seen));
            dawdle(2, 1000);
        }
        break;
    default:
        while (!has_come) {
            MUST(weft_uint64_test(world, flag, WEFT_CMP_EQ, value, &has_come));
            dawdle(2, 1000);
        }
    }
}

static void await_half(weft_world *world, const int32_t *flag, int32_t value)
{
    int has_come = 0;
    if (weft_sim_random(2) == 0) {
        MUST(weft_int32_wait_until(world, flag, WEFT_CMP_GE, value));
        return;
    }
    while (!has_come) {
        MUST(weft_int32_test(world, flag, WEFT_CMP_EQ, value, &has_come));
        dawdle(2, 1000);
    }
}

static int adds(int way)
{
    return way == BY_SIGNAL_ADD || way == BY_ATOMIC;
}

static void take(weft_world *world, mailbox *boxes, int from, uint64_t round, int way, uint64_t added)
{
    int pe = weft_world_pe(world);
    mailbox *box = &boxes[from];
    uint64_t data[WORDS];
    if (way == BY_HALF) {
        await_half(world, &box->half, (int32_t)round);
    } else {
        await_word(world, adds(way) ? &box->count : &box->flag, adds(way) ? added : round);
    }
    MUST(weft_getmem(world, data, box->data, sizeof data, pe));
    for (int i = 0; i < WORDS; i++) {
        if (data[i] != case_value(from, pe, round) + (uint64_t)i * 1000000) {
            weft_sim_fail("round %d: word %d from PE %d, told in way %d, is %llx", (int)round, i, from, way,
                          (unsigned long long)data[i]);
        }
    }
    dawdle(10, 2000);
    /* The sender may write again: what was read must have been read. */
    MUST(weft_putmem_signal(world, box->data, NULL, 0, &boxes[pe].taken, round, WEFT_SIGNAL_SET, from));
}

/* The last of two words comes first, and the first late: who waits for both has both. */
static void wait_for_both(weft_world *world)
{
    uint64_t *words;
    uint64_t first;
    int next = (weft_world_pe(world) + 1) % weft_world_pes(world);
    MUST(weft_calloc(world, 2, sizeof *words, (void **)&words));
    MUST(weft_uint64_p(world, &words[1], 1, next));
    dawdle(2, 3000);
    MUST(weft_uint64_p(world, &words[0], 1, next));
    MUST(weft_uint64_wait_until_all(world, words, 2, NULL, WEFT_CMP_EQ, 1));
    MUST(weft_uint64_g(world, &words[0], weft_world_pe(world), &first));
    if (first != 1) {
        weft_sim_fail("two words were awaited, and the first is %llx", (unsigned long long)first);
    }
}

/* What was put to one PE before a quiet is there for who is told by another way. */
static void tell_a_third(weft_world *world)
{
    enum { ROUNDS = 3 };
    uint64_t *words; /* of each round two of the PE before, and a flag of the one before that */
    uint64_t seen;
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    MUST(weft_calloc(world, 3 * ROUNDS, sizeof *words, (void **)&words));
    for (int round = 0; round < ROUNDS; round++, words += 3) {
        MUST(weft_uint64_p(world, &words[0], 1, (pe + 1) % pes));
        MUST(weft_uint64_p(world, &words[1], 1, (pe + 1) % pes));
        MUST(weft_quiet(world));
        MUST(weft_uint64_p(world, &words[2], 1, (pe + 2) % pes));
        MUST(weft_uint64_wait_until(world, &words[2], WEFT_CMP_EQ, 1));
        MUST(weft_uint64_atomic_fetch(world, &words[1], (pe + pes - 1) % pes, &seen));
        if (seen != 1) {
            weft_sim_fail("round %d: PE %d has put, and told PE %d, which finds %d", round, (pe + pes - 2) % pes, pe,
                          (int)seen);
        }
    }
}

/* More puts than a network lets go before it hears that some have been taken, and nobody says anything else. */
static void flood(weft_world *world, int messages)
{
    enum { PUTS = 80, BYTES = 700 };
    unsigned char bytes[BYTES];
    unsigned char *rows;
    unsigned char *from; /* symmetric: a network may read it where it is */
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    MUST(weft_malloc(world, (size_t)PUTS * BYTES, (void **)&rows));
    MUST(weft_malloc(world, BYTES, (void **)&from));
    for (int i = 0; i < PUTS; i++) {
        memset(from, (pe + i) & 0xff, BYTES);
        MUST(weft_putmem(world, rows + (size_t)i * BYTES, from, BYTES, (pe + 1) % pes));
        if (i % 16 == 0) { /* a message behind it, and a read behind that */
            from[0] = (unsigned char)~from[0];
            MUST(weft_fence(world));
            MUST(weft_putmem(world, rows + (size_t)i * BYTES, from, 1, (pe + 1) % pes));
            if (!messages || i % 32 == 0) { /* messages keep a PE's reads behind its puts by themselves */
                MUST(weft_fence(world));
            }
            MUST(weft_getmem(world, bytes, rows + (size_t)i * BYTES, BYTES, (pe + 1) % pes));
            if (bytes[0] != from[0] || bytes[BYTES - 1] != from[1]) {
                weft_sim_fail("put %d is not there for who has put: %d and %d", i, bytes[0], bytes[BYTES - 1]);
            }
        }
    }
    MUST(weft_barrier(world));
    for (int i = 0; i < PUTS; i++) {
        MUST(weft_getmem(world, bytes, rows + (size_t)i * BYTES, sizeof bytes, pe));
        if (bytes[1] != (((pe + pes - 1) % pes + i) & 0xff) || bytes[BYTES - 1] != bytes[1]) {
            weft_sim_fail("put %d of a flood brought %d and %d", i, bytes[1], bytes[BYTES - 1]);
        }
    }
}

/* Small puts of any sizes, one after another: messages are filled to their ends. */
static void patter(weft_world *world)
{
    enum { PUTS = 120, BYTES_MAX = 256 };
    unsigned char from[BYTES_MAX];
    unsigned char seen[BYTES_MAX];
    unsigned char *rows;
    uint64_t *done;
    size_t bytes[PUTS];
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const uint64_t most = weft_sim_random(4) == 0 ? BYTES_MAX : 40;
    MUST(weft_malloc(world, (size_t)PUTS * BYTES_MAX, (void **)&rows));
    MUST(weft_calloc(world, 1, sizeof *done, (void **)&done));
    for (int i = 0; i < PUTS; i++) {
        bytes[i] = 1 + (size_t)weft_sim_random(most);
        memset(from, 1 + (pe + i) % 250, bytes[i]);
        MUST(weft_putmem(world, rows + (size_t)i * BYTES_MAX, from, bytes[i], (pe + 1) % pes));
    }
    MUST(weft_quiet(world));
    for (int i = 0; i < PUTS; i++) {
        memset(from, 1 + (pe + i) % 250, bytes[i]);
        MUST(weft_getmem(world, seen, rows + (size_t)i * BYTES_MAX, bytes[i], (pe + 1) % pes));
        if (memcmp(seen, from, bytes[i]) != 0) {
            weft_sim_fail("put %d of many small ones, of %zu bytes, is not there", i, bytes[i]);
        }
    }
    MUST(weft_barrier(world));
}

/* What is put lies where the heap ended before it grew, in part before and in part behind. */
static void put_across_growth(weft_world *world)
{
    enum { BLOCKS = 3, BYTES = 3000 };
    unsigned char *blocks[BLOCKS];
    unsigned char *to;
    unsigned char seen[BYTES];
    const int pe = weft_world_pe(world);
    const int next = (pe + 1) % weft_world_pes(world);
    MUST(weft_malloc(world, BYTES, (void **)&to));
    for (int block = 0; block < BLOCKS; block++) {
        const size_t bytes = (size_t)40000 << block;
        const unsigned char *end = world->heap + world->view.heap_bytes;
        MUST(weft_malloc(world, bytes, (void **)&blocks[block]));
        for (size_t i = 0; i < bytes; i++) {
            blocks[block][i] = (unsigned char)((size_t)(block + pe) + i % 251);
        }
        for (int i = 0; i < 2; i++) {
            const size_t some = 1 + (size_t)weft_sim_random(BYTES);
            const ptrdiff_t wanted = end - blocks[block] - (ptrdiff_t)weft_sim_random(some);
            const ptrdiff_t most = (ptrdiff_t)(bytes - some);
            const unsigned char *from = blocks[block] + (wanted < 0 ? 0 : wanted < most ? wanted : most);
            MUST(weft_putmem(world, to, from, some, next));
            MUST(weft_quiet(world));
            MUST(weft_getmem(world, seen, to, some, next));
            if (memcmp(seen, from, some) != 0) {
                weft_sim_fail("%zu bytes at %td of a heap that has grown did not come as they were", some,
                              from - world->heap);
            }
        }
    }
    MUST(weft_barrier(world));
    for (int block = 0; block < BLOCKS; block++) {
        MUST(weft_free(world, blocks[block]));
    }
}

/* So many puts that who does not look for a while is told of more than it could take. */
static void pour(weft_world *world)
{
    enum { PUTS = 250, BYTES = 300 };
    unsigned char *row;
    unsigned char *from;
    const int next = (weft_world_pe(world) + 1) % weft_world_pes(world);
    MUST(weft_calloc(world, 1, BYTES, (void **)&row));
    MUST(weft_calloc(world, 1, BYTES, (void **)&from));
    for (int i = 0; i < PUTS; i++) {
        if (weft_sim_random(PUTS / 4) == 0) {
            weft_sim_stall(next, 1 + weft_sim_random(100000));
        }
        MUST(weft_putmem(world, row, from, BYTES, next));
    }
    MUST(weft_quiet(world));
}

/* What was put behind a fence comes behind the signal before it. Who has found it looks for the signal in a way that
 * finds no old value. */
static void write_behind_signal(weft_world *world)
{
    enum { WORDS_EACH = 150, ROUNDS = 4 }; /* more than a network moves by message */
    uint64_t *words; /* a signal, its data, and what follows */
    uint64_t *from;
    uint64_t seen = 0;
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    MUST(weft_calloc(world, 1 + 2 * WORDS_EACH, sizeof *words, (void **)&words));
    MUST(weft_malloc(world, WORDS_EACH * sizeof *from, (void **)&from));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < WORDS_EACH; i++) {
            from[i] = round;
        }
        MUST(weft_putmem_signal(world, words + 1, from, WORDS_EACH * sizeof *from, words, round, WEFT_SIGNAL_SET,
                                (pe + 1) % pes));
        MUST(weft_fence(world));
        MUST(weft_putmem(world, words + 1 + WORDS_EACH, from, WORDS_EACH * sizeof *from, (pe + 1) % pes));
        MUST(weft_uint64_wait_until(world, words + 2 * WORDS_EACH, WEFT_CMP_GE, round));
        MUST(weft_uint64_atomic_fetch(world, words, pe, &seen));
        if (seen < round) {
            weft_sim_fail("round %d: what follows a signal is there, and the signal is %d", (int)round, (int)seen);
        }
        MUST(weft_barrier(world));
    }
}

/* What was put behind a fence comes behind all writes, and messages, before it, however many are under way. */
static void write_behind_writes(weft_world *world)
{
    enum { WORDS_EACH = 300, PARTS = 4, ROUNDS = 4 }; /* more than a network moves by message */
    uint64_t *parts; /* PARTS of them, of which the last comes behind the fence, and a word */
    uint64_t from[WORDS_EACH]; /* of this PE alone: who puts it need not wait until it is there */
    uint64_t seen = 0;
    const int pe = weft_world_pe(world);
    const int next = (pe + 1) % weft_world_pes(world);
    MUST(weft_calloc(world, PARTS * WORDS_EACH + 1, sizeof *parts, (void **)&parts));
    uint64_t *last = &parts[PARTS * WORDS_EACH - 1];
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const int before = 1 + (int)(round % (PARTS - 1));
        for (int i = 0; i < WORDS_EACH; i++) {
            from[i] = round;
        }
        for (int part = 0; part < before; part++) {
            MUST(weft_putmem(world, parts + (ptrdiff_t)part * WORDS_EACH, from, sizeof from, next));
        }
        MUST(weft_fence(world));
        if (weft_sim_random(2) == 0) { /* by message */
            MUST(weft_uint64_p(world, last + 1, round, next));
            MUST(weft_fence(world));
        }
        MUST(weft_putmem(world, last + 1 - WORDS_EACH, from, sizeof from, next));
        MUST(weft_uint64_wait_until(world, last, WEFT_CMP_GE, round));
        for (int word = 0; word < before * WORDS_EACH; word += WORDS_EACH / 3) {
            MUST(weft_uint64_atomic_fetch(world, &parts[word], pe, &seen));
            if (seen < round) {
                weft_sim_fail("round %d: what follows a fence is there, and word %d before it is %d", (int)round, word,
                              (int)seen);
            }
        }
        MUST(weft_barrier(world));
    }
}

/* What is put behind a signal without a fence may come before it, but no signal before its own data. */
static void write_beside_signal(weft_world *world)
{
    enum { WORDS_EACH = 300, ROUNDS = 4 }; /* more than a network moves by message */
    uint64_t *words; /* a signal, its data, and what is put at the same time */
    uint64_t from[WORDS_EACH]; /* of this PE alone: who puts it need not wait until it is there */
    uint64_t data[WORDS_EACH];
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    MUST(weft_calloc(world, 1 + 2 * WORDS_EACH, sizeof *words, (void **)&words));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < WORDS_EACH; i++) {
            from[i] = round;
        }
        MUST(weft_putmem_signal(world, words + 1, from, sizeof data, words, round, WEFT_SIGNAL_SET, (pe + 1) % pes));
        MUST(weft_putmem(world, words + 1 + WORDS_EACH, from, sizeof data, (pe + 1) % pes));
        MUST(weft_uint64_wait_until(world, words, WEFT_CMP_GE, round));
        MUST(weft_getmem(world, data, words + 1, sizeof data, pe));
        for (int i = 0; i < WORDS_EACH; i++) {
            if (data[i] != round) {
                weft_sim_fail("round %d: the signal has come, and word %d of its data is %d", (int)round, i,
                              (int)data[i]);
            }
        }
        MUST(weft_barrier(world));
    }
}

/* Two of several words are set, one after the other: each is found once, by one of the calls that wait for any. */
static void wait_for_any(weft_world *world, uint64_t *common)
{
    enum { MANY = 7 };
    uint64_t *words;
    int done[MANY] = {0};
    int set[2] = {common_below(common, MANY), 0};
    set[1] = (set[0] + 1 + common_below(common, MANY - 1)) % MANY;
    int next = (weft_world_pe(world) + 1) % weft_world_pes(world);
    MUST(weft_calloc(world, MANY, sizeof *words, (void **)&words));
    for (int i = 0; i < 2; i++) {
        dawdle(2, 3000);
        MUST(weft_uint64_p(world, &words[set[i]], 1, next));
    }
    for (size_t heard = 0; heard < 2;) {
        size_t found[MANY] = {0};
        size_t count = 1;
        if (heard == 0 && weft_sim_random(2) == 0) {
            MUST(weft_uint64_wait_until_some(world, words, MANY, done, WEFT_CMP_EQ, 1, found, &count));
        } else {
            MUST(weft_uint64_wait_until_any(world, words, MANY, done, WEFT_CMP_EQ, 1, found));
        }
        for (size_t i = 0; i < count; i++) {
            if (found[i] >= MANY || done[found[i]] || ((int)found[i] != set[0] && (int)found[i] != set[1])) {
                weft_sim_fail("words %d and %d are set, and %zu is found", set[0], set[1], found[i]);
            }
            done[found[i]] = 1;
        }
        heard += count;
    }
}

/* What all do to the same words at once: nothing of it is lost. */
static void change_together(weft_world *world, uint64_t *common)
{
    enum { TURNS = 4 };
    struct words {
        uint64_t added;
        uint64_t swapped;
        uint64_t turned;
        uint64_t set;
        uint64_t cleared;
        uint32_t added_half;
        uint32_t turned_half;
        uint32_t set_half;
        uint32_t cleared_half;
    } * words, all;
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int home = common_below(common, pes);
    const uint64_t bit = UINT64_C(1) << pe;
    const uint64_t everyone = pes == 64 ? UINT64_MAX : (UINT64_C(1) << pes) - 1;
    MUST(weft_calloc(world, 1, sizeof *words, (void **)&words));
    if (pe == home) {
        words->cleared = everyone;
        words->cleared_half = (uint32_t)everyone;
    }
    MUST(weft_barrier(world));
    for (int i = 0; i < TURNS; i++) {
        uint64_t expected;
        uint64_t seen = 0;
        uint64_t before = 0;
        uint32_t half;
        MUST(weft_uint64_atomic_add(world, &words->added, (uint64_t)i, home));
        MUST(weft_uint32_atomic_fetch_add(world, &words->added_half, (uint32_t)i, home, &half));
        MUST(weft_uint64_atomic_fetch_xor(world, &words->turned, bit, home, &before));
        if ((before & bit) != (i % 2 == 0 ? 0 : bit)) {
            weft_sim_fail("PE %d has turned its bit %d times, and all were %llx", pe, i, (unsigned long long)before);
        }
        MUST(weft_uint32_atomic_xor(world, &words->turned_half, (uint32_t)bit, home));
        do { /* one more */
            expected = seen;
            MUST(weft_uint64_atomic_compare_swap(world, &words->swapped, expected, expected + 1, home, &seen));
        } while (seen != expected);
    }
    MUST(weft_uint64_atomic_or(world, &words->set, bit, home));
    MUST(weft_uint32_atomic_fetch_or(world, &words->set_half, (uint32_t)bit, home, &all.set_half));
    MUST(weft_uint64_atomic_and(world, &words->cleared, ~bit, home));
    MUST(weft_uint32_atomic_and(world, &words->cleared_half, (uint32_t)~bit, home));
    MUST(weft_barrier(world));
    MUST(weft_getmem(world, &all, words, sizeof all, home));
    const uint64_t sum = (uint64_t)pes * TURNS * (TURNS - 1) / 2;
    if (all.added != sum || all.added_half != sum || all.swapped != (uint64_t)pes * TURNS || all.turned != 0 ||
        all.turned_half != 0 || all.set != everyone || all.set_half != (uint32_t)everyone || all.cleared != 0 ||
        all.cleared_half != 0) {
        weft_sim_fail("what %d PEs did at once: sums %d and %d of %d, swapped %d, bits %llx %x, %llx %x, %llx %x", pes,
                      (int)all.added, (int)all.added_half, (int)sum, (int)all.swapped, (unsigned long long)all.turned,
                      all.turned_half, (unsigned long long)all.set, all.set_half, (unsigned long long)all.cleared,
                      all.cleared_half);
    }
}

/* A team of all PEs in another order: by a list, or from the last to the first. */
static weft_ctx *other_numbers(weft_world *world, uint64_t *common, weft_team **team)
{
    int order[64];
    const int pes = weft_world_pes(world);
    weft_ctx *ctx;
    for (int i = 0; i < pes; i++) {
        const int other = common_below(common, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    if (common_below(common, 3) == 0) {
        MUST(weft_team_split_strided(weft_team_world(world), pes - 1, -1, pes, team));
    } else {
        MUST(weft_team_create(weft_team_world(world), order, pes, team));
    }
    MUST(weft_ctx_create(*team, WEFT_CTX_SERIALIZED, &ctx));
    return ctx;
}

/* The end of a context completes what was put through it: it is there for who is told in another way. */
static void end_behind_puts(weft_world *world, weft_ctx *ctx)
{
    uint64_t *words; /* of the PE before, and a flag of the one before that */
    uint64_t seen = 0;
    const int pe = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int member = weft_team_translate(weft_team_world(world), (pe + 1) % pes, weft_ctx_team(ctx));
    MUST(weft_calloc(world, 3, sizeof *words, (void **)&words));
    MUST(weft_ctx_uint64_p(ctx, &words[0], 1, member));
    MUST(weft_ctx_uint64_p(ctx, &words[1], 1, member));
    MUST(weft_ctx_destroy(ctx));
    MUST(weft_uint64_p(world, &words[2], 1, (pe + 2) % pes));
    MUST(weft_uint64_wait_until(world, &words[2], WEFT_CMP_EQ, 1));
    MUST(weft_uint64_atomic_fetch(world, &words[1], (pe + pes - 1) % pes, &seen));
    if (seen != 1) {
        weft_sim_fail("PE %d has ended a context behind a put, and told PE %d, which finds %d", (pe + pes - 2) % pes,
                      pe, (int)seen);
    }
}

void case_signals(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("signals");
    int pe = weft_world_pe(world);
    int all_to_all = common_below(&common, 2) == 0 && run->pes <= 12;
    int reach = all_to_all ? run->pes - 1 : 1;
    uint64_t added = 0; /* rounds in which letters were announced by adding */
    mailbox *boxes;
    weft_team *team;
    weft_ctx *ctx = other_numbers(world, &common, &team);
    MUST(weft_calloc(world, (size_t)run->pes, sizeof *boxes, (void **)&boxes));
    for (uint64_t round = 1; round <= 3; round++) {
        int way = common_below(&common, WAYS);
        added += adds(way);
        for (int i = 1; i <= reach; i++) {
            int to = (pe + i) % run->pes;
            MUST(weft_uint64_wait_until(world, &boxes[to].taken, WEFT_CMP_EQ, round - 1));
            send(world, ctx, boxes, to, round, way);
        }
        for (int i = 1; i <= reach; i++) {
            take(world, boxes, (pe + run->pes - i) % run->pes, round, way, added);
        }
    }
    wait_for_both(world);
    wait_for_any(world, &common);
    if (common_below(&common, 3) == 0) {
        change_together(world, &common);
    }
    if (run->pes > 2) {
        tell_a_third(world);
    }
    if (common_below(&common, 4) == 0) {
        flood(world, run->messages);
    }
    if (run->messages && common_below(&common, 4) == 0) {
        pour(world);
    }
    if (common_below(&common, 6) == 0) {
        patter(world);
    }
    if (common_below(&common, 6) == 0) {
        put_across_growth(world);
    }
    static void (*const writes[])(weft_world *) = {write_behind_signal, write_beside_signal, write_behind_writes,
                                                   write_behind_writes};
    writes[common_below(&common, run->messages ? 4 : 3)](world);
    uint64_t old;
    MUST(weft_uint64_atomic_fetch_add(world, &boxes[0].data[0], 1, 0, &old));
    MUST(weft_barrier(world));
    if (run->pes > 2) {
        end_behind_puts(world, ctx);
    } else {
        MUST(weft_ctx_destroy(ctx));
    }
    MUST(weft_team_destroy(team));
    MUST(weft_world_destroy(world));
}
