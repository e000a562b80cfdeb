/* Goal: who waits for a lock beyond the deadline is told who holds it, and nobody else; where nobody does, who stands
 * before it in the queue. Method: PEs are threads. What a PE that asks leaves in its words for a moment (see
 * src/rma/lock.c) is put there for as long as another waits; and PEs that only look whether the lock is free do so all
 * the time. One PE has a short deadline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/pes.h"
#include "weft.h"

#define PES 4
#define WAITER 1 /* it has the short deadline */
#define HOLDER 2
#define OTHER 3
#define DEADLINE_NS UINT64_C(800000000)

#define ASKS UINT32_C(0x80000000) /* IN of src/rma/lock.c */
#define HAS UINT32_C(0x40000000)

/* A PE's copy of a lock. */
typedef struct lock_words {
    uint32_t tail;
    uint32_t node;
} lock_words;

typedef struct scene {
    pthread_barrier_t met; /* the world's own has the deadline */
    weft_world *worlds[PES];
    int is_over;
} scene;

static void scene_init(scene *s)
{
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    weft_threads *threads = pes_meeting(PES);
    memset(s, 0, sizeof *s);
    assert_int_equal(pthread_barrier_init(&s->met, NULL, PES), 0);
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(threads, pe, PES);
        configs[pe].deadline_ns = pe == WAITER ? DEADLINE_NS : configs[pe].deadline_ns;
    }
    pes_create(configs, PES, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        assert_int_equal(outcomes[pe].status, WEFT_OK);
        s->worlds[pe] = outcomes[pe].world;
    }
    weft_threads_destroy(threads);
}

static void run(void (*body)(int pe, void *context))
{
    scene s;
    scene_init(&s);
    pes_each(PES, body, &s);
    pes_destroy_world(PES, s.worlds);
    pthread_barrier_destroy(&s.met);
}

static void meet(scene *s)
{
    (void)pthread_barrier_wait(&s->met);
}

/* The waiter's text says `wanted` and names no PE but itself and `named`. */
static void wait_in_vain(weft_world *world, long *lock, const char *wanted, int named)
{
    CHECK_STATUS(weft_set_lock(world, lock), WEFT_ERR_TIMEOUT);
    CHECK_SAY(strstr(weft_last_error(), wanted) != NULL, "no \"%s\" in \"%s\"", wanted, weft_last_error());
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(pe == WAITER || pe == named || !text_names_pe(weft_last_error(), pe), "PE %d is named in \"%s\"", pe,
                  weft_last_error());
    }
}

/* PE 0 and the other PE look whether the lock is free: one half-way for long, one all the time. */
static void blame_with_askers(int pe, void *context)
{
    scene *s = context;
    weft_world *world = s->worlds[pe];
    long *lock = NULL;
    int taken = 0;
    CHECK_OK(weft_calloc(world, 1, sizeof *lock, (void **)&lock));
    lock_words *words = (lock_words *)(void *)lock;
    if (pe == HOLDER) {
        CHECK_OK(weft_set_lock(world, lock));
    } else if (pe == 0) {
        __atomic_store_n(&words->node, ASKS, __ATOMIC_RELEASE);
    }
    meet(s);
    if (pe == WAITER) {
        wait_in_vain(world, lock, "held by PE 2", HOLDER);
        __atomic_store_n(&s->is_over, 1, __ATOMIC_RELEASE);
    }
    while (pe == OTHER && __atomic_load_n(&s->is_over, __ATOMIC_ACQUIRE) == 0) {
        CHECK_OK(weft_test_lock(world, lock, &taken));
    }
    meet(s);
    if (pe == HOLDER) {
        CHECK_OK(weft_clear_lock(world, lock));
    } else if (pe == 0) {
        __atomic_store_n(&words->node, 0, __ATOMIC_RELEASE);
    }
    meet(s);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, lock));
}

static void names_the_holder(void **state)
{
    (void)state;
    run(blame_with_askers);
}

/* PE 0 has made the lock free, and has not yet said in its own words that it does not have it. */
static void blame_after_another(int pe, void *context)
{
    scene *s = context;
    weft_world *world = s->worlds[pe];
    long *lock = NULL;
    CHECK_OK(weft_calloc(world, 1, sizeof *lock, (void **)&lock));
    lock_words *words = (lock_words *)(void *)lock;
    if (pe == HOLDER) {
        CHECK_OK(weft_set_lock(world, lock));
    } else if (pe == 0) {
        __atomic_store_n(&words->node, ASKS | HAS, __ATOMIC_RELEASE);
    }
    meet(s);
    if (pe == WAITER) {
        wait_in_vain(world, lock, "held by PE 2", HOLDER);
    }
    meet(s);
    if (pe == 0) {
        __atomic_store_n(&words->node, 0, __ATOMIC_RELEASE);
    }
    if (pe == HOLDER) {
        CHECK_OK(weft_clear_lock(world, lock));
    }
    meet(s);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, lock));
}

static void names_the_last_holder(void **state)
{
    (void)state;
    run(blame_after_another);
}

/* The holder has asked, and does not go on: it neither holds the lock nor says so. */
static void blame_half_way(int pe, void *context)
{
    scene *s = context;
    weft_world *world = s->worlds[pe];
    long *lock = NULL;
    CHECK_OK(weft_calloc(world, 1, sizeof *lock, (void **)&lock));
    lock_words *words = (lock_words *)(void *)lock;
    meet(s);
    __atomic_store_n(&words->tail, HOLDER + 1, __ATOMIC_RELEASE); /* it counts on one of the PEs */
    __atomic_store_n(&words->node, pe == HOLDER ? ASKS : 0, __ATOMIC_RELEASE);
    meet(s);
    if (pe == WAITER) {
        wait_in_vain(world, lock, "PE 2 stands first in the queue", HOLDER);
    }
    meet(s);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, lock));
}

static void names_who_stands_before(void **state)
{
    (void)state;
    run(blame_half_way);
}

/* The holder clears while the waiter's place is behind one that has left. */
static void pass_over(int pe, void *context)
{
    scene *s = context;
    weft_world *world = s->worlds[pe];
    long *lock = NULL;
    CHECK_OK(weft_calloc(world, 1, sizeof *lock, (void **)&lock));
    if (pe == HOLDER) {
        CHECK_OK(weft_set_lock(world, lock));
    }
    meet(s);
    if (pe == WAITER) {
        wait_in_vain(world, lock, "held by PE 2", HOLDER);
    }
    meet(s);
    if (pe == HOLDER) {
        CHECK_OK(weft_clear_lock(world, lock));
    } else if (pe != WAITER) {
        CHECK_OK(weft_set_lock(world, lock));
        CHECK_OK(weft_clear_lock(world, lock));
    }
    meet(s);
    if (pe == WAITER) {
        CHECK_OK(weft_set_lock(world, lock));
        CHECK_STATUS(weft_set_lock(world, lock), WEFT_ERR_STATE);
        CHECK_OK(weft_clear_lock(world, lock));
        CHECK_STATUS(weft_clear_lock(world, lock), WEFT_ERR_STATE);
    }
    CHECK_OK(weft_barrier(world));
    CHECK(*lock == 0);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, lock));
}

static void passes_over_who_left(void **state)
{
    (void)state;
    run(pass_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(names_the_holder),
        CHECKED_TEST(names_the_last_holder),
        CHECKED_TEST(names_who_stands_before),
        CHECKED_TEST(passes_over_who_left),
    };
    (void)setenv("WEFT_LOG", "none", 0); /* errors are expected */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
