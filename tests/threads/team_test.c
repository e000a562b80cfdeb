/* Goal: teams are what their calls say: members, numbers and translations by rule or by list, several at once, as many
 * as memory holds, and arguments that differ are the same error on all, which names who differs. Method: PEs as
 * threads. All arguments of small worlds, and random lists from a common seed, beside a model that finds members one by
 * one. After each refused call the parent, the heap and the world's counters must be as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static uint64_t heap_used(const weft_world *world)
{
    weft_counters counters = {0};
    CHECK_OK(weft_world_counters(world, &counters));
    return counters.heap_bytes_used;
}

/* ---- what a team must be ---- */

/* Check a team against the list of its members' numbers in the world; each number below the world's size. */
static void check_team(weft_team *team, const int *members, int count)
{
    weft_world *world = weft_team_owner(team);
    weft_team *all = weft_team_world(world);
    int pes = weft_world_pes(world);
    CHECK(weft_team_pes(team) == count);
    int mine = weft_team_pe(team);
    CHECK_SAY(mine >= 0 && mine < count && members[mine] == weft_world_pe(world), "number %d of %d", mine, count);
    for (int i = 0; i < count; i++) {
        int got = weft_team_translate(team, i, all);
        CHECK_SAY(got == members[i], "member %d is PE %d, not %d", i, got, members[i]);
    }
    for (int pe = 0; pe < pes; pe++) {
        int wanted = -1;
        for (int i = 0; i < count; i++) {
            wanted = members[i] == pe ? i : wanted;
        }
        int got = weft_team_translate(all, pe, team);
        CHECK_SAY(got == wanted, "PE %d has the number %d, not %d", pe, got, wanted);
    }
    CHECK(weft_team_translate(team, -1, all) == -1 && weft_team_translate(team, count, all) == -1);
    CHECK(weft_team_translate(all, pes, team) == -1 && weft_team_translate(all, INT_MIN, team) == -1);
}

/* Everybody tells everybody of the team; what is read after a barrier comes from the right PE. */
static void use_team(weft_team *team, uint64_t salt)
{
    weft_world *world = weft_team_owner(team);
    weft_team *all = weft_team_world(world);
    int count = weft_team_pes(team);
    void *block;
    if (!CHECK_OK(weft_team_malloc(team, (size_t)count * sizeof(uint64_t), &block))) {
        return;
    }
    uint64_t *words = block;
    for (int i = 0; i < count; i++) {
        uint64_t word = salt << 16 | (uint64_t)weft_team_pe(team) << 8 | (uint64_t)i;
        CHECK_OK(weft_uint64_p(world, &words[weft_team_pe(team)], word, weft_team_translate(team, i, all)));
    }
    CHECK_OK(weft_team_barrier(team));
    for (int i = 0; i < count; i++) {
        uint64_t wanted = salt << 16 | (uint64_t)i << 8 | (uint64_t)weft_team_pe(team);
        CHECK_SAY(words[i] == wanted, "the word of member %d is %#llx, not %#llx", i, (unsigned long long)words[i],
                  (unsigned long long)wanted);
    }
    CHECK_OK(weft_team_sync(team));
    CHECK_OK(weft_team_free(team, block));
}

/* ---- split_strided ---- */

/* Split `parent`, whose members are parent_members, and check what comes of it. */
static void split_once(weft_team *parent, const int *parent_members, int start, int stride, int size)
{
    int pes = weft_team_pes(parent);
    int members[PES_MAX];
    weft_team *const untouched = (weft_team *)(void *)members;
    weft_team *team = untouched;
    int is_valid = size >= 1 && size <= pes && (stride != 0 || size == 1);
    int is_member = 0;
    for (int i = 0; is_valid && i < size; i++) {
        int64_t member = (int64_t)start + (int64_t)i * stride;
        is_valid = member >= 0 && member < pes;
        if (is_valid) {
            members[i] = parent_members[member];
            is_member |= member == weft_team_pe(parent);
        }
    }
    weft_status status = weft_team_split_strided(parent, start, stride, size, &team);
    if (!is_valid) {
        CHECK_SAY(status == WEFT_ERR_RANGE && team == untouched, "split %d, %d, %d of %d gave %s", start, stride, size,
                  pes, weft_status_name(status));
        return;
    }
    if (!CHECK_SAY(status == WEFT_OK, "split %d, %d, %d of %d: %s", start, stride, size, pes, weft_last_error())) {
        return;
    }
    CHECK_SAY((team != NULL) == is_member, "split %d, %d, %d of %d: member %d got %p", start, stride, size, pes,
              weft_team_pe(parent), (void *)team);
    if (team != NULL) {
        check_team(team, members, size);
        CHECK_OK(weft_team_sync(team));
    }
    CHECK_OK(weft_team_destroy(team));
}

static void split_all(weft_team *parent, const int *parent_members)
{
    int pes = weft_team_pes(parent);
    uint64_t used = heap_used(weft_team_owner(parent));
    for (int start = -1; start <= pes; start++) {
        for (int stride = -pes; stride <= pes; stride++) {
            for (int size = -1; size <= pes + 1; size++) {
                split_once(parent, parent_members, start, stride, size);
            }
        }
    }
    const int extremes[] = {INT_MIN, INT_MIN + 1, -1, 0, 1, INT_MAX - 1, INT_MAX};
    const int count = (int)(sizeof extremes / sizeof *extremes);
    for (int i = 0; i < count * count * count; i++) {
        split_once(parent, parent_members, extremes[i % count], extremes[i / count % count],
                   extremes[i / count / count]);
    }
    CHECK(heap_used(weft_team_owner(parent)) == used);
}

static void split_world(weft_world *world, void *context)
{
    (void)context;
    int members[PES_MAX];
    for (int i = 0; i < weft_world_pes(world); i++) {
        members[i] = i;
    }
    split_all(weft_team_world(world), members);
    CHECK_OK(weft_barrier(world));
}

static void test_split_all_arguments(void **state)
{
    (void)state;
    for (int pes = 1; pes <= 5; pes++) {
        pes_run(pes, split_world, NULL);
    }
}

/* A parent that follows no rule, and one that runs backwards. */
static void split_others(weft_world *world, void *context)
{
    (void)context;
    const int list[] = {3, 0, 4, 1};
    const int reverse[] = {4, 3, 2, 1, 0};
    weft_team *parent;
    CHECK_OK(weft_team_create(weft_team_world(world), list, weft_world_pe(world) == 2 ? 0 : 4, &parent));
    CHECK((parent == NULL) == (weft_world_pe(world) == 2));
    if (parent != NULL) {
        split_all(parent, list);
    }
    CHECK_OK(weft_team_destroy(parent));
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 4, -1, 5, &parent));
    split_all(parent, reverse);
    CHECK_OK(weft_team_destroy(parent));
}

static void test_split_other_parents(void **state)
{
    (void)state;
    pes_run(5, split_others, NULL);
}

/* ---- create ---- */

#define LIST_PES 8
#define LIST_ROUNDS 60

/* Deal the parent's members into teams, some into none, in random orders: the same on all PEs. */
static void deal(uint64_t *random, int pes, int lists[LIST_PES][LIST_PES], int *counts, int *team_of)
{
    int order[LIST_PES];
    int teams = 1 + (int)random_below(random, 3);
    random_order(random, order, pes);
    memset(counts, 0, LIST_PES * sizeof *counts);
    for (int i = 0; i < pes; i++) {
        int team = (int)random_below(random, (unsigned)teams + 1) - 1;
        team_of[order[i]] = team;
        if (team >= 0) {
            lists[team][counts[team]++] = order[i];
        }
    }
}

/* Make the teams of one deal from `parent`, check and use them, and go one level deeper. */
static void deal_teams(weft_team *parent, const int *parent_members, uint64_t seed, int depth)
{
    int pes = weft_team_pes(parent);
    int me = weft_team_pe(parent);
    uint64_t random = seed;
    int lists[LIST_PES][LIST_PES];
    int counts[LIST_PES];
    int team_of[LIST_PES];
    int members[LIST_PES];
    weft_team *team = (weft_team *)(void *)members;
    deal(&random, pes, lists, counts, team_of);
    int mine = team_of[me];
    int count = mine >= 0 ? counts[mine] : 0;
    if (!CHECK_OK(weft_team_create(parent, mine >= 0 ? lists[mine] : NULL, count, &team))) {
        return;
    }
    CHECK((team != NULL) == (mine >= 0));
    if (team != NULL) {
        for (int i = 0; i < count; i++) {
            members[i] = parent_members[lists[mine][i]];
        }
        check_team(team, members, count);
        for (int i = 0; i < count; i++) {
            CHECK(weft_team_translate(team, i, parent) == lists[mine][i]);
            CHECK(weft_team_translate(parent, lists[mine][i], team) == i);
        }
        use_team(team, random & 0xffff);
        if (depth > 0) {
            deal_teams(team, members, random, depth - 1);
        }
    }
    CHECK_OK(weft_team_destroy(team));
}

static void create_from_lists(weft_world *world, void *context)
{
    uint64_t random = *(const uint64_t *)context;
    int members[PES_MAX];
    uint64_t used = heap_used(world);
    for (int i = 0; i < weft_world_pes(world); i++) {
        members[i] = i;
    }
    for (int round = 0; round < LIST_ROUNDS; round++) {
        deal_teams(weft_team_world(world), members, random_next(&random), 2);
        CHECK_OK(weft_barrier(world));
    }
    CHECK(heap_used(world) == used);
}

static void test_create_from_any_list(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (int pes = 1; pes <= LIST_PES; pes++) {
        pes_run(pes, create_from_lists, &seed);
    }
}

/* ---- arguments that differ ---- */

#define ODD_PES 4

/* What the odd one passes where the others pass {0, 2, 3, 1} or split 0, 1, 4; and what all must get. */
typedef struct odd_call {
    const char *name;
    int split; /* else by list */
    int list[ODD_PES + 1]; /* or start, stride, size */
    int count;
    weft_status wanted;
} odd_call;

static const odd_call odd_calls[] = {
    {"another order", 0, {0, 3, 2, 1}, 4, WEFT_ERR_MISMATCH},
    {"no list", 0, {0}, 0, WEFT_ERR_MISMATCH},
    {"a member twice", 0, {0, 1, 2, 2}, 4, WEFT_ERR_RANGE},
    {"a member out of range", 0, {0, 1, 4, 2}, 4, WEFT_ERR_RANGE},
    {"a negative member", 0, {0, 1, -1, 2}, 4, WEFT_ERR_RANGE},
    {"a negative count", 0, {0}, -1, WEFT_ERR_ARGUMENT},
    {"too many members", 0, {0, 1, 2, 3, 0}, 5, WEFT_ERR_ARGUMENT},
    {"another start", 1, {3, 1, 1}, 3, WEFT_ERR_MISMATCH},
    {"another stride", 1, {3, -1, 4}, 3, WEFT_ERR_MISMATCH},
    {"another size", 1, {0, 1, 3}, 3, WEFT_ERR_MISMATCH},
    {"no size", 1, {0, 1, 0}, 3, WEFT_ERR_MISMATCH},
    {"a start out of range", 1, {4, 1, 1}, 3, WEFT_ERR_MISMATCH},
};
#define ODD_CALLS (sizeof odd_calls / sizeof *odd_calls)

static weft_status call_oddly(weft_team *parent, const odd_call *odd, int is_odd, weft_team **team)
{
    const int list[] = {0, 2, 3, 1};
    if (odd->split) {
        return is_odd ? weft_team_split_strided(parent, odd->list[0], odd->list[1], odd->list[2], team)
                      : weft_team_split_strided(parent, 0, 1, ODD_PES, team);
    }
    return is_odd ? weft_team_create(parent, odd->list, odd->count, team)
                  : weft_team_create(parent, list, ODD_PES, team);
}

static void differ(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    weft_team *all = weft_team_world(world);
    weft_team *const untouched = (weft_team *)(void *)&me;
    uint64_t used = heap_used(world);
    for (size_t i = 0; i < ODD_CALLS; i++) {
        for (int odd = 0; odd < ODD_PES; odd++) {
            weft_team *team = untouched;
            weft_status status = call_oddly(all, &odd_calls[i], me == odd, &team);
            CHECK_SAY(status == odd_calls[i].wanted, "%s by PE %d: %s: %s", odd_calls[i].name, odd,
                      weft_status_name(status), weft_last_error());
            CHECK_SAY(me == odd || text_names_pe(weft_last_error(), odd), "%s: PE %d is not named by \"%s\"",
                      odd_calls[i].name, odd, weft_last_error());
            CHECK(team == untouched);
            CHECK(heap_used(world) == used);
            CHECK_OK(weft_barrier(world)); /* the parent lives */
        }
    }
}

static void test_arguments_that_differ(void **state)
{
    (void)state;
    pes_run(ODD_PES, differ, NULL);
}

/* Two lists that overlap: each is right by itself. And a list without the PE that passes it. */
static void overlap(weft_world *world, void *context)
{
    (void)context;
    const int first[] = {0, 1, 2};
    const int second[] = {2, 3};
    const int without[] = {0, 1};
    int me = weft_world_pe(world);
    weft_team *all = weft_team_world(world);
    weft_team *team = NULL;
    uint64_t used = heap_used(world);
    CHECK_STATUS(me < 3 ? weft_team_create(all, first, 3, &team) : weft_team_create(all, second, 2, &team),
                 WEFT_ERR_MISMATCH);
    CHECK(text_names_pe(weft_last_error(), 2) || text_names_pe(weft_last_error(), 3));
    CHECK_STATUS(weft_team_create(all, without, me == 3 ? 2 : 0, &team), WEFT_ERR_ARGUMENT);
    CHECK_NAMES(3);
    CHECK(team == NULL && heap_used(world) == used);
    CHECK_OK(weft_barrier(world));
}

static void test_lists_that_overlap(void **state)
{
    (void)state;
    pes_run(ODD_PES, overlap, NULL);
}

/* One PE makes another collective call than the others. */
static void other_call(weft_world *world, void *context)
{
    (void)context;
    const int list[] = {0, 1, 2, 3};
    weft_team *all = weft_team_world(world);
    uint64_t used = heap_used(world);
    void *kept;
    CHECK_OK(weft_malloc(world, 100, &kept));
    for (int odd = 0; odd < ODD_PES; odd++) {
        int is_odd = weft_world_pe(world) == odd;
        weft_team *team;
        void *block;
        CHECK_STATUS(is_odd ? weft_malloc(world, 100, &block) : weft_team_split_strided(all, 0, 1, 4, &team),
                     WEFT_ERR_MISMATCH);
        CHECK_NAMES(odd);
        CHECK_STATUS(is_odd ? weft_team_create(all, list, 4, &team) : weft_team_split_strided(all, 0, 1, 4, &team),
                     WEFT_ERR_MISMATCH);
        CHECK_NAMES(odd);
        CHECK_STATUS(is_odd ? weft_free(world, kept) : weft_malloc(world, 100, &block), WEFT_ERR_MISMATCH);
        CHECK_NAMES(odd);
        CHECK_STATUS(is_odd ? weft_free(world, NULL) : weft_free(world, kept), WEFT_ERR_MISMATCH);
        CHECK_NAMES(odd);
    }
    CHECK_OK(weft_free(world, kept));
    CHECK(heap_used(world) == used);
    CHECK_OK(weft_barrier(world));
}

static void test_calls_that_differ(void **state)
{
    (void)state;
    pes_run(ODD_PES, other_call, NULL);
}

/* ---- arguments that cannot be ---- */

static void refuse(weft_world *world, void *context)
{
    (void)context;
    weft_team *all = weft_team_world(world);
    weft_team *team;
    void *block;
    int list[] = {0, 1};
    CHECK_STATUS(weft_team_split_strided(NULL, 0, 1, 1, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(NULL, list, 2, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(all, NULL, 2, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(all, list, 2, NULL), WEFT_ERR_ARGUMENT);
    CHECK(weft_team_split_strided(all, 0, 1, 2, NULL) < 0);
    CHECK_STATUS(weft_team_destroy(all), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_destroy(weft_team_node(world)), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_team_destroy(NULL));
    CHECK_STATUS(weft_team_sync(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_barrier(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_malloc(NULL, 1, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_free(NULL, list), WEFT_ERR_ARGUMENT);
    CHECK(weft_team_pe(NULL) == -1 && weft_team_pes(NULL) == -1);
    CHECK(weft_team_translate(NULL, 0, all) == -1 && weft_team_translate(all, 0, NULL) == -1);
    CHECK_OK(weft_barrier(world));
}

static void test_arguments_that_cannot_be(void **state)
{
    (void)state;
    pes_run(2, refuse, NULL);
}

static void test_translate_between_worlds(void **state)
{
    (void)state;
    weft_world *first[2];
    weft_world *second[2];
    pes_create_world(2, first);
    pes_create_world(2, second);
    CHECK(weft_team_translate(weft_team_world(first[0]), 1, weft_team_world(second[0])) == -1);
    CHECK(weft_team_translate(weft_team_world(first[0]), 1, weft_team_node(first[0])) == 1);
    pes_destroy_world(2, first);
    pes_destroy_world(2, second);
}

/* ---- many teams, many threads ---- */

#define SYNC_PES 4
#define SYNC_TEAMS 3
#define SYNC_ROUNDS 300

static const int sync_lists[SYNC_TEAMS][SYNC_PES] = {{0, 1, 2, 3}, {3, 1, 2, 0}, {2, 0, 3, 1}};

/* steps[t][pe]: the round that this PE has come to with team t. */
static uint64_t sync_steps[SYNC_TEAMS][SYNC_PES];

typedef struct sync_work {
    weft_team *teams[SYNC_TEAMS];
    int pe;
} sync_work;

static void sync_one_team(int number, void *context)
{
    const sync_work *work = context;
    check_as_pe(work->pe);
    for (uint64_t round = 1; round <= SYNC_ROUNDS; round++) {
        __atomic_store_n(&sync_steps[number][work->pe], round, __ATOMIC_RELAXED);
        CHECK_OK(round % 2 == 0 ? weft_team_sync(work->teams[number]) : weft_team_barrier(work->teams[number]));
        for (int pe = 0; pe < SYNC_PES; pe++) {
            uint64_t step = __atomic_load_n(&sync_steps[number][pe], __ATOMIC_RELAXED);
            CHECK_SAY(step == round || step == round + 1, "team %d: PE %d is in round %llu of %llu", number, pe,
                      (unsigned long long)step, (unsigned long long)round);
        }
    }
}

static void sync_many(weft_world *world, void *context)
{
    (void)context;
    sync_work work = {.pe = weft_world_pe(world)};
    for (int i = 0; i < SYNC_TEAMS; i++) {
        CHECK_OK(weft_team_create(weft_team_world(world), sync_lists[i], SYNC_PES, &work.teams[i]));
        sync_steps[i][work.pe] = 0;
    }
    CHECK_OK(weft_barrier(world));
    pes_each(SYNC_TEAMS, sync_one_team, &work);
    for (int i = 0; i < SYNC_TEAMS; i++) {
        CHECK_OK(weft_team_destroy(work.teams[i]));
    }
}

static void test_sync_in_several_threads(void **state)
{
    (void)state;
    pes_run(SYNC_PES, sync_many, NULL);
}

#define ALLOC_TEAMS 3
#define ALLOC_ROUNDS 150
#define ALLOC_LIVE 6

typedef struct alloc_work {
    weft_team *teams[ALLOC_TEAMS];
    weft_world *world;
    uint64_t seed;
} alloc_work;

/* Blocks of one team are filled with its number and this PE's; who else gets the same bytes shows. */
static void alloc_on_team(int number, void *context)
{
    const alloc_work *work = context;
    weft_team *team = work->teams[number];
    uint64_t random = work->seed + (uint64_t)number;
    unsigned char mark = (unsigned char)(16 * (number + 1) + weft_world_pe(work->world));
    unsigned char *blocks[ALLOC_LIVE] = {NULL};
    size_t sizes[ALLOC_LIVE] = {0};
    check_as_pe(weft_world_pe(work->world));
    for (int round = 0; round < ALLOC_ROUNDS; round++) {
        int i = (int)random_below(&random, ALLOC_LIVE);
        for (size_t at = 0; at < sizes[i]; at++) {
            if (!CHECK_SAY(blocks[i][at] == mark, "byte %zu of %zu is %#x, not %#x", at, sizes[i], blocks[i][at],
                           mark)) {
                break;
            }
        }
        CHECK_OK(weft_team_free(team, blocks[i]));
        sizes[i] = 1 + random_below(&random, 5000);
        void *block = NULL;
        if (!CHECK_OK(weft_team_malloc(team, sizes[i], &block))) {
            return;
        }
        blocks[i] = block;
        memset(block, mark, sizes[i]);
    }
    for (int i = 0; i < ALLOC_LIVE; i++) {
        CHECK_OK(weft_team_free(team, blocks[i]));
    }
}

static void alloc_in_threads(weft_world *world, void *context)
{
    alloc_work work = {.world = world, .seed = *(const uint64_t *)context};
    const int reverse[] = {2, 1, 0};
    uint64_t used = heap_used(world);
    work.teams[0] = weft_team_world(world);
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 3, &work.teams[1]));
    CHECK_OK(weft_team_create(weft_team_world(world), reverse, 3, &work.teams[2]));
    pes_each(ALLOC_TEAMS, alloc_on_team, &work);
    CHECK_OK(weft_team_destroy(work.teams[1]));
    CHECK_OK(weft_team_destroy(work.teams[2]));
    CHECK(heap_used(world) == used);
}

/* More often than not some of these meet; then each must still get its own place, on all PEs. */
static void test_allocate_in_several_threads(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (int i = 0; i < 10; i++) {
        pes_run(3, alloc_in_threads, &seed);
    }
}

/* Teams of a part of the world leave holes that are elsewhere taken: the world's next allocations must agree. */
static void alloc_beside_teams(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    uint64_t used = heap_used(world);
    weft_team *halves;
    void *of_half[8];
    void *of_all[8];
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 2, 2, &halves));
    for (int i = 0; i < 8; i++) {
        if (halves != NULL) {
            CHECK_OK(weft_team_malloc(halves, 1000 + (size_t)i, &of_half[i]));
            memset(of_half[i], 0xaa, 1000);
        }
        CHECK_OK(weft_malloc(world, 500, &of_all[i]));
        memset(of_all[i], 0x55, 500);
        /* The same offset on all: a word put at the right neighbour arrives in its block. */
        uint64_t *word = of_all[i];
        CHECK_OK(weft_barrier(world));
        CHECK_OK(weft_uint64_p(world, word, 100 + (uint64_t)me, (me + 1) % 4));
        CHECK_OK(weft_barrier(world));
        CHECK(*word == 100 + (uint64_t)(me + 3) % 4);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_OK(weft_free(world, of_all[i]));
        if (halves != NULL) {
            CHECK(((unsigned char *)of_half[i])[0] == 0xaa && ((unsigned char *)of_half[i])[999] == 0xaa);
            CHECK_OK(weft_team_free(halves, of_half[i]));
        }
    }
    CHECK_OK(weft_team_destroy(halves));
    CHECK(heap_used(world) == used);
}

static void test_allocate_beside_teams(void **state)
{
    (void)state;
    pes_run(4, alloc_beside_teams, NULL);
}

/* ---- again and again, and many at once ---- */

#define CREATIONS 1000
#define ALIVE 200

static void create_and_destroy(weft_world *world, void *context)
{
    (void)context;
    weft_team *teams[ALIVE];
    void *first;
    void *again;
    CHECK_OK(weft_malloc(world, 10, &first));
    CHECK_OK(weft_free(world, first));
    uint64_t used = heap_used(world);
    for (int i = 0; i < CREATIONS; i++) {
        CHECK_OK(weft_team_split_strided(weft_team_world(world), i % 2, 1, 2, &teams[0]));
        CHECK_OK(weft_team_destroy(teams[0]));
    }
    CHECK(heap_used(world) == used);
    for (int i = 0; i < ALIVE; i++) {
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 3, &teams[i]));
    }
    for (int i = 0; i < ALIVE; i++) {
        CHECK_OK(weft_team_sync(teams[(i * 7) % ALIVE]));
    }
    for (int i = 0; i < ALIVE; i++) {
        CHECK_OK(weft_team_destroy(teams[(i * 3) % ALIVE]));
    }
    CHECK(heap_used(world) == used);
    CHECK_OK(weft_malloc(world, 10, &again));
    CHECK_SAY(again == first, "the heap's first block is at %p, and was at %p", again, first);
    CHECK_OK(weft_free(world, again));
}

static void test_a_thousand_teams(void **state)
{
    (void)state;
    ledger before = ledger_read();
    pes_run(3, create_and_destroy, NULL);
    ledger_assert_same(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_split_all_arguments),      CHECKED_TEST(test_split_other_parents),
        CHECKED_TEST(test_create_from_any_list),     CHECKED_TEST(test_arguments_that_differ),
        CHECKED_TEST(test_lists_that_overlap),       CHECKED_TEST(test_calls_that_differ),
        CHECKED_TEST(test_arguments_that_cannot_be), CHECKED_TEST(test_translate_between_worlds),
        CHECKED_TEST(test_sync_in_several_threads),  CHECKED_TEST(test_allocate_in_several_threads),
        CHECKED_TEST(test_allocate_beside_teams),    CHECKED_TEST(test_a_thousand_teams),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}
