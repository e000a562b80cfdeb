/* Goal: the memory model shows what hardware may show, and nothing that the orders of protocol/mem.h forbid.
 * Method: small programs of two to four PEs on words of symmetric memory, run over many seeds; outcomes that the orders
 * allow must appear at least once, those that they forbid never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "os/os.h"
#include "testing/sim/atomics.h"
#include "testing/sim/transport/network.h"
#include "weft/protocol/layout.h"
#include "weft/protocol/mem.h"
#include "weft_sim.h"

/* Sanitizers make a new coroutine cost what a thread costs; the seeds are fixed, so that what shows, shows. */
#if WEFTI_TSAN || defined(__SANITIZE_ADDRESS__)
#define SEEDS 400
#else
#define SEEDS 2000
#endif
#define PES_MAX 4
#define COPY_BYTES 200

/* Each word in a line of its own, but for two that share one. */
typedef struct words {
    uint64_t x;
    uint64_t gap_x[7];
    uint64_t y;
    uint64_t gap_y[7];
    uint64_t flag;
    uint64_t gap_flag[7];
    uint64_t beside_x; /* these two in one line */
    uint64_t beside_flag;
    uint64_t gap_beside[6];
    unsigned char bulk[256];
} words;

typedef struct litmus {
    const char *name;
    int pes;
    void (*body)(words *w, int pe, uint64_t *seen);
    /* 1: an outcome of interest. */
    int (*shows)(uint64_t seen[PES_MAX][2]);
    int must_show; /* else must not */
} litmus;

static struct {
    const litmus *program;
    words *at;
    wefti_os_memory memory;
    uint64_t seen[PES_MAX][2];
} now;

static void pe_main(void *argument)
{
    int pe = weft_sim_pe();
    (void)argument;
    if (pe == 0) {
        if (wefti_os_memory_create(&now.memory, 4096) != WEFT_OK ||
            wefti_os_memory_reserve(&now.memory, 0, 4096) != WEFT_OK) {
            weft_sim_fail("no memory");
        }
        now.at = (words *)(void *)now.memory.base;
    }
    while (now.at == NULL) {
        wefti_os_sleep_ns(100);
    }
    now.program->body(now.at, pe, now.seen[pe]);
}

/* In how many of the runs the outcome shows. */
static int count_shows(const litmus *program, uint64_t base)
{
    int shows = 0;
    for (uint64_t i = 0; i < SEEDS; i++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = base + i;
        memset(&now, 0, sizeof now);
        now.program = program;
        assert_int_equal(weft_sim_run(&config, program->pes, pe_main, NULL), WEFT_OK);
        shows += program->shows(now.seen);
    }
    return shows;
}

/* ---- message passing ---- */

static void mp(words *w, int pe, uint64_t *seen, int store, int load, int fence)
{
    if (pe == 0) {
        wefti_st64(&w->x, 1, WEFTI_RELAXED);
        if (fence) {
            wefti_fence_release();
        }
        wefti_st64(&w->flag, 1, store);
    } else {
        seen[1] = wefti_ld64(&w->x, WEFTI_RELAXED); /* so that an old value is known */
        seen[0] = wefti_ld64(&w->flag, load);
        seen[1] = wefti_ld64(&w->x, WEFTI_RELAXED);
    }
}

static void mp_release_acquire(words *w, int pe, uint64_t *seen)
{
    mp(w, pe, seen, WEFTI_RELEASE, WEFTI_ACQUIRE, 0);
}

static void mp_relaxed_store(words *w, int pe, uint64_t *seen)
{
    mp(w, pe, seen, WEFTI_RELAXED, WEFTI_ACQUIRE, 0);
}

static void mp_relaxed_load(words *w, int pe, uint64_t *seen)
{
    mp(w, pe, seen, WEFTI_RELEASE, WEFTI_RELAXED, 0);
}

static void mp_fence(words *w, int pe, uint64_t *seen)
{
    mp(w, pe, seen, WEFTI_RELAXED, WEFTI_ACQUIRE, 1);
}

static int flag_without_data(uint64_t seen[PES_MAX][2])
{
    return seen[1][0] == 1 && seen[1][1] == 0;
}

static int flag_and_data(uint64_t seen[PES_MAX][2])
{
    return seen[1][0] == 1 && seen[1][1] == 1;
}

/* An acquire by one PE, handed on to a third by a release. */
static void mp_by_a_third(words *w, int pe, uint64_t *seen)
{
    if (pe == 0) {
        wefti_st64(&w->x, 1, WEFTI_RELAXED);
        wefti_st64(&w->y, 1, WEFTI_RELEASE);
    } else if (pe == 2) {
        if (wefti_ld64(&w->y, WEFTI_ACQUIRE) == 1) {
            wefti_st64(&w->flag, 1, WEFTI_RELEASE);
        }
    } else {
        mp(w, 1, seen, WEFTI_RELEASE, WEFTI_ACQUIRE, 0);
    }
}

/* ---- data in the line of its flag ---- */

static void same_line(words *w, int pe, uint64_t *seen, int load)
{
    if (pe == 0) {
        wefti_st64(&w->beside_x, 1, WEFTI_RELAXED);
        wefti_st64(&w->beside_flag, 1, WEFTI_RELEASE);
    } else {
        seen[0] = wefti_ld64(&w->beside_flag, load);
        seen[1] = wefti_ld64(&w->beside_x, WEFTI_RELAXED);
    }
}

static void same_line_acquire(words *w, int pe, uint64_t *seen)
{
    same_line(w, pe, seen, WEFTI_ACQUIRE);
}

static void same_line_relaxed(words *w, int pe, uint64_t *seen)
{
    same_line(w, pe, seen, WEFTI_RELAXED);
}

/* ---- store buffering ---- */

static void sb(words *w, int pe, uint64_t *seen, int fence)
{
    wefti_st64(pe == 0 ? &w->x : &w->y, 1, WEFTI_RELAXED);
    if (fence == 1) {
        wefti_fence_full();
    } else if (fence == 2) {
        (void)wefti_add64(&w->gap_flag[pe], 1);
    }
    seen[0] = wefti_ld64(pe == 0 ? &w->y : &w->x, fence == 0 ? WEFTI_ACQUIRE : WEFTI_RELAXED);
}

static void sb_bare(words *w, int pe, uint64_t *seen)
{
    sb(w, pe, seen, 0);
}

static void sb_fence(words *w, int pe, uint64_t *seen)
{
    sb(w, pe, seen, 1);
}

static void sb_atomic(words *w, int pe, uint64_t *seen)
{
    sb(w, pe, seen, 2);
}

static void sb_ordered(words *w, int pe, uint64_t *seen)
{
    wefti_st64(pe == 0 ? &w->x : &w->y, 1, WEFTI_SEQ_CST);
    seen[0] = wefti_ld64(pe == 0 ? &w->y : &w->x, WEFTI_SEQ_CST);
}

static int both_missed(uint64_t seen[PES_MAX][2])
{
    return seen[0][0] == 0 && seen[1][0] == 0;
}

/* ---- coherence, forwarding ---- */

static void coherence(words *w, int pe, uint64_t *seen)
{
    if (pe == 0) {
        wefti_st64(&w->x, 1, WEFTI_RELAXED);
        wefti_st64(&w->x, 2, WEFTI_RELAXED);
    } else {
        seen[0] = wefti_ld64(&w->x, WEFTI_RELAXED);
        (void)wefti_ld64(&w->y, WEFTI_RELAXED);
        seen[1] = wefti_ld64(&w->x, WEFTI_RELAXED);
    }
}

static int went_back(uint64_t seen[PES_MAX][2])
{
    return seen[1][0] > seen[1][1];
}

static void forwarding(words *w, int pe, uint64_t *seen)
{
    wefti_st64(pe == 0 ? &w->x : &w->y, 5, WEFTI_RELAXED);
    wefti_st32((char *)(pe == 0 ? &w->x : &w->y) + 4, 7, WEFTI_RELAXED);
    seen[0] = wefti_ld64(pe == 0 ? &w->x : &w->y, WEFTI_RELAXED);
}

static int own_store_missed(uint64_t seen[PES_MAX][2])
{
    uint64_t wanted = (uint64_t)7 << 32 | 5;
    return seen[0][0] != wanted || seen[1][0] != wanted;
}

/* ---- independent reads of independent writes: this model is multi-copy atomic ---- */

static void iriw(words *w, int pe, uint64_t *seen, int order)
{
    if (pe < 2) {
        wefti_st64(pe == 0 ? &w->x : &w->y, 1, WEFTI_RELEASE);
    } else {
        seen[0] = wefti_ld64(pe == 2 ? &w->x : &w->y, order);
        seen[1] = wefti_ld64(pe == 2 ? &w->y : &w->x, order);
    }
}

static void iriw_acquire(words *w, int pe, uint64_t *seen)
{
    iriw(w, pe, seen, WEFTI_ACQUIRE);
}

static void iriw_relaxed(words *w, int pe, uint64_t *seen)
{
    iriw(w, pe, seen, WEFTI_RELAXED);
}

static int readers_disagree(uint64_t seen[PES_MAX][2])
{
    return seen[2][0] == 1 && seen[2][1] == 0 && seen[3][0] == 1 && seen[3][1] == 0;
}

/* ---- bulk copies ---- */

/* seen[0]: the flag; seen[1]: how many of the bytes have come. */
static void bulk(words *w, int pe, uint64_t *seen, int store)
{
    unsigned char bytes[COPY_BYTES];
    if (pe == 0) {
        memset(bytes, 1, sizeof bytes);
        wefti_copy(w->bulk + 3, bytes, sizeof bytes);
        wefti_st64(&w->flag, 1, store);
        return;
    }
    seen[0] = wefti_ld64(&w->flag, WEFTI_ACQUIRE);
    wefti_copy(bytes, w->bulk + 3, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        seen[1] += bytes[i];
    }
}

static void bulk_release(words *w, int pe, uint64_t *seen)
{
    bulk(w, pe, seen, WEFTI_RELEASE);
}

static void bulk_relaxed(words *w, int pe, uint64_t *seen)
{
    bulk(w, pe, seen, WEFTI_RELAXED);
}

static int in_part(uint64_t seen[PES_MAX][2])
{
    return seen[1][1] > 0 && seen[1][1] < COPY_BYTES;
}

static int flag_and_part(uint64_t seen[PES_MAX][2])
{
    return seen[1][0] == 1 && seen[1][1] < COPY_BYTES;
}

/* What a PE stores past the caches into its own memory, which it sees itself at once. */
static void own_stream(words *w, int pe, uint64_t *seen, int ends)
{
    unsigned char bytes[COPY_BYTES];
    if (pe != 0) {
        bulk(w, pe, seen, WEFTI_RELEASE);
        return;
    }
    int port = wefti_network_attach(1, 0, (unsigned char *)w, sizeof *w);
    memset(bytes, 1, sizeof bytes);
    wefti_copy_stream(w->bulk + 3, bytes, sizeof bytes);
    if (memcmp(w->bulk + 3, bytes, sizeof bytes) != 0) {
        weft_sim_fail("a PE does not see what it has stored");
    }
    if (ends) {
        wefti_copy_stream_end();
    }
    wefti_st64(&w->flag, 1, WEFTI_RELEASE);
    wefti_network_detach(port);
}

static void own_stream_open(words *w, int pe, uint64_t *seen)
{
    own_stream(w, pe, seen, 0);
}

static void own_stream_ended(words *w, int pe, uint64_t *seen)
{
    own_stream(w, pe, seen, 1);
}

/* The same before an atomic, which ends them. */
static void own_stream_atomic(words *w, int pe, uint64_t *seen)
{
    if (pe == 0) {
        own_stream(w, pe, seen, 0);
        (void)wefti_add64(&w->y, 1);
    } else if (wefti_ld64(&w->y, WEFTI_ACQUIRE) == 1) {
        bulk(w, pe, seen, WEFTI_RELEASE);
    }
}

static int went_back_in_part(uint64_t seen[PES_MAX][2])
{
    return seen[1][0] > 0 && seen[1][1] < seen[1][0];
}

/* Nobody who has seen such bytes sees older ones again. */
static void own_stream_twice(words *w, int pe, uint64_t *seen)
{
    if (pe == 0) {
        own_stream(w, pe, seen, 0);
    } else {
        bulk(w, pe, seen, WEFTI_RELEASE);
        seen[0] = seen[1];
        seen[1] = 0;
        uint64_t first = seen[0];
        bulk(w, pe, seen, WEFTI_RELEASE);
        seen[0] = first;
    }
}

/* PE 0 sends data over the network and then a word that says so; PE 1 looks for it with what it acquires. */
static void sent(words *w, int pe, uint64_t *seen, void (*order)(void))
{
    const uint64_t one = 1;
    if (pe == 0) {
        ((wefti_control *)(void *)w)->reserved = sizeof *w; /* which the network asks for */
        const int port = wefti_network_attach(1, 1, (unsigned char *)w, sizeof *w);
        (void)wefti_network_put(port, offsetof(words, x), &one, sizeof one);
        if (order != NULL) {
            order();
        }
        (void)wefti_network_put(port, offsetof(words, flag), &one, sizeof one);
        wefti_network_quiet();
        wefti_network_detach(port);
        return;
    }
    for (int i = 0; i < 20 && seen[0] == 0; i++) {
        seen[0] = wefti_ld64(&w->flag, WEFTI_ACQUIRE);
        wefti_os_sleep_ns(100);
    }
    seen[1] = wefti_ld64(&w->x, WEFTI_RELAXED);
}

static void sent_bare(words *w, int pe, uint64_t *seen)
{
    sent(w, pe, seen, NULL);
}

static void sent_fence(words *w, int pe, uint64_t *seen)
{
    sent(w, pe, seen, wefti_network_fence);
}

static void sent_quiet(words *w, int pe, uint64_t *seen)
{
    sent(w, pe, seen, wefti_network_quiet);
}

/* A later copy over an earlier one commits later, byte for byte. */
static void overwritten(words *w, int pe, uint64_t *seen)
{
    unsigned char bytes[COPY_BYTES];
    if (pe == 0) {
        memset(bytes, 1, sizeof bytes);
        wefti_copy(w->bulk, bytes, sizeof bytes);
        wefti_zero(w->bulk, 50);
        memset(bytes, 2, sizeof bytes);
        wefti_copy(w->bulk + 20, bytes, 100);
        wefti_st64(&w->flag, 1, WEFTI_RELEASE);
        return;
    }
    seen[0] = wefti_ld64(&w->flag, WEFTI_ACQUIRE);
    wefti_copy(bytes, w->bulk, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        seen[1] += bytes[i] == (i < 20 ? 0 : i < 120 ? 2 : 1);
    }
}

static const litmus litmuses[] = {
    {"message passing", 2, mp_release_acquire, flag_without_data, 0},
    {"message passing arrives", 2, mp_release_acquire, flag_and_data, 1},
    {"message passing, relaxed store", 2, mp_relaxed_store, flag_without_data, 1},
    {"message passing, relaxed load", 2, mp_relaxed_load, flag_without_data, 1},
    {"message passing, release fence", 2, mp_fence, flag_without_data, 0},
    {"message passing by a third", 3, mp_by_a_third, flag_without_data, 0},
    {"flag and data in a line, acquire", 2, same_line_acquire, flag_without_data, 0},
    {"flag and data in a line, relaxed load", 2, same_line_relaxed, flag_without_data, 1},
    {"store buffering", 2, sb_bare, both_missed, 1},
    {"store buffering, full fences", 2, sb_fence, both_missed, 0},
    {"store buffering, atomics between", 2, sb_atomic, both_missed, 0},
    {"store buffering, sequentially consistent", 2, sb_ordered, both_missed, 0},
    {"coherence", 2, coherence, went_back, 0},
    {"forwarding", 2, forwarding, own_store_missed, 0},
    {"independent reads, acquire", 4, iriw_acquire, readers_disagree, 0},
    {"independent reads, relaxed", 4, iriw_relaxed, readers_disagree, 1},
    {"bulk copy in part", 2, bulk_relaxed, in_part, 1},
    {"bulk copy, relaxed flag", 2, bulk_relaxed, flag_and_part, 1},
    {"bulk copy, release", 2, bulk_release, flag_and_part, 0},
    {"own memory past the caches, not ended", 2, own_stream_open, flag_and_part, 1},
    {"own memory past the caches, ended", 2, own_stream_ended, flag_and_part, 0},
    {"own memory past the caches, an atomic", 2, own_stream_atomic, flag_and_part, 0},
    {"own memory past the caches, read twice", 2, own_stream_twice, went_back_in_part, 0},
    {"sent one after the other", 2, sent_bare, flag_without_data, 1},
    {"sent, a fence between", 2, sent_fence, flag_without_data, 0},
    {"sent, a quiet between", 2, sent_quiet, flag_without_data, 0},
    {"sent, a quiet between, arrives", 2, sent_quiet, flag_and_data, 1},
    {"copies over each other", 2, overwritten, flag_and_part, 0},
};

static void test_litmus(void **state)
{
    (void)state;
    uint64_t base = 1;
    for (size_t i = 0; i < sizeof litmuses / sizeof *litmuses; i++) {
        const litmus *program = &litmuses[i];
        int shows = count_shows(program, base);
        print_message("%-45s shows in %d of %d\n", program->name, shows, SEEDS);
        if (program->must_show != (shows > 0)) {
            fail_msg("%s: shows in %d runs", program->name, shows);
        }
        base += SEEDS;
    }
}

/* ---- a store that may pass the load before it ---- */

static int store_order;

/* PE 0 has the data and says so by a word; PE 1 then writes there. */
static void tell_after_read(words *w, int pe, uint64_t *seen)
{
    unsigned char bytes[COPY_BYTES] = {0};
    if (pe == 0) {
        wefti_copy(bytes, w->bulk, sizeof bytes);
        seen[0] = bytes[0];
        wefti_st64(&w->x, 7, WEFTI_RELAXED); /* not what PE 1 looks at */
        if (store_order == WEFTI_SEQ_CST) {
            wefti_fence_release();
        }
        wefti_st64(&w->flag, 1, store_order == WEFTI_RELEASE ? WEFTI_RELEASE : WEFTI_RELAXED);
        for (int i = 0; i < 20; i++) { /* who has ended has read */
            (void)wefti_ld64(&w->y, WEFTI_ACQUIRE);
        }
    } else if (wefti_ld64(&w->flag, WEFTI_ACQUIRE) == 1) {
        wefti_copy(w->bulk + 64, bytes, 64);
    }
}

static void test_a_store_passes_a_load(void **state)
{
    static const litmus program = {"tell after read", 2, tell_after_read, NULL, 0};
    static const int orders[] = {WEFTI_RELAXED, WEFTI_RELEASE, WEFTI_SEQ_CST};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int failed = 0;
        store_order = orders[i];
        for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
            weft_sim_config config = WEFT_SIM_CONFIG_INIT;
            config.seed = seed;
            config.silent = 1;
            memset(&now, 0, sizeof now);
            now.program = &program;
            failed += weft_sim_run(&config, program.pes, pe_main, NULL) != WEFT_OK;
        }
        assert_int_equal(failed > 0, orders[i] == WEFTI_RELAXED);
    }
}

/* ---- a word of the process's own memory ---- */

static uint64_t own_word;
static int load_order;

/* PE 0 stores it, and stores it again without order; both look at it. */
static void hand_over(words *w, int pe, uint64_t *seen)
{
    (void)w;
    for (uint64_t i = 1; i <= 3; i++) {
        if (pe == 0) {
            __atomic_store_n(&own_word, i, store_order);
        }
        weft_sim_sleep_ns(100);
        seen[0] = __atomic_load_n(&own_word, pe == 0 ? __ATOMIC_RELAXED : load_order);
    }
}

static void test_orders_of_own_words_fit(void **state)
{
    static const litmus program = {"hand over", 2, hand_over, NULL, 0};
    (void)state;
    for (int which = 0; which < 4; which++) {
        int failed = 0;
        store_order = which % 2 == 0 ? __ATOMIC_RELAXED : __ATOMIC_RELEASE;
        load_order = which / 2 == 0 ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE;
        for (uint64_t seed = 1; seed <= SEEDS / 40; seed++) {
            weft_sim_config config = WEFT_SIM_CONFIG_INIT;
            config.seed = seed;
            config.silent = 1;
            memset(&now, 0, sizeof now);
            now.program = &program;
            own_word = 0;
            failed += weft_sim_run(&config, program.pes, pe_main, NULL) != WEFT_OK;
        }
        assert_int_equal(failed > 0, which % 2 != which / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_litmus), cmocka_unit_test(test_a_store_passes_a_load),
                                       cmocka_unit_test(test_orders_of_own_words_fit)};
    return cmocka_run_group_tests_name("litmus", tests, NULL, NULL);
}
