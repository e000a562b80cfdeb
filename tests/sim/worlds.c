/* sim/worlds.c: worlds come and go. */
#include <stdio.h>
#include <string.h>

#include "sim/cases.h"
#include "support/check.h"
#include "testing/sim/machine.h"

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

/* ---- memory ---- */

#define HEAP_BYTES ((uint64_t)1 << 20)

/* Who shares memory with whom. Hosts are made alike: a control group has the same mark on each. */
typedef struct sharing {
    int node[64]; /* its first PE */
    int mark[64]; /* of the control group; the first has no limit */
    int pes;
} sharing;

/* The PEs that share with `pe` a node, or in it a control group. */
static int count_sharers(const sharing *s, int pe, int is_group)
{
    int count = 0;
    for (int other = 0; other < s->pes; other++) {
        count += s->node[other] == s->node[pe] && (!is_group || s->mark[other] == s->mark[pe]);
    }
    return count;
}

static weft_status create_small(void)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.heap_bytes = HEAP_BYTES;
    WEFT_TRY(weft_world_create(&config, &world));
    MUST(weft_barrier(world));
    return weft_world_destroy(world);
}

/* All nodes, and all control groups, have memory for the heaps of their PEs, and none to spare: a world is made. One of
 * them has a byte less: none is made, and all are told for whom it is too little. */
static void share_memory(case_run *run, weft_world *world, uint64_t *common)
{
    sharing s = {.pes = run->pes};
    const int pe = weft_world_pe(world);
    run->board[pe] = (uint64_t)weft_team_translate(weft_team_node(world), 0, weft_team_world(world));
    MUST(weft_sync(world));
    for (int other = 0; other < run->pes; other++) {
        s.node[other] = (int)run->board[other];
        s.mark[other] = common_below(common, 3);
    }
    const int poor = common_below(common, run->pes);
    const int by_group = s.mark[poor] != 0 && common_below(common, 2);
    wefti_os_memory_left left = {
        .machine = (uint64_t)count_sharers(&s, pe, 0) * HEAP_BYTES,
        .group = s.mark[pe] == 0 ? UINT64_MAX : (uint64_t)count_sharers(&s, pe, 1) * HEAP_BYTES,
        .group_mark = (uint64_t)s.mark[pe],
    };
    wefti_sim_set_memory_left(&left);
    MUST(create_small());
    const int is_poor = s.node[pe] == s.node[poor] && (!by_group || s.mark[pe] == s.mark[poor]);
    left.group -= (uint64_t)(is_poor && by_group);
    left.machine -= (uint64_t)(is_poor && !by_group);
    int lowest = 0;
    while (s.node[lowest] != s.node[poor] || (by_group && s.mark[lowest] != s.mark[poor])) {
        lowest++;
    }
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "the heaps of the %d PEs of this %s", count_sharers(&s, poor, by_group),
                   by_group ? "control group" : "node");
    const weft_status status = create_small();
    if (status != WEFT_ERR_MEMORY || strstr(weft_last_error(), wanted) == NULL ||
        !text_names_pe(weft_last_error(), lowest)) {
        weft_sim_fail("%s have too little memory, PE %d first, and there was %s: %s", wanted, lowest,
                      weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    }
    wefti_sim_set_memory_left(NULL);
}

void case_worlds(void *argument)
{
    case_run *run = argument;
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
        if (round == 0 && common_below(&common, 4) == 0) {
            share_memory(run, world, &common);
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
