/* Goal: a collective call that a member does not join ends at the deadline, on every other member, with a status that
 * names those who are missing and nobody else; that team is dead from then on; the other teams of the world are not.
 * Method: PEs as threads with a deadline that is short for the calls to which not all come; for each collective call,
 * some members stay away and use other teams meanwhile; then they come, too late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/load.h"
#include "support/pes.h"
#include "team/team.h"
#include "weft.h"

#define PES 5
#define DEADLINE_NS load_patience_ns(400 * WEFTI_MILLISECOND_NS) /* of calls that fail */
#define SOON_NS (10000 * WEFTI_MILLISECOND_NS) /* far less than the deadline of all other calls */

typedef weft_status (*collective)(weft_team *team);

static weft_status call_sync(weft_team *team)
{
    return weft_team_sync(team);
}

static weft_status call_barrier(weft_team *team)
{
    return weft_team_barrier(team);
}

static weft_status call_malloc(weft_team *team)
{
    void *block;
    return weft_team_malloc(team, 64, &block);
}

static weft_status call_free(weft_team *team)
{
    return weft_team_free(team, NULL);
}

static weft_status call_split(weft_team *team)
{
    weft_team *part;
    return weft_team_split_strided(team, 0, 1, 1, &part);
}

static weft_status call_create(weft_team *team)
{
    weft_team *part;
    return weft_team_create(team, NULL, 0, &part);
}

static const struct {
    const char *name;
    collective call;
} calls[] = {
    {"weft_team_sync", call_sync}, {"weft_team_barrier", call_barrier},     {"weft_team_malloc", call_malloc},
    {"weft_team_free", call_free}, {"weft_team_split_strided", call_split}, {"weft_team_create", call_create},
};
#define CALLS (sizeof calls / sizeof *calls)

typedef struct scene {
    size_t call;
    unsigned missing; /* a bit for each PE of the world that stays away */
    uint64_t deadline_ns; /* of the call that they miss */
    uint64_t start_ns; /* of the first that waits */
    int present; /* members that are about to call */
    int failed; /* members that have failed */
    int done; /* members that have seen the team dead */
} scene;

static int is_missing(const scene *s, int pe)
{
    return (int)(s->missing >> pe & 1);
}

static int count_missing(const scene *s)
{
    return __builtin_popcount(s->missing);
}

/* The last error names the missing, and nobody else. */
static void check_names_missing(const scene *s)
{
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(text_names_pe(weft_last_error(), pe) == is_missing(s, pe), "%s, missing %#x: PE %d: \"%s\"",
                  calls[s->call].name, s->missing, pe, weft_last_error());
    }
}

static void check_dead(weft_team *team)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s", weft_last_error());
    uint64_t start = wefti_os_now_ns();
    for (size_t i = 0; i < CALLS; i++) {
        CHECK_STATUS(calls[i].call(team), WEFT_ERR_TIMEOUT);
        CHECK_SAY(strcmp(weft_last_error(), text) == 0, "%s of a dead team says \"%s\", not \"%s\"", calls[i].name,
                  weft_last_error(), text);
    }
    CHECK_SAY(wefti_os_now_ns() - start < SOON_NS, "calls on a dead team take %llu ns",
              (unsigned long long)(wefti_os_now_ns() - start));
}

/* The place that this PE's heap gives next to a block as call_malloc asks for. */
static void *next_block(weft_world *world)
{
    weft_team *alone = weft_team_same_slot(world);
    void *block = NULL;
    CHECK(weft_team_pes(alone) == 1);
    CHECK_OK(weft_team_malloc(alone, 64, &block));
    CHECK_OK(weft_team_free(alone, block));
    return block;
}

static void be_present(scene *s, weft_world *world, weft_team *team)
{
    uint64_t none = 0;
    void *free_before = next_block(world);
    uint64_t long_ns = pes_set_deadline(world, s->deadline_ns);
    pes_gather(&s->present, PES - count_missing(s));
    (void)__atomic_compare_exchange_n(&s->start_ns, &none, wefti_os_now_ns(), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    CHECK_STATUS(calls[s->call].call(team), WEFT_ERR_TIMEOUT);
    uint64_t took = wefti_os_now_ns() - __atomic_load_n(&s->start_ns, __ATOMIC_ACQUIRE); /* one may end with another */
    (void)pes_set_deadline(world, long_ns);
    check_names_missing(s);
    CHECK_SAY(strstr(weft_last_error(), "did not arrive") != NULL, "\"%s\"", weft_last_error());
    CHECK_SAY(took >= s->deadline_ns && took < s->deadline_ns + SOON_NS, "%s took %llu ns", calls[s->call].name,
              (unsigned long long)took);
    check_dead(team);
    if (calls[s->call].call == call_malloc) {
        CHECK(next_block(world) != free_before); /* who comes late may believe that it has the block */
    }
    __atomic_add_fetch(&s->failed, 1, __ATOMIC_ACQ_REL);
}

/* Stay away, at work in another team, until the others have given up; then come. The others can no longer answer. */
static void be_missing(scene *s, weft_world *world, weft_team *team, weft_team *elsewhere)
{
    while (__atomic_load_n(&s->failed, __ATOMIC_ACQUIRE) < PES - count_missing(s)) {
        if (elsewhere != NULL) {
            CHECK_OK(weft_team_sync(elsewhere));
        }
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
    }
    /* Who counts sees that all have given up, and does not wait. */
    int is_told = team->counted && (calls[s->call].call == call_sync || calls[s->call].call == call_barrier);
    uint64_t long_ns = world->deadline_ns;
    (void)pes_set_deadline(world, is_told ? long_ns : s->deadline_ns);
    uint64_t start = wefti_os_now_ns();
    CHECK_STATUS(calls[s->call].call(team), WEFT_ERR_TIMEOUT);
    CHECK_SAY(strstr(weft_last_error(), "no PE") == NULL, "\"%s\"", weft_last_error());
    CHECK_SAY(wefti_os_now_ns() - start < s->deadline_ns + SOON_NS, "who comes after all have given up waits");
    (void)pes_set_deadline(world, long_ns);
    check_dead(team);
}

static void miss(weft_world *world, void *context)
{
    scene *s = context;
    weft_team *all = weft_team_world(world);
    weft_team *team = NULL;
    weft_team *elsewhere = NULL;
    const int list[PES] = {4, 2, 0, 1, 3}; /* so that numbers in the team are not those in the world */
    int me = weft_world_pe(world);
    CHECK_OK(weft_team_create(all, list, PES, &team));
    CHECK_OK(weft_team_create(all, &me, is_missing(s, me), &elsewhere)); /* of one, for who is alone */
    CHECK_OK(weft_barrier(world));
    if (is_missing(s, me)) {
        be_missing(s, world, team, elsewhere);
    } else {
        be_present(s, world, team);
    }
    __atomic_add_fetch(&s->done, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&s->done, __ATOMIC_ACQUIRE) < PES) { /* not in the world's barrier: it has a deadline too */
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
    }
    /* The world has not noticed. */
    void *block;
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_world_fault(world, NULL));
    CHECK_OK(weft_malloc(world, 100, &block));
    CHECK_OK(weft_free(world, block));
    CHECK_OK(weft_team_destroy(team)); /* local */
    CHECK_OK(weft_team_destroy(elsewhere));
    CHECK_OK(weft_team_create(all, list, PES, &team));
    CHECK_OK(weft_team_sync(team));
    CHECK_OK(weft_team_destroy(team));
}

/* Run the body on each PE of a world with a long deadline. */
static void run_body(int pes, void (*body)(weft_world *world, void *context), void *context)
{
    weft_threads *meeting = pes_meeting(pes);
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    weft_world *worlds[PES];
    for (int pe = 0; pe < pes; pe++) {
        configs[pe] = pes_config(meeting, pe, pes);
    }
    pes_create(configs, pes, outcomes);
    for (int pe = 0; pe < pes; pe++) {
        assert_int_equal(outcomes[pe].status, WEFT_OK);
        worlds[pe] = outcomes[pe].world;
    }
    pes_run_in(pes, worlds, body, context);
    pes_destroy_world(pes, worlds);
    weft_threads_destroy(meeting);
}

static void test_members_missing(void **state)
{
    (void)state;
    const unsigned missing[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x15};
    ledger before = ledger_read();
    for (size_t i = 0; i < CALLS; i++) {
        scene s = {.call = i, .missing = missing[i], .deadline_ns = DEADLINE_NS};
        run_body(PES, miss, &s);
    }
    ledger_assert_same(&before);
}

/* ---- who comes too late may still get what the others gave up ---- */

#define BLOCK_BYTES 4096

typedef struct late_scene {
    int frees; /* the late call is weft_free, not weft_malloc */
    void *late; /* what the late PE got, at its address on PE 0 */
    int stage;
} late_scene;

static void reach(const late_scene *s, int stage)
{
    while (__atomic_load_n(&s->stage, __ATOMIC_ACQUIRE) < stage) {
        wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
    }
}

static weft_status call_late(const late_scene *s, weft_world *world, void **block)
{
    return s->frees ? weft_free(world, *block) : weft_malloc(world, BLOCK_BYTES, block);
}

/* PE 1 comes after PE 0 has given up. Whatever PE 0 allocates then, it is not where PE 1 may write to it. */
static void be_late(weft_world *world, void *context)
{
    late_scene *s = context;
    weft_team *self = NULL;
    void *mine;
    void *block = NULL;
    int me = weft_world_pe(world);
    CHECK_OK(weft_team_create(weft_team_world(world), &me, 1, &self));
    CHECK_OK(weft_malloc(world, BLOCK_BYTES, &block));
    uint64_t long_ns = pes_set_deadline(world, DEADLINE_NS);
    if (me == 1) {
        reach(s, 1);
        weft_status status = call_late(s, world, &block);
        CHECK_SAY(status == WEFT_OK || status == WEFT_ERR_TIMEOUT, "%s", weft_status_name(status));
        s->late = weft_ptr(world, block, 0);
        __atomic_store_n(&s->stage, 2, __ATOMIC_RELEASE);
        return;
    }
    CHECK_STATUS(call_late(s, world, &block), WEFT_ERR_TIMEOUT);
    (void)pes_set_deadline(world, long_ns);
    __atomic_store_n(&s->stage, 1, __ATOMIC_RELEASE);
    reach(s, 2);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(weft_team_malloc(self, BLOCK_BYTES, &mine));
        CHECK_SAY(mine != s->late, "block %d is the one that PE 1 has", i);
    }
}

static void test_late_allocation(void **state)
{
    (void)state;
    for (int frees = 0; frees < 2; frees++) {
        late_scene s = {.frees = frees};
        run_body(2, be_late, &s);
    }
}

/* Members that make different collective calls of which one agrees and one does not wait for each other in vain, and
 * are told why. */
static void cross(weft_world *world, void *context)
{
    scene *s = context;
    void *block;
    int odd = weft_world_pe(world) == 2;
    uint64_t long_ns = pes_set_deadline(world, s->deadline_ns); /* at which they are told */
    pes_gather(&s->present, 3);
    CHECK_STATUS(odd ? weft_barrier(world) : weft_malloc(world, 10, &block), WEFT_ERR_MISMATCH);
    for (int pe = 0; pe < 3; pe++) {
        CHECK(text_names_pe(weft_last_error(), pe) == (odd ? pe != 2 : pe == 2));
    }
    CHECK_STATUS(weft_barrier(world), WEFT_ERR_MISMATCH);
    CHECK_STATUS(weft_malloc(world, 10, &block), WEFT_ERR_MISMATCH);
    (void)pes_set_deadline(world, long_ns);
    CHECK_OK(weft_team_sync(weft_team_node(world)));
}

static void test_calls_of_two_kinds(void **state)
{
    (void)state;
    scene s = {.deadline_ns = DEADLINE_NS};
    run_body(3, cross, &s);
}

/* A team whose destruction not all members make is gone on the others, which say that they have given up. */
static void destroy_alone(weft_world *world, void *context)
{
    scene *s = context;
    weft_team *team = NULL;
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, 2, &team));
    if (weft_world_pe(world) == 0) {
        (void)pes_set_deadline(world, DEADLINE_NS);
        CHECK_STATUS(weft_team_destroy(team), WEFT_ERR_TIMEOUT);
        CHECK_NAMES(1);
        __atomic_store_n(&s->failed, 1, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&s->failed, __ATOMIC_ACQUIRE) == 0) {
            wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
        }
    }
}

static void test_destroyed_alone(void **state)
{
    (void)state;
    scene s = {0};
    run_body(2, destroy_alone, &s);
}

/* Waiting for a word that nobody writes: the status at the deadline, and the world goes on. */
static void wait_in_vain(weft_world *world, void *context)
{
    (void)context;
    void *block;
    uint64_t seen = 5;
    CHECK_OK(weft_calloc(world, 1, 8, &block));
    uint64_t deadline_ns = DEADLINE_NS;
    uint64_t long_ns = pes_set_deadline(world, deadline_ns);
    uint64_t start = wefti_os_now_ns();
    CHECK_STATUS(weft_uint64_wait_until(world, block, WEFT_CMP_EQ, 1), WEFT_ERR_TIMEOUT);
    uint64_t took = wefti_os_now_ns() - start;
    CHECK_SAY(took >= deadline_ns && took < deadline_ns + SOON_NS, "it took %llu ns", (unsigned long long)took);
    CHECK_STATUS(weft_signal_wait_until(world, block, WEFT_CMP_GT, 0, &seen), WEFT_ERR_TIMEOUT);
    CHECK(seen == 5);
    (void)pes_set_deadline(world, long_ns);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_world_fault(world, NULL));
    weft_counters counters;
    CHECK_OK(weft_world_counters(world, &counters));
    CHECK(counters.waits_expired == 2);
    CHECK_OK(weft_free(world, block));
}

static void test_wait_in_vain(void **state)
{
    (void)state;
    run_body(2, wait_in_vain, NULL);
}

/* ---- a member that was only slow ---- */

#define SKEW_PES 3

typedef struct skew {
    int gave_up; /* members, atomic */
} skew;

/* As docs/failures.md says. A wait that meets its deadline is repeated. */
static weft_team *start_again(weft_world *world, weft_team *old, uint64_t *here)
{
    weft_team *team = NULL;
    weft_status status = weft_team_destroy(old);
    CHECK(status == WEFT_OK || status == WEFT_ERR_TIMEOUT); /* a member with the result does not know that it is dead */
    for (int pe = 0; pe < SKEW_PES; pe++) {
        CHECK_OK(weft_uint64_atomic_add(world, here, 1, pe));
    }
    do {
        status = weft_uint64_wait_until(world, here, WEFT_CMP_GE, SKEW_PES);
    } while (status == WEFT_ERR_TIMEOUT);
    CHECK_OK(status);
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, SKEW_PES, &team));
    return team;
}

static void skew_body(weft_world *world, void *context)
{
    skew *s = context;
    weft_team *team = NULL;
    uint64_t *here;
    CHECK_OK(weft_calloc(world, 1, sizeof *here, (void **)&here));
    CHECK_OK(weft_team_split_strided(weft_team_world(world), 0, 1, SKEW_PES, &team));
    CHECK_OK(weft_team_sync(team));
    uint64_t long_ns = pes_set_deadline(world, DEADLINE_NS);
    if (weft_world_pe(world) == 2) { /* slow */
        while (__atomic_load_n(&s->gave_up, __ATOMIC_ACQUIRE) < SKEW_PES - 1) {
            wefti_os_sleep_ns(WEFTI_MILLISECOND_NS);
        }
        weft_status status = weft_team_sync(team);
        CHECK(status == WEFT_OK || status == WEFT_ERR_TIMEOUT);
    } else {
        CHECK_STATUS(weft_team_sync(team), WEFT_ERR_TIMEOUT);
        CHECK_NAMES(2);
        __atomic_add_fetch(&s->gave_up, 1, __ATOMIC_RELEASE);
    }
    (void)pes_set_deadline(world, long_ns);
    team = start_again(world, team, here);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(weft_team_sync(team));
    }
    CHECK_OK(weft_team_destroy(team));
    CHECK_OK(weft_barrier(world));
}

static void test_start_again_after_skew(void **state)
{
    (void)state;
    skew s = {0};
    run_body(SKEW_PES, skew_body, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_members_missing),    CHECKED_TEST(test_late_allocation),
        CHECKED_TEST(test_calls_of_two_kinds), CHECKED_TEST(test_destroyed_alone),
        CHECKED_TEST(test_wait_in_vain),       CHECKED_TEST(test_start_again_after_skew),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
