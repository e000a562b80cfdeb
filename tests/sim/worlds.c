/* sim/worlds.c: worlds come and go. */
#include <stdio.h>

#include "sim/cases.h"

static void use(weft_world *world, uint64_t round)
{
    uint64_t *block;
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    MUST(weft_calloc(world, (size_t)pes, sizeof *block, (void **)&block));
    for (int to = 0; to < pes; to++) {
        uint64_t value = case_value(pe, to, round);
        MUST(weft_uint64_p(world, &block[pe], value, to));
    }
    MUST(weft_barrier(world));
    for (int from = 0; from < pes; from++) {
        if (block[from] != case_value(from, pe, round)) {
            weft_sim_fail("round %d: PE %d's word is %llx", (int)round, from, (unsigned long long)block[from]);
        }
    }
    MUST(weft_free(world, block));
}

void case_worlds(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *kept = NULL;
    int rounds = 1 + common_below(&common, 3);
    for (int round = 0; round < rounds; round++) {
        char name[32];
        (void)snprintf(name, sizeof name, "world %d", round);
        weft_world *world = case_world(name);
        if (common_below(&common, 3) > 0) { /* else a PE may come for the next world while others still make this one */
            use(world, (uint64_t)round);
        }
        if (kept != NULL) {
            use(kept, (uint64_t)round + 50);
            MUST(weft_world_destroy(kept));
            kept = NULL;
        }
        if (common_below(&common, 2) == 0) {
            kept = world;
        } else {
            MUST(weft_world_destroy(world));
        }
        dawdle(3, 10000);
    }
    MUST(weft_world_destroy(kept));
}
