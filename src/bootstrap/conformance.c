/* The suite that every bootstrap passes.
 *
 * Goal: all PEs meet and exchange, in any order of arrival and at any size; and when one is missing, counted twice, of
 * another size, or gone, every PE that takes part fails alike, in time, with a text that names it; nothing is left.
 * Method: PEs are threads. A trial says for each what it is given and what it does; contributions encode PE, exchange
 * and place, so that a wrong byte names its sender. Outcomes are collected and compared when all threads have ended. */
#include "bootstrap/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/durations.h"
#include "base/error.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/load.h"
#include "support/pes.h"
#include "support/torture.h"
#include "weft/protocol/mem.h"

#define LONG_NS (60 * WEFTI_SECOND_NS)
#define SHORT_NS (WEFTI_SECOND_NS * 3 / 10)
/* How much later than its deadline a PE may fail. */
#define LATE_NS load_patience_ns((WEFTI_TSAN ? 3 : 1) * WEFTI_SECOND_NS)
#define EXCHANGES_MAX 400
/* Checked byte by byte, which ThreadSanitizer makes slow, while others wait with a deadline. */
#define MUCH_BYTES ((size_t)1000000 / (WEFTI_TSAN ? 10 : 1))
#define FAULT_PROCESSES 12 /* hundreds of faults, of which most end in a deadline */
#define NEVER (-1)

/* What one PE is given, does, and gets. */
typedef struct actor {
    weft_world_config config;
    int is_absent;
    uint64_t delay_ns; /* before it comes */
    int quits_at; /* closes instead of this exchange */
    int stalls_at; /* does not come to this exchange until the others have failed */
    weft_status status;
    char text[WEFTI_ERROR_BYTES];
    uint64_t ns; /* how long its last call took */
} actor;

typedef struct trial {
    const bootstrap_subject *subject;
    weft_world_config shared;
    int pes;
    actor actors[PES_MAX];
    int exchanges;
    size_t sizes[EXCHANGES_MAX];
    int checks_at; /* PEs look who is gone, instead of this exchange */
    int jitters; /* PEs pause before exchanges */
    int failed; /* how many have */
    uint64_t exchange_ns; /* not 0: the deadline of exchanges, where it is another than that of opening */
} trial;

static const bootstrap_subject *subject_of(void **state)
{
    return *state;
}

/* ---- trials ---- */

static void make_configs(trial *t, uint64_t deadline_ns)
{
    t->checks_at = NEVER;
    for (int pe = 0; pe < t->pes; pe++) {
        actor *a = &t->actors[pe];
        memset(a, 0, sizeof *a);
        a->config = t->shared;
        a->config.size = sizeof a->config;
        a->config.pe = pe;
        a->config.pes = t->pes;
        a->config.deadline_ns = deadline_ns;
        a->quits_at = a->stalls_at = NEVER;
        if (t->subject->fit != NULL) {
            t->subject->fit(pe, &a->config);
        }
    }
}

static trial *begin(const bootstrap_subject *subject, int pes, uint64_t deadline_ns)
{
    trial *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->subject = subject;
    t->pes = pes;
    t->shared = (weft_world_config)WEFT_WORLD_CONFIG_INIT;
    CHECK_OK(subject->begin(pes, &t->shared));
    make_configs(t, load_patience_ns(deadline_ns));
    return t;
}

static void end(trial *t)
{
    if (t->subject->end != NULL) {
        t->subject->end(&t->shared);
    }
    free(t);
}

static unsigned char pattern(int pe, int exchange, size_t place)
{
    return (unsigned char)(pe * 37 + exchange * 11 + (int)place);
}

static void check_all(const trial *t, const unsigned char *all, int exchange, size_t bytes)
{
    for (int pe = 0; pe < t->pes; pe++) {
        for (size_t i = 0; i < bytes; i++) {
            if (all[(size_t)pe * bytes + i] != pattern(pe, exchange, i)) {
                CHECK_SAY(0, "byte %zu of PE %d in exchange %d (%zu bytes) is wrong", i, pe, exchange, bytes);
                return;
            }
        }
    }
}

/* What a digest is made of, and the digest: it tells all contributions, their order and their number. */
typedef struct share {
    int32_t pe;
    int32_t exchange;
} share;

typedef struct summary {
    uint64_t hash;
    uint64_t pes;
    unsigned char rest[3000]; /* more than a frame of the tree has room for */
} summary;

static weft_status summarize(const void *all, int pes, void *digest)
{
    const share *shares = all;
    summary *made = digest;
    memset(made, pes & 0xff, sizeof *made);
    made->hash = 0;
    made->pes = (uint64_t)pes;
    for (int pe = 0; pe < pes; pe++) {
        made->hash = made->hash * 1000003 + (uint64_t)shares[pe].pe * 31 + (uint64_t)shares[pe].exchange;
    }
    return WEFT_OK;
}

static weft_status digest_one(const trial *t, wefti_bootstrap *bootstrap, int exchange)
{
    const share mine = {bootstrap->pe, exchange};
    share *all = malloc((size_t)t->pes * sizeof *all);
    summary got;
    summary wanted;
    memset(&got, 0xa5, sizeof got);
    const wefti_digest_call call = {
        .mine = &mine, .bytes = sizeof mine, .make = summarize, .digest = &got, .digest_bytes = sizeof got};
    weft_status status = wefti_bootstrap_digest(bootstrap, &call);
    for (int pe = 0; pe < t->pes; pe++) {
        all[pe] = (share){pe, exchange};
    }
    (void)summarize(all, t->pes, &wanted);
    CHECK_SAY(status != WEFT_OK || memcmp(&got, &wanted, sizeof got) == 0,
              "PE %d of %d has a wrong digest in exchange %d", bootstrap->pe, t->pes, exchange);
    free(all);
    return status;
}

static weft_status exchange_one(trial *t, wefti_bootstrap *bootstrap, int exchange)
{
    if (exchange % 2 == 1) {
        return digest_one(t, bootstrap, exchange);
    }
    size_t bytes = t->sizes[exchange];
    unsigned char *mine = malloc(bytes + 1);
    unsigned char *all = malloc(bytes * (size_t)t->pes + 1);
    for (size_t i = 0; i < bytes; i++) {
        mine[i] = pattern(bootstrap->pe, exchange, i);
    }
    all[bytes * (size_t)t->pes] = 0xa5;
    weft_status status = bootstrap->ops->allgather(bootstrap, mine, all, bytes);
    if (status == WEFT_OK) {
        check_all(t, all, exchange, bytes);
    }
    CHECK(all[bytes * (size_t)t->pes] == 0xa5);
    free(mine);
    free(all);
    return status;
}

static void await_failures(const trial *t)
{
    while (__atomic_load_n(&t->failed, __ATOMIC_ACQUIRE) < t->pes - 1) {
        wefti_os_sleep_ns(WEFTI_SECOND_NS / 1000);
    }
}

/* In place of an exchange: look whether somebody is gone until somebody is. */
static weft_status check_until(wefti_bootstrap *bootstrap, uint64_t until_ns)
{
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && wefti_os_now_ns() < until_ns) {
        status = wefti_bootstrap_check(bootstrap);
        wefti_os_sleep_ns(WEFTI_SECOND_NS / 1000);
    }
    return status;
}

static weft_status exchange_all(trial *t, actor *a, wefti_bootstrap *bootstrap)
{
    weft_status status = WEFT_OK;
    uint64_t random = (unsigned)bootstrap->pe;
    for (int exchange = 0; exchange < t->exchanges && status == WEFT_OK && exchange != a->quits_at; exchange++) {
        if (exchange == a->stalls_at) {
            await_failures(t);
        }
        if (t->jitters) {
            wefti_os_sleep_ns(random_below(&random, 1000000));
        }
        uint64_t start_ns = wefti_os_now_ns();
        status = exchange == t->checks_at ? check_until(bootstrap, start_ns + 10 * WEFTI_SECOND_NS)
                                          : exchange_one(t, bootstrap, exchange);
        a->ns = wefti_os_now_ns() - start_ns;
    }
    return status;
}

static weft_status open_in(const bootstrap_subject *subject, int place, const weft_world_config *config,
                           wefti_bootstrap *bootstrap)
{
    if (subject->open == NULL) {
        return wefti_bootstrap_open(config, bootstrap);
    }
    WEFT_TRY(wefti_bootstrap_begin(config, bootstrap));
    weft_status status = subject->open(place, config, bootstrap);
    if (status != WEFT_OK) {
        memset(bootstrap, 0, sizeof *bootstrap);
        return status;
    }
    wefti_bootstrap_met(config, bootstrap);
    return WEFT_OK;
}

static void act(int pe, void *context)
{
    trial *t = context;
    actor *a = &t->actors[pe];
    wefti_bootstrap bootstrap;
    if (a->is_absent) {
        return;
    }
    wefti_os_sleep_ns(a->delay_ns);
    uint64_t start_ns = wefti_os_now_ns();
    a->status = open_in(t->subject, pe, &a->config, &bootstrap);
    a->ns = wefti_os_now_ns() - start_ns;
    if (a->status == WEFT_OK) {
        CHECK(bootstrap.pe == a->config.pe);
        CHECK(bootstrap.pes == t->pes);
        if (t->exchange_ns > 0) {
            bootstrap.until_ns = wefti_os_now_ns() + t->exchange_ns;
        }
        a->status = exchange_all(t, a, &bootstrap);
    }
    if (a->status != WEFT_OK) {
        (void)snprintf(a->text, sizeof a->text, "%s", weft_last_error());
        (void)__atomic_add_fetch(&t->failed, 1, __ATOMIC_ACQ_REL);
    }
    wefti_bootstrap_close(&bootstrap); /* safe also after a failed open */
}

static void run(trial *t)
{
    t->failed = 0;
    pes_each(t->pes, act, t);
}

static void add_exchange(trial *t, size_t bytes)
{
    t->sizes[t->exchanges++] = bytes;
}

static int participates(const actor *a)
{
    return !a->is_absent && a->quits_at == NEVER && a->stalls_at == NEVER;
}

/* ---- what trials come to ---- */

static void expect_success(const trial *t)
{
    for (int pe = 0; pe < t->pes; pe++) {
        CHECK_SAY(t->actors[pe].status == WEFT_OK, "PE %d of %d: %s", pe, t->pes, t->actors[pe].text);
    }
}

static void expect_failure(const trial *t, weft_status wanted, int culprit)
{
    for (int pe = 0; pe < t->pes; pe++) {
        const actor *a = &t->actors[pe];
        if (!participates(a)) {
            continue;
        }
        CHECK_SAY(a->status == wanted, "PE %d of %d got %s, not %s (%s)", pe, t->pes, weft_status_name(a->status),
                  weft_status_name(wanted), a->text);
        CHECK_SAY(text_names_pe(a->text, culprit), "PE %d of %d was not told of PE %d: %s", pe, t->pes, culprit,
                  a->text);
        CHECK_SAY(a->ns < a->config.deadline_ns + LATE_NS, "PE %d failed after %.3f s with a deadline of %.3f s", pe,
                  (double)a->ns * 1e-9, (double)a->config.deadline_ns * 1e-9);
    }
}

/* ---- tests: success ---- */

static const int sizes[] = {1, 2, 3, 5, 8, 16, 33};

static int size_count(const bootstrap_subject *subject)
{
    return subject->limits & BOOTSTRAP_ALONE ? 1 : (int)(sizeof sizes / sizeof sizes[0]);
}

static void meets_at_all_sizes(void **state)
{
    for (int i = 0; i < size_count(subject_of(state)); i++) {
        trial *t = begin(subject_of(state), sizes[i], LONG_NS);
        add_exchange(t, 1);
        add_exchange(t, 200);
        add_exchange(t, 0);
        add_exchange(t, 4099);
        add_exchange(t, 16);
        run(t);
        expect_success(t);
        end(t);
    }
}

static void exchanges_much(void **state)
{
    int pes = subject_of(state)->limits & BOOTSTRAP_ALONE ? 1 : 6;
    trial *t = begin(subject_of(state), pes, LONG_NS);
    add_exchange(t, MUCH_BYTES);
    add_exchange(t, 3);
    add_exchange(t, MUCH_BYTES / 3);
    run(t);
    expect_success(t);
    end(t);
}

static void exchanges_often(void **state)
{
    int pes = subject_of(state)->limits & BOOTSTRAP_ALONE ? 1 : 5;
    trial *t = begin(subject_of(state), pes, LONG_NS);
    uint64_t random = test_seed();
    while (t->exchanges < 300) {
        add_exchange(t, random_below(&random, 64));
    }
    run(t);
    expect_success(t);
    end(t);
}

static void waits_for_the_late(void **state)
{
    if (subject_of(state)->limits & BOOTSTRAP_ALONE) {
        return;
    }
    for (int late = 0; late < 6; late += 2) {
        trial *t = begin(subject_of(state), 6, LONG_NS);
        t->actors[late].delay_ns = WEFTI_SECOND_NS / 20;
        t->jitters = 1;
        for (int i = 0; i < 20; i++) {
            add_exchange(t, 100);
        }
        run(t);
        expect_success(t);
        end(t);
    }
}

static void meets_again_and_again(void **state)
{
    const bootstrap_subject *subject = subject_of(state);
    int reuses = (subject->limits & BOOTSTRAP_MEETING_REUSED) != 0;
    ledger before = ledger_read();
    trial *t = NULL;
    for (int i = 0; i < 100; i++) {
        if (t == NULL) {
            t = begin(subject, i % 2 == 0 && !(subject->limits & BOOTSTRAP_ALONE) ? 4 : 1, LONG_NS);
            add_exchange(t, 64);
        }
        run(t);
        expect_success(t);
        if (!reuses || i % 20 == 19) {
            end(t);
            t = NULL;
        }
    }
    ledger_assert_same(&before);
}

/* Two worlds at once in one process. */
static void run_one_of_two(int which, void *context)
{
    trial **two = context;
    run(two[which]);
}

static void meets_beside_others(void **state)
{
    if (subject_of(state)->limits & BOOTSTRAP_ALONE) {
        return;
    }
    trial *two[2];
    for (int i = 0; i < 2; i++) {
        two[i] = begin(subject_of(state), 3 + 2 * i, LONG_NS);
        for (int pe = 0; pe < two[i]->pes; pe++) {
            two[i]->actors[pe].config.name = i == 0 ? "left" : "right";
        }
        for (int e = 0; e < 50; e++) {
            add_exchange(two[i], 40);
        }
    }
    pes_each(2, run_one_of_two, two);
    for (int i = 0; i < 2; i++) {
        expect_success(two[i]);
        end(two[i]);
    }
}

/* ---- tests: failure ---- */

static int cannot_fail(void **state)
{
    return (subject_of(state)->limits & (BOOTSTRAP_ALONE | BOOTSTRAP_NO_DEADLINES)) != 0;
}

static void names_one_missing(void **state)
{
    static const int missing[] = {0, 1, 4, 8};
    for (int i = 0; i < 4 && !cannot_fail(state); i++) {
        ledger before = ledger_read();
        trial *t = begin(subject_of(state), 9, SHORT_NS);
        t->actors[missing[i]].is_absent = 1;
        run(t);
        expect_failure(t, WEFT_ERR_TIMEOUT, missing[i]);
        end(t);
        ledger_assert_same(&before);
    }
}

static void names_all_missing(void **state)
{
    static const int missing[] = {3, 5, 6, 7};
    if (cannot_fail(state)) {
        return;
    }
    trial *t = begin(subject_of(state), 9, SHORT_NS);
    for (int i = 0; i < 4; i++) {
        t->actors[missing[i]].is_absent = 1;
    }
    run(t);
    for (int i = 0; i < 4; i++) {
        expect_failure(t, WEFT_ERR_TIMEOUT, missing[i]);
    }
    end(t);
}

/* The one that came first gives up first; all others hear whom it missed. */
static void names_the_missing_to_the_patient(void **state)
{
    if (cannot_fail(state)) {
        return;
    }
    trial *t = begin(subject_of(state), 5, LONG_NS);
    t->actors[3].is_absent = 1;
    t->actors[2].config.deadline_ns = load_patience_ns(SHORT_NS);
    run(t);
    expect_failure(t, WEFT_ERR_TIMEOUT, 3);
    end(t);
}

static void names_a_number_taken(void **state)
{
    static const int twice[] = {1, 0, 4};
    if (subject_of(state)->limits & BOOTSTRAP_ALONE) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        ledger before = ledger_read();
        trial *t = begin(subject_of(state), 6, 5 * WEFTI_SECOND_NS);
        t->actors[2].config.pe = twice[i];
        run(t);
        expect_failure(t, WEFT_ERR_MISMATCH, twice[i]);
        end(t);
        ledger_assert_same(&before);
    }
}

static void names_another_size(void **state)
{
    if (subject_of(state)->limits & BOOTSTRAP_ALONE) {
        return;
    }
    for (int pes = 7; pes >= 2; pes -= 5) { /* one that is too large; one that its PE does not fit */
        if (pes == 2 && subject_of(state)->limits & BOOTSTRAP_SIZE_TRUSTED) {
            continue;
        }
        trial *t = begin(subject_of(state), 6, 5 * WEFTI_SECOND_NS);
        t->actors[3].config.pes = pes;
        run(t);
        expect_failure(t, WEFT_ERR_MISMATCH, 3);
        end(t);
    }
}

static void names_another_name(void **state)
{
    if (subject_of(state)->limits & (BOOTSTRAP_ALONE | BOOTSTRAP_NAMES_APART)) {
        return;
    }
    trial *t = begin(subject_of(state), 4, 5 * WEFTI_SECOND_NS);
    t->actors[1].delay_ns = WEFTI_SECOND_NS / 20;
    t->actors[1].config.name = "elsewhere";
    run(t);
    expect_failure(t, WEFT_ERR_MISMATCH, 1);
    end(t);
}

static void names_one_that_quits(void **state)
{
    static const int quitting[] = {0, 3, 4, 8};
    for (int i = 0; i < 4 && !cannot_fail(state); i++) {
        trial *t = begin(subject_of(state), 9, 10 * WEFTI_SECOND_NS);
        add_exchange(t, 10);
        add_exchange(t, 100);
        t->actors[quitting[i]].quits_at = 1;
        run(t);
        expect_failure(t, WEFT_ERR_PEER, quitting[i]);
        for (int pe = 0; pe < t->pes; pe++) {
            CHECK_SAY(t->actors[pe].ns < LATE_NS, "PE %d took %.3f s to hear of it", pe,
                      (double)t->actors[pe].ns * 1e-9);
        }
        end(t);
    }
}

/* Those that make no exchange hear of it, too; whoever asks earlier than they finds nothing. */
static void sees_one_that_quits(void **state)
{
    static const int quitting[] = {0, 3, 4, 8};
    for (int i = 0; i < 4 && !cannot_fail(state) && !(subject_of(state)->limits & BOOTSTRAP_NO_CHECK); i++) {
        trial *t = begin(subject_of(state), 9, 10 * WEFTI_SECOND_NS);
        add_exchange(t, 10);
        add_exchange(t, 100);
        t->checks_at = 1;
        t->actors[quitting[i]].quits_at = 1;
        run(t);
        expect_failure(t, WEFT_ERR_PEER, quitting[i]);
        end(t);
    }
}

static void names_one_that_stalls(void **state)
{
    static const int stalling[] = {0, 3, 4, 7};
    for (int i = 0; i < 4 && !cannot_fail(state); i++) {
        trial *t = begin(subject_of(state), 9, 10 * WEFTI_SECOND_NS);
        t->exchange_ns = load_patience_ns(SHORT_NS);
        add_exchange(t, 10);
        add_exchange(t, 100);
        t->actors[stalling[i]].stalls_at = 1;
        run(t);
        expect_failure(t, WEFT_ERR_TIMEOUT, stalling[i]);
        end(t);
    }
}

static void says_what_negative_numbers_are(void **state)
{
    trial *t = begin(subject_of(state), 1, SHORT_NS);
    wefti_bootstrap bootstrap;
    t->actors[0].config.pe = -1;
    assert_int_equal(wefti_bootstrap_open(&t->actors[0].config, &bootstrap), WEFT_ERR_ARGUMENT);
    wefti_bootstrap_close(&bootstrap);
    end(t);
}

/* ---- tests: faults ---- */

typedef struct fault_work {
    const bootstrap_subject *subject;
    uint64_t deadline_ns;
} fault_work;

static weft_status meet_once(void *context)
{
    const fault_work *work = context;
    const bootstrap_subject *subject = work->subject;
    trial *t = calloc(1, sizeof *t);
    weft_status status;
    t->subject = subject;
    t->pes = subject->limits & BOOTSTRAP_ALONE ? 1 : 6;
    t->shared = (weft_world_config)WEFT_WORLD_CONFIG_INIT;
    status = subject->begin(t->pes, &t->shared);
    if (status == WEFT_OK) {
        /* With a fault, PEs wait for one that is gone. */
        make_configs(t, torture_is_failing() ? work->deadline_ns : 60 * WEFTI_SECOND_NS);
        add_exchange(t, 32);
        add_exchange(t, 32); /* a digest */
        run(t);
        for (int pe = 0; pe < t->pes && status == WEFT_OK; pe++) {
            status = t->actors[pe].status;
            (void)wefti_error_relay(status, t->actors[pe].text);
        }
        if (subject->end != NULL) {
            subject->end(&t->shared);
        }
    }
    free(t);
    return status;
}

static void survives_every_fault(void **state)
{
    const bootstrap_subject *subject = subject_of(state);
    fault_work work = {.subject = subject, .deadline_ns = load_patience_ns(SHORT_NS / 3)};
    torture_apart(meet_once, &work, FAULT_PROCESSES);
}

int bootstrap_conformance_run(const bootstrap_subject *subject)
{
    /* cmocka hands the initial state to each test; it is only read. */
    void *state = (void *)(uintptr_t)subject;
#define SUBJECT_TEST(test)                                                                                             \
    {                                                                                                                  \
#test, test, check_begin, check_end, state                                                                     \
    }
    const struct CMUnitTest tests[] = {
        SUBJECT_TEST(meets_at_all_sizes),
        SUBJECT_TEST(exchanges_much),
        SUBJECT_TEST(exchanges_often),
        SUBJECT_TEST(waits_for_the_late),
        SUBJECT_TEST(meets_again_and_again),
        SUBJECT_TEST(meets_beside_others),
        SUBJECT_TEST(names_one_missing),
        SUBJECT_TEST(names_all_missing),
        SUBJECT_TEST(names_the_missing_to_the_patient),
        SUBJECT_TEST(names_a_number_taken),
        SUBJECT_TEST(names_another_size),
        SUBJECT_TEST(names_another_name),
        SUBJECT_TEST(names_one_that_quits),
        SUBJECT_TEST(sees_one_that_quits),
        SUBJECT_TEST(names_one_that_stalls),
        SUBJECT_TEST(says_what_negative_numbers_are),
        SUBJECT_TEST(survives_every_fault),
    };
#undef SUBJECT_TEST
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
