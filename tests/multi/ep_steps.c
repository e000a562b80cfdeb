/* Goal: expert parallelism gives what the serial reference gives, with PEs as processes.
 *
 * Method: random sessions (support/ep_session.h): many small ones of one group, and long ones of cached routes with
 * slow ranks. The seed is PE 0's; WEFT_TEST_SEED repeats a run. */
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/ep_session.h"

static int common_seed(weft_world *world, uint64_t *seed)
{
    void *block;
    if (!CHECK_OK(weft_calloc(world, 1, sizeof *seed, &block))) {
        return 0;
    }
    if (weft_world_pe(world) == 0) {
        *seed = test_seed();
        for (int pe = 0; pe < weft_world_pes(world); pe++) {
            CHECK_OK(weft_uint64_p(world, block, *seed, pe));
        }
    }
    int ok = CHECK_OK(weft_barrier(world)) && CHECK_OK(weft_uint64_g(world, block, weft_world_pe(world), seed));
    return CHECK_OK(weft_free(world, block)) && ok;
}

static void run(weft_world *world)
{
    uint64_t seed;
    if (!common_seed(world, &seed)) {
        return;
    }
    ep_session_plan many = {.size = ep_size_full, .groups = 1, .routes = 2, .calls = 8, .updates = 30};
    ep_session_plan cached = {
        .size = ep_size_small, .groups = 2, .routes = 3, .calls = 300, .slow_us = 400, .updates = 5};
    for (int i = 0; i < 24 && check_failures() == 0; i++) {
        ep_session_run(world, random_next(&seed), &many);
    }
    if (check_failures() == 0) {
        ep_session_run(world, random_next(&seed), &cached);
    }
}

int main(void)
{
    weft_world *world;
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    if (weft_world_create(NULL, &world) != WEFT_OK) {
        return 1;
    }
    check_as_pe(weft_world_pe(world));
    run(world);
    long failures = check_failures();
    if (weft_world_destroy(world) != WEFT_OK) {
        return 1;
    }
    return failures != 0;
}
