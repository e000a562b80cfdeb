/* Goal: expert parallelism gives what the serial reference gives, with PEs as threads that share one map, which is what
 * ThreadSanitizer can see.
 *
 * Method: random sessions (support/ep_session.h) of small cases on several numbers of PEs: several groups and routes
 * interleaved, cached routes, slow ranks, symmetric and plain buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ep_session.h"
#include "support/pes.h"

static uint64_t seed;

typedef struct session_series {
    ep_session_plan plan;
    int count;
} session_series;

static void run_sessions(weft_world *world, void *context)
{
    const session_series *series = context;
    uint64_t state = seed;
    for (int i = 0; i < series->count; i++) {
        ep_session_run(world, random_next(&state), &series->plan);
    }
}

static void each_size(const session_series *plan)
{
    static const int pes[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof pes / sizeof pes[0]; i++) {
        pes_run(pes[i], run_sessions, (void *)(uintptr_t)plan);
    }
}

static void many_groups(void **state)
{
    (void)state;
    session_series plan = {.plan = {.groups = 1, .routes = 2, .calls = 12, .updates = 30}, .count = 40};
    plan.plan.size = ep_size_small;
    each_size(&plan);
}

static void cached_routes_and_slow_ranks(void **state)
{
    (void)state;
    session_series plan = {.plan = {.groups = 2, .routes = 3, .calls = 150, .slow_us = 300, .updates = 5}, .count = 3};
    plan.plan.size = ep_size_small;
    each_size(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(many_groups),
        CHECKED_TEST(cached_routes_and_slow_ranks),
    };
    seed = test_seed();
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
