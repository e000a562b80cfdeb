/* Goal: any number of ranks gives what the serial reference gives: powers of two, odd ones, primes, a rack of 72.
 *
 * Method: random sessions (support/ep_session.h) on 1, 2, 3, 5, 7, 8, 12, 16, 24 and 72 PEs, threads of this process,
 * with more experts than ranks and fewer; smaller cases the more ranks there are. */
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

/* Sessions on so many ranks. */
typedef struct ranks_run {
    int ranks;
    int sessions;
    ep_size size;
} ranks_run;

static void run_sessions(weft_world *world, void *context)
{
    const ranks_run *run = context;
    uint64_t state = seed ^ (uint64_t)run->ranks;
    for (int i = 0; i < run->sessions; i++) {
        ep_session_plan plan = {.size = run->size, .groups = 1, .routes = 2, .calls = 6, .updates = 25};
        plan.size.experts_max = i % 2 == 0 ? run->size.experts_max : 1 + run->ranks / 2;
        ep_session_run(world, random_next(&state), &plan);
    }
}

static void each_number_of_ranks(void **state)
{
    static const int ranks[] = {1, 2, 3, 5, 7, 8, 12, 16, 24, 72};
    (void)state;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        int n = ranks[i];
        ranks_run run = {.ranks = n, .sessions = n <= 16 ? 12 : 4};
        run.size = (ep_size){.tokens_max = n <= 16 ? 60 : 12,
                             .topk_max = 12,
                             .experts_max = n <= 16 ? 96 : 3 * n,
                             .hidden_max = 128,
                             .bytes_max = (size_t)4 << 20};
        pes_run(n, run_sessions, &run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(each_number_of_ranks)};
    seed = test_seed();
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
