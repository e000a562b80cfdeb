/* Goal: weft_world_abort, from any thread, ends every blocking call of every PE of its world, now and ever after, and
 * says who aborted with which code; other worlds do not notice. A wait that config.interrupted ends does the same.
 * Method: PEs as threads go into each blocking call while one stays away, so that none can return; then a thread that
 * is no PE aborts through the handle of a PE inside or outside the call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"

#define PES 4
#define AWAY 2 /* this PE stays out of the call */
#define CODE (-77)
#define PATIENCE_NS UINT64_C(15000000000) /* half of the deadline */

/* What each PE has before the call. */
typedef struct things {
    void *block;
    weft_team *team; /* of all, in reverse */
} things;

typedef weft_status (*blocking_call)(weft_world *world, things *t);

static weft_status call_barrier(weft_world *world, things *t)
{
    (void)t;
    return weft_barrier(world);
}

static weft_status call_sync(weft_world *world, things *t)
{
    (void)t;
    return weft_sync(world);
}

static weft_status call_team_sync(weft_world *world, things *t)
{
    (void)world;
    return weft_team_sync(t->team);
}

static weft_status call_team_barrier(weft_world *world, things *t)
{
    (void)world;
    return weft_team_barrier(t->team);
}

static weft_status call_node_barrier(weft_world *world, things *t)
{
    (void)t;
    return weft_team_barrier(weft_team_node(world));
}

static weft_status call_malloc(weft_world *world, things *t)
{
    (void)t;
    void *block;
    return weft_malloc(world, 100, &block);
}

static weft_status call_team_malloc(weft_world *world, things *t)
{
    (void)world;
    void *block;
    return weft_team_malloc(t->team, 100, &block);
}

static weft_status call_calloc(weft_world *world, things *t)
{
    (void)t;
    void *block;
    return weft_calloc(world, 10, 10, &block);
}

static weft_status call_align(weft_world *world, things *t)
{
    (void)t;
    void *block;
    return weft_align(world, 4096, 100, &block);
}

static weft_status call_free(weft_world *world, things *t)
{
    return weft_free(world, t->block);
}

static weft_status call_team_create(weft_world *world, things *t)
{
    (void)t;
    const int list[] = {3, 1, 0, 2};
    weft_team *team;
    return weft_team_create(weft_team_world(world), list, PES, &team);
}

static weft_status call_split(weft_world *world, things *t)
{
    (void)world;
    weft_team *team;
    return weft_team_split_strided(t->team, 0, 2, 2, &team);
}

static weft_status call_wait(weft_world *world, things *t)
{
    return weft_int_wait_until(world, t->block, WEFT_CMP_NE, 0);
}

static weft_status call_signal_wait(weft_world *world, things *t)
{
    uint64_t seen;
    return weft_signal_wait_until(world, t->block, WEFT_CMP_GT, 0, &seen);
}

static const struct {
    const char *name;
    blocking_call call;
} places[] = {
    {"weft_barrier", call_barrier},
    {"weft_sync", call_sync},
    {"weft_team_sync", call_team_sync},
    {"weft_team_barrier", call_team_barrier},
    {"weft_team_barrier of the node", call_node_barrier},
    {"weft_malloc", call_malloc},
    {"weft_team_malloc", call_team_malloc},
    {"weft_calloc", call_calloc},
    {"weft_align", call_align},
    {"weft_free", call_free},
    {"weft_team_create", call_team_create},
    {"weft_team_split_strided", call_split},
    {"weft_int_wait_until", call_wait},
    {"weft_signal_wait_until", call_signal_wait},
};
#define PLACES (sizeof places / sizeof *places)

typedef struct scene {
    size_t place;
    int aborter;
    weft_world *worlds[PES];
    weft_world *bystanders[PES]; /* another world of the same PEs */
    int inside; /* PEs that are about to call */
    int aborted;
} scene;

static void check_aborted(weft_world *world, const scene *s, weft_status status, const char *when)
{
    int culprit = -2;
    CHECK_SAY(status == WEFT_ERR_ABORTED, "%s %s gave %s: %s", places[s->place].name, when, weft_status_name(status),
              weft_last_error());
    CHECK_NAMES(s->aborter);
    CHECK_SAY(strstr(weft_last_error(), "code -77") != NULL, "no code in \"%s\"", weft_last_error());
    CHECK_STATUS(weft_world_fault(world, &culprit), WEFT_ERR_ABORTED);
    CHECK_SAY(culprit == s->aborter, "the culprit is %d", culprit);
}

static void be_aborted(weft_world *world, void *context)
{
    scene *s = context;
    things t = {0};
    const int reverse[] = {3, 2, 1, 0};
    CHECK_OK(weft_calloc(world, 8, 8, &t.block));
    CHECK_OK(weft_team_create(weft_team_world(world), reverse, PES, &t.team));
    CHECK_OK(weft_barrier(world));
    __atomic_add_fetch(&s->inside, 1, __ATOMIC_ACQ_REL);
    if (weft_world_pe(world) == AWAY) {
        while (!__atomic_load_n(&s->aborted, __ATOMIC_ACQUIRE)) {
            wefti_os_sleep_ns(100000);
        }
    } else {
        uint64_t start = wefti_os_now_ns();
        check_aborted(world, s, places[s->place].call(world, &t), "inside");
        CHECK(wefti_os_now_ns() - start < PATIENCE_NS);
    }
    /* Ever after, in every call. A wait for what already holds does not block. */
    for (size_t i = 0; i < PLACES; i++) {
        check_aborted(world, s, places[i].call(world, &t), places[i].name);
    }
    CHECK_OK(weft_uint64_wait_until(world, t.block, WEFT_CMP_EQ, 0));
    CHECK_OK(weft_barrier(s->bystanders[weft_world_pe(world)]));
    CHECK_OK(weft_team_destroy(t.team));
}

/* Not a PE. */
static void *abort_later(void *context)
{
    scene *s = context;
    while (__atomic_load_n(&s->inside, __ATOMIC_ACQUIRE) < PES) {
        wefti_os_sleep_ns(100000);
    }
    wefti_os_sleep_ns(s->place % 2 == 0 ? 10000000 : 100000); /* some sleep by now, or none */
    CHECK_OK(weft_world_abort(s->worlds[s->aborter], CODE));
    CHECK_OK(weft_world_abort(s->worlds[s->aborter], CODE + 1)); /* the first one holds */
    CHECK_OK(weft_world_abort(s->worlds[(s->aborter + 1) % PES], CODE + 2));
    __atomic_store_n(&s->aborted, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void test_abort_everywhere(void **state)
{
    (void)state;
    ledger before = ledger_read();
    scene s;
    memset(&s, 0, sizeof s);
    pes_create_world(PES, s.bystanders);
    for (s.place = 0; s.place < PLACES; s.place++) {
        for (s.aborter = AWAY - 1; s.aborter <= AWAY; s.aborter++) {
            pthread_t thread;
            s.inside = 0;
            s.aborted = 0;
            pes_create_world(PES, s.worlds);
            assert_int_equal(pthread_create(&thread, NULL, abort_later, &s), 0);
            pes_run_in(PES, s.worlds, be_aborted, &s);
            pthread_join(thread, NULL);
            pes_destroy_world(PES, s.worlds);
        }
    }
    pes_destroy_world(PES, s.bystanders);
    ledger_assert_same(&before);
}

/* All PEs abort at once, each with a code of its own, while they use the world: every call ends, naming one of them. */
static void abort_each_other(weft_world *world, void *context)
{
    (void)context;
    weft_status status = WEFT_OK;
    int culprit = -1;
    for (int i = 0; status == WEFT_OK; i++) {
        status = weft_barrier(world);
        if (i == 50 + weft_world_pe(world) % 2) {
            CHECK_OK(weft_world_abort(world, weft_world_pe(world)));
        }
    }
    CHECK(status == WEFT_ERR_ABORTED);
    CHECK_STATUS(weft_world_fault(world, &culprit), WEFT_ERR_ABORTED);
    CHECK(culprit >= 0 && culprit < PES);
    CHECK_NAMES(culprit);
}

static void test_all_abort(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pes_run(PES, abort_each_other, NULL);
    }
}

/* ---- config.interrupted ---- */

/* What the question of PE 0 has met. */
typedef struct question {
    scene scene;
    pthread_t asked; /* the thread that waits */
    int times;
    int from_elsewhere;
} question;

static int answer(void *context)
{
    question *q = context;
    q->from_elsewhere += !pthread_equal(pthread_self(), q->asked);
    return ++q->times == 3 ? CODE : 0;
}

static void be_interrupted(weft_world *world, void *context)
{
    question *q = context;
    scene *s = &q->scene;
    things t = {0};
    const int reverse[] = {3, 2, 1, 0};
    CHECK_OK(weft_calloc(world, 8, 8, &t.block));
    CHECK_OK(weft_team_create(weft_team_world(world), reverse, PES, &t.team));
    CHECK_OK(weft_barrier(world));
    __atomic_add_fetch(&s->inside, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&s->inside, __ATOMIC_ACQUIRE) < PES) {
        wefti_os_sleep_ns(100000);
    }
    if (weft_world_pe(world) == 0) {
        uint64_t start = wefti_os_now_ns();
        q->asked = pthread_self();
        q->times = 0; /* the calls before may have waited, too */
        check_aborted(world, s, places[s->place].call(world, &t), "interrupted");
        CHECK(wefti_os_now_ns() - start < PATIENCE_NS);
        CHECK_SAY(q->times == 3, "it was asked %d times", q->times);
        CHECK(q->from_elsewhere == 0);
    } else if (weft_world_pe(world) != AWAY) {
        check_aborted(world, s, places[s->place].call(world, &t), "beside");
    } else {
        while (weft_world_fault(world, NULL) == WEFT_OK) {
            wefti_os_sleep_ns(100000);
        }
    }
    CHECK_OK(weft_team_destroy(t.team));
}

static void test_interrupted(void **state)
{
    (void)state;
    question q;
    memset(&q, 0, sizeof q);
    for (q.scene.place = 0; q.scene.place < PLACES; q.scene.place++) {
        weft_world_config configs[PES];
        pes_outcome outcomes[PES];
        weft_threads *meeting = pes_meeting(PES);
        for (int pe = 0; pe < PES; pe++) {
            configs[pe] = pes_config(meeting, pe, PES);
        }
        configs[0].interrupted = answer;
        configs[0].interrupted_context = &q;
        q.times = INT_MIN / 2;
        q.from_elsewhere = 0;
        q.scene.inside = 0;
        pes_create(configs, PES, outcomes);
        for (int pe = 0; pe < PES; pe++) {
            assert_int_equal(outcomes[pe].status, WEFT_OK);
            q.scene.worlds[pe] = outcomes[pe].world;
        }
        weft_threads_destroy(meeting);
        pes_run_in(PES, q.scene.worlds, be_interrupted, &q);
        pes_destroy_world(PES, q.scene.worlds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_abort_everywhere),
        CHECKED_TEST(test_all_abort),
        CHECKED_TEST(test_interrupted),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
