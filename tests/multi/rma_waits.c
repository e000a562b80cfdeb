/* Goal: wait_until and test compare as their types do, signed and unsigned, at every edge; a wait ends when another
 * PE's write makes it true, by whatever call it is written, and gives the value seen. Method: generated from the type
 * table. test is compared with C for all pairs of extreme values. For waits, each PE's right neighbour waits for a
 * write of its own; it says first that it waits, and sometimes the writer lets it wait long enough to sleep. */
#include <string.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pe_main.h"

static const uint64_t extremes[] = {
    0, 1, 2, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, INT32_MAX, (uint64_t)INT32_MAX + 1, UINT32_MAX};
#define EXTREMES (sizeof extremes / sizeof *extremes)

/* Between neighbours: the writer's word that is waited on, and the waiter's word that it is ready. */
typedef struct line {
    uint64_t word;
    uint64_t ready;
    uint64_t unused[6];
} line;

#define COMPARE(cmp, a, b)                                                                                             \
    ((cmp) == WEFT_CMP_EQ   ? (a) == (b)                                                                               \
     : (cmp) == WEFT_CMP_NE ? (a) != (b)                                                                               \
     : (cmp) == WEFT_CMP_GT ? (a) > (b)                                                                                \
     : (cmp) == WEFT_CMP_GE ? (a) >= (b)                                                                               \
     : (cmp) == WEFT_CMP_LT ? (a) < (b)                                                                                \
                            : (a) <= (b))

/* What a PE and its neighbours do in one wait. */
typedef struct turn {
    weft_world *world;
    line *own; /* of this PE: its left neighbour writes there */
    int left;
    int right;
    uint64_t number; /* of this wait, from 1 on */
} turn;

/* The waiter is about to wait. */
static void say_ready(turn *t)
{
    t->number++;
    CHECK_OK(weft_uint64_p(t->world, &t->own->ready, t->number, t->left));
}

/* The writer: wait for its right neighbour, and let it sleep now and then. */
static void await_ready(const turn *t)
{
    CHECK_OK(weft_uint64_wait_until(t->world, &t->own->ready, WEFT_CMP_EQ, t->number));
    if (t->number % 41 == 0) {
        wefti_os_sleep_ns(400000);
    }
}

#define DEFINE_TYPE(NAME, TYPE)                                                                                        \
    static void NAME##_test_all(weft_world *world, line *own)                                                          \
    {                                                                                                                  \
        TYPE *word = (TYPE *)(void *)&own->word;                                                                       \
        for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {                                                             \
            TYPE value = (TYPE)extremes[i % EXTREMES];                                                                 \
            *word = (TYPE)extremes[i / EXTREMES];                                                                      \
            for (int cmp = WEFT_CMP_EQ; cmp <= WEFT_CMP_LE; cmp++) {                                                   \
                int wanted = COMPARE(cmp, *word, value);                                                               \
                int got = 7;                                                                                           \
                CHECK_OK(weft_##NAME##_test(world, word, (weft_cmp)cmp, value, &got));                                 \
                CHECK_SAY(got == wanted, #NAME " test: %#llx, comparison %d, %#llx gave %d",                           \
                          (unsigned long long)*word, cmp, (unsigned long long)value, got);                             \
                if (wanted) {                                                                                          \
                    CHECK_OK(weft_##NAME##_wait_until(world, word, (weft_cmp)cmp, value));                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_write(const turn *t, TYPE value)                                                                \
    {                                                                                                                  \
        TYPE *word = (TYPE *)(void *)&t->own->word;                                                                    \
        TYPE old = 0;                                                                                                  \
        switch (t->number % 4) {                                                                                       \
        case 0:                                                                                                        \
            CHECK_OK(weft_##NAME##_p(t->world, word, value, t->right));                                                \
            break;                                                                                                     \
        case 1:                                                                                                        \
            CHECK_OK(weft_##NAME##_atomic_set(t->world, word, value, t->right));                                       \
            break;                                                                                                     \
        case 2:                                                                                                        \
            CHECK_OK(weft_##NAME##_atomic_swap(t->world, word, value, t->right, &old));                                \
            break;                                                                                                     \
        default:                                                                                                       \
            CHECK_OK(weft_##NAME##_atomic_fetch(t->world, word, t->right, &old));                                      \
            CHECK_OK(weft_##NAME##_atomic_compare_swap(t->world, word, old, value, t->right, &old));                   \
            break;                                                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_wait_once(turn *t, weft_cmp cmp, TYPE before, TYPE value, TYPE after)                           \
    {                                                                                                                  \
        TYPE *word = (TYPE *)(void *)&t->own->word;                                                                    \
        if (COMPARE(cmp, before, value) || !COMPARE(cmp, after, value)) {                                              \
            return;                                                                                                    \
        }                                                                                                              \
        CHECK_OK(weft_##NAME##_atomic_set(t->world, word, before, weft_world_pe(t->world)));                           \
        int holds = 1;                                                                                                 \
        CHECK_OK(weft_##NAME##_test(t->world, word, cmp, value, &holds));                                              \
        CHECK_SAY(!holds, #NAME " test holds before the write");                                                       \
        say_ready(t);                                                                                                  \
        await_ready(t);                                                                                                \
        NAME##_write(t, after);                                                                                        \
        CHECK_OK(weft_##NAME##_wait_until(t->world, word, cmp, value));                                                \
        CHECK_OK(weft_##NAME##_test(t->world, word, cmp, value, &holds));                                              \
        CHECK_SAY(holds, #NAME " test does not hold after the wait");                                                  \
    }                                                                                                                  \
    static void NAME##_wait_all(turn *t)                                                                               \
    {                                                                                                                  \
        for (int cmp = WEFT_CMP_EQ; cmp <= WEFT_CMP_LE; cmp++) {                                                       \
            for (size_t i = 0; i < EXTREMES; i++) {                                                                    \
                TYPE value = (TYPE)extremes[i];                                                                        \
                NAME##_wait_once(t, (weft_cmp)cmp, (TYPE)((uint64_t)value + 1), value, value);                         \
                NAME##_wait_once(t, (weft_cmp)cmp, value, value, (TYPE)((uint64_t)value + 1));                         \
                NAME##_wait_once(t, (weft_cmp)cmp, value, value, (TYPE)((uint64_t)value - 1));                         \
                NAME##_wait_once(t, (weft_cmp)cmp, (TYPE)((uint64_t)value - 1), value, (TYPE)((uint64_t)value + 1));   \
                NAME##_wait_once(t, (weft_cmp)cmp, (TYPE)((uint64_t)value + 1), value, (TYPE)((uint64_t)value - 1));   \
            }                                                                                                          \
        }                                                                                                              \
    }
WEFT_INTEGER_TYPES(DEFINE_TYPE)

static void wait_for_signals(turn *t)
{
    for (uint64_t round = 1; round <= 60; round++) {
        uint64_t *signal = &t->own->word;
        uint64_t seen = 0;
        uint64_t fetched = 0;
        CHECK_OK(weft_uint64_atomic_set(t->world, signal, 0, weft_world_pe(t->world)));
        say_ready(t);
        await_ready(t);
        CHECK_OK(weft_putmem_signal(t->world, NULL, NULL, 0, signal, round,
                                    round % 2 == 0 ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD, t->right));
        CHECK_OK(weft_signal_wait_until(t->world, signal, WEFT_CMP_GE, 1, round % 3 == 0 ? NULL : &seen));
        CHECK(round % 3 == 0 || seen == round);
        CHECK_OK(weft_signal_fetch(t->world, signal, &fetched));
        CHECK(fetched == round);
    }
}

/* Waiting needs no symmetric variable: a thread of this process may write it. */
static void wait_for_local(weft_world *world)
{
    int64_t local = -5;
    CHECK_OK(weft_int64_wait_until(world, &local, WEFT_CMP_LT, -4));
}

static void body(weft_world *world)
{
    int pes = weft_world_pes(world);
    int me = weft_world_pe(world);
    line *own = pe_zeroed(world, sizeof *own);
#define TEST_TYPE(NAME, TYPE) NAME##_test_all(world, own);
    WEFT_INTEGER_TYPES(TEST_TYPE)
    memset(own, 0, sizeof *own);
    CHECK_OK(weft_barrier(world));
    turn t = {.world = world, .own = own, .left = (me + pes - 1) % pes, .right = (me + 1) % pes};
#define WAIT_TYPE(NAME, TYPE) NAME##_wait_all(&t);
    WEFT_INTEGER_TYPES(WAIT_TYPE)
    wait_for_signals(&t);
    wait_for_local(world);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, own));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
