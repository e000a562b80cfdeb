/* Goal: collectives give what a serial reference gives and race nowhere, with PEs as threads that share one map, which
 * is what ThreadSanitizer can see.
 *
 * Method: random sessions (part/coll_session.h) on several numbers of PEs, with each algorithm preferred. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "part/check.h"
#include "part/coll_session.h"
#include "part/pes.h"

static uint64_t seed;

static void run_session(weft_world *world, void *context)
{
    coll_session_run(world, seed, context);
}

static void run_all_types(weft_world *world, void *context)
{
    (void)context;
    coll_session_all_types(world, seed);
}

static void sessions(const char *preferences)
{
    static const int pes[] = {1, 2, 3, 5, 8};
    static coll_session_plan large = {.calls = 60, .bytes_max = (size_t)256 << 10, .slow_us = 200};
    static coll_session_plan small = {.calls = 600, .bytes_max = 3000, .slow_us = 100};
    (void)setenv("WEFT_COLL", preferences, 1);
    for (size_t i = 0; i < sizeof pes / sizeof pes[0]; i++) {
        pes_run(pes[i], run_session, &large);
        pes_run(pes[i], run_session, &small);
    }
    (void)unsetenv("WEFT_COLL");
}

static void as_tuned(void **state)
{
    (void)state;
    sessions("");
}

static void through_the_buffers(void **state)
{
    (void)state;
    sessions("broadcast:pull,fcollect:pull,alltoall:pull,alltoalls:pull,reduce:slices,reduce_scatter:pull,scan:slices");
}

static void by_doubling(void **state)
{
    (void)state;
    sessions("reduce:doubling");
}

static void all_types(void **state)
{
    (void)state;
    pes_run(3, run_all_types, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(as_tuned),
        CHECKED_TEST(through_the_buffers),
        CHECKED_TEST(by_doubling),
        CHECKED_TEST(all_types),
    };
    seed = test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
