/* Goal: when an allocation or a system call fails in one PE, creation, teams and the heap either succeed on all PEs or
 * fail on all, without a leak, a hang or a world that is half there.
 * Method: the Nth fault point of the process fails, for N = 1, 2, ... until the work has fewer. PEs are threads, so it
 * is chance which PE a point belongs to; the deadline is short, since a PE that fails before it has met the others is
 * missed by them. Needs a build with WEFT_FAULTS, else skips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/load.h"
#include "support/pes.h"

#define PES 3
#define DEADLINE_NS UINT64_C(300000000) /* these two where nothing else runs */
#define HANG_NS UINT64_C(4000000000)

#ifdef WEFT_FAULTS

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

/* All succeeded, or all failed and say why. Returns whether they succeeded. */
static int check_unanimous(const pes_outcome *outcomes, int count, uint64_t nth)
{
    int succeeded = 0;
    for (int i = 0; i < count; i++) {
        succeeded += outcomes[i].status == WEFT_OK;
        CHECK_SAY(outcomes[i].status == WEFT_OK || outcomes[i].text[0] != '\0', "point %llu: %s without a text",
                  (unsigned long long)nth, weft_status_name(outcomes[i].status));
        CHECK_SAY(outcomes[i].ns < HANG_NS || outcomes[i].ns < load_patience_ns(HANG_NS), "point %llu: %llu ns",
                  (unsigned long long)nth, (unsigned long long)outcomes[i].ns);
    }
    if (succeeded != 0 && succeeded != count) {
        for (int i = 0; i < count; i++) {
            CHECK_SAY(0, "point %llu: PE %d got %s: %s", (unsigned long long)nth, i,
                      weft_status_name(outcomes[i].status), outcomes[i].text);
        }
    }
    return succeeded == count;
}

static void use(weft_world *world, void *context)
{
    void *block;
    (void)context;
    CHECK_OK(weft_malloc(world, 1000, &block));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, block));
}

/* ---- creation ---- */

/* Create a world while point `nth` fails (0: none). Returns the points passed. */
static uint64_t create_failing(uint64_t nth, int *succeeded)
{
    weft_threads *meeting = pes_meeting(PES);
    uint64_t deadline_ns = load_patience_ns(DEADLINE_NS);
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(meeting, pe, PES);
        configs[pe].heap_bytes = (size_t)5 << 20;
        configs[pe].deadline_ns = nth == 0 ? configs[pe].deadline_ns : deadline_ns;
    }
    wefti_fault_arm(nth, 1);
    pes_create(configs, PES, outcomes);
    uint64_t passed = wefti_fault_passed();
    wefti_fault_arm(0, 0);
    *succeeded = check_unanimous(outcomes, PES, nth);
    for (int pe = 0; pe < PES; pe++) {
        if (!*succeeded) {
            CHECK_OK(weft_world_destroy(outcomes[pe].world));
        }
    }
    if (*succeeded) {
        weft_world *worlds[PES] = {outcomes[0].world, outcomes[1].world, outcomes[2].world};
        pes_run_in(PES, worlds, use, NULL);
        pes_destroy_world(PES, worlds);
    }
    weft_threads_destroy(meeting);
    return passed;
}

static void test_creation(void **state)
{
    (void)state;
    int succeeded;
    int failures = 0;
    uint64_t nth = 1;
    create_failing(0, &succeeded);
    CHECK(succeeded);
    ledger before = ledger_read();
    for (;; nth++) {
        uint64_t passed = create_failing(nth, &succeeded);
        failures += !succeeded;
        ledger_assert_same(&before);
        if (passed < nth) {
            break;
        }
    }
    printf("%llu points, %d of which fail the creation\n", (unsigned long long)nth - 1, failures);
    CHECK(nth > 20 && failures > 10);
    create_failing(0, &succeeded);
    CHECK(succeeded);
    ledger_assert_same(&before);
}

/* ---- several PEs by one thread ---- */

static uint64_t create_many_failing(uint64_t nth, int *succeeded)
{
    weft_threads *meeting = pes_meeting(PES);
    uint64_t deadline_ns = load_patience_ns(DEADLINE_NS);
    weft_world_config configs[PES];
    weft_world *worlds[PES] = {NULL};
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(meeting, pe, PES);
        configs[pe].deadline_ns = nth == 0 ? configs[pe].deadline_ns : deadline_ns;
    }
    uint64_t start = wefti_os_now_ns();
    wefti_fault_arm(nth, 1);
    weft_status status = weft_world_create_many(configs, PES, worlds);
    uint64_t passed = wefti_fault_passed();
    wefti_fault_arm(0, 0);
    *succeeded = status == WEFT_OK;
    uint64_t took_ns = wefti_os_now_ns() - start;
    CHECK(took_ns < HANG_NS || took_ns < load_patience_ns(HANG_NS));
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY((worlds[pe] != NULL) == *succeeded, "point %llu: %s, and world %d is %p", (unsigned long long)nth,
                  weft_status_name(status), pe, (void *)worlds[pe]);
        CHECK_OK(weft_world_destroy(worlds[pe]));
    }
    CHECK(*succeeded || weft_last_error()[0] != '\0');
    weft_threads_destroy(meeting);
    return passed;
}

static void test_create_many(void **state)
{
    (void)state;
    int succeeded;
    int failures = 0;
    uint64_t nth = 1;
    ledger before = ledger_read();
    for (;; nth++) {
        uint64_t passed = create_many_failing(nth, &succeeded);
        failures += !succeeded;
        ledger_assert_same(&before);
        if (passed < nth) {
            break;
        }
    }
    printf("%llu points, %d of which fail the creation\n", (unsigned long long)nth - 1, failures);
    CHECK(nth > 20 && failures > 10 && succeeded);
}

/* ---- teams and the heap of a world that is there ---- */

#define STEPS 11

/* What each PE got from each step. A step that failed leaves its thing NULL, and what follows does without. */
typedef struct steps {
    weft_status statuses[PES][STEPS];
    char texts[PES][STEPS][WEFTI_ERROR_BYTES];
} steps;

static void note(steps *s, weft_world *world, int step, weft_status status)
{
    int pe = weft_world_pe(world);
    s->statuses[pe][step] = status;
    s->texts[pe][step][0] = '\0';
    if (status != WEFT_OK) {
        (void)snprintf(s->texts[pe][step], WEFTI_ERROR_BYTES, "%s", weft_last_error());
    }
}

static void take_steps(weft_world *world, void *context)
{
    steps *s = context;
    weft_team *all = weft_team_world(world);
    weft_team *strided = NULL;
    weft_team *listed = NULL;
    void *small = NULL;
    void *large = NULL;
    void *of_team = NULL;
    void *zeroed = NULL;
    const int list[] = {2, 0, 1};
    note(s, world, 0, weft_team_split_strided(all, 2, -1, PES, &strided));
    note(s, world, 1, weft_team_create(all, list, PES, &listed));
    note(s, world, 2, weft_malloc(world, 100, &small));
    note(s, world, 3, weft_malloc(world, (size_t)3 << 20, &large)); /* grows the heap */
    if (listed != NULL) {
        note(s, world, 4, weft_team_malloc(listed, 5000, &of_team));
        note(s, world, 5, weft_team_sync(listed));
        int64_t *out = of_team;
        note(s, world, 8, out == NULL ? WEFT_OK : weft_fcollectmem(listed, out, out + PES, sizeof *out));
        note(s, world, 9, out == NULL ? WEFT_OK : weft_int64_sum_reduce(listed, out, out + PES, PES));
    } else {
        note(s, world, 4, WEFT_OK);
        note(s, world, 5, WEFT_OK);
        note(s, world, 8, WEFT_OK);
        note(s, world, 9, WEFT_OK);
    }
    note(s, world, 6, weft_calloc(world, 10, 10, &zeroed));
    note(s, world, 7, weft_barrier(world));
    note(s, world, 10, small == NULL ? WEFT_OK : weft_realloc(world, small, (size_t)5 << 20, &small));
    /* Nothing below needs memory of its own, so it succeeds if the fault point is behind us. */
    CHECK_OK(weft_free(world, zeroed));
    if (listed != NULL) {
        CHECK_OK(weft_team_free(listed, of_team));
    }
    CHECK_OK(weft_free(world, large));
    CHECK_OK(weft_free(world, small));
    CHECK_OK(weft_team_destroy(listed));
    CHECK_OK(weft_team_destroy(strided));
}

static uint64_t heap_used(const weft_world *world)
{
    weft_counters counters;
    CHECK_OK(weft_world_counters(world, &counters));
    return counters.heap_bytes_used;
}

static uint64_t steps_failing(uint64_t nth, int *failures)
{
    weft_world *worlds[PES];
    static steps s;
    pes_create_world(PES, worlds);
    wefti_fault_arm(nth, 1);
    pes_run_in(PES, worlds, take_steps, &s);
    uint64_t passed = wefti_fault_passed();
    wefti_fault_arm(0, 0);
    for (int step = 0; step < STEPS; step++) {
        *failures += s.statuses[0][step] != WEFT_OK;
        for (int pe = 0; pe < PES; pe++) {
            CHECK_SAY(s.statuses[pe][step] == s.statuses[0][step],
                      "point %llu, step %d: PE %d got %s (%s), PE 0 %s (%s)", (unsigned long long)nth, step, pe,
                      weft_status_name(s.statuses[pe][step]), s.texts[pe][step], weft_status_name(s.statuses[0][step]),
                      s.texts[0][step]);
            CHECK(s.statuses[pe][step] == WEFT_OK || s.texts[pe][step][0] != '\0');
        }
    }
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(heap_used(worlds[pe]) == 0, "point %llu: %llu bytes stay taken", (unsigned long long)nth,
                  (unsigned long long)heap_used(worlds[pe]));
    }
    pes_run_in(PES, worlds, use, NULL);
    pes_destroy_world(PES, worlds);
    return passed;
}

static void test_teams_and_heap(void **state)
{
    (void)state;
    int failures = 0;
    uint64_t nth = 1;
    (void)steps_failing(0, &failures);
    CHECK(failures == 0);
    ledger before = ledger_read();
    for (;; nth++) {
        uint64_t passed = steps_failing(nth, &failures);
        ledger_assert_same(&before);
        if (passed < nth) {
            break;
        }
    }
    printf("%llu points, %d failed steps\n", (unsigned long long)nth - 1, failures);
    CHECK(nth > 10 && failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_creation),
        CHECKED_TEST(test_create_many),
        CHECKED_TEST(test_teams_and_heap),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}

#else

int main(void)
{
    return 77; /* skipped */
}

#endif
