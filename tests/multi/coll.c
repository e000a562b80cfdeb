/* Goal: every collective gives what a serial reference gives, back to back without barriers.
 * Method: every operation on every type at three sizes, then random calls of up to 1 MiB on overlapping teams (all, a
 * stride, reversed, permuted, of one member), in place and not, with delays (support/coll_session.h). The same again in
 * worlds of the same PEs, which meet by a collective of the first, with each algorithm preferred by WEFT_COLL. The seed
 * is the world's; WEFT_TEST_SEED repeats a run. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/coll_session.h"
#include "support/coll_ways.h"
#include "support/pe_main.h"

#define SLOWNESS (WEFTI_TSAN ? 6 : 1) /* of a call, beside other builds */

/* The allgather of an embedder: one of the world that there is. */
static int gather(void *context, const void *mine, void *all, size_t bytes)
{
    weft_world *world = context;
    size_t total = bytes * (size_t)weft_world_pes(world);
    void *block;
    if (weft_malloc(world, total + bytes, &block) != WEFT_OK) {
        return 1;
    }
    unsigned char *source = (unsigned char *)block + total;
    memcpy(source, mine, bytes);
    weft_status status = weft_fcollectmem(weft_team_world(world), block, source, bytes);
    memcpy(all, block, total);
    return status != WEFT_OK || weft_free(world, block) != WEFT_OK;
}

/* PEs may be threads of one process: one sets the variable, and none reads the environment meanwhile. */
static weft_world *create_preferring(weft_world *world, const char *algorithms)
{
    const weft_callback_ops ops = {.size = sizeof ops, .context = world, .allgather = gather};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *made = NULL;
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config.callback = &ops;
    config.pe = weft_world_pe(world);
    config.pes = weft_world_pes(world);
    CHECK_OK(weft_barrier(world));
    if (config.pe == 0 || pe_main_is_process()) {
        (void)setenv("WEFT_COLL", algorithms, 1);
    }
    CHECK_OK(weft_barrier(world));
    if (!CHECK_OK(weft_world_create(&config, &made))) {
        exit(1);
    }
    return made;
}

/* Every collective by its algorithm at `place`, where it has so many; by the rules where place is -1. */
static int run_preferring(weft_world *world, int place, uint64_t *seed)
{
    const coll_session_plan large = {.calls = 110 / SLOWNESS, .bytes_max = (size_t)1 << 20, .slow_us = 300};
    const coll_session_plan small = {.calls = 900 / SLOWNESS, .bytes_max = 3000, .slow_us = 200};
    char algorithms[COLL_WAYS_BYTES] = "";
    size_t length = 0;
    int count = place < 0;
    for (int c = 0; c < WEFTI_COLLECTIVES; c++) {
        count += place >= 0 && coll_ways_add(algorithms, &length, (wefti_collective)c, place);
    }
    if (count > 0) {
        weft_world *preferring = create_preferring(world, algorithms);
        coll_session_run(preferring, random_next(seed), &large);
        coll_session_run(preferring, random_next(seed), &small);
        CHECK_OK(weft_world_destroy(preferring));
    }
    return count > 0;
}

static void body(weft_world *world)
{
    uint64_t seed = pe_common_seed(world);
    int place = -1;
    coll_session_all_types(world, random_next(&seed));
    while (run_preferring(world, place, &seed)) {
        place++;
    }
    CHECK(place >= 3); /* the rules, and three ways to reduce */
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
