/* Goal: who gave no answer once is asked again when it runs again, and until then counts as not read; an answer that
 * comes after its question was given up is not taken for that of another; and a PE that cannot be read is named.
 * Method: simulated worlds over messages, each PE on a node of its own, in which one stands still, with its threads,
 * for as long as a test wants it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "team/team.h"
#include "transport/am/am.h"
#include "weft.h"
#include "weft_sim.h"
#include "world/world.h"

#define SEEDS 4
#define MS_NS UINT64_C(1000000)
#define DEADLINE_NS (20 * MS_NS)
#define STALL_NS (1300 * MS_NS) /* longer than it is asked who is to blame, which is dear */

enum { OTHER = 2, LATE = 1 };

/* How far the PEs of a run have come, told beside weft. */
static int turn;

static void run(uint64_t seeds, int pes, void (*pe_main)(void *argument))
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = seed;
        config.domain_pes = 1;
        config.messages = 1;
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

/* A world, and two words, which are 2 times and 3 times the PE's number plus 1. All are there when it returns. */
static weft_world *begin(uint64_t **words)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = DEADLINE_NS;
    MUST(weft_world_create(&config, &world));
    MUST(weft_malloc(world, 2 * sizeof **words, (void **)words));
    for (int i = 0; i < 2; i++) {
        MUST(weft_uint64_p(world, &(*words)[i], (uint64_t)(weft_sim_pe() + 1) * (uint64_t)(2 + i), weft_sim_pe()));
    }
    MUST(weft_barrier(world));
    return world;
}

static void end(weft_world *world)
{
    turn++;
    await_turn(weft_sim_pes());
    (void)!weft_world_destroy(world);
}

static void check_word(uint64_t seen, int pe, int index, const char *what)
{
    if (seen != (uint64_t)(pe + 1) * (uint64_t)(2 + index)) {
        weft_sim_fail("%s: word %d of PE %d is %llu", what, index, pe, (unsigned long long)seen);
    }
}

/* ---- who was silent ---- */

static void ask_again(void *argument)
{
    uint64_t *words;
    uint64_t seen = 0;
    weft_world *world = begin(&words);
    (void)argument;
    if (weft_sim_pe() == 0) {
        const uint64_t until_ns = weft_sim_now_ns() + STALL_NS;
        weft_sim_stall(LATE, STALL_NS);
        expect(wefti_world_read_soon(world, words, LATE, &seen), WEFT_ERR_TIMEOUT, "a first look at who stands still");
        expect(weft_sync(world), WEFT_ERR_TIMEOUT, "a sync without who stands still");
        if (strstr(weft_last_error(), "PE 1 did not arrive") == NULL) {
            weft_sim_fail("PE 1 stands still, and it is said: %s", weft_last_error());
        }
        expect(wefti_world_read_soon(world, words, LATE, &seen), WEFT_ERR_TIMEOUT, "another look at who stands still");
        weft_sim_sleep_ns(until_ns + DEADLINE_NS - weft_sim_now_ns());
        MUST(weft_getmem(world, &seen, words, sizeof seen, LATE));
        check_word(seen, LATE, 0, "a get from who runs again");
        MUST(wefti_world_read_soon(world, words + 1, LATE, &seen));
        check_word(seen, LATE, 1, "a look at who runs again");
    }
    end(world);
}

static void test_who_was_silent_is_named_and_asked_again(void **state)
{
    (void)state;
    run(1, 2, ask_again);
}

/* ---- answers that come late ---- */

/* One get is given up, and as many others are made as there are places, so that one of those that wait when the late
 * answer comes has its place. */
static void give_up(void *argument)
{
    enum { AT_LAST = 8 };
    uint64_t *words;
    uint64_t seen[AT_LAST] = {0};
    weft_world *world = begin(&words);
    (void)argument;
    if (weft_sim_pe() == 0) {
        weft_sim_stall(LATE, DEADLINE_NS + DEADLINE_NS / 2);
        expect(weft_getmem(world, seen, words, sizeof *seen, LATE), WEFT_ERR_TIMEOUT, "a get from who stands still");
        for (int i = 0; i < WEFTI_AM_WAITING_MAX - AT_LAST / 2; i++) {
            MUST(weft_getmem(world, seen, words, sizeof *seen, OTHER));
            check_word(*seen, OTHER, 0, "a get meanwhile");
        }
        for (int i = 0; i < AT_LAST; i++) {
            MUST(weft_getmem_nbi(world, &seen[i], words + 1, sizeof *seen, LATE));
        }
        MUST(weft_quiet(world));
        for (int i = 0; i < AT_LAST; i++) {
            check_word(seen[i], LATE, 1, "a get behind one that was given up");
        }
    }
    end(world);
}

static void test_a_late_answer_is_of_no_other_question(void **state)
{
    (void)state;
    run(SEEDS, 3, give_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_was_silent_is_named_and_asked_again),
        cmocka_unit_test(test_a_late_answer_is_of_no_other_question),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
