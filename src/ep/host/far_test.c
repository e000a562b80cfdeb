/* Goal: a group works when some or all ranks can be reached by put, get and signal only, with the same bits.
 *
 * Method: PEs as threads; each forgets, for ranks of its own choice, that it could load and store their memory, and
 * runs the random sessions of support/ep_session.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "ep/host/host.h"
#include "support/check.h"
#include "support/ep_session.h"
#include "support/pes.h"

static uint64_t seed;

static void forget_all(weft_ep *ep)
{
    for (int rank = 0; rank < ep->ranks; rank++) {
        ep->host->peers[rank].near = NULL;
    }
}

/* A ring of nodes of two. */
static void forget_others(weft_ep *ep)
{
    for (int rank = 0; rank < ep->ranks; rank++) {
        if (rank / 2 != ep->rank / 2) {
            ep->host->peers[rank].near = NULL;
        }
    }
}

static void run_sessions(weft_world *world, void *context)
{
    uint64_t state = seed;
    for (int i = 0; i < 10; i++) {
        ep_session_run(world, random_next(&state), context);
    }
}

static void run_with(const char *counts, void (*prepare)(weft_ep *ep), int pes)
{
    (void)setenv("WEFT_EP_COUNTS", counts, 1);
    ep_session_plan plan = {.groups = 1, .routes = 2, .calls = 25, .slow_us = 100, .updates = 20};
    plan.size = ep_size_small;
    plan.prepare = prepare;
    pes_run(pes, run_sessions, &plan);
}

/* With both protocols for counts. */
static void run(void (*prepare)(weft_ep *ep), int pes)
{
    run_with("owners", prepare, pes);
    run_with("direct", prepare, pes);
}

static void all_far(void **state)
{
    (void)state;
    run(forget_all, 1);
    run(forget_all, 4);
}

static void some_far(void **state)
{
    (void)state;
    run(forget_others, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(all_far), CHECKED_TEST(some_far)};
    seed = test_seed();
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
