/* sim/cases.c: what the cases share. */
#include "sim/cases.h"

#include "common/mix.h"
#include "world/world.h"

void must(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        weft_sim_fail("%s gave %s: %s", what, weft_status_name(status), weft_last_error());
    }
}

weft_world *case_world(const char *name)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.name = name;
    MUST(weft_world_create(&config, &world));
    return world;
}

uint64_t masked_ranks(const weft_ep *ep, int ranks)
{
    unsigned char masked[64];
    uint64_t bits = 0;
    MUST(weft_ep_mask_query(ep, masked, NULL));
    for (int rank = 0; rank < ranks; rank++) {
        bits |= (uint64_t)(masked[rank] != 0) << rank;
    }
    return bits;
}

uint64_t heap_used(const weft_world *world)
{
    weft_counters counters = {0};
    MUST(weft_world_counters(world, &counters));
    if (!wefti_blocks_check(&world->blocks)) {
        weft_sim_fail("the records of the heap's %zu blocks do not fit together", world->blocks.count);
    }
    return counters.heap_bytes_used;
}

void soil_heap(weft_world *world, uint64_t *common)
{
    enum { LINES = 1024, LINE_WORDS = 8 };
    uint64_t *words;
    const int first = common_below(common, 8); /* the line that is counted as the first */
    MUST(weft_malloc(world, sizeof *words * LINES * LINE_WORDS, (void **)&words));
    for (int i = 0; i < LINES * LINE_WORDS; i++) {
        words[i] = i / LINE_WORDS < first ? 0 : (uint64_t)(i / LINE_WORDS - first);
    }
    MUST(weft_free(world, words));
}

uint64_t common_next(uint64_t *state)
{
    return wefti_split_mix(state);
}

int common_below(uint64_t *state, int bound)
{
    return (int)(common_next(state) % (uint64_t)bound);
}

static int is_turned(const case_run *run)
{
    uint64_t common = run->seed + 77;
    return common_below(&common, 2);
}

int turned(const case_run *run, int number)
{
    return is_turned(run) ? run->pes - 1 - number : number;
}

weft_team *turned_team(const case_run *run, weft_world *world)
{
    weft_team *team = weft_team_world(world);
    if (is_turned(run)) {
        MUST(weft_team_split_strided(weft_team_world(world), run->pes - 1, -1, run->pes, &team));
    }
    return team;
}

void dawdle(int one_in, uint64_t ns)
{
    if (weft_sim_random((uint64_t)one_in) == 0) {
        weft_sim_sleep_ns(weft_sim_random(ns) + 1);
    }
}

uint64_t case_value(int from, int to, uint64_t round)
{
    return (uint64_t)(from + 1) << 40 | (uint64_t)(to + 1) << 20 | round;
}
