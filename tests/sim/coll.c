/* sim/coll.c: collectives on teams of any shape over one or several link domains, by part/coll_session.h; and locks. */
#include <stdio.h>
#include <stdlib.h>

#include "part/coll_session.h"
#include "sim/cases.h"

/* For blocks as small as here the table chooses the same algorithm each time. So each run prefers one of each collective,
 * that is drawn, or none. */
static void draw_algorithms(uint64_t seed, char *text, size_t bytes)
{
    static const char *const ways[][4] = {
        {"broadcast:push,", "broadcast:pull,"},
        {"fcollect:push,", "fcollect:pull,"},
        {"alltoall:push,", "alltoall:pull,", "alltoall:pairs,"},
        {"alltoalls:push,", "alltoalls:pull,"},
        {"reduce:push,", "reduce:doubling,", "reduce:slices,"},
        {"reduce_scatter:push,", "reduce_scatter:pull,"},
        {"scan:push,", "scan:slices,"},
        {"sync:rounds", "sync:count"},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *way = ways[i][common_below(&seed, 4)];
        used += (size_t)snprintf(text + used, bytes - used, "%s", way != NULL ? way : "");
    }
}

static void run_session(const case_run *run, const coll_session_plan *plan)
{
    char algorithms[256];
    draw_algorithms(run->seed, algorithms, sizeof algorithms);
    (void)setenv("WEFT_COLL", algorithms, 1);
    weft_world *world = case_world("coll");
    (void)unsetenv("WEFT_COLL"); /* all have read it */
    for (int i = 0; i < (run->seed % 16 == 1 ? 3 : 1); i++) {
        coll_session_plan own = *plan;
        own.first_turn = (uint64_t)i * 1000;
        coll_session_run(world, run->seed, &own);
    }
    MUST(weft_world_destroy(world));
}

/* In some runs blocks of several slots, and of several pieces; in some, sessions of the same calls with other data, whose
 * teams have memory in which the flags of those before still lie. */
void case_coll(void *argument)
{
    static const coll_session_plan plan = {.calls = 40, .bytes_max = 3000};
    static const coll_session_plan large = {.calls = 12, .bytes_max = 40000};
    const case_run *run = argument;
    run_session(run, run->seed % 16 == 0 && run->pes <= 4 ? &large : &plan);
}

void case_coll_wide(void *argument)
{
    static const coll_session_plan plan = {.calls = 8, .bytes_max = 600};
    run_session(argument, &plan);
}

/* A counter that only mutual exclusion keeps right, and a lock on every PE in turn. */
void case_locks(void *argument)
{
    const case_run *run = argument;
    const int turns = 6;
    weft_world *world = case_world("locks");
    long *words; /* locks, each with another home, and their counters */
    MUST(weft_calloc(world, 8, sizeof *words, (void **)&words));
    for (int i = 0; i < turns; i++) {
        int which = i % 4;
        int taken = 0;
        long value;
        if (weft_sim_random(4) == 0) {
            MUST(weft_test_lock(world, &words[which], &taken));
        }
        if (!taken) {
            MUST(weft_set_lock(world, &words[which]));
        }
        MUST(weft_long_g(world, &words[4 + which], 0, &value));
        dawdle(3, 2000);
        MUST(weft_long_p(world, &words[4 + which], value + 1, 0));
        MUST(weft_clear_lock(world, &words[which]));
    }
    MUST(weft_barrier(world));
    if (weft_world_pe(world) == 0 && words[4] + words[5] + words[6] + words[7] != (long)turns * run->pes) {
        weft_sim_fail("locks let %ld of %d turns count", words[4] + words[5] + words[6] + words[7], turns * run->pes);
    }
    for (int i = 0; i < 4; i++) {
        long left; /* read by a call: the PE's own last store may not have landed, and only calls look for it */
        MUST(weft_long_g(world, &words[i], weft_world_pe(world), &left));
        if (left != 0) {
            weft_sim_fail("lock %d is %lx at the end", i, (unsigned long)left);
        }
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}

/* A root that waits for nobody, and members that are slow. */
void case_run_ahead(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("ahead");
    int root = common_below(&common, run->pes);
    static const size_t counts[] = {1, 3, 12}; /* in words, in lines, in slots */
    size_t count = counts[common_below(&common, 3)];
    uint64_t *words;
    MUST(weft_malloc(world, 24 * sizeof *words, (void **)&words));
    for (uint64_t round = 1; round <= (count == 12 ? 40 : 200); round++) {
        for (size_t k = 0; k < count; k++) {
            words[k] = case_value(weft_world_pe(world), root, round + k);
        }
        if (weft_world_pe(world) != root) {
            dawdle(10, 20000);
        }
        MUST(weft_uint64_broadcast(weft_team_world(world), words + 12, words, count, root));
        for (size_t k = 0; k < count; k++) {
            if (words[12 + k] != case_value(root, root, round + k)) {
                weft_sim_fail("round %llu: word %zu is %llx", (unsigned long long)round, k,
                              (unsigned long long)words[12 + k]);
            }
        }
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}
