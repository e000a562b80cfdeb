/* Goal: strided access, access by size, waits for several variables, contexts, locks and registered memory do what
 * their headers say, for every type, and refuse what they must.
 *
 * Method: PEs as threads of this process, neighbours in a circle; each result is compared with what was sent. Locks:
 * counters that only mutual exclusion keeps right, the order of the queue, a holder that never clears, waiters that
 * gave up and come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/pes.h"
#include "team/team.h"

#define COUNT 12

static int next_of(weft_world *world)
{
    return (weft_world_pe(world) + 1) % weft_world_pes(world);
}

static int before_of(weft_world *world)
{
    return (weft_world_pe(world) + weft_world_pes(world) - 1) % weft_world_pes(world);
}

/* ---- strided, and by size ---- */

#define DEFINE_STRIDED(NAME, TYPE)                                                                                     \
    static void strided_##NAME(weft_world *world, void *block)                                                         \
    {                                                                                                                  \
        TYPE *heap = block;                                                                                            \
        TYPE local[3 * COUNT];                                                                                         \
        for (int i = 0; i < 3 * COUNT; i++) {                                                                          \
            heap[i] = (TYPE)99;                                                                                        \
            local[i] = (TYPE)(weft_world_pe(world) * 8 + i);                                                           \
        }                                                                                                              \
        CHECK_OK(weft_barrier(world));                                                                                 \
        CHECK_OK(weft_##NAME##_iput(world, heap, local, 2, 3, COUNT, next_of(world)));                                 \
        CHECK_OK(weft_barrier(world));                                                                                 \
        for (int i = 0; i < 2 * COUNT; i++) {                                                                          \
            CHECK(heap[i] == (i % 2 == 0 ? (TYPE)(before_of(world) * 8 + 3 * (i / 2)) : (TYPE)99));                    \
        }                                                                                                              \
        memset(local, 0, sizeof local);                                                                                \
        CHECK_OK(weft_##NAME##_iget(world, local, heap, 3, 2, COUNT, next_of(world)));                                 \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            CHECK(local[3 * i] == (TYPE)(weft_world_pe(world) * 8 + 3 * i));                                           \
        }                                                                                                              \
        CHECK_OK(weft_barrier(world));                                                                                 \
    }
WEFT_RMA_TYPES(DEFINE_STRIDED)

#define DEFINE_SIZED_OF(PREFIX, OWNER, BITS, BYTES)                                                                    \
    static void PREFIX##_sized_##BITS(weft_world *world, weft_ctx *ctx, void *block)                                   \
    {                                                                                                                  \
        unsigned char *heap = block;                                                                                   \
        uint64_t *signal = (uint64_t *)(void *)(heap + 2048);                                                          \
        unsigned char local[4 * COUNT * (BYTES)];                                                                      \
        (void)ctx;                                                                                                     \
        int pe = next_of(world);                                                                                       \
        memset(heap, 0, 4096);                                                                                         \
        for (size_t i = 0; i < sizeof local; i++) {                                                                    \
            local[i] = (unsigned char)(weft_world_pe(world) + (int)i);                                                 \
        }                                                                                                              \
        CHECK_OK(weft_barrier(world));                                                                                 \
        CHECK_OK(PREFIX##_put##BITS(OWNER, heap, local, 2, pe));                                                       \
        CHECK_OK(PREFIX##_put##BITS##_nbi(OWNER, heap + 2 * (BYTES), local + 2 * (BYTES), 2, pe));                     \
        CHECK_OK(PREFIX##_iput##BITS(OWNER, heap + 4 * (BYTES), local + 4 * (BYTES), 1, 1, 3, pe));                    \
        CHECK_OK(PREFIX##_put##BITS##_signal_nbi(OWNER, heap + 7 * (BYTES), local + 7 * (BYTES), 1, signal, 1,         \
                                                 WEFT_SIGNAL_ADD, pe));                                                \
        CHECK_OK(PREFIX##_put##BITS##_signal(OWNER, heap + 8 * (BYTES), local + 8 * (BYTES), 1, signal, 1,             \
                                             WEFT_SIGNAL_ADD, pe));                                                    \
        CHECK_OK(weft_signal_wait_until(world, signal, WEFT_CMP_EQ, 2, NULL));                                         \
        CHECK_OK(weft_barrier(world));                                                                                 \
        for (size_t i = 0; i < 9 * (BYTES); i++) {                                                                     \
            CHECK(heap[i] == (unsigned char)(before_of(world) + (int)i));                                              \
        }                                                                                                              \
        unsigned char back[9 * (BYTES)];                                                                               \
        CHECK_OK(PREFIX##_get##BITS(OWNER, back, heap, 4, pe));                                                        \
        CHECK_OK(PREFIX##_get##BITS##_nbi(OWNER, back + 4 * (BYTES), heap + 4 * (BYTES), 2, pe));                      \
        CHECK_OK(PREFIX##_iget##BITS(OWNER, back + 6 * (BYTES), heap + 6 * (BYTES), 1, 1, 3, pe));                     \
        CHECK_OK(weft_quiet(world));                                                                                   \
        CHECK(memcmp(back, local, sizeof back) == 0);                                                                  \
        CHECK_OK(weft_barrier(world));                                                                                 \
    }
#define DEFINE_SIZED(BITS, BYTES)                                                                                      \
    DEFINE_SIZED_OF(weft, world, BITS, BYTES)                                                                          \
    DEFINE_SIZED_OF(weft_ctx, ctx, BITS, BYTES)
WEFT_SIZES(DEFINE_SIZED)

static void strided_body(weft_world *world, void *context)
{
    void *block;
    (void)context;
    CHECK_OK(weft_malloc(world, 4096, &block));
#define CALL(NAME, TYPE) strided_##NAME(world, block);
    WEFT_RMA_TYPES(CALL)
#undef CALL
    weft_ctx *ctx;
    CHECK_OK(weft_ctx_create(weft_team_world(world), 0, &ctx));
#define CALL(BITS, BYTES)                                                                                              \
    weft_sized_##BITS(world, ctx, block);                                                                              \
    weft_ctx_sized_##BITS(world, ctx, block);
    WEFT_SIZES(CALL)
#undef CALL
    CHECK_STATUS(weft_ctx_iputmem(ctx, block, &ctx, 1, 1, 1, 8, weft_world_pes(world)), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ctx_igetmem(NULL, &ctx, block, 1, 1, 1, 8, 0), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ctx_destroy(ctx));
    long local[4] = {0};
    long *heap = block;
    CHECK_STATUS(weft_long_iput(world, heap, local, 0, 1, 2, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_iget(world, local, heap, 1, -1, 2, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_iput(world, heap, NULL, 1, 1, 2, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_iput(NULL, heap, local, 1, 1, 2, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_iput(world, heap, local, 1, 1, 2, weft_world_pes(world)), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_iput(world, heap, local, PTRDIFF_MAX, 1, 3, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_iget(world, local, heap, 1, (ptrdiff_t)1 << 30, 3, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_iputmem(world, heap, local, 1, 1, 2, 0, 0), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_long_iput(world, heap, local, 5, 1, 0, 0));
    CHECK_OK(weft_free(world, block));
}

static void strided_and_sized(void **state)
{
    (void)state;
    pes_run(3, strided_body, NULL);
}

/* ---- waits ---- */

#define DEFINE_WAITS(NAME, TYPE)                                                                                       \
    static void waits_##NAME(weft_world *world, void *block)                                                           \
    {                                                                                                                  \
        TYPE *words = block;                                                                                           \
        TYPE values[4] = {1, 2, 3, 4};                                                                                 \
        const int skip_two[4] = {0, 1, 1, 0};                                                                          \
        const int skip_all[4] = {1, 1, 1, 1};                                                                          \
        size_t index = 9;                                                                                              \
        size_t indices[4];                                                                                             \
        size_t found = 9;                                                                                              \
        int result = 9;                                                                                                \
        memset(words, 0, 4 * sizeof *words);                                                                           \
        CHECK_OK(weft_barrier(world));                                                                                 \
        CHECK_OK(weft_##NAME##_test_any(world, words, 4, NULL, WEFT_CMP_NE, 0, &index));                               \
        CHECK(index == SIZE_MAX);                                                                                      \
        CHECK_OK(weft_##NAME##_test_all(world, words, 4, NULL, WEFT_CMP_EQ, 0, &result));                              \
        CHECK(result == 1);                                                                                            \
        CHECK_OK(weft_##NAME##_test_all_vector(world, words, 4, NULL, WEFT_CMP_EQ, values, &result));                  \
        CHECK(result == 0);                                                                                            \
        CHECK_OK(weft_##NAME##_test_some(world, words, 4, skip_two, WEFT_CMP_EQ, 0, indices, &found));                 \
        CHECK(found == 2 && indices[0] == 0 && indices[1] == 3);                                                       \
        CHECK_OK(weft_barrier(world));                                                                                 \
        for (int i = 3; i >= 0; i--) {                                                                                 \
            CHECK_OK(weft_##NAME##_p(world, &words[i], values[i], next_of(world)));                                    \
        }                                                                                                              \
        CHECK_OK(weft_##NAME##_wait_until_any(world, words, 4, NULL, WEFT_CMP_GT, 0, &index));                         \
        CHECK(index < 4);                                                                                              \
        CHECK_OK(weft_##NAME##_wait_until_some(world, words, 4, skip_two, WEFT_CMP_GE, 1, indices, &found));           \
        CHECK(found >= 1 && (indices[0] == 0 || indices[0] == 3));                                                     \
        CHECK_OK(weft_##NAME##_wait_until_all(world, words, 4, NULL, WEFT_CMP_NE, 0));                                 \
        CHECK_OK(weft_##NAME##_wait_until_all_vector(world, words, 4, NULL, WEFT_CMP_EQ, values));                     \
        CHECK_OK(weft_##NAME##_wait_until_any_vector(world, words, 4, skip_two, WEFT_CMP_LE, values, &index));         \
        CHECK(index == 0 || index == 3);                                                                               \
        CHECK_OK(weft_##NAME##_wait_until_some_vector(world, words, 4, NULL, WEFT_CMP_EQ, values, indices, &found));   \
        CHECK(found == 4);                                                                                             \
        CHECK_OK(weft_##NAME##_test_any_vector(world, words, 4, NULL, WEFT_CMP_LT, values, &index));                   \
        CHECK(index == SIZE_MAX);                                                                                      \
        CHECK_OK(weft_##NAME##_test_some_vector(world, words, 4, NULL, WEFT_CMP_EQ, values, indices, &found));         \
        CHECK(found == 4);                                                                                             \
        CHECK_OK(weft_##NAME##_wait_until_all(world, words, 4, skip_all, WEFT_CMP_EQ, 77));                            \
        CHECK_OK(weft_##NAME##_wait_until_any(world, words, 4, skip_all, WEFT_CMP_EQ, 77, &index));                    \
        CHECK(index == SIZE_MAX);                                                                                      \
        CHECK_OK(weft_##NAME##_wait_until_some(world, words, 0, NULL, WEFT_CMP_EQ, 77, indices, &found));              \
        CHECK(found == 0);                                                                                             \
        CHECK_STATUS(weft_##NAME##_wait_until_all(world, words, 4, NULL, (weft_cmp)9, 1), WEFT_ERR_ARGUMENT);          \
        CHECK_STATUS(weft_##NAME##_test_any(NULL, words, 4, NULL, WEFT_CMP_EQ, 1, &index), WEFT_ERR_ARGUMENT);         \
        CHECK_STATUS(weft_##NAME##_test_all(world, NULL, 4, NULL, WEFT_CMP_EQ, 1, &result), WEFT_ERR_ARGUMENT);        \
        CHECK_STATUS(weft_##NAME##_test_some(world, words, 4, NULL, WEFT_CMP_EQ, 1, NULL, &found), WEFT_ERR_ARGUMENT); \
        CHECK_OK(weft_barrier(world));                                                                                 \
    }
WEFT_INTEGER_TYPES(DEFINE_WAITS)

static void waits_body(weft_world *world, void *context)
{
    void *block;
    (void)context;
    CHECK_OK(weft_malloc(world, 4096, &block));
#define CALL(NAME, TYPE) waits_##NAME(world, block);
    WEFT_INTEGER_TYPES(CALL)
#undef CALL
    CHECK_OK(weft_free(world, block));
}

static void waits(void **state)
{
    (void)state;
    pes_run(3, waits_body, NULL);
}

static void short_world(int pes, weft_world **worlds, uint64_t deadline_ns)
{
    weft_threads *threads = pes_meeting(pes);
    weft_world_config configs[PES_MAX];
    pes_outcome outcomes[PES_MAX];
    for (int pe = 0; pe < pes; pe++) {
        configs[pe] = pes_config(threads, pe, pes);
        configs[pe].deadline_ns = deadline_ns;
    }
    pes_create(configs, pes, outcomes);
    for (int pe = 0; pe < pes; pe++) {
        CHECK(outcomes[pe].status == WEFT_OK);
        worlds[pe] = outcomes[pe].world;
    }
    weft_threads_destroy(threads);
}

static void late_waits_body(weft_world *world, void *context)
{
    void *block;
    (void)context;
    CHECK_OK(weft_calloc(world, 4, sizeof(long), &block));
    size_t index = 5;
    CHECK_STATUS(weft_long_wait_until_all(world, block, 4, NULL, WEFT_CMP_EQ, 1), WEFT_ERR_TIMEOUT);
    CHECK_STATUS(weft_long_wait_until_any(world, block, 4, NULL, WEFT_CMP_EQ, 1, &index), WEFT_ERR_TIMEOUT);
    CHECK(index == 5);
    CHECK_OK(weft_barrier(world));
}

static void late_waits(void **state)
{
    weft_world *world;
    (void)state;
    short_world(1, &world, 50000000);
    late_waits_body(world, NULL);
    CHECK_OK(weft_world_destroy(world));
}

/* ---- atomics that need not be complete, and contexts ---- */

static void contexts_body(weft_world *world, void *context)
{
    weft_team *reversed;
    weft_team *order;
    weft_ctx *ctx;
    void *block;
    int pes = weft_world_pes(world);
    int list[3] = {1, 2, 0};
    (void)context;
    CHECK_OK(weft_calloc(world, 64, sizeof(long), &block));
    long *words = block;
    CHECK_OK(weft_team_split_strided(weft_team_world(world), pes - 1, -1, pes, &reversed));
    CHECK_OK(weft_ctx_create(reversed, WEFT_CTX_SERIALIZED, &ctx));
    CHECK(weft_ctx_team(ctx) == reversed);
    int me = weft_team_pe(reversed);
    int to = (me + 1) % pes; /* in the team; in the world the one before this PE */
    long value = 100 + weft_world_pe(world);
    long got = 0;
    CHECK_OK(weft_ctx_long_put(ctx, &words[0], &value, 1, to));
    CHECK_OK(weft_ctx_long_p(ctx, &words[1], value, to));
    CHECK_OK(weft_ctx_long_atomic_add(ctx, &words[2], value, to));
    CHECK_OK(weft_ctx_long_atomic_fetch_add_nbi(ctx, &words[3], 1, 0, &got));
    CHECK_OK(weft_ctx_quiet(ctx));
    CHECK_OK(weft_ctx_fence(ctx));
    CHECK(got >= 0 && got < pes);
    CHECK_OK(weft_team_barrier(reversed));
    CHECK(words[0] == 100 + next_of(world) && words[1] == words[0] && words[2] == words[0]);
    CHECK_OK(weft_ctx_long_g(ctx, &words[3], 0, &got));
    CHECK(got == pes);
    CHECK_OK(weft_ctx_long_get(ctx, &got, &words[0], 1, me));
    CHECK(got == words[0]);
    CHECK_STATUS(weft_ctx_long_p(ctx, &words[1], 1, pes), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ctx_long_p(ctx, &words[1], 1, -1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ctx_long_p(NULL, &words[1], 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_quiet(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_create(NULL, 0, &ctx), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_create(reversed, 64, &ctx), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_create(reversed, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ctx_destroy(ctx));
    CHECK(reversed->users == NULL); /* else the team would go on to a context that has ended */
    CHECK_OK(weft_ctx_destroy(NULL));
    CHECK_OK(weft_team_create(weft_team_world(world), list, 3, &order));
    CHECK_OK(weft_ctx_create(order, 0, &ctx));
    CHECK(weft_ctx_team(ctx) == order);
    CHECK_OK(weft_team_destroy(order));
    CHECK(weft_ctx_team(ctx) == NULL);
    CHECK_OK(weft_ctx_long_atomic_inc(ctx, &words[8], 0)); /* its members stay known */
    CHECK_OK(weft_ctx_destroy(ctx));
    CHECK_OK(weft_barrier(world));
    CHECK(words[8] == (weft_world_pe(world) == 1 ? 3 : 0));
    CHECK_OK(weft_team_destroy(reversed));
    CHECK_OK(weft_free(world, block));
}

static void contexts(void **state)
{
    (void)state;
    pes_run(3, contexts_body, NULL);
}

#define DEFINE_NBI(NAME, TYPE)                                                                                         \
    static void nbi_##NAME(weft_world *world, void *block)                                                             \
    {                                                                                                                  \
        TYPE *word = block;                                                                                            \
        TYPE old[6];                                                                                                   \
        memset(word, 0, sizeof *word);                                                                                 \
        CHECK_OK(weft_##NAME##_atomic_swap_nbi(world, word, 5, 0, &old[0]));                                           \
        CHECK_OK(weft_##NAME##_atomic_fetch_add_nbi(world, word, 2, 0, &old[1]));                                      \
        CHECK_OK(weft_##NAME##_atomic_fetch_inc_nbi(world, word, 0, &old[2]));                                         \
        CHECK_OK(weft_##NAME##_atomic_compare_swap_nbi(world, word, 8, 12, 0, &old[3]));                               \
        CHECK_OK(weft_##NAME##_atomic_fetch_nbi(world, word, 0, &old[4]));                                             \
        CHECK_OK(weft_quiet(world));                                                                                   \
        CHECK(old[0] == 0 && old[1] == 5 && old[2] == 7 && old[3] == 8 && old[4] == 12);                               \
    }
WEFT_INTEGER_TYPES(DEFINE_NBI)

#define DEFINE_BITWISE_NBI(NAME, TYPE)                                                                                 \
    static void bitwise_nbi_##NAME(weft_world *world, void *block)                                                     \
    {                                                                                                                  \
        TYPE *word = block;                                                                                            \
        TYPE old[3];                                                                                                   \
        *word = 6;                                                                                                     \
        CHECK_OK(weft_##NAME##_atomic_fetch_and_nbi(world, word, 3, 0, &old[0]));                                      \
        CHECK_OK(weft_##NAME##_atomic_fetch_or_nbi(world, word, 9, 0, &old[1]));                                       \
        CHECK_OK(weft_##NAME##_atomic_fetch_xor_nbi(world, word, 1, 0, &old[2]));                                      \
        CHECK_OK(weft_quiet(world));                                                                                   \
        CHECK(old[0] == 6 && old[1] == 2 && old[2] == 11 && *word == 10);                                              \
    }
WEFT_BITWISE_TYPES(DEFINE_BITWISE_NBI)

static void nbi_body(weft_world *world, void *context)
{
    void *block;
    (void)context;
    CHECK_OK(weft_malloc(world, 64, &block));
#define CALL(NAME, TYPE) nbi_##NAME(world, block);
    WEFT_INTEGER_TYPES(CALL)
#undef CALL
#define CALL(NAME, TYPE) bitwise_nbi_##NAME(world, block);
    WEFT_BITWISE_TYPES(CALL)
#undef CALL
    CHECK_OK(weft_free(world, block));
}

static void atomics_nbi(void **state)
{
    (void)state;
    pes_run(1, nbi_body, NULL);
}

/* Of variables that all satisfy the comparison each is returned some time, also where another array takes turns. */
static void turns_body(weft_world *world, void *context)
{
    enum { MOST = 7 };
    long *words;
    (void)context;
    CHECK_OK(weft_calloc(world, MOST, sizeof *words, (void **)&words));
    for (size_t count = 1; count <= MOST; count++) {
        size_t times[2][MOST] = {{0}};
        for (size_t round = 0; round < 200; round++) {
            size_t index = SIZE_MAX;
            CHECK_OK(round % 2 == 0 ? weft_long_wait_until_any(world, words, count, NULL, WEFT_CMP_EQ, 0, &index)
                                    : weft_long_test_any(world, words, count, NULL, WEFT_CMP_EQ, 0, &index));
            CHECK(index < count);
            times[round % 2][index]++;
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(times[0][i] > 0 && times[1][i] > 0);
        }
    }
    CHECK_OK(weft_free(world, words));
}

static void turns(void **state)
{
    (void)state;
    pes_run(2, turns_body, NULL);
}

/* ---- registered memory ---- */

static void regions_body(weft_world *world, void *context)
{
    static char memory[256];
    weft_region *region = NULL;
    void *block;
    (void)context;
    CHECK_OK(weft_malloc(world, 256, &block));
    CHECK_OK(weft_register(world, memory, sizeof memory, &region));
    CHECK(weft_region_address(region) == memory && weft_region_bytes(region) == sizeof memory);
    CHECK_OK(weft_putmem(world, block, memory, sizeof memory, 0));
    CHECK_OK(weft_unregister(region));
    CHECK_OK(weft_unregister(NULL));
    CHECK(weft_region_address(NULL) == NULL && weft_region_bytes(NULL) == 0);
    CHECK_STATUS(weft_register(NULL, memory, 1, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(world, NULL, 1, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(world, memory, 0, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(world, memory, SIZE_MAX, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(world, memory, 1, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(world, block, 1, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(world, weft_ptr(world, block, next_of(world)), 1, &region), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_free(world, block));
}

static void regions(void **state)
{
    (void)state;
    pes_run(1, regions_body, NULL);
}

/* ---- locks ---- */

typedef struct locked_words {
    long lock;
    long other_lock; /* another home */
    long counter; /* of PE 0, not atomic */
    long last; /* ticket given last */
} locked_words;

static void exclusion_body(weft_world *world, void *context)
{
    void *block;
    int turns = *(int *)context;
    uint64_t random = (uint64_t)weft_world_pe(world);
    CHECK_OK(weft_calloc(world, 1, sizeof(locked_words), &block));
    locked_words *words = block;
    for (int i = 0; i < turns; i++) {
        long *lock = i % 2 == 0 ? &words->lock : &words->other_lock;
        long *counter = i % 2 == 0 ? &words->counter : &words->last;
        long value = 0;
        int taken = 0;
        if (random_below(&random, 4) == 0) {
            while (taken == 0) {
                CHECK_OK(weft_test_lock(world, lock, &taken));
            }
        } else {
            CHECK_OK(weft_set_lock(world, lock));
        }
        CHECK_OK(weft_getmem(world, &value, counter, sizeof value, 0));
        value++;
        CHECK_OK(weft_putmem(world, counter, &value, sizeof value, 0));
        CHECK_OK(weft_clear_lock(world, lock));
    }
    CHECK_OK(weft_barrier(world));
    CHECK(weft_world_pe(world) != 0 || words->counter + words->last == (long)turns * weft_world_pes(world));
    CHECK_OK(weft_free(world, block));
}

static void locks_exclude(void **state)
{
    int turns = 400;
    (void)state;
    pes_run(1, exclusion_body, &turns);
    pes_run(2, exclusion_body, &turns);
    pes_run(5, exclusion_body, &turns);
}

/* PE 0 holds the lock while the others ask for it one after another; they must get it in that order. */
static void order_body(weft_world *world, void *context)
{
    void *block;
    int me = weft_world_pe(world);
    int pes = weft_world_pes(world);
    (void)context;
    CHECK_OK(weft_calloc(world, 1, sizeof(locked_words), &block));
    locked_words *words = block;
    long served = 0;
    if (me == 0) {
        CHECK_OK(weft_set_lock(world, &words->lock));
    }
    CHECK_OK(weft_barrier(world));
    (void)usleep((unsigned)me * 60000);
    if (me > 0) {
        CHECK_OK(weft_set_lock(world, &words->lock));
        CHECK_OK(weft_long_atomic_fetch_inc(world, &words->counter, 0, &served));
        CHECK_SAY(served == me - 1, "PE %d was served as number %ld", me, served);
    } else {
        (void)usleep((unsigned)pes * 60000);
    }
    CHECK_OK(weft_clear_lock(world, &words->lock));
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, block));
}

static void locks_are_fair(void **state)
{
    (void)state;
    pes_run(4, order_body, NULL);
}

/* PE 0 keeps the lock beyond the deadline of the others, who leave, and come again. */
static void late_body(weft_world *world, void *context)
{
    void *block;
    int me = weft_world_pe(world);
    int taken = 9;
    (void)context;
    CHECK_OK(weft_calloc(world, 1, sizeof(locked_words), &block));
    locked_words *words = block;
    if (me == 0) {
        CHECK_OK(weft_set_lock(world, &words->lock));
    }
    CHECK_OK(weft_barrier(world));
    if (me > 0) {
        CHECK_STATUS(weft_set_lock(world, &words->lock), WEFT_ERR_TIMEOUT);
        CHECK_NAMES(0);
        CHECK_OK(weft_test_lock(world, &words->lock, &taken));
        CHECK(taken == 0);
        CHECK_STATUS(weft_clear_lock(world, &words->lock), WEFT_ERR_STATE);
    }
    (void)usleep(me == 0 ? 570000 : 50000); /* all have left now, and only PE 1 comes again before PE 0 clears */
    CHECK_OK(weft_barrier(world));
    if (me == 0) {
        (void)usleep(20000);
        CHECK_OK(weft_clear_lock(world, &words->lock));
    } else if (me == 1) {
        CHECK_OK(weft_set_lock(world, &words->lock));
        CHECK_OK(weft_clear_lock(world, &words->lock));
    }
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_set_lock(world, &words->lock));
    CHECK_OK(weft_clear_lock(world, &words->lock));
    CHECK_OK(weft_barrier(world));
    CHECK(words->lock == 0);
    CHECK_OK(weft_free(world, block));
}

static void locks_give_up(void **state)
{
    weft_world *worlds[4];
    (void)state;
    short_world(4, worlds, 500000000);
    pes_run_in(4, worlds, late_body, NULL);
    pes_destroy_world(4, worlds);
}

static void refusals_body(weft_world *world, void *context)
{
    void *block;
    long outside = 0;
    int taken;
    (void)context;
    CHECK_OK(weft_calloc(world, 1, sizeof(locked_words), &block));
    locked_words *words = block;
    CHECK_STATUS(weft_set_lock(NULL, &words->lock), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_set_lock(world, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_set_lock(world, &outside), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_test_lock(world, &words->lock, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_clear_lock(world, &words->lock), WEFT_ERR_STATE);
    CHECK_OK(weft_set_lock(world, &words->lock));
    CHECK_STATUS(weft_set_lock(world, &words->lock), WEFT_ERR_STATE);
    CHECK_STATUS(weft_test_lock(world, &words->lock, &taken), WEFT_ERR_STATE);
    CHECK_OK(weft_clear_lock(world, &words->lock));
    CHECK(words->lock == 0);
    CHECK_OK(weft_free(world, block));
}

static void locks_refuse(void **state)
{
    (void)state;
    pes_run(1, refusals_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(strided_and_sized), CHECKED_TEST(waits),         CHECKED_TEST(turns),
        CHECKED_TEST(late_waits),        CHECKED_TEST(contexts),      CHECKED_TEST(atomics_nbi),
        CHECKED_TEST(regions),           CHECKED_TEST(locks_exclude), CHECKED_TEST(locks_are_fair),
        CHECKED_TEST(locks_give_up),     CHECKED_TEST(locks_refuse),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
