/* Goal: collectives refuse what they must with the documented status, name who is missing, tell members that make
 * different calls, fail on all members alike when memory is short, and add floating-point numbers within bounds.
 *
 * Method: PEs as threads. A table of wrong calls, after which the team still works; a member that stays away, or comes
 * late; members whose calls or arguments differ. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "coll/step.h"
#include "os/os.h"
#include "support/check.h"
#include "support/load.h"
#include "support/pes.h"

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
    (void)setenv("WEFT_COLL", "reduce:magic", 1); /* it is read at creation */
    CHECK_OK(weft_team_tuning(weft_team_world(world), text, sizeof text, &length));
    (void)unsetenv("WEFT_COLL");
}

static void preferred_body(weft_world *world, void *context)
{
    char text[2048];
    size_t length = 0;
    (void)context;
    CHECK_OK(weft_team_tuning(weft_team_world(world), text, sizeof text, &length));
    CHECK(strstr(text, "doubling") == NULL);
    CHECK(strstr(text, "count     any") != NULL && strstr(text, "rounds") == NULL);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(weft_barrier(world));
    }
}

static void tuning(void **state)
{
    (void)state;
    pes_run(1, tuning_body, NULL);
    (void)setenv("WEFT_COLL", "reduce:slices,sync:count", 1);
    pes_run(3, preferred_body, NULL);
    (void)unsetenv("WEFT_COLL");
}

/* ---- members that do not come, or do something else ---- */

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

typedef struct missed {
    size_t count;
    uint64_t deadline_ns; /* of the calls that member 2 does not make */
    int arrived; /* at them: the others */
} missed;

static void missing_body(weft_world *world, void *context)
{
    missed *m = context;
    const size_t *count = &m->count;
    weft_team *teams[CALLS];
    void *block;
    CHECK_OK(weft_calloc(world, 6 * *count, sizeof(long), &block));
    for (size_t i = 0; i < CALLS; i++) {
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 3, &teams[i]));
        CHECK_OK(calls[i](teams[i], block, *count));
    }
    (void)pes_set_deadline(world, m->deadline_ns);
    for (size_t i = 0; i < CALLS && weft_world_pe(world) != 2; i++) {
        pes_gather(&m->arrived, 2 * (int)(i + 1));
        CHECK_STATUS(calls[i](teams[i], block, *count), WEFT_ERR_TIMEOUT);
        CHECK_NAMES(2);
        CHECK_STATUS(weft_team_sync(teams[i]), WEFT_ERR_TIMEOUT); /* the team is dead */
        CHECK_NAMES(2);
    }
}

static void a_missing_member(void **state)
{
    static const size_t counts[] = {1, 20000};
    (void)state;
    for (int i = 0; i < 2; i++) {
        missed m = {.count = counts[i], .deadline_ns = load_patience_ns(200000000)};
        pes_run(3, missing_body, &m);
    }
}

#define LONG_COUNT ((size_t)20000)

/* What member 2 does is not what the others do. */
static weft_status differ(weft_team *team, int row, int odd, long *d, long *s)
{
    switch (row) {
    case 0: /* counts in a line */
        return weft_long_sum_reduce(team, d, s, odd ? 2 : 1);
    case 1: /* operations */
        return odd ? weft_long_max_reduce(team, d, s, 2) : weft_long_sum_reduce(team, d, s, 2);
    case 2: /* calls */
        return odd ? weft_long_fcollect(team, d, s, 2) : weft_long_sum_reduce(team, d, s, 2);
    case 3: /* one in a line, one in a slot */
        return weft_long_sum_reduce(team, d, s, odd ? 1 : 40);
    case 4: /* one in a slot, one through the buffers */
        return weft_long_sum_reduce(team, d, s, odd ? 40 : LONG_COUNT);
    case 5: /* roots: nobody sends */
        return weft_long_broadcast(team, d, s, 4, odd ? 0 : 2);
    case 6: /* a barrier, which sends other flags */
        return odd ? weft_team_barrier(team) : weft_long_sum_reduce(team, d, s, 1);
    case 7:
        return weft_long_alltoalls(team, d, s, odd ? 2 : 1, 1, 1);
    case 8:
        return weft_long_alltoalls(team, d, s, 1, odd ? 2 : 1, 1);
    case 9: /* buffers at other places, of an algorithm that takes them for the same */
        return weft_long_sum_reduce(team, odd ? d + 8 : d, s, LONG_COUNT);
    default:
        return weft_long_sum_inscan(team, odd ? d + 8 : d, s, LONG_COUNT);
    }
}
#define DIFFERENCES 11
#define DIFFERENT_NS UINT64_C(2000000000)

static void different_body(weft_world *world, void *context)
{
    void *block;
    int odd = weft_world_pe(world) == 2;
    const uint64_t *deadline_ns = context;
    CHECK_OK(weft_calloc(world, 2 * LONG_COUNT + 64, sizeof(long), &block));
    long *d = block;
    long *s = d + LONG_COUNT + 32;
    for (int i = 0; i < 2 * DIFFERENCES; i++) {
        int row = i / 2;
        weft_team *team = NULL;
        CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 3, &team));
        if (i % 2 != 0) { /* else these calls are the team's first */
            CHECK_OK(weft_long_sum_reduce(team, d, s, 1));
        }
        uint64_t long_ns = pes_set_deadline(world, *deadline_ns);
        weft_status status = differ(team, row, odd, d, s);
        (void)pes_set_deadline(world, long_ns);
        CHECK_SAY(status == WEFT_ERR_MISMATCH, "difference %d: %s", row, weft_status_name(status));
        CHECK(text_names_pe(weft_last_error(), 2) || odd);
        CHECK_STATUS(weft_team_sync(team), WEFT_ERR_MISMATCH); /* dead */
        CHECK_OK(weft_team_destroy(team));
        CHECK_OK(weft_barrier(world));
    }
}

/* Member 2 has another root: itself, so that nobody waits for what it sends, or one that sends to nobody, for which it
 * waits. The others learn it in the next call. */
static void other_root_body(weft_world *world, void *context)
{
    void *block;
    int pe = weft_world_pe(world);
    int other = *(const int *)context;
    CHECK_OK(weft_calloc(world, 128, sizeof(long), &block));
    long *d = block;
    long *s = d + 64;
    weft_team *team = NULL;
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 3, &team));
    CHECK_STATUS(weft_long_broadcast(team, d, s, 4, pe == 2 ? other : 0),
                 pe == 2 && other != 2 ? WEFT_ERR_MISMATCH : WEFT_OK);
    CHECK_STATUS(weft_long_sum_reduce(team, d, s, 1), WEFT_ERR_MISMATCH);
    CHECK(text_names_pe(weft_last_error(), 2) || pe == 2);
    CHECK_OK(weft_team_destroy(team));
    CHECK_OK(weft_barrier(world));
}

/* A member that waits for what nobody sends learns of the difference at the deadline, so that of the calls that differ
 * is short; but not so short that a member of a busy machine is late. */
static void different_calls(void **state)
{
    uint64_t deadline_ns = load_patience_ns(DIFFERENT_NS);
    (void)state;
    pes_run(3, different_body, &deadline_ns);
    for (int root = 1; root < 3; root++) {
        pes_run(3, other_root_body, &root);
    }
}

/* ---- deadlines of single waits ---- */

#define LATE_NS UINT64_C(400000000)
#define LATE_ROUNDS 5

/* Member 1 comes late, and works in between: no wait is as long as the deadline, all together are longer. */
static void slow_body(weft_world *world, void *context)
{
    wefti_step step;
    wefti_coll_slot *slot;
    const wefti_call_arguments arguments = {.kind = WEFTI_COLL_REDUCE};
    weft_team *team = weft_team_world(world);
    void *block;
    int me = weft_world_pe(world);
    uint64_t late_ns = *(uint64_t *)context;
    CHECK_OK(weft_calloc(world, 2, sizeof(long), &block));
    CHECK_OK(weft_long_sum_reduce(team, block, block, 1));
    CHECK_OK(weft_barrier(world));
    uint64_t long_ns = pes_set_deadline(world, late_ns * (LATE_ROUNDS - 1));
    CHECK_OK(wefti_step_begin(&step, team, "slow", &arguments));
    for (int i = 0; i < LATE_ROUNDS; i++) {
        if (me == 1) {
            wefti_os_sleep_ns(late_ns);
            CHECK_OK(wefti_step_post(&step, 0, 0, NULL, 0));
        } else {
            CHECK_OK(wefti_step_await(&step, 1, &slot));
        }
        wefti_step_next(&step);
    }
    wefti_step_leave(&step);
    (void)pes_set_deadline(world, long_ns);
    CHECK_OK(weft_barrier(world));
}

static void slow_members(void **state)
{
    uint64_t late_ns = load_patience_ns(LATE_NS);
    (void)state;
    pes_run(2, slow_body, &late_ns);
}

#define WARN_NS UINT64_C(175000000)

/* What is written to standard error meanwhile. */
static void capture(char *text, size_t bytes, int pes, weft_world **worlds,
                    void (*body)(weft_world *world, void *context), void *context)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_non_null(file);
    (void)dup2(fileno(file), STDERR_FILENO);
    pes_run_in(pes, worlds, body, context);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    (void)fclose(file);
}

static void warned_body(weft_world *world, void *context)
{
    void *block;
    uint64_t late_ns = *(uint64_t *)context;
    CHECK_OK(weft_calloc(world, 2, sizeof(long), &block));
    long *lock = (long *)block + 1; /* apart from the sum, which the others may still be reading */
    CHECK_OK(weft_long_sum_reduce(weft_team_world(world), block, block, 1));
    CHECK_OK(weft_barrier(world));
    if (weft_world_pe(world) == 2) {
        wefti_os_sleep_ns(late_ns);
    }
    CHECK_OK(weft_barrier(world));
    if (weft_world_pe(world) == 1) {
        wefti_os_sleep_ns(late_ns);
    }
    CHECK_OK(weft_long_sum_reduce(weft_team_world(world), block, block, 1));
    if (weft_world_pe(world) == 1) {
        CHECK_OK(weft_set_lock(world, lock));
    }
    CHECK_OK(weft_barrier(world));
    if (weft_world_pe(world) == 1) {
        wefti_os_sleep_ns(late_ns);
    } else {
        CHECK_OK(weft_set_lock(world, lock));
    }
    CHECK_OK(weft_clear_lock(world, lock));
    CHECK_OK(weft_barrier(world));
    if (weft_world_pe(world) == 0) {
        wefti_os_sleep_ns(late_ns);
    }
    CHECK_OK(weft_free(world, block));
}

/* A wait that takes long is a line in the log that names whom it is for. */
static void warnings(void **state)
{
    weft_world *worlds[3];
    weft_threads *threads = pes_meeting(3);
    weft_world_config configs[3];
    pes_outcome outcomes[3];
    char text[4096];
    uint64_t late_ns = load_patience_ns(4 * WARN_NS); /* a member that is not asked to be late is less late */
    (void)state;
    for (int pe = 0; pe < 3; pe++) {
        configs[pe] = pes_config(threads, pe, 3);
        configs[pe].warn_ns = WARN_NS;
    }
    pes_create(configs, 3, outcomes);
    for (int pe = 0; pe < 3; pe++) {
        worlds[pe] = outcomes[pe].world;
    }
    (void)setenv("WEFT_LOG", "warn", 1);
    capture(text, sizeof text, 3, worlds, warned_body, &late_ns);
    (void)setenv("WEFT_LOG", "none", 1);
    CHECK_SAY(strstr(text, "weft_barrier has waited for 0.175 s for PE 2") != NULL, "%s", text);
    CHECK_SAY(strstr(text, "weft_reduce has waited for 0.175 s for PE 1") != NULL, "%s", text);
    CHECK_SAY(strstr(text, "is still held by PE 1") != NULL, "%s", text);
    CHECK_SAY(strstr(text, "weft_free has waited for 0.175 s for PE 0") != NULL, "%s", text);
    pes_destroy_world(3, worlds);
    weft_threads_destroy(threads);
}

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
        CHECKED_TEST(different_calls), CHECKED_TEST(slow_members),   CHECKED_TEST(warnings),
#ifdef WEFT_FAULTS
        CHECKED_TEST(memory_is_short),
#endif
        CHECKED_TEST(sums_are_near),   CHECKED_TEST(sums_are_equal),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
