/* Goal: a transport keeps the contract written in transport/transport.h.
 * Method: a world of threads is the setting: each PE opens the transport under test beside those of its world, and the
 * world's own barrier keeps the PEs in step. Nothing but the transport under test moves data: a PE looks at its own
 * heap only, so the suite holds as well for transports that do not load and store. Destinations are poisoned and
 * compared whole; every byte names its sender. Its worlds, and opening and closing, are here; what moves data and
 * what is atomic are in files of their own. */
#include "transport/tester_conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/ledger.h"
#include "support/torture.h"
#include "weft/protocol/layout.h"

const wefti_transport_ops *conformance_ops;
conformance_reach conformance_reached;

typedef void (*suite_test)(tester *t);

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
    t->transport.ops = conformance_ops;
    if (!CHECK_OK(conformance_ops->open(&t->transport, &setup))) {
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
    conformance_ops->close(&testers[weft_world_pe(world)].transport);
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
    CHECK_OK(conformance_ops->quiet(&t->transport));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, block));
}

static void run_suite_test(suite_test test)
{
    pes_run_in(PES, worlds, work_with_transport, &test);
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
        conformance_ops->close(&t->transport);
        reopen(t);
        CHECK_OK(weft_barrier(t->world));
        CHECK_OK(amo(t, t->pe, t->words, WEFTI_AMO_ADD, 64, 1, 0, &old));
        CHECK(old == round - 1);
        CHECK_OK(conformance_ops->quiet(&t->transport));
        CHECK_OK(weft_barrier(t->world));
    }
}

/* Where a transport tells what becomes of PEs: who closes has left, and the others are there. */
static void suite_fate(tester *t)
{
    const int leaver = t->pes - 1;
    const uint64_t until_ns = wefti_os_now_ns() + PATIENCE_NS;
    wefti_transport_fate fate = WEFTI_FATE_THERE;
    if (conformance_ops->fate == NULL) {
        return;
    }
    for (int pe = 0; pe < t->pes; pe++) {
        const uint64_t one = 1;
        CHECK_OK(put(t, pe, t->words + t->pe, &one, sizeof one));
        CHECK(pe == t->pe || conformance_ops->fate(&t->transport, pe) == WEFTI_FATE_THERE);
    }
    CHECK_OK(conformance_ops->quiet(&t->transport));
    CHECK_OK(weft_barrier(t->world));
    while (t->pe != leaver && fate == WEFTI_FATE_THERE && wefti_os_now_ns() < until_ns) {
        fate = conformance_ops->fate(&t->transport, leaver);
        wefti_os_yield();
    }
    if (t->pe == leaver) {
        conformance_ops->close(&t->transport);
    } else {
        CHECK_SAY(fate == WEFTI_FATE_LEFT, "PE %d has closed, and its fate is %d", leaver, (int)fate);
        CHECK(t->pe == 0 || conformance_ops->fate(&t->transport, 0) == WEFTI_FATE_THERE);
    }
    CHECK_OK(weft_barrier(t->world));
    if (t->pe != leaver) {
        conformance_ops->close(&t->transport);
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
    wefti_transport transport = {.ops = conformance_ops};
    WEFT_TRY(conformance_ops->open(&transport, &setup));
    conformance_ops->close(&transport);
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
        run_suite_test(conformance_##name);                                                                            \
    }
#define SUITE_TEST_OF_GETS(name)                                                                                       \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        if (conformance_ops->get_nbi == NULL) {                                                                        \
            skip();                                                                                                    \
        }                                                                                                              \
        run_suite_test(conformance_##name);                                                                            \
    }
CONFORMANCE_OF_MOVES(SUITE_TEST)
CONFORMANCE_OF_GETS(SUITE_TEST_OF_GETS)
CONFORMANCE_OF_ATOMICS(SUITE_TEST)

static void test_fate(void **state)
{
    (void)state;
    run_suite_test(suite_fate);
}

int conformance_run(const wefti_transport_ops *ops, conformance_reach reach)
{
#define LISTED(name) CHECKED_TEST(test_##name),
    const struct CMUnitTest tests[] = {
        CONFORMANCE_OF_MOVES(LISTED) CONFORMANCE_OF_GETS(LISTED) CONFORMANCE_OF_ATOMICS(LISTED) CHECKED_TEST(test_fate),
    };
    const struct CMUnitTest ends[] = {
        CHECKED_TEST(test_leaves_nothing),
        CHECKED_TEST(test_open_failing),
    };
    conformance_ops = ops;
    conformance_reached = reach;
    const int failed = cmocka_run_group_tests_name(ops->name, tests, open_all, close_all);
    return failed + cmocka_run_group_tests_name(ops->name, ends, NULL, NULL);
}
