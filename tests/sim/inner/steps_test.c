/* Goal: steps of protocols that calls reach in rare orders only: who has not been counted is named, an abort that came
 * to one PE of a node reaches the others, a clear that gave up half-way goes on when it is called again, who leaves has
 * not ended, what a read of another PE's word announces is there, and a failed creation is told to those it concerns.
 * Method: in a simulated world some PEs make a step themselves, as a PE does that stops there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "team/team.h"
#include "weft.h"
#include "weft_sim.h"
#include "world/world.h"

#define SEEDS_OF_ONE_ORDER 4 /* where the test decides what comes when, and PEs wait for a deadline */
#define SEEDS 100
#define MS_NS UINT64_C(1000000)
#define DEADLINE_NS (100 * MS_NS)
#define WORDS 40

/* How far the PEs of a run have come, told beside weft; the last to leave clears it. */
static int turn;

static void run(uint64_t seeds, int pes, int domain_pes, void (*pe_main)(void *argument))
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.domain_pes = domain_pes;
        config.process_pes = 1;
        config.deadlock = WEFT_SIM_DEADLOCK_ADVANCE;
        turn = 0;
        assert_int_equal(weft_sim_run(&config, pes, pe_main, NULL), WEFT_OK);
    }
}

static void await_turn(int wanted)
{
    while (turn < wanted) {
        weft_sim_sleep_ns(MS_NS / 10);
    }
}

static void expect(weft_status status, weft_status wanted, const char *what)
{
    if (status != wanted) {
        weft_sim_fail("%s gave %s: %s", what, weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    }
}
#define MUST(call) expect((call), WEFT_OK, #call)

static weft_world *begin(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = DEADLINE_NS;
    MUST(weft_world_create(&config, &world));
    return world;
}

/* ---- counting ---- */

/* Three members are counted, PE 3 is not. */
static void count(void *argument)
{
    weft_world *world = begin();
    weft_team *team = weft_team_world(world);
    (void)argument;
    if (weft_sim_pe() == 0) {
        await_turn(2);
        expect(wefti_team_sync_by_count(team, "a call"), WEFT_ERR_TIMEOUT, "a sync without PE 3");
        if (strstr(weft_last_error(), "PE 3") == NULL || strstr(weft_last_error(), "PEs") != NULL) {
            weft_sim_fail("not PE 3 is named: %s", weft_last_error());
        }
        turn++;
    } else if (weft_sim_pe() < 3) {
        MUST(wefti_team_arrive_by_count(team, "a call"));
        turn++;
    }
    await_turn(3);
    (void)!weft_world_destroy(world);
}

static void test_the_counted_are_not_named(void **state)
{
    (void)state;
    run(SEEDS_OF_ONE_ORDER, 4, 0, count);
}

/* ---- an abort ---- */

/* PE 0 tells PE 2 of the other node and stops there. */
static void abort_half(void *argument)
{
    weft_world *world = begin();
    int pe = weft_sim_pe();
    int culprit = -1;
    (void)argument;
    MUST(weft_barrier(world));
    if (pe == 0) {
        MUST(wefti_world_set_once(world, &world->control->abort, WEFTI_ABORT_SET | 7, 2));
        MUST(weft_quiet(world));
    }
    uint64_t until_ns = weft_sim_now_ns() + DEADLINE_NS;
    while (pe >= 2 && weft_world_fault(world, &culprit) == WEFT_OK && weft_sim_now_ns() < until_ns) {
        weft_sim_sleep_ns(1000);
    }
    if (pe >= 2 && (weft_world_fault(world, &culprit) != WEFT_ERR_ABORTED || culprit != 0)) {
        weft_sim_fail("PE %d was not told of the abort", pe);
    }
    turn++;
    await_turn(4);
    (void)!weft_world_destroy(world);
}

static void test_an_abort_is_handed_on(void **state)
{
    (void)state;
    run(SEEDS_OF_ONE_ORDER, 4, 2, abort_half);
}

/* ---- a lock ---- */

#define IN UINT32_C(0x80000000) /* of a node: rma/lock.c */
#define HAS UINT32_C(0x40000000)

/* PE 2 asks and stops before it tells PE 1, whose place in the queue it follows and which has left. */
static void ask_half(weft_world *world, uint32_t *words)
{
    const int home = (int)(((uintptr_t)words - world->view.heap) / 8 % world->view.pes);
    uint32_t before = 0;
    uint32_t old;
    await_turn(2);
    wefti_st32(&words[1], IN, WEFTI_RELEASE);
    MUST(weft_uint32_atomic_swap(world, words, 3, home, &before));
    if (before != 2) {
        weft_sim_fail("PE %d stood last in the queue", (int)before - 1);
    }
    turn++;
    await_turn(4);
    MUST(weft_uint32_atomic_fetch_or(world, &words[1], 3, 1, &old));
    turn++;
    while ((wefti_ld32(&words[1], WEFTI_ACQUIRE) & HAS) == 0) {
        weft_sim_sleep_ns(1000);
    }
    MUST(weft_clear_lock(world, (long *)(void *)words));
}

static void clear_twice(void *argument)
{
    weft_world *world = begin();
    long *lock;
    (void)argument;
    MUST(weft_calloc(world, 1, sizeof *lock, (void **)&lock));
    if (weft_sim_pe() == 0) {
        MUST(weft_set_lock(world, lock));
        turn++;
        await_turn(3);
        expect(weft_clear_lock(world, lock), WEFT_ERR_TIMEOUT, "a clear before PE 2 has told PE 1");
        turn++;
        await_turn(5);
        MUST(weft_clear_lock(world, lock));
    } else if (weft_sim_pe() == 1) {
        await_turn(1);
        expect(weft_set_lock(world, lock), WEFT_ERR_TIMEOUT, "a lock that is held");
        turn++;
    } else {
        ask_half(world, (uint32_t *)(void *)lock);
        turn++;
    }
    await_turn(6);
    MUST(weft_set_lock(world, lock));
    MUST(weft_clear_lock(world, lock));
    MUST(weft_world_destroy(world));
}

static void test_a_clear_goes_on(void **state)
{
    (void)state;
    run(SEEDS_OF_ONE_ORDER, 3, 0, clear_twice);
}

/* ---- leaving ---- */

/* PE 1 leaves; PE 0 looks all the while, and never believes that PE 1's process has ended. */
static void leave(void *argument)
{
    weft_world *world = begin();
    (void)argument;
    MUST(weft_barrier(world));
    while (weft_sim_pe() == 0 && !wefti_world_has_left(world, 1)) {
        if (wefti_world_has_ended(world, 1)) {
            weft_sim_fail("PE 1 leaves, and seems to have ended");
        }
    }
    MUST(weft_world_destroy(world));
}

static void test_who_leaves_has_not_ended(void **state)
{
    (void)state;
    run(SEEDS, 2, 0, leave);
}

/* ---- what a word announces ---- */

typedef struct letter {
    uint64_t data[WORDS];
    uint64_t flag;
} letter;

static void check_letter(const letter *mine, const char *what)
{
    for (int i = 0; i < WORDS; i++) {
        uint64_t seen = wefti_ld64(&mine->data[i], WEFTI_RELAXED);
        if (seen != (uint64_t)i + 1) {
            weft_sim_fail("%s: word %d is %llu", what, i, (unsigned long long)seen);
        }
    }
}

/* PE 1 looks at PE 0's flag, and then at PE 0's data. */
static void announce(void *argument)
{
    weft_world *world = begin();
    letter *block;
    uint64_t seen = 0;
    (void)argument;
    MUST(weft_calloc(world, 1, sizeof *block, (void **)&block));
    if (weft_sim_pe() == 0) {
        for (int i = 0; i < WORDS; i++) {
            wefti_st64(&block->data[i], (uint64_t)i + 1, WEFTI_RELAXED);
        }
        wefti_st64(&block->flag, 1, WEFTI_RELEASE);
    } else {
        const letter *theirs = wefti_peer_address(world, block, 0);
        while (seen == 0) {
            MUST(wefti_world_read(world, &block->flag, 0, &seen));
        }
        check_letter(theirs, "behind a flag that was read");
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}

static void test_a_read_acquires(void **state)
{
    (void)state;
    run(SEEDS, 2, 0, announce);
}

/* ---- a meeting point that is spent ---- */

/* The first of two offends, the other is told of it, and who comes then that the meeting point is spent. */
static void come_too_often(void *argument)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_threads *threads;
    weft_world *world;
    (void)argument;
    MUST(weft_threads_create(2, &threads));
    config.bootstrap = WEFT_BOOTSTRAP_THREADS;
    config.threads = threads;
    config.pe = 0;
    config.pes = 3;
    expect(weft_world_create(&config, &world), WEFT_ERR_MISMATCH, "a PE of three, of whom two meet,");
    config.pe = 1;
    config.pes = 2;
    expect(weft_world_create(&config, &world), WEFT_ERR_MISMATCH, "the other PE");
    expect(weft_world_create(&config, &world), WEFT_ERR_STATE, "a PE too many");
    weft_threads_destroy(threads);
}

static void test_a_failure_is_told_to_those_it_meets(void **state)
{
    (void)state;
    run(SEEDS_OF_ONE_ORDER, 1, 0, come_too_often);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_counted_are_not_named), cmocka_unit_test(test_an_abort_is_handed_on),
        cmocka_unit_test(test_a_clear_goes_on),           cmocka_unit_test(test_a_read_acquires),
        cmocka_unit_test(test_who_leaves_has_not_ended),  cmocka_unit_test(test_a_failure_is_told_to_those_it_meets),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
