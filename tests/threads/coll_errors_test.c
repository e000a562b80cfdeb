/* Goal: collectives refuse what they must with the documented status, name who is missing, tell members that make
 * different calls, fail on all members alike when memory is short, and add floating-point numbers within bounds.
 *
 * Method: PEs as threads. A table of wrong calls, after which the team still works; a member that stays away; builds with
 * assertions also: members whose arguments differ. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "part/check.h"
#include "part/pes.h"

#define HUGE ((size_t)1 << 60)

/* ---- arguments ---- */

static void arguments_body(weft_world *world, void *context)
{
    void *block;
    weft_team *team = weft_team_world(world);
    long outside[64] = {0};
    int pes = weft_world_pes(world);
    (void)context;
    CHECK_OK(weft_malloc(world, 4096, &block));
    long *d = block;
    long *s = d + 256;
    CHECK_STATUS(weft_long_broadcast(NULL, d, s, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_broadcast(team, NULL, s, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_broadcast(team, outside, s, 1, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_broadcast(team, d, s, HUGE, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_broadcast(team, d, s, SIZE_MAX, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_broadcast(team, d, s, 1, pes), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_broadcast(team, d, s, 1, -1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_broadcast(team, d, outside, 1, weft_team_pe(team)), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_fcollect(NULL, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_fcollect(team, d, NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_fcollect(team, NULL, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_fcollect(team, d, s, HUGE), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_fcollect(team, d, s, SIZE_MAX / 16), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_collect(NULL, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_collect(team, d, outside, 1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_collect(team, outside, s, 1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_alltoall(NULL, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_alltoall(team, d, s, HUGE), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_alltoall(team, outside, s, 1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_alltoalls(NULL, d, s, 1, 1, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_alltoalls(team, d, s, 0, 1, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_alltoalls(team, d, s, 1, -1, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_alltoalls(team, d, s, PTRDIFF_MAX, 1, 2), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_alltoallsmem(team, d, s, 1, 1, 1, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_sum_reduce(NULL, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_sum_reduce(team, d, NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_sum_reduce(team, outside, s, 1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_sum_reduce(team, d, s, HUGE), WEFT_ERR_RANGE);
    CHECK_STATUS(wefti_reduce(team, WEFTI_OP_AND, WEFTI_TYPE_DOUBLE, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(wefti_reduce(team, WEFTI_OPS, WEFTI_TYPE_INT8, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_max_reduce_scatter(team, d, s, HUGE), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_max_reduce_scatter(NULL, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_long_sum_inscan(team, outside, s, 1), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_long_sum_exscan(NULL, d, s, 1), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_long_broadcast(team, NULL, NULL, 0, 0));
    CHECK_OK(weft_long_fcollect(team, NULL, NULL, 0));
    CHECK_OK(weft_long_sum_reduce(team, NULL, NULL, 0));
    CHECK_OK(weft_long_alltoalls(team, NULL, NULL, 1, 1, 0));
    s[0] = 1;
    CHECK_OK(weft_long_sum_reduce(team, d, s, 1));
    CHECK(d[0] == pes);
    CHECK_OK(weft_free(world, block));
}

static void arguments(void **state)
{
    (void)state;
    pes_run(1, arguments_body, NULL);
    pes_run(3, arguments_body, NULL);
}

static void tuning_body(weft_world *world, void *context)
{
    char text[2048];
    size_t length = 0;
    (void)context;
    CHECK_OK(weft_team_tuning(weft_team_world(world), text, sizeof text, &length));
    CHECK(length == strlen(text) && length > 100);
    CHECK(strstr(text, "broadcast") != NULL && strstr(text, "slices") != NULL);
    CHECK_OK(weft_team_tuning(weft_team_world(world), text, 10, &length));
    CHECK(strlen(text) == 9 && length > 100);
    CHECK_OK(weft_team_tuning(weft_team_world(world), NULL, 0, &length));
    CHECK_STATUS(weft_team_tuning(NULL, text, 10, &length), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_tuning(weft_team_world(world), text, 10, NULL), WEFT_ERR_ARGUMENT);
    (void)setenv("WEFT_COLL", "reduce:slices", 1);
    CHECK_OK(weft_team_tuning(weft_team_world(world), text, sizeof text, &length));
    CHECK(strstr(text, "doubling") == NULL);
    static const char *const unreadable[] = {"reduce", "reduce:", "reduce:pull", "sum:push", "reduce:slices,,", ":"};
    for (size_t i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++) {
        (void)setenv("WEFT_COLL", unreadable[i], 1);
        CHECK_STATUS(weft_team_tuning(weft_team_world(world), text, sizeof text, &length), WEFT_ERR_ARGUMENT);
    }
    void *block;
    CHECK_OK(weft_malloc(world, 64, &block));
    CHECK_STATUS(weft_long_sum_reduce(weft_team_world(world), block, block, 1), WEFT_ERR_ARGUMENT);
    (void)unsetenv("WEFT_COLL");
    CHECK_OK(weft_long_sum_reduce(weft_team_world(world), block, block, 1));
    CHECK_OK(weft_free(world, block));
}

static void tuning(void **state)
{
    (void)state;
    pes_run(1, tuning_body, NULL);
}

/* ---- members that do not come, or do something else ---- */

static void create_short(int pes, weft_world **worlds, uint64_t deadline_ns)
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

typedef weft_status (*one_call)(weft_team *team, long *words, size_t count);

static weft_status call_broadcast(weft_team *team, long *words, size_t count)
{
    return weft_long_broadcast(team, words, words, count, 2); /* from the one that is missing */
}

static weft_status call_fcollect(weft_team *team, long *words, size_t count)
{
    return weft_long_fcollect(team, words + 3 * count, words, count);
}

static weft_status call_collect(weft_team *team, long *words, size_t count)
{
    return weft_long_collect(team, words + 3 * count, words, count);
}

static weft_status call_alltoall(weft_team *team, long *words, size_t count)
{
    return weft_long_alltoall(team, words + 3 * count, words, count);
}

static weft_status call_reduce(weft_team *team, long *words, size_t count)
{
    return weft_long_sum_reduce(team, words, words, count);
}

static weft_status call_reduce_scatter(weft_team *team, long *words, size_t count)
{
    return weft_long_sum_reduce_scatter(team, words + 3 * count, words, count);
}

static const one_call calls[] = {call_broadcast, call_fcollect, call_collect,
                                 call_alltoall,  call_reduce,   call_reduce_scatter};
#define CALLS (sizeof calls / sizeof calls[0])

static void missing_body(weft_world *world, void *context)
{
    const size_t *count = context;
    weft_team *teams[CALLS];
    void *block;
    CHECK_OK(weft_calloc(world, 6 * *count, sizeof(long), &block));
    for (size_t i = 0; i < CALLS; i++) {
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 3, &teams[i]));
        CHECK_OK(calls[i](teams[i], block, *count));
    }
    for (size_t i = 0; i < CALLS && weft_world_pe(world) != 2; i++) {
        CHECK_STATUS(calls[i](teams[i], block, *count), WEFT_ERR_TIMEOUT);
        CHECK_NAMES(2);
        CHECK_STATUS(weft_team_sync(teams[i]), WEFT_ERR_TIMEOUT); /* the team is dead */
        CHECK_NAMES(2);
    }
}

static void a_missing_member(void **state)
{
    static size_t counts[] = {1, 20000};
    (void)state;
    for (int i = 0; i < 2; i++) {
        weft_world *worlds[3];
        create_short(3, worlds, 120000000);
        pes_run_in(3, worlds, missing_body, &counts[i]);
        pes_destroy_world(3, worlds);
    }
}

#ifndef NDEBUG
static void different_body(weft_world *world, void *context)
{
    weft_team *team;
    void *block;
    int me = weft_world_pe(world);
    (void)context;
    CHECK_OK(weft_calloc(world, 64, sizeof(long), &block));
    long *words = block;
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
    CHECK_STATUS(weft_long_sum_reduce(team, words, words, 1 + (size_t)me), WEFT_ERR_MISMATCH);
    CHECK_STATUS(weft_team_sync(team), WEFT_ERR_MISMATCH); /* dead */
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
    CHECK_STATUS(me == 0 ? weft_long_sum_reduce(team, words, words, 2) : weft_long_max_reduce(team, words, words, 2),
                 WEFT_ERR_MISMATCH);
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
    CHECK_STATUS(me == 0 ? weft_long_sum_reduce(team, words, words, 2) : weft_long_fcollect(team, words + 8, words, 2),
                 WEFT_ERR_MISMATCH);
    CHECK_OK(weft_barrier(world));
}

static void different_calls(void **state)
{
    (void)state;
    pes_run(2, different_body, NULL);
}
#endif

#ifdef WEFT_FAULTS
/* Each allocation and system call of a team's first collective fails once: the same status everywhere, and the team
 * works afterwards or says that it does not. */
static void short_body(weft_world *world, void *context)
{
    weft_team *team;
    void *block;
    (void)context;
    CHECK_OK(weft_calloc(world, 8, sizeof(long), &block));
    for (uint64_t nth = 1; nth < 12; nth++) {
        long *words = block;
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 1, &team));
        words[0] = 7;
        wefti_fault_arm(nth, 1);
        weft_status status = weft_long_sum_reduce(team, words + 1, words, 1);
        wefti_fault_arm(0, 0);
        CHECK(status == WEFT_OK || status == WEFT_ERR_MEMORY || status == WEFT_ERR_SYSTEM);
        if (status != WEFT_OK) {
            CHECK_OK(weft_long_sum_reduce(team, words + 1, words, 1));
        }
        CHECK(words[1] == 7);
        CHECK_OK(weft_team_destroy(team));
    }
    CHECK_OK(weft_free(world, block));
}

static void memory_is_short(void **state)
{
    (void)state;
    pes_run(1, short_body, NULL);
}
#endif

/* ---- floating point ---- */

#define REALS 3000

static double real_of(uint64_t seed, int pe, size_t k)
{
    uint64_t random = seed ^ (uint64_t)pe << 40 ^ k;
    double mantissa = (double)(random_next(&random) >> 11) * 0x1p-53 - 0.5;
    return ldexp(mantissa, (int)random_below(&random, 40) - 20);
}

/* A sum of n numbers in any order is within (n - 1) * epsilon * sum of |x| of the exact one. */
static void bounds_body(weft_world *world, void *context)
{
    uint64_t seed = *(uint64_t *)context;
    void *block;
    int pes = weft_world_pes(world);
    int me = weft_world_pe(world);
    CHECK_OK(weft_malloc(world, 2 * REALS * sizeof(double), &block));
    double *source = block;
    double *dest = source + REALS;
    for (size_t count = 3; count <= REALS; count *= 10) {
        for (int scan = 0; scan < 2; scan++) {
            for (size_t k = 0; k < count; k++) {
                source[k] = real_of(seed, me, k);
            }
            CHECK_OK(scan ? weft_double_sum_inscan(weft_team_world(world), dest, source, count)
                          : weft_double_sum_reduce(weft_team_world(world), dest, source, count));
            int last = scan ? me : pes - 1;
            for (size_t k = 0; k < count; k++) {
                long double exact = 0;
                long double size = 0;
                for (int pe = 0; pe <= last; pe++) {
                    exact += (long double)real_of(seed, pe, k);
                    size += fabsl((long double)real_of(seed, pe, k));
                }
                CHECK_SAY(fabsl((long double)dest[k] - exact) <= (long double)pes * 0x1p-53L * size,
                          "sum %zu of %zu is off by %Lg", k, count, (long double)dest[k] - exact);
            }
        }
    }
    CHECK_OK(weft_free(world, block));
}

static void sums_are_near(void **state)
{
    uint64_t seed = test_seed();
    (void)state;
    pes_run(3, bounds_body, &seed);
    pes_run(8, bounds_body, &seed);
}

/* All members get the same bits, and again in the next run. */
static void bits_body(weft_world *world, void *context)
{
    void *block;
    int pes = weft_world_pes(world);
    (void)context;
    CHECK_OK(weft_malloc(world, 4 * REALS * sizeof(float), &block));
    float *source = block;
    float *dest = source + REALS;
    float *again = dest + REALS;
    float *theirs = again + REALS;
    for (size_t count = 3; count <= REALS; count *= 10) {
        for (size_t k = 0; k < count; k++) {
            source[k] = (float)real_of(5, weft_world_pe(world), k);
        }
        CHECK_OK(weft_float_sum_reduce(weft_team_world(world), dest, source, count));
        CHECK_OK(weft_float_sum_reduce(weft_team_world(world), again, source, count));
        CHECK(memcmp(dest, again, count * sizeof *dest) == 0);
        CHECK_OK(weft_float_broadcast(weft_team_world(world), theirs, dest, count, pes - 1));
        CHECK(memcmp(dest, theirs, count * sizeof *dest) == 0);
    }
    CHECK_OK(weft_free(world, block));
}

static void sums_are_equal(void **state)
{
    (void)state;
    pes_run(5, bits_body, NULL);
    pes_run(33, bits_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(arguments),       CHECKED_TEST(tuning),         CHECKED_TEST(a_missing_member),
#ifndef NDEBUG
        CHECKED_TEST(different_calls),
#endif
#ifdef WEFT_FAULTS
        CHECKED_TEST(memory_is_short),
#endif
        CHECKED_TEST(sums_are_near),   CHECKED_TEST(sums_are_equal),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
