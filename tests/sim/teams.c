/* sim/teams.c: teams of any shape, several at a time. */
#include <string.h>

#include "sim/cases.h"

/* A random order of all PEs, cut in two: each half is a team, made by one call. */
static weft_team *halves(weft_world *world, uint64_t *common)
{
    int order[64];
    int pes = weft_world_pes(world);
    weft_team *team = NULL;
    for (int i = 0; i < pes; i++) {
        int other = common_below(common, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    int cut = common_below(common, pes + 1);
    for (int i = 0; i < pes; i++) {
        if (order[i] == weft_world_pe(world)) {
            MUST(weft_team_create(weft_team_world(world), i < cut ? order : order + cut, i < cut ? cut : pes - cut,
                                  &team));
        }
    }
    return team;
}

static weft_team *strided(weft_world *world, uint64_t *common)
{
    int pes = weft_world_pes(world);
    int start = common_below(common, pes);
    int stride = 1 + common_below(common, 3);
    int size = 1 + common_below(common, (pes - 1 - start) / stride + 1);
    weft_team *team = NULL;
    MUST(weft_team_split_strided(weft_team_world(world), start, stride, size, &team));
    return team;
}

/* Words of all members, written by all members, between syncs of this team only. */
static void use(weft_team *team, uint64_t *words, uint64_t round)
{
    weft_world *world = weft_team_owner(team);
    int pe = weft_team_pe(team);
    int pes = weft_team_pes(team);
    for (int to = 0; to < pes; to++) {
        MUST(weft_uint64_p(world, &words[pe], case_value(pe, to, round),
                           weft_team_translate(team, to, weft_team_world(world))));
    }
    dawdle(6, 3000);
    MUST(weft_team_barrier(team));
    for (int from = 0; from < pes; from++) {
        if (words[from] != case_value(from, pe, round)) {
            weft_sim_fail("team of %d, round %d: member %d's word is %llx", pes, (int)round, from,
                          (unsigned long long)words[from]);
        }
    }
    MUST(weft_team_sync(team));
}

/* Have what is free in this PE's heap, and write there: nobody may read it any more. */
static void soil(weft_world *world)
{
    weft_team *alone = weft_team_same_slot(world);
    void *block;
    if (weft_team_pes(alone) == 1) {
        MUST(weft_team_malloc(alone, 6000, &block));
        memset(block, 0xff, 6000);
        MUST(weft_team_free(alone, block));
    }
}

static void use_and_destroy(weft_team *team, uint64_t round)
{
    uint64_t *words;
    if (team == NULL) {
        return;
    }
    MUST(weft_team_malloc(team, (size_t)weft_team_pes(team) * sizeof *words, (void **)&words));
    use(team, words, round);
    use(team, words, round + 1);
    MUST(weft_team_free(team, words));
    weft_world *world = weft_team_owner(team);
    MUST(weft_team_destroy(team));
    soil(world);
}

/* Teams that their members alone call for, one after another at one place, which each leaves as it has found it. */
static void join_some(weft_world *world, uint64_t *common, void *place)
{
    const int pes = weft_world_pes(world);
    const int pe = weft_world_pe(world);
    for (int time = 0; time < 3; time++) {
        int list[64];
        weft_team *team = NULL;
        const int start = common_below(common, pes);
        const int stride = 1 + common_below(common, 3);
        const int size = 1 + common_below(common, (pes - 1 - start) / stride + 1);
        const int by_list = common_below(common, 2);
        for (int i = 0; i < size; i++) {
            list[i] = start + (size - 1 - i) * stride;
        }
        if (pe >= start && (pe - start) % stride == 0 && (pe - start) / stride < size) {
            MUST(by_list ? weft_team_join_list(world, list, size, place, &team)
                         : weft_team_join(world, start, stride, size, place, &team));
        }
        use_and_destroy(team, 700 + 2 * (uint64_t)time);
        MUST(weft_barrier(world)); /* the next one's members may be others */
        for (size_t i = 0; i < WEFT_TEAM_JOIN_BYTES; i++) {
            if (((const unsigned char *)place)[i] != 0) {
                weft_sim_fail("byte %zu of the place of a join is left as %d", i, ((const unsigned char *)place)[i]);
            }
        }
        MUST(weft_sync(world));
    }
}

/* Rows and columns of all PEs, of any width. */
static void use_rows(weft_world *world, uint64_t *common, uint64_t round)
{
    weft_team *row = NULL;
    weft_team *column = NULL;
    const int pes = weft_world_pes(world);
    const int pe = weft_world_pe(world);
    const int asked = 1 + common_below(common, pes + 1);
    const int width = asked < pes ? asked : pes;
    const int last = pes - pe / width * width; /* in this row, if it is the last one */
    MUST(weft_team_split_2d(weft_team_world(world), asked, &row, &column));
    if (weft_team_pe(row) != pe % width || weft_team_pes(row) != (last < width ? last : width) ||
        weft_team_pe(column) != pe / width || weft_team_pes(column) != (pes - pe % width + width - 1) / width) {
        weft_sim_fail("rows of %d of %d PEs: PE %d is %d of %d and %d of %d", asked, pes, pe, weft_team_pe(row),
                      weft_team_pes(row), weft_team_pe(column), weft_team_pes(column));
    }
    use_and_destroy(row, round);
    use_and_destroy(column, round + 2);
}

/* Those with this PE's number in their nodes are its team of the same slot. */
static void check_same_slot(case_run *run, weft_world *world)
{
    int alike = 0;
    run->board[weft_world_pe(world)] = (uint64_t)weft_team_pe(weft_team_node(world));
    MUST(weft_sync(world));
    for (int pe = 0; pe < run->pes; pe++) {
        alike += run->board[pe] == (uint64_t)weft_team_pe(weft_team_node(world));
    }
    if (weft_team_pes(weft_team_same_slot(world)) != alike) {
        weft_sim_fail("%d PEs have this slot, and %d are in its team", alike,
                      weft_team_pes(weft_team_same_slot(world)));
    }
}

void case_teams(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("teams");
    const uint64_t used = heap_used(world);
    int rounds = 1 + common_below(&common, 3);
    for (int round = 0; round < rounds; round++) {
        weft_team *first = strided(world, &common);
        weft_team *second = halves(world, &common);
        use_and_destroy(first, (uint64_t)round * 10 + 1);
        use_and_destroy(second, (uint64_t)round * 10 + 5);
    }
    if (common_below(&common, 2) == 0) {
        use_rows(world, &common, 500);
    }
    if (common_below(&common, 3) == 0) {
        void *place;
        MUST(weft_calloc(world, 1, WEFT_TEAM_JOIN_BYTES, &place));
        join_some(world, &common, place);
        MUST(weft_free(world, place));
    }
    if (heap_used(world) != used) {
        weft_sim_fail("all teams are destroyed, and %lld bytes more are in use", (long long)(heap_used(world) - used));
    }
    uint64_t *words;
    MUST(weft_calloc(world, (size_t)run->pes, sizeof *words, (void **)&words));
    use(weft_team_node(world), words, 1000);
    use(weft_team_link(world), words, 1002);
    check_same_slot(run, world);
    use(weft_team_same_slot(world), words, 1004);
    MUST(weft_world_destroy(world));
}
