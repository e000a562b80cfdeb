/* Goal: worlds are objects: any number, of any sizes, alive at once in one process, made and ended in any order, by one
 * thread or many, again and again, with nothing left behind.
 * Method: PEs as threads. Every world moves data whose words name world, sender, receiver and place. Descriptors,
 * threads, maps, allocations and resident memory are counted before and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/load.h"
#include "support/pes.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define WORDS 8

/* ---- data: everyone writes to everyone ---- */

static uint64_t word_of(uint64_t salt, int from, int to, int i)
{
    return salt << 32 | (uint64_t)from << 24 | (uint64_t)to << 16 | (uint64_t)i;
}

static void exchange_once(weft_world *world, uint64_t *inbox, uint64_t salt)
{
    int pe = weft_world_pe(world);
    int pes = weft_world_pes(world);
    for (int to = 0; to < pes; to++) {
        uint64_t out[WORDS];
        for (int i = 0; i < WORDS; i++) {
            out[i] = word_of(salt, pe, to, i);
        }
        CHECK_OK(weft_uint64_put(world, inbox + (size_t)pe * WORDS, out, WORDS, to));
    }
    CHECK_OK(weft_barrier(world));
    for (int i = 0; i < pes * WORDS; i++) {
        uint64_t wanted = word_of(salt, i / WORDS, pe, i % WORDS);
        CHECK_SAY(inbox[i] == wanted, "word %d from PE %d is %#llx, not %#llx", i % WORDS, i / WORDS,
                  (unsigned long long)inbox[i], (unsigned long long)wanted);
    }
    CHECK_OK(weft_barrier(world));
}

static void exchange(weft_world *world, uint64_t salt, int rounds)
{
    void *block;
    if (CHECK_OK(weft_calloc(world, (size_t)weft_world_pes(world) * WORDS, sizeof(uint64_t), &block))) {
        for (int round = 0; round < rounds; round++) {
            exchange_once(world, block, salt + (uint64_t)round);
        }
        CHECK_OK(weft_free(world, block));
    }
}

static void exchange_in_world(weft_world *world, void *context)
{
    const uint64_t *salt = context;
    exchange(world, *salt, 3);
}

/* ---- one world ---- */

static void check_queries(weft_world *world)
{
    weft_world_phase phases[32];
    weft_world_phase one[1];
    char text[2000];
    char cut[10];
    size_t count = weft_world_phases(world, phases, 32);
    CHECK(count >= 1 && count <= 32);
    CHECK(weft_world_phases(world, one, 1) == count);
    CHECK(weft_world_phases(world, NULL, 0) == count);
    CHECK(strcmp(one[0].name, phases[0].name) == 0);
    uint64_t total_ns = 0;
    for (size_t i = 0; i < count && i < 32; i++) {
        CHECK(phases[i].name != NULL && phases[i].name[0] != '\0');
        total_ns += phases[i].ns;
    }
    CHECK(total_ns > 0 && total_ns < UINT64_C(60000000000));
    size_t length = weft_world_transport_map(world, text, sizeof text);
    CHECK(length == strlen(text) && strstr(text, "map") != NULL && strstr(text, "messages") == NULL);
    CHECK(weft_world_transport_map(world, cut, sizeof cut) == length);
    CHECK(strncmp(cut, text, sizeof cut - 1) == 0 && cut[sizeof cut - 1] == '\0');
    CHECK(weft_world_transport_map(world, NULL, 0) == length);
    int culprit = 5;
    CHECK_OK(weft_world_fault(world, &culprit));
    CHECK(culprit == -1);
    CHECK_OK(weft_world_fault(world, NULL));
}

typedef struct numbers {
    int pes;
    unsigned char seen[PES_MAX];
} numbers;

static void check_numbers(weft_world *world, void *context)
{
    numbers *n = context;
    int pe = weft_world_pe(world);
    CHECK(weft_world_pes(world) == n->pes);
    CHECK(pe >= 0 && pe < n->pes && __atomic_fetch_add(&n->seen[pe], 1, __ATOMIC_RELAXED) == 0);
    CHECK(weft_team_pe(weft_team_world(world)) == pe && weft_team_pes(weft_team_world(world)) == n->pes);
    CHECK(weft_team_pe(weft_team_node(world)) == pe && weft_team_pes(weft_team_node(world)) == n->pes);
    CHECK(weft_team_owner(weft_team_world(world)) == world);
    check_queries(world);
    exchange(world, (uint64_t)n->pes, 3);
}

static void test_sizes(void **state)
{
    (void)state;
    const int sizes[] = {1, 2, 3, 5, 8, 16};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        numbers n = {.pes = sizes[i]};
        pes_run(sizes[i], check_numbers, &n);
    }
}

static void test_world_of_one(void **state)
{
    (void)state;
    weft_world *world = NULL;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    ledger before = ledger_read();
    CHECK_OK(weft_world_create(NULL, &world));
    exchange(world, 1, 2);
    CHECK_OK(weft_world_destroy(world));
    config.pes = 1;
    config.name = "a name of one's own";
    CHECK_OK(weft_world_create(&config, &world));
    exchange(world, 2, 2);
    CHECK_OK(weft_world_destroy(world));
    ledger_assert_same(&before);
}

static void test_no_world(void **state)
{
    (void)state;
    char text[8] = "unlike";
    weft_world_phase phase;
    weft_counters counters;
    CHECK_OK(weft_world_destroy(NULL));
    CHECK_STATUS(weft_world_create(NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_abort(NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_fault(NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_counters(NULL, &counters), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_barrier(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_sync(NULL), WEFT_ERR_ARGUMENT);
    CHECK(weft_world_pe(NULL) == -1 && weft_world_pes(NULL) == -1);
    CHECK(weft_team_world(NULL) == NULL && weft_team_node(NULL) == NULL && weft_team_owner(NULL) == NULL);
    CHECK(weft_world_phases(NULL, &phase, 1) == 0);
    CHECK(weft_world_transport_map(NULL, text, sizeof text) == 0 && text[0] == '\0');
    CHECK(weft_world_transport_map(NULL, NULL, 0) == 0);
}

/* ---- several worlds at once: two modules ---- */

#define PROGRAM_PES 8
#define HALF (PROGRAM_PES / 2)

/* Module A: two worlds of half the PEs; module B: one of all, numbered in reverse. */
typedef struct modules {
    weft_threads *halves[2];
    weft_threads *all;
    int a_first_in;
    int a_first_out;
} modules;

static weft_world *open_module(const modules *m, int pe, int is_a)
{
    weft_world *world = NULL;
    weft_world_config config = is_a ? pes_config(m->halves[pe / HALF], pe % HALF, HALF)
                                    : pes_config(m->all, PROGRAM_PES - 1 - pe, PROGRAM_PES);
    config.name = is_a ? "A" : "B";
    if (!CHECK_OK(weft_world_create(&config, &world))) {
        abort();
    }
    return world;
}

static void run_modules(int pe, void *context)
{
    const modules *m = context;
    weft_world *first = open_module(m, pe, m->a_first_in);
    weft_world *second = open_module(m, pe, !m->a_first_in);
    weft_world *both[2] = {first, second};
    uint64_t salt = 100 + (uint64_t)pe / HALF; /* each half its own, so that a word of the other half shows */
    uint64_t common = 7;
    CHECK(weft_world_pes(first) == (m->a_first_in ? HALF : PROGRAM_PES));
    CHECK(weft_world_pe(m->a_first_in ? second : first) == PROGRAM_PES - 1 - pe);
    /* Data moves in both at once: a thread of this PE for each. */
    pes_run_in(2, both, exchange_in_world, &common);
    weft_world *a = m->a_first_in ? first : second;
    weft_world *b = m->a_first_in ? second : first;
    exchange(a, salt, 2);
    CHECK_OK(weft_world_destroy(m->a_first_out ? a : b));
    exchange(m->a_first_out ? b : a, m->a_first_out ? 3 : salt, 2); /* the other lives on */
    CHECK_OK(weft_world_destroy(m->a_first_out ? b : a));
}

static void test_two_modules(void **state)
{
    (void)state;
    for (int order = 0; order < 4; order++) {
        ledger before = ledger_read();
        modules m = {.a_first_in = order & 1, .a_first_out = order >> 1};
        m.halves[0] = pes_meeting(HALF);
        m.halves[1] = pes_meeting(HALF);
        m.all = pes_meeting(PROGRAM_PES);
        pes_each(PROGRAM_PES, run_modules, &m);
        weft_threads_destroy(m.halves[0]);
        weft_threads_destroy(m.halves[1]);
        weft_threads_destroy(m.all);
        ledger_assert_same(&before);
    }
}

#define MANY 12

/* Worlds of many sizes, all of them alive; ended in a random order of PEs and worlds. */
static void test_many_worlds_any_order(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    weft_world *worlds[MANY][PES_MAX] = {{NULL}};
    int sizes[MANY];
    int order[MANY * 5];
    uint64_t salt = 9;
    ledger before = ledger_read();
    for (int i = 0; i < MANY; i++) {
        sizes[i] = 1 + (int)random_below(&random, 5);
        pes_create_world(sizes[i], worlds[i]);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        pes_run_in(sizes[i], worlds[i], exchange_in_world, &salt);
    }
    random_order(&random, order, MANY * 5);
    for (int i = 0; i < MANY * 5; i++) {
        CHECK_OK(weft_world_destroy(worlds[order[i] / 5][order[i] % 5]));
    }
    ledger_assert_same(&before);
}

/* ---- again and again ---- */

#define POOL 6
#define RECREATIONS 300

/* In each round a part of the pool forms a world, in which everybody has another number than before. */
typedef struct rounds_plan {
    weft_threads *meetings[RECREATIONS];
    int sizes[RECREATIONS];
    int numbers[RECREATIONS][POOL]; /* -1: not in this round's world */
} rounds_plan;

static void recreate(int pe, void *context)
{
    const rounds_plan *plan = context;
    for (int round = 0; round < RECREATIONS; round++) {
        int number = plan->numbers[round][pe];
        if (number < 0) {
            continue;
        }
        weft_world *world;
        weft_world_config config = pes_config(plan->meetings[round], number, plan->sizes[round]);
        if (!CHECK_OK(weft_world_create(&config, &world))) {
            abort();
        }
        CHECK(weft_world_pe(world) == number && weft_world_pes(world) == plan->sizes[round]);
        exchange(world, (uint64_t)round, 1);
        CHECK_OK(weft_world_destroy(world));
    }
}

static void test_recreate_with_other_numbers(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    rounds_plan *plan = calloc(1, sizeof *plan);
    ledger before = ledger_read();
    for (int round = 0; round < RECREATIONS; round++) {
        int order[POOL];
        random_order(&random, order, POOL);
        plan->sizes[round] = 1 + (int)random_below(&random, POOL);
        for (int i = 0; i < POOL; i++) {
            plan->numbers[round][order[i]] = i < plan->sizes[round] ? i : -1;
        }
        plan->meetings[round] = pes_meeting(plan->sizes[round]);
    }
    pes_each(POOL, recreate, plan);
    for (int round = 0; round < RECREATIONS; round++) {
        weft_threads_destroy(plan->meetings[round]);
    }
    ledger_assert_same(&before);
    free(plan);
}

static long resident_bytes(void)
{
    long size = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    if (file != NULL) {
        fclose(file);
    }
    return resident * (long)wefti_os_page_bytes();
}

#define CREATIONS 1000
#define RESIDENT_SLACK (1 << 20)

typedef struct again {
    weft_threads *meeting;
    int times;
} again;

/* A meeting point serves one world after another. */
static void create_again(int pe, void *context)
{
    const again *work = context;
    for (int i = 0; i < work->times; i++) {
        weft_world *world;
        void *block;
        weft_team *team;
        weft_world_config config = pes_config(work->meeting, pe, 2);
        if (!CHECK_OK(weft_world_create(&config, &world))) {
            abort();
        }
        CHECK_OK(weft_malloc(world, 1 << 16, &block));
        memset(block, pe, 1 << 16);
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
        CHECK_OK(weft_barrier(world));
        CHECK_OK(weft_world_destroy(world)); /* with a block and a team still there */
    }
}

static void test_a_thousand_creations(void **state)
{
    (void)state;
    again warm_up = {.meeting = pes_meeting(2), .times = 20};
    pes_each(2, create_again, &warm_up);
    again work = {.meeting = warm_up.meeting, .times = CREATIONS};
    ledger before = ledger_read();
    long resident_before = resident_bytes();
    pes_each(2, create_again, &work);
    ledger_assert_same(&before);
    ledger after = ledger_read();
    CHECK_SAY(SANITIZED || resident_bytes() - resident_before < RESIDENT_SLACK, "%ld bytes more are resident",
              resident_bytes() - resident_before);
    CHECK_SAY(SANITIZED || after.all_maps - before.all_maps < 8, "%ld maps, and %ld before", after.all_maps,
              before.all_maps);
    weft_threads_destroy(work.meeting);
}

/* Two worlds alive through one meeting point, the second numbered in reverse: a thread that has its first world comes
 * to the second under the number of one that has not. */
static void create_reversed(int pe, void *context)
{
    weft_threads *meeting = context;
    weft_world *first = NULL;
    weft_world *second = NULL;
    weft_world_config config = pes_config(meeting, pe, POOL);
    config.name = "first";
    if (!CHECK_OK(weft_world_create(&config, &first))) {
        abort();
    }
    config.pe = POOL - 1 - pe;
    config.name = "second";
    if (CHECK_OK(weft_world_create(&config, &second))) {
        CHECK(weft_world_pe(second) == POOL - 1 - pe);
        exchange(second, 5, 1);
    }
    CHECK_OK(weft_world_destroy(second));
    CHECK_OK(weft_world_destroy(first));
}

static void test_renumbered_at_once(void **state)
{
    (void)state;
    ledger before = ledger_read();
    for (int round = 0; round < 100 && check_failures() == 0; round++) {
        weft_threads *meeting = pes_meeting(POOL);
        pes_each(POOL, create_reversed, meeting);
        weft_threads_destroy(meeting);
    }
    ledger_assert_same(&before);
}

/* ---- several PEs by one thread ---- */

static void test_one_thread_many_pes(void **state)
{
    (void)state;
    /* PEs of two worlds, mixed. */
    ledger before = ledger_read();
    weft_threads *three = pes_meeting(3);
    weft_threads *two = pes_meeting(2);
    weft_world_config configs[5] = {pes_config(three, 1, 3), pes_config(two, 1, 2), pes_config(three, 0, 3),
                                    pes_config(two, 0, 2), pes_config(three, 2, 3)};
    weft_world *worlds[5] = {NULL};
    ledger without = ledger_read();
    CHECK_OK(weft_world_create_many(configs, 5, worlds));
    CHECK(ledger_read().threads == without.threads);
    for (int i = 0; i < 5; i++) {
        CHECK(weft_world_pe(worlds[i]) == configs[i].pe && weft_world_pes(worlds[i]) == configs[i].pes);
    }
    weft_world *of_three[3] = {worlds[2], worlds[0], worlds[4]};
    weft_world *of_two[2] = {worlds[3], worlds[1]};
    uint64_t salt = 21;
    pes_run_in(3, of_three, exchange_in_world, &salt);
    pes_run_in(2, of_two, exchange_in_world, &salt);
    pes_destroy_world(5, worlds);
    weft_threads_destroy(three);
    weft_threads_destroy(two);
    ledger_assert_same(&before);
}

static void test_many_pes_all_or_none(void **state)
{
    (void)state;
    ledger before = ledger_read();
    weft_threads *two = pes_meeting(2);
    weft_threads *one = pes_meeting(1);
    weft_world *untouched = (weft_world *)&before;
    weft_world_config configs[3] = {pes_config(one, 0, 1), pes_config(two, 0, 2), pes_config(two, 1, 2)};
    weft_world *worlds[3] = {untouched, untouched, untouched};
    configs[2].heap_max_bytes *= 2;
    CHECK_STATUS(weft_world_create_many(configs, 3, worlds), WEFT_ERR_MISMATCH);
    CHECK_NAMES(1);
    for (int i = 0; i < 3; i++) {
        CHECK(worlds[i] == untouched);
    }
    CHECK_STATUS(weft_world_create_many(NULL, 1, worlds), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_create_many(configs, 0, worlds), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_create_many(configs, 1, NULL), WEFT_ERR_ARGUMENT);
    weft_threads_destroy(two);
    weft_threads_destroy(one);
    ledger_assert_same(&before);
}

/* ---- the end is local ---- */

typedef struct leaving {
    weft_world *gone; /* NULL when it has left */
    int arrived; /* at the call that it misses: the others */
} leaving;

/* PE 1 leaves; PE 0 still reads and writes what it left, and a collective call names it. */
static void outlive(weft_world *world, void *context)
{
    leaving *l = context;
    void *block;
    uint64_t value = 0;
    int pe = weft_world_pe(world);
    CHECK_OK(weft_calloc(world, 4, sizeof(uint64_t), &block));
    uint64_t *words = block;
    CHECK_OK(weft_uint64_p(world, &words[pe], word_of(5, pe, 1, 0), 1));
    CHECK_OK(weft_barrier(world));
    if (pe == 1) {
        CHECK_OK(weft_world_destroy(world));
        __atomic_store_n(&l->gone, NULL, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&l->gone, __ATOMIC_ACQUIRE) != NULL) {
        wefti_os_yield();
    }
    CHECK_OK(weft_uint64_g(world, &words[1], 1, &value));
    CHECK(value == word_of(5, 1, 1, 0));
    CHECK_OK(weft_uint64_p(world, &words[3], 77, 1));
    CHECK_OK(weft_uint64_g(world, &words[3], 1, &value));
    CHECK(value == 77);
    (void)pes_set_deadline(world, load_patience_ns(500000000));
    pes_gather(&l->arrived, 2);
    CHECK_STATUS(weft_barrier(world), WEFT_ERR_TIMEOUT);
    CHECK_NAMES(1);
    CHECK(!text_names_pe(weft_last_error(), 0) && !text_names_pe(weft_last_error(), 2));
    CHECK_STATUS(weft_barrier(world), WEFT_ERR_TIMEOUT); /* at once: the team is dead */
    CHECK_NAMES(1);
}

static void test_peers_gone(void **state)
{
    (void)state;
    ledger before = ledger_read();
    weft_threads *meeting = pes_meeting(3);
    weft_world_config configs[3];
    pes_outcome outcomes[3];
    weft_world *worlds[3];
    for (int pe = 0; pe < 3; pe++) {
        configs[pe] = pes_config(meeting, pe, 3);
    }
    pes_create(configs, 3, outcomes);
    for (int pe = 0; pe < 3; pe++) {
        assert_int_equal(outcomes[pe].status, WEFT_OK);
        worlds[pe] = outcomes[pe].world;
    }
    leaving l = {.gone = worlds[1]};
    pes_run_in(3, worlds, outlive, &l);
    CHECK_OK(weft_world_destroy(worlds[0]));
    CHECK_OK(weft_world_destroy(worlds[2]));
    weft_threads_destroy(meeting);
    ledger_assert_same(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_sizes),
        CHECKED_TEST(test_world_of_one),
        CHECKED_TEST(test_no_world),
        CHECKED_TEST(test_two_modules),
        CHECKED_TEST(test_many_worlds_any_order),
        CHECKED_TEST(test_recreate_with_other_numbers),
        CHECKED_TEST(test_renumbered_at_once),
        CHECKED_TEST(test_a_thousand_creations),
        CHECKED_TEST(test_one_thread_many_pes),
        CHECKED_TEST(test_many_pes_all_or_none),
        CHECKED_TEST(test_peers_gone),
    };
    setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
