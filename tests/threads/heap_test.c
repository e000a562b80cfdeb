/* Goal: the symmetric heap gives the same offsets on all PEs and in every run, grows, refuses what it cannot give on
 * all PEs alike, and goes on after each refusal. Method: PEs as threads. A random sequence of calls from a common seed
 * is made in two worlds and the offsets compared between PEs and runs; blocks are filled with their owner's pattern and
 * looked at when they are freed. Each kind of wrong call is made by all PEs and by each PE alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pattern.h"
#include "support/pes.h"

#define HEAP_MAX ((size_t)16 << 20) /* of pes_config */

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static weft_counters count(const weft_world *world)
{
    weft_counters counters;
    memset(&counters, 0, sizeof counters);
    CHECK_OK(weft_world_counters(world, &counters));
    return counters;
}

/* ---- the same offsets ---- */

#define STEPS 400
#define LIVE 24
#define SEQUENCE_PES 3

typedef struct sequence {
    uint64_t seed;
    uint64_t offsets[SEQUENCE_PES][STEPS];
} sequence;

typedef struct live_block {
    unsigned char *at;
    size_t bytes;
    int owner; /* of its pattern: the step that made it */
} live_block;

static int is_clear(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != 0) {
            return 0;
        }
    }
    return 1;
}

static weft_status allocate(weft_world *world, uint64_t *random, size_t bytes, void **block)
{
    size_t alignment = (size_t)1 << random_below(random, 13);
    switch (random_below(random, 3)) {
    case 0:
        return weft_malloc(world, bytes, block);
    case 1: {
        weft_status status = weft_calloc(world, 1, bytes, block);
        CHECK_SAY(status != WEFT_OK || is_clear(*block, bytes), "calloc of %zu bytes is not clear", bytes);
        return status;
    }
    default: {
        weft_status status = weft_align(world, alignment, bytes, block);
        CHECK_SAY(status != WEFT_OK || (uintptr_t)*block % alignment == 0, "%p is not aligned to %zu", *block,
                  alignment);
        return status;
    }
    }
}

static void make_sequence(weft_world *world, void *context)
{
    sequence *s = context;
    uint64_t *offsets = s->offsets[weft_world_pe(world)];
    uint64_t random = s->seed;
    live_block live[LIVE] = {{NULL}};
    void *first;
    CHECK_OK(weft_malloc(world, 1, &first)); /* at the heap's beginning */
    for (int step = 0; step < STEPS; step++) {
        live_block *b = &live[random_below(&random, LIVE)];
        if (b->at != NULL) {
            pattern_check(b->at, b->bytes, b->owner, 0, "a block");
            CHECK_OK(weft_free(world, b->at));
            b->at = NULL;
        }
        void *block = NULL;
        size_t bytes = 1 + random_below(&random, random_below(&random, 8) == 0 ? 1 << 20 : 3000);
        weft_status status = allocate(world, &random, bytes, &block);
        CHECK_SAY(status == WEFT_OK || status == WEFT_ERR_MEMORY, "%s: %s", weft_status_name(status),
                  weft_last_error());
        offsets[step] = UINT64_MAX;
        if (status == WEFT_OK) {
            CHECK((uintptr_t)block % 64 == 0);
            offsets[step] = (uint64_t)((unsigned char *)block - (unsigned char *)first);
            *b = (live_block){.at = block, .bytes = bytes, .owner = step};
            pattern_fill(block, bytes, step, 0);
        }
    }
    for (int i = 0; i < LIVE; i++) {
        CHECK_OK(weft_free(world, live[i].at));
    }
    CHECK_OK(weft_free(world, first));
    CHECK(count(world).heap_bytes_used == 0);
    CHECK(count(world).heap_allocs == count(world).heap_frees);
}

static void test_same_offsets(void **state)
{
    (void)state;
    static sequence runs[2];
    runs[0].seed = runs[1].seed = test_seed();
    pes_run(SEQUENCE_PES, make_sequence, &runs[0]);
    pes_run(SEQUENCE_PES, make_sequence, &runs[1]);
    for (int step = 0; step < STEPS; step++) {
        for (int pe = 0; pe < SEQUENCE_PES; pe++) {
            CHECK_SAY(runs[0].offsets[pe][step] == runs[0].offsets[0][step] &&
                          runs[1].offsets[pe][step] == runs[0].offsets[0][step],
                      "step %d: PE %d has offsets %llu and %llu, PE 0 has %llu", step, pe,
                      (unsigned long long)runs[0].offsets[pe][step], (unsigned long long)runs[1].offsets[pe][step],
                      (unsigned long long)runs[0].offsets[0][step]);
        }
    }
}

/* ---- alignment ---- */

static void align_all(weft_world *world, void *context)
{
    const size_t *most = context;
    for (size_t alignment = 1; alignment <= *most; alignment *= 2) {
        void *blocks[2];
        CHECK_OK(weft_align(world, alignment, 100, &blocks[0]));
        CHECK_OK(weft_align(world, alignment, 100, &blocks[1]));
        for (int i = 0; i < 2; i++) {
            CHECK_SAY((uintptr_t)blocks[i] % alignment == 0 && (uintptr_t)blocks[i] % 64 == 0,
                      "%p is not aligned to %zu", blocks[i], alignment);
        }
        CHECK_OK(weft_free(world, blocks[0]));
        CHECK_OK(weft_free(world, blocks[1]));
    }
}

static void test_alignment(void **state)
{
    (void)state;
    size_t most = (size_t)8 << 20; /* for which its heap has room */
    pes_run(3, align_all, &most);
}

/* ---- growth ---- */

static void grow(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    void *small;
    void *large;
    CHECK(count(world).heap_bytes_reserved == 0);
    CHECK_OK(weft_malloc(world, 64, &small));
    uint64_t before = count(world).heap_bytes_reserved;
    CHECK(before >= 64 && before < HEAP_MAX);
    unsigned char *beyond = (unsigned char *)small + before;
    CHECK_STATUS(weft_putmem(world, beyond, &me, sizeof me, (me + 1) % pes), WEFT_ERR_RANGE);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_malloc(world, (size_t)9 << 20, &large));
    CHECK(count(world).heap_bytes_reserved >= (size_t)9 << 20);
    /* The last bytes are everybody's to write. */
    unsigned char *last = (unsigned char *)large + ((size_t)9 << 20) - (size_t)pes;
    unsigned char mark = (unsigned char)(10 + me);
    for (int pe = 0; pe < pes; pe++) {
        CHECK_OK(weft_uchar_p(world, last + me, mark, pe));
    }
    CHECK_OK(weft_barrier(world));
    for (int pe = 0; pe < pes; pe++) {
        CHECK(last[pe] == 10 + pe);
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, large));
    CHECK_OK(weft_free(world, small));
    CHECK(count(world).heap_bytes_used == 0);
}

static void test_growth(void **state)
{
    (void)state;
    for (int pes = 1; pes <= 4; pes++) {
        pes_run(pes, grow, NULL);
    }
}

/* ---- exhaustion ---- */

static void exhaust(weft_world *world, void *context)
{
    (void)context;
    void *blocks[64];
    void *const untouched = &blocks;
    void *block = untouched;
    int got = 0;
    CHECK_STATUS(weft_malloc(world, HEAP_MAX + 1, &block), WEFT_ERR_MEMORY);
    CHECK_STATUS(weft_malloc(world, SIZE_MAX, &block), WEFT_ERR_MEMORY);
    CHECK_STATUS(weft_malloc(world, SIZE_MAX / 2 + 1, &block), WEFT_ERR_MEMORY);
    CHECK_STATUS(weft_calloc(world, SIZE_MAX / 8, 8, &block), WEFT_ERR_MEMORY);
    CHECK(block == untouched && count(world).heap_bytes_used == 0);
    CHECK_OK(weft_malloc(world, HEAP_MAX, &block)); /* to the last byte */
    ((unsigned char *)block)[HEAP_MAX - 1] = 1;
    CHECK_OK(weft_free(world, block));
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && got < 64) {
        status = weft_malloc(world, 700000, &blocks[got]);
        if (status == WEFT_OK) {
            memset(blocks[got], got, 700000);
            got++;
        }
    }
    CHECK_STATUS(status, WEFT_ERR_MEMORY);
    CHECK(got == (int)(HEAP_MAX / 700032));
    CHECK(weft_world_pe(world) != 0 || strstr(weft_last_error(), "WEFT_HEAP_MAX") != NULL);
    CHECK_OK(weft_free(world, blocks[5]));
    CHECK_OK(weft_malloc(world, 700000, &block));
    CHECK_SAY(block == blocks[5], "the one hole is not used");
    for (int i = 0; i < got; i++) {
        CHECK(i == 5 || (((unsigned char *)blocks[i])[0] == i && ((unsigned char *)blocks[i])[699999] == i));
        CHECK_OK(weft_free(world, blocks[i]));
    }
    CHECK(count(world).heap_bytes_used == 0);
}

static void test_exhaustion(void **state)
{
    (void)state;
    pes_run(3, exhaust, NULL);
}

/* More than the machine has, though the heap may grow so far. */
static void exhaust_machine(weft_world *world, void *context)
{
    const size_t *bytes = context;
    void *block = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(weft_malloc(world, *bytes, &block), WEFT_ERR_MEMORY);
        CHECK(count(world).heap_bytes_used == 0);
        CHECK_OK(weft_malloc(world, 5000, &block));
        memset(block, 1, 5000);
        CHECK_OK(weft_barrier(world));
        CHECK_OK(weft_free(world, block));
    }
}

static void test_machine_without_memory(void **state)
{
    (void)state;
    size_t memory = (size_t)wefti_os_memory_bytes();
    weft_threads *meeting = pes_meeting(2);
    weft_world_config configs[2];
    pes_outcome outcomes[2];
    for (int pe = 0; pe < 2; pe++) {
        configs[pe] = pes_config(meeting, pe, 2);
        configs[pe].heap_max_bytes = 2 * memory;
    }
    pes_create(configs, 2, outcomes);
    weft_world *worlds[2] = {outcomes[0].world, outcomes[1].world};
    assert_int_equal(outcomes[0].status, WEFT_OK);
    assert_int_equal(outcomes[1].status, WEFT_OK);
    size_t bytes = memory + memory / 2;
    pes_run_in(2, worlds, exhaust_machine, &bytes);
    pes_destroy_world(2, worlds);
    weft_threads_destroy(meeting);
}

/* ---- arguments that differ, or cannot be ---- */

#define WRONG_PES 3

/* One call that only PE `odd` makes so; the others make the right one. */
typedef weft_status (*odd_alloc)(weft_world *world, int is_odd, void **block);

static weft_status other_size(weft_world *world, int is_odd, void **block)
{
    return weft_malloc(world, is_odd ? 1001 : 1000, block);
}

static weft_status no_size(weft_world *world, int is_odd, void **block)
{
    return weft_malloc(world, is_odd ? 0 : 1000, block);
}

static weft_status too_large(weft_world *world, int is_odd, void **block)
{
    return weft_malloc(world, is_odd ? SIZE_MAX : 1000, block);
}

static weft_status other_kind(weft_world *world, int is_odd, void **block)
{
    return is_odd ? weft_calloc(world, 1, 1000, block) : weft_malloc(world, 1000, block);
}

static weft_status other_alignment(weft_world *world, int is_odd, void **block)
{
    return weft_align(world, is_odd ? 256 : 128, 1000, block);
}

static weft_status wrong_alignment(weft_world *world, int is_odd, void **block)
{
    return weft_align(world, is_odd ? 129 : 128, 1000, block);
}

static weft_status overflowing_calloc(weft_world *world, int is_odd, void **block)
{
    return is_odd ? weft_calloc(world, SIZE_MAX, 3, block) : weft_calloc(world, 10, 3, block);
}

static weft_status no_place(weft_world *world, int is_odd, void **block)
{
    return weft_malloc(world, 1000, is_odd ? NULL : block);
}

static weft_status no_place_for_calloc(weft_world *world, int is_odd, void **block)
{
    return weft_calloc(world, 10, 3, is_odd ? NULL : block);
}

static const struct {
    const char *name;
    odd_alloc call;
    weft_status wanted;
} odd_allocs[] = {
    {"another size", other_size, WEFT_ERR_MISMATCH},
    {"no size", no_size, WEFT_ERR_MISMATCH},
    {"too large a size", too_large, WEFT_ERR_MISMATCH},
    {"calloc", other_kind, WEFT_ERR_MISMATCH},
    {"another alignment", other_alignment, WEFT_ERR_MISMATCH},
    {"a wrong alignment", wrong_alignment, WEFT_ERR_MISMATCH},
    {"an overflow", overflowing_calloc, WEFT_ERR_MISMATCH},
    {"no place", no_place, WEFT_ERR_ARGUMENT},
    {"no place for calloc", no_place_for_calloc, WEFT_ERR_ARGUMENT},
};

static void differ(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    void *const untouched = &me;
    for (size_t i = 0; i < sizeof odd_allocs / sizeof *odd_allocs; i++) {
        for (int odd = 0; odd < WRONG_PES; odd++) {
            void *block = untouched;
            weft_status status = odd_allocs[i].call(world, me == odd, &block);
            CHECK_SAY(status == odd_allocs[i].wanted, "%s by PE %d gave %s: %s", odd_allocs[i].name, odd,
                      weft_status_name(status), weft_last_error());
            CHECK_SAY((me == odd && status == WEFT_ERR_ARGUMENT) || text_names_pe(weft_last_error(), odd),
                      "%s: PE %d is not named by \"%s\"", odd_allocs[i].name, odd, weft_last_error());
            CHECK(block == untouched && count(world).heap_bytes_used == 0);
            CHECK_OK(odd_allocs[i].call(world, 0, &block)); /* right by all */
            CHECK_OK(weft_free(world, block));
        }
    }
}

static void test_calls_that_differ(void **state)
{
    (void)state;
    pes_run(WRONG_PES, differ, NULL);
}

static void refuse(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    void *const untouched = &me;
    void *block = untouched;
    CHECK_STATUS(weft_malloc(NULL, 10, &block), WEFT_ERR_ARGUMENT);
    CHECK(strstr(weft_last_error(), "'team' is NULL") != NULL);
    CHECK_STATUS(weft_calloc(NULL, 1, 10, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_align(NULL, 64, 10, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_free(NULL, &me), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_malloc(world, 10, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_calloc(world, 1, 10, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_align(world, 64, 10, NULL), WEFT_ERR_ARGUMENT);
    const size_t wrong[] = {0, 3, 65, (size_t)32 << 20, (size_t)1 << 31, SIZE_MAX, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(weft_align(world, wrong[i], 10, &block), WEFT_ERR_ARGUMENT);
    }
    CHECK_STATUS(weft_calloc(world, SIZE_MAX, 2, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_calloc(world, SIZE_MAX / 2, 3, &block), WEFT_ERR_ARGUMENT);
    CHECK(block == untouched);
    CHECK_OK(weft_barrier(world));
}

static void test_arguments_that_cannot_be(void **state)
{
    (void)state;
    pes_run(WRONG_PES, refuse, NULL);
}

static void give_nothing(weft_world *world, void *context)
{
    (void)context;
    void *block = &block;
    CHECK_OK(weft_malloc(world, 0, &block));
    CHECK(block == NULL);
    block = &block;
    CHECK_OK(weft_calloc(world, 0, 8, &block));
    CHECK(block == NULL);
    block = &block;
    CHECK_OK(weft_calloc(world, 8, 0, &block));
    CHECK(block == NULL);
    block = &block;
    CHECK_OK(weft_align(world, 4096, 0, &block));
    CHECK(block == NULL);
    CHECK_OK(weft_free(world, NULL));
    CHECK_OK(weft_team_free(weft_team_world(world), NULL));
    CHECK(count(world).heap_bytes_used == 0 && count(world).heap_allocs == 0 && count(world).heap_frees == 0);
}

static void test_nothing(void **state)
{
    (void)state;
    pes_run(WRONG_PES, give_nothing, NULL);
}

/* ---- blocks that are none ---- */

static void free_wrongly(weft_world *world, void *context)
{
    weft_world **others = context;
    int me = weft_world_pe(world);
    unsigned char *block;
    unsigned char *other;
    void *given;
    char local[64];
    CHECK_OK(weft_malloc(world, 1000, &given));
    block = given;
    CHECK_OK(weft_malloc(others[me], 1000, &given));
    other = given;
    void *const wrong[] = {
        block + 64,           block + 1,           block - 64, local, other, (void *)(uintptr_t)8, block + HEAP_MAX,
        block + HEAP_MAX - 1, (void *)UINTPTR_MAX,
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(weft_free(world, wrong[i]), WEFT_ERR_ARGUMENT);
        CHECK(count(world).heap_bytes_used == 1024);
    }
    for (int odd = 0; odd < WRONG_PES; odd++) {
        CHECK_STATUS(weft_free(world, me == odd ? local : (void *)block), WEFT_ERR_MISMATCH);
        CHECK_NAMES(odd);
        CHECK_STATUS(weft_free(world, me == odd ? NULL : (void *)block), WEFT_ERR_MISMATCH);
        CHECK_NAMES(odd);
    }
    CHECK_OK(weft_free(world, block));
    CHECK_STATUS(weft_free(world, block), WEFT_ERR_ARGUMENT); /* twice */
    CHECK_OK(weft_free(others[me], other));
    CHECK(count(world).heap_bytes_used == 0);
}

/* Blocks that are somebody else's: the library's, another team's. */
static void free_others(weft_world *world, void *context)
{
    weft_team *team = NULL;
    void *first;
    void *of_world;
    void *of_team;
    (void)context;
    CHECK_OK(weft_malloc(world, 64, &first)); /* at the heap's beginning; next the team's area, and its scratch */
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, WRONG_PES, &team));
    CHECK_OK(weft_long_sum_reduce(team, first, first, 1));
    CHECK_OK(weft_malloc(world, 100, &of_world));
    CHECK_OK(weft_team_malloc(team, 100, &of_team));
    uint64_t used = count(world).heap_bytes_used;
    for (unsigned char *at = (unsigned char *)first + 64; at < (unsigned char *)first + 4096; at += 64) {
        CHECK_STATUS(weft_free(world, at), WEFT_ERR_ARGUMENT);
        CHECK_STATUS(weft_team_free(team, at), WEFT_ERR_ARGUMENT);
    }
    CHECK_STATUS(weft_free(world, of_team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_free(team, of_world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_free(weft_team_node(world), of_world), WEFT_ERR_ARGUMENT);
    CHECK(count(world).heap_bytes_used == used);
    CHECK_OK(weft_team_free(team, of_team));
    CHECK_OK(weft_team_free(weft_team_world(world), of_world));
    CHECK_OK(weft_team_destroy(team));
    CHECK_OK(weft_free(world, first));
    CHECK(count(world).heap_bytes_used == 0);
}

static void test_blocks_of_others(void **state)
{
    (void)state;
    pes_run(WRONG_PES, free_others, NULL);
}

static void test_blocks_that_are_none(void **state)
{
    (void)state;
    weft_world *others[WRONG_PES];
    pes_create_world(WRONG_PES, others);
    pes_run(WRONG_PES, free_wrongly, others);
    pes_destroy_world(WRONG_PES, others);
}

/* ---- addresses of the others ---- */

static void look_through(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    void *given;
    CHECK_OK(weft_calloc(world, (size_t)pes, sizeof(uint64_t), &given));
    uint64_t *words = given;
    CHECK(weft_ptr(world, words, me) == words);
    for (int pe = 0; pe < pes; pe++) {
        uint64_t *there = weft_ptr(world, &words[me], pe);
        if (CHECK(there != NULL)) {
            *there = 100 * (uint64_t)me + (uint64_t)pe;
        }
    }
    CHECK_OK(weft_barrier(world));
    for (int pe = 0; pe < pes; pe++) {
        CHECK(words[pe] == 100 * (uint64_t)pe + (uint64_t)me);
    }
    uint64_t reserved = count(world).heap_bytes_reserved;
    int local;
    CHECK(weft_ptr(world, words, -1) == NULL && weft_ptr(world, words, pes) == NULL);
    CHECK(weft_ptr(world, words, INT32_MIN) == NULL && weft_ptr(world, words, INT32_MAX) == NULL);
    CHECK(weft_ptr(NULL, words, 0) == NULL && weft_ptr(world, NULL, 0) == NULL);
    CHECK(weft_ptr(world, &local, me) == NULL);
    CHECK(weft_ptr(world, (char *)given - 1, me) == NULL);
    CHECK(weft_ptr(world, (char *)given + reserved - 1, me) != NULL);
    CHECK(weft_ptr(world, (char *)given + reserved, me) == NULL);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, given));
}

static void test_pointers(void **state)
{
    (void)state;
    for (int pes = 1; pes <= 4; pes++) {
        pes_run(pes, look_through, NULL);
    }
}

/* ---- freeing waits ---- */

/* A block that is freed and had again holds nothing of what others put before they freed it. */
static void reuse(weft_world *world, void *context)
{
    (void)context;
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    for (int round = 0; round < 200; round++) {
        void *given;
        CHECK_OK(weft_malloc(world, 4096, &given));
        unsigned char *block = given;
        memset(block, POISON, 4096);
        CHECK_OK(weft_barrier(world));
        unsigned char mark[16];
        pattern_fill(mark, sizeof mark, me, (size_t)round);
        CHECK_OK(weft_putmem(world, block + 16 * me, mark, sizeof mark, (me + 1) % pes));
        CHECK_OK(weft_free(world, given)); /* completes the put, everywhere */
        int from = (me + pes - 1) % pes;
        pattern_check(block + 16 * from, 16, from, (size_t)round, "a put before a free");
        CHECK_OK(weft_barrier(world));
    }
}

static void test_free_completes_puts(void **state)
{
    (void)state;
    pes_run(3, reuse, NULL);
}

/* ---- realloc ---- */

/* Blocks change their sizes beside each other; what they hold is put there by the PE before, without a barrier. */
static void resize_blocks(weft_world *world, void *context)
{
    uint64_t random = *(const uint64_t *)context; /* the same on all */
    const int me = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int from = (me + pes - 1) % pes;
    unsigned char mark[6000];
    void *blocks[4] = {NULL};
    size_t bytes[4] = {0};
    for (int step = 0; step < 300; step++) {
        int i = (int)random_below(&random, 4);
        size_t wanted = random_below(&random, 12) == 0 ? 0 : 1 + random_below(&random, sizeof mark);
        size_t kept = wanted < bytes[i] ? wanted : bytes[i];
        void *result = &random;
        pattern_fill(mark, bytes[i], me, (size_t)step);
        if (bytes[i] > 0) {
            CHECK_OK(weft_putmem(world, blocks[i], mark, bytes[i], (me + 1) % pes));
        }
        CHECK_OK(weft_realloc(world, blocks[i], wanted, &result));
        CHECK((result == NULL) == (wanted == 0));
        CHECK_SAY(wanted == 0 || wanted > bytes[i] || result == blocks[i], "a block of %zu bytes moved to get %zu",
                  bytes[i], wanted);
        pattern_check(result, kept, from, (size_t)step, "a block that was resized");
        blocks[i] = result;
        bytes[i] = wanted;
        CHECK_OK(weft_barrier(world)); /* all have looked */
    }
    for (int i = 0; i < 4; i++) {
        CHECK_OK(weft_free(world, blocks[i]));
    }
    CHECK(count(world).heap_bytes_used == 0);
}

static void resize_wrongly(weft_world *world, void *context)
{
    (void)context;
    const int me = weft_world_pe(world);
    void *block;
    void *other;
    void *result = &other;
    weft_team *team;
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
    CHECK_OK(weft_malloc(world, 1000, &block));
    CHECK_OK(weft_malloc(world, 1000, &other));
    memset(block, me + 1, 1000);
    CHECK_STATUS(weft_realloc(world, block, me == 1 ? 5000 : 6000, &result), WEFT_ERR_MISMATCH);
    CHECK_STATUS(weft_realloc(world, me == 1 ? block : other, 5000, &result), WEFT_ERR_MISMATCH);
    CHECK_STATUS(weft_realloc(world, me == 1 ? NULL : block, 5000, &result), WEFT_ERR_MISMATCH);
    CHECK_STATUS(weft_realloc(world, block, me == 1 ? 0 : 64, &result), WEFT_ERR_MISMATCH);
    CHECK_STATUS(weft_realloc(world, block, 5000, me == 1 ? NULL : &result), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_realloc(world, block, (size_t)64 << 20, &result), WEFT_ERR_MEMORY);
    CHECK(result == &other && *(unsigned char *)block == me + 1 && ((unsigned char *)block)[999] == me + 1);
    if (team != NULL) {
        CHECK_STATUS(weft_team_realloc(team, block, 5000, &result), WEFT_ERR_ARGUMENT);
        CHECK_OK(weft_team_realloc(team, NULL, 100, &result));
        CHECK_OK(weft_team_realloc(team, result, 5000, &result));
        CHECK_OK(weft_team_realloc(team, result, 0, &result));
        CHECK_OK(weft_team_destroy(team));
    }
    CHECK_OK(weft_free(world, other));
    CHECK_OK(weft_free(world, block));
}

static void test_resizing(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    pes_run(1, resize_blocks, &seed);
    pes_run(3, resize_blocks, &seed);
    pes_run(3, resize_wrongly, NULL);
}

static void test_leaves_nothing(void **state)
{
    (void)state;
    ledger before = ledger_read();
    pes_run(3, grow, NULL);
    pes_run(3, refuse, NULL);
    ledger_assert_same(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_same_offsets),
        CHECKED_TEST(test_alignment),
        CHECKED_TEST(test_growth),
        CHECKED_TEST(test_exhaustion),
        CHECKED_TEST(test_machine_without_memory),
        CHECKED_TEST(test_calls_that_differ),
        CHECKED_TEST(test_arguments_that_cannot_be),
        CHECKED_TEST(test_nothing),
        CHECKED_TEST(test_blocks_that_are_none),
        CHECKED_TEST(test_blocks_of_others),
        CHECKED_TEST(test_pointers),
        CHECKED_TEST(test_free_completes_puts),
        CHECKED_TEST(test_resizing),
        CHECKED_TEST(test_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}
