/* Goal: who waits for a lock past its deadline is told who has it, also while the lock changes hands, and who waits
 * without a deadline for a PE that is gone is told so, also where the queue in between cannot be read.
 * Method: in a simulated world some PEs write their places in the queue (rma/lock.c) themselves, as a PE leaves them
 * that stops between two steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft_sim.h"
#include "world/world.h"

#define SEEDS 4
#define MS_NS UINT64_C(1000000)
#define DEADLINE_NS (100 * MS_NS)
#define SOON_NS (5000 * MS_NS) /* by then who is gone is seen */

/* Of a node: rma/lock.c. */
#define IN UINT32_C(0x80000000)
#define HAS UINT32_C(0x40000000)
#define LEFT UINT32_C(0x20000000)
#define PASSES UINT32_C(0x10000000)

/* How far the PEs of a run have come, told beside weft. */
static int turn;

static void run(int pes, void (*pe_main)(void *argument))
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
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

/* A world with a lock; *words: its two words at this PE, the tail and the node. */
static weft_world *begin(uint64_t deadline_ns, uint32_t **words)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = deadline_ns;
    MUST(weft_world_create(&config, &world));
    MUST(weft_calloc(world, 1, sizeof(long), (void **)words));
    return world;
}

static long *lock_of(uint32_t *words)
{
    return (long *)(void *)words;
}

/* Where the tail counts. */
static int home_of(const weft_world *world, const uint32_t *words)
{
    return (int)(((uintptr_t)words - world->view.heap) / 8 % world->view.pes);
}

/* PE `pe` asked last. */
static void set_tail(weft_world *world, uint32_t *words, int pe)
{
    uint32_t before;
    MUST(weft_uint32_atomic_swap(world, words, (uint32_t)pe + 1, home_of(world, words), &before));
}

static void set_node(uint32_t *words, uint32_t node)
{
    wefti_st32(&words[1], node, WEFTI_RELEASE);
}

static void expect_told(weft_world *world, uint32_t *words, const char *wanted)
{
    expect(weft_set_lock(world, lock_of(words)), WEFT_ERR_TIMEOUT, "a lock that another PE has");
    if (strstr(weft_last_error(), wanted) == NULL) {
        weft_sim_fail("\"%s\" is not told: %s", wanted, weft_last_error());
    }
}

/* ---- a lock that is on its way ---- */

/* PE 0 has been given the lock behind its back: it has left the queue. PE 1, which gave it, passes it on when it runs
 * again; until then nobody holds it. */
static void pass_by(void *argument)
{
    uint32_t *words;
    weft_world *world = begin(DEADLINE_NS, &words);
    (void)argument;
    if (weft_sim_pe() == 0) {
        set_node(words, IN | HAS | LEFT);
        set_tail(world, words, 0);
        MUST(weft_quiet(world));
        turn++;
    } else if (weft_sim_pe() == 1) {
        set_node(words, IN | PASSES | 1);
        turn++;
        await_turn(3);
        MUST(weft_clear_lock(world, lock_of(words)));
        turn++;
    } else {
        await_turn(2);
        expect_told(world, words, "is on its way: PE 1 stands first in the queue");
        turn++;
    }
    await_turn(4);
    MUST(weft_set_lock(world, lock_of(words)));
    MUST(weft_clear_lock(world, lock_of(words)));
    MUST(weft_world_destroy(world));
}

static void test_who_has_left_holds_nothing(void **state)
{
    (void)state;
    run(3, pass_by);
}

/* ---- a lock that was made free ---- */

/* PE 0 has made the lock free, and still has to say in its node that it does not have it; PE 1 has taken it. */
static void free_half(void *argument)
{
    uint32_t *words;
    weft_world *world = begin(DEADLINE_NS, &words);
    (void)argument;
    if (weft_sim_pe() == 0) {
        set_node(words, IN | HAS);
        turn++;
        await_turn(3);
        set_node(words, 0);
    } else if (weft_sim_pe() == 1) {
        await_turn(1);
        MUST(weft_set_lock(world, lock_of(words)));
        turn++;
        await_turn(3);
        MUST(weft_clear_lock(world, lock_of(words)));
    } else {
        await_turn(2);
        expect_told(world, words, "is still held by PE 1");
        turn++;
    }
    await_turn(3);
    MUST(weft_barrier(world));
    MUST(weft_set_lock(world, lock_of(words)));
    MUST(weft_clear_lock(world, lock_of(words)));
    MUST(weft_world_destroy(world));
}

static void test_the_queue_tells_who_holds_a_lock(void **state)
{
    (void)state;
    run(3, free_half);
}

/* ---- a holder that is gone ---- */

/* PE 0 has the lock and ends. PE 1, behind which PE 2 stands, does not say so: its node cannot be read. Much later it
 * gives PE 2 the lock, in case that one still waits. */
static void end_holding(void *argument)
{
    uint32_t *words;
    uint32_t node;
    weft_world *world = begin(WEFT_FOREVER, &words);
    (void)argument;
    if (weft_sim_pe() == 0) {
        MUST(weft_set_lock(world, lock_of(words)));
        turn++;
        await_turn(4);
    } else if (weft_sim_pe() == 1) {
        await_turn(1);
        set_tail(world, words, 1);
        turn++;
        while (wefti_ld32(&words[1], WEFTI_ACQUIRE) == 0) { /* PE 2 stands behind it */
            weft_sim_sleep_ns(MS_NS / 10);
        }
        set_node(words, 0);
        weft_sim_kill(0);
        weft_sim_sleep_ns(SOON_NS);
        MUST(weft_uint32_atomic_fetch_or(world, &words[1], HAS, 2, &node));
    } else {
        await_turn(2);
        expect(weft_set_lock(world, lock_of(words)), WEFT_ERR_PEER, "a lock whose holder is gone");
    }
    (void)!weft_world_destroy(world);
}

static void test_a_holder_that_is_gone_is_not_awaited(void **state)
{
    (void)state;
    run(3, end_holding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_has_left_holds_nothing),
        cmocka_unit_test(test_the_queue_tells_who_holds_a_lock),
        cmocka_unit_test(test_a_holder_that_is_gone_is_not_awaited),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
