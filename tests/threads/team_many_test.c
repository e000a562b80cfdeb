/* Goal: teams can be made in any number: rows and columns are what they should be, predefined teams too; ten thousand
 * are made and destroyed, thousands live at once and work, and nothing is left; how many agreements a creation takes
 * does not depend on how many teams are alive, nor on who is in them.
 *
 * Method: PEs as threads; a sum over each team tells whether its members are the right ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"
#include "world/world.h"

#define CREATIONS 10000
#define ALIVE 2000

/* The sum of the members' numbers in the world. */
static long sum_of(weft_team *team, long *words)
{
    words[0] = weft_world_pe(weft_team_owner(team));
    CHECK_OK(weft_long_sum_reduce(team, &words[1], &words[0], 1));
    return words[1];
}

static void rows_and_columns_body(weft_world *world, void *context)
{
    void *block;
    weft_team *x = NULL;
    weft_team *y = NULL;
    int pes = weft_world_pes(world);
    int me = weft_world_pe(world);
    (void)context;
    CHECK_OK(weft_malloc(world, 64, &block));
    for (int width = 1; width <= pes + 2; width++) {
        int real = width < pes ? width : pes;
        long row = 0;
        long column = 0;
        int row_pes = 0;
        int column_pes = 0;
        for (int pe = 0; pe < pes; pe++) {
            row += pe / real == me / real ? pe : 0;
            row_pes += pe / real == me / real;
            column += pe % real == me % real ? pe : 0;
            column_pes += pe % real == me % real;
        }
        if (!CHECK_OK(weft_team_split_2d(weft_team_world(world), width, &x, &y))) {
            break;
        }
        CHECK(weft_team_pes(x) == row_pes && weft_team_pe(x) == me % real);
        CHECK(weft_team_pes(y) == column_pes && weft_team_pe(y) == me / real);
        CHECK(sum_of(x, block) == row);
        CHECK(sum_of(y, block) == column);
        CHECK_OK(weft_team_destroy(x));
        CHECK_OK(weft_team_destroy(y));
    }
    CHECK_STATUS(weft_team_split_2d(weft_team_world(world), 0, &x, &y), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_split_2d(weft_team_world(world), 2, NULL, &y), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_split_2d(weft_team_world(world), 2, &x, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_split_2d(NULL, 2, &x, &y), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_free(world, block));
}

static void rows_and_columns(void **state)
{
    (void)state;
    pes_run(1, rows_and_columns_body, NULL);
    pes_run(5, rows_and_columns_body, NULL);
    pes_run(6, rows_and_columns_body, NULL);
}

static void predefined_body(weft_world *world, void *context)
{
    void *block;
    weft_team_config config = WEFT_TEAM_CONFIG_INIT;
    int pes = weft_world_pes(world);
    (void)context;
    CHECK_OK(weft_malloc(world, 64, &block));
    CHECK(weft_team_pes(weft_team_link(world)) == pes);
    CHECK(sum_of(weft_team_link(world), block) == (long)pes * (pes - 1) / 2);
    CHECK(weft_team_pes(weft_team_same_slot(world)) == 1); /* one node */
    CHECK(sum_of(weft_team_same_slot(world), block) == weft_world_pe(world));
    CHECK_OK(weft_team_barrier(weft_team_same_slot(world)));
    CHECK(weft_team_link(NULL) == NULL && weft_team_same_slot(NULL) == NULL);
    config.contexts = 3;
    CHECK_OK(weft_team_configure(weft_team_world(world), &config));
    config.contexts = 0;
    CHECK_OK(weft_team_query(weft_team_world(world), &config));
    CHECK(config.contexts == 3);
    config.contexts = -1;
    CHECK_STATUS(weft_team_configure(weft_team_world(world), &config), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_configure(NULL, &config), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_query(weft_team_world(world), NULL), WEFT_ERR_ARGUMENT);
    config.size = 1;
    CHECK_STATUS(weft_team_query(weft_team_world(world), &config), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_free(world, block));
}

static void predefined_teams(void **state)
{
    (void)state;
    pes_run(3, predefined_body, NULL);
}

#define SUMS 2000

typedef struct one_team {
    weft_team *team;
    long *words; /* of this thread */
} one_team;

static void *add_up(void *argument)
{
    const one_team *one = argument;
    for (long i = 0; i < SUMS && check_failures() == 0; i++) {
        one->words[0] = i;
        CHECK_OK(weft_long_sum_reduce(one->team, &one->words[1], &one->words[0], 1));
        CHECK(one->words[1] == i * weft_team_pes(one->team));
    }
    return NULL;
}

/* The predefined teams are independent, though some have the same members: two threads of a PE use one each. */
static void independent_body(weft_world *world, void *context)
{
    void *block;
    pthread_t thread;
    (void)context;
    CHECK_OK(weft_calloc(world, 64, sizeof(long), &block));
    one_team node = {.team = weft_team_node(world), .words = block};
    one_team link = {.team = weft_team_link(world), .words = (long *)block + 32};
    CHECK(node.team != link.team);
    CHECK(pthread_create(&thread, NULL, add_up, &node) == 0);
    (void)add_up(&link);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(weft_free(world, block));
}

static void independent_teams(void **state)
{
    (void)state;
    pes_run(2, independent_body, NULL);
}

static uint64_t heap_used(weft_world *world)
{
    weft_counters counters;
    CHECK_OK(weft_world_counters(world, &counters));
    return counters.heap_bytes_used;
}

static void ten_thousand_body(weft_world *world, void *context)
{
    void *block;
    weft_team *team = NULL;
    (void)context;
    CHECK_OK(weft_malloc(world, 64, &block));
    uint64_t used = heap_used(world);
    for (int i = 0; i < CREATIONS && check_failures() == 0; i++) {
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
        if (team != NULL && i % 500 == 0) {
            CHECK(sum_of(team, block) == 1);
        }
        CHECK_OK(weft_team_destroy(team));
    }
    CHECK(heap_used(world) == used);
    CHECK_OK(weft_free(world, block));
}

static void ten_thousand_creations(void **state)
{
    (void)state;
    ledger before = ledger_read();
    pes_run(2, ten_thousand_body, NULL);
    ledger_assert_same(&before);
}

static void thousands_alive_body(weft_world *world, void *context)
{
    static weft_team *of_pe[2][ALIVE];
    weft_team **teams = of_pe[weft_world_pe(world)];
    void *block;
    (void)context;
    CHECK_OK(weft_malloc(world, 64, &block));
    uint64_t used = heap_used(world);
    for (int i = 0; i < ALIVE && check_failures() == 0; i++) {
        CHECK_OK(weft_team_split_strided(weft_team_world(world), i % 2, i % 2 == 0 ? 1 : -1, 2, &teams[i]));
    }
    for (int i = 0; i < ALIVE && check_failures() == 0; i++) {
        CHECK_OK(weft_team_sync(teams[i]));
        if (i % 20 == 0) {
            CHECK(sum_of(teams[i], block) == 1);
        }
    }
    for (int i = 0; i < ALIVE && check_failures() == 0; i++) {
        CHECK_OK(weft_team_destroy(teams[(i * 7) % ALIVE])); /* 7 and ALIVE have no common factor */
    }
    CHECK(heap_used(world) == used);
    CHECK_OK(weft_free(world, block));
}

static void thousands_alive(void **state)
{
    (void)state;
    pes_run(2, thousands_alive_body, NULL);
}

/* ---- teams of some PEs each, so that no two PEs have the same records ---- */

#define SUBSETS_ALIVE 500
#define SUBSETS_MADE 10000 /* and fewer, but this many, where processors are so busy that it takes longer than this: */
#define SUBSETS_MADE_LEAST 1000
#define SUBSETS_NS UINT64_C(10000000000)
#define SUBSET_PES 8
#define ROUNDS_MAX 12 /* agreements a creation, whatever is alive */

static uint64_t agreements(weft_world *world)
{
    return wefti_ld64(&weft_team_world(world)->epochs->agree, WEFTI_RELAXED);
}

static uint64_t heap_reserved(weft_world *world)
{
    weft_counters counters;
    CHECK_OK(weft_world_counters(world, &counters));
    return counters.heap_bytes_reserved;
}

/* Team i: one PE, or a pair, or three PEs in descending order. */
static void make_subset(weft_world *world, int i, weft_team **team)
{
    const int pes = weft_world_pes(world);
    const int size = 1 + i % 3;
    const int start = size - 1 + i * 5 % (pes - size + 1);
    CHECK_OK(weft_team_split_strided(weft_team_world(world), start, size == 1 ? 1 : -1, size, team));
}

/* Whether all PEs go on after team i: one whose time is over ends it for all. */
static int goes_on(weft_world *world, int i, uint64_t until_ns, long *words)
{
    if (i < SUBSETS_MADE_LEAST || i % 100 != 0) {
        return i < SUBSETS_MADE && check_failures() == 0;
    }
    words[0] = wefti_os_now_ns() > until_ns;
    CHECK_OK(weft_long_max_reduce(weft_team_world(world), &words[1], &words[0], 1));
    return i < SUBSETS_MADE && check_failures() == 0 && words[1] == 0;
}

/* Teams come, and after SUBSETS_ALIVE more they go. */
static void subsets_body(weft_world *world, void *context)
{
    static weft_team *of_pe[SUBSET_PES][SUBSETS_ALIVE];
    weft_team **teams = of_pe[weft_world_pe(world)];
    void *block;
    (void)context;
    memset(teams, 0, sizeof of_pe[0]);
    CHECK_OK(weft_malloc(world, 64, &block));
    (void)sum_of(weft_team_world(world), block); /* the world's team has the memory for it from now on */
    uint64_t used = heap_used(world);
    uint64_t reserved = 0;
    const uint64_t until_ns = wefti_os_now_ns() + SUBSETS_NS;
    for (int i = 0; goes_on(world, i, until_ns, block); i++) {
        weft_team **team = &teams[i % SUBSETS_ALIVE];
        CHECK_OK(weft_team_destroy(*team));
        uint64_t before = agreements(world);
        make_subset(world, i, team);
        CHECK_SAY(agreements(world) - before <= ROUNDS_MAX, "creation %d took %llu agreements", i,
                  (unsigned long long)(agreements(world) - before));
        if (*team != NULL && i % 100 == 0) {
            CHECK_OK(weft_team_sync(*team));
        }
        reserved = i == SUBSETS_ALIVE - 1 ? heap_reserved(world) : reserved;
    }
    /* They do not wander through the heap. */
    CHECK_SAY(heap_reserved(world) <= 3 * reserved, "%llu bytes are reserved, %llu when as many teams were alive first",
              (unsigned long long)heap_reserved(world), (unsigned long long)reserved);
    for (int i = 0; i < SUBSETS_ALIVE; i++) {
        CHECK_OK(weft_team_destroy(teams[i]));
    }
    CHECK(heap_used(world) == used);
    CHECK_OK(weft_free(world, block));
}

static void thousands_of_subsets(void **state)
{
    (void)state;
    pes_run(5, subsets_body, NULL);
    pes_run(SUBSET_PES, subsets_body, NULL);
}

#define HOLES 40
#define HOLE_BYTES 4096
#define COMMON_HOLE (HOLES - 2)

/* Leave no room for a block of HOLE_BYTES but in these holes, and take them all on this PE alone. */
static void fill_heap(weft_world *world, weft_team *self, void **holes)
{
    void *rest;
    for (int i = 0; i < HOLES; i++) {
        CHECK_OK(weft_malloc(world, HOLE_BYTES, &holes[i]));
    }
    for (size_t room = (size_t)8 << 20; room >= HOLE_BYTES;) {
        room = weft_malloc(world, room, &rest) == WEFT_OK ? room : room / 2;
    }
    for (int i = 0; i < HOLES; i++) {
        CHECK_OK(weft_free(world, holes[i]));
    }
    for (int i = 0; i < HOLES; i++) {
        CHECK_OK(weft_team_malloc(self, HOLE_BYTES, &holes[i]));
    }
}

/* With nothing free above, every hole is tried: the one that is free on all PEs is found. */
static void last_hole_body(weft_world *world, void *context)
{
    weft_team *self = NULL;
    void *holes[HOLES];
    void *block = NULL;
    int me = weft_world_pe(world);
    (void)context;
    CHECK_OK(weft_team_create(weft_team_world(world), &me, 1, &self));
    fill_heap(world, self, holes);
    for (int i = 0; i < HOLES; i++) {
        if (i % 2 != me || i == COMMON_HOLE) {
            CHECK_OK(weft_team_free(self, holes[i]));
        }
    }
    CHECK_OK(weft_malloc(world, HOLE_BYTES, &block));
    CHECK(block == holes[COMMON_HOLE]);
    CHECK_STATUS(weft_malloc(world, HOLE_BYTES, &holes[0]), WEFT_ERR_MEMORY);
    CHECK_OK(weft_free(world, block));
    CHECK_OK(weft_team_destroy(self));
}

static void last_hole(void **state)
{
    (void)state;
    pes_run(2, last_hole_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(rows_and_columns),  CHECKED_TEST(predefined_teams),
        CHECKED_TEST(independent_teams), CHECKED_TEST(ten_thousand_creations),
        CHECKED_TEST(thousands_alive),   CHECKED_TEST(thousands_of_subsets),
        CHECKED_TEST(last_hole),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
