/* Goal: every collective gives what a serial reference gives, back to back without barriers.
 * Method: every operation on every type at three sizes, then random calls of up to 1 MiB on overlapping teams (all, a
 * stride, reversed, permuted, of one member), in place and not, with delays (part/coll_session.h). The same again with
 * each algorithm preferred by WEFT_COLL. The seed is the world's; WEFT_TEST_SEED repeats a run. */
#include <pthread.h>
#include <stdlib.h>

#include "part/check.h"
#include "part/coll_session.h"
#include "part/pe_main.h"

/* For teams that have made no collective yet. PEs may be threads of one process, and none reads the environment
 * meanwhile. */
static void prefer(weft_world *world, const char *algorithms)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    CHECK_OK(weft_barrier(world));
    (void)pthread_mutex_lock(&one_at_a_time);
    (void)setenv("WEFT_COLL", algorithms, 1);
    (void)pthread_mutex_unlock(&one_at_a_time);
    CHECK_OK(weft_barrier(world));
}

static void body(weft_world *world)
{
    static const char *const preferences[] = {
        "", "broadcast:pull,fcollect:pull,alltoall:pull,alltoalls:pull,reduce:slices,reduce_scatter:pull,scan:slices",
        "reduce:doubling,broadcast:push"};
    uint64_t seed = pe_common_seed(world);
    coll_session_plan large = {.calls = 150, .bytes_max = (size_t)1 << 20, .slow_us = 300};
    coll_session_plan small = {.calls = 1200, .bytes_max = 3000, .slow_us = 200};
    coll_session_all_types(world, random_next(&seed));
    for (int i = 0; i < 3; i++) {
        prefer(world, preferences[i]);
        coll_session_run(world, random_next(&seed), &large);
        coll_session_run(world, random_next(&seed), &small);
    }
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
