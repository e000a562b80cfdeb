/* Goal: every collective gives what a serial reference gives, with PEs as processes, back to back without barriers.
 *
 * Method: every operation on every type at three sizes, then random calls of up to 1 MiB on overlapping teams (all, a
 * stride, reversed, permuted, of one member), in place and not, with delays (part/coll_session.h). The same again with
 * each algorithm preferred by WEFT_COLL. The seed is the world's; WEFT_TEST_SEED repeats a run. */
#include <stdio.h>
#include <stdlib.h>

#include "part/check.h"
#include "part/coll_session.h"

/* PE 0's seed, on all PEs. */
static int common_seed(weft_world *world, uint64_t *seed)
{
    void *block;
    if (!CHECK_OK(weft_calloc(world, 1, sizeof *seed, &block))) {
        return 0;
    }
    if (weft_world_pe(world) == 0) {
        *(uint64_t *)block = test_seed();
    }
    int ok = CHECK_OK(weft_barrier(world)) && CHECK_OK(weft_uint64_g(world, block, 0, seed));
    return CHECK_OK(weft_free(world, block)) && ok;
}

static void run(weft_world *world)
{
    static const char *const preferences[] = {
        "", "broadcast:pull,fcollect:pull,alltoall:pull,alltoalls:pull,reduce:slices,reduce_scatter:pull,scan:slices",
        "reduce:doubling,broadcast:push"};
    uint64_t seed;
    coll_session_plan large = {.calls = 150, .bytes_max = (size_t)1 << 20, .slow_us = 300};
    coll_session_plan small = {.calls = 1200, .bytes_max = 3000, .slow_us = 200};
    if (!common_seed(world, &seed)) {
        return;
    }
    coll_session_all_types(world, random_next(&seed));
    for (int i = 0; i < 3 && check_failures() == 0; i++) {
        (void)setenv("WEFT_COLL", preferences[i], 1); /* for teams that have made no collective yet */
        coll_session_run(world, random_next(&seed), &large);
        coll_session_run(world, random_next(&seed), &small);
    }
}

int main(void)
{
    weft_world *world;
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
