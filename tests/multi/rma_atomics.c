/* Goal: every typed atomic does its operation on the whole word and nothing beside it, gives the value before, and is
 * atomic against all others.
 * Method: generated from the type tables. Each PE works on its own word of every PE, from all pairs of extreme values,
 * beside the same operation on a local variable; the words around are poisoned. Then all PEs work on one word of each
 * PE at once, and the sums, the tickets and the bits must come out. */
#include <float.h>
#include <limits.h>
#include <string.h>

#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

/* ---- one PE a word ---- */

/* Where the word of PE `pe` lies: 64 bytes each, the word in the middle, at an offset that a type of its size may
 * have. */
#define SLOT_BYTES ((size_t)64)
#define WORD_AT ((size_t)24)

static void *word_of(unsigned char *block, int pe)
{
    return block + (size_t)pe * SLOT_BYTES + WORD_AT;
}

static void check_around(const unsigned char *block, int pes, size_t bytes)
{
    for (int pe = 0; pe < pes; pe++) {
        const unsigned char *slot = block + (size_t)pe * SLOT_BYTES;
        poison_check(slot, WORD_AT, "before an atomic's word");
        poison_check(slot + WORD_AT + bytes, SLOT_BYTES - WORD_AT - bytes, "behind an atomic's word");
    }
}

/* Integers of any width are cut from these. */
static const uint64_t extremes[] = {0,
                                    1,
                                    2,
                                    UINT64_MAX,
                                    INT64_MAX,
                                    (uint64_t)INT64_MIN,
                                    UINT32_MAX,
                                    INT32_MAX,
                                    (uint64_t)INT32_MAX + 1,
                                    UINT64_C(0xfedcba9876543210)};
#define EXTREMES (sizeof extremes / sizeof *extremes)

#define CHECK_WORD(NAME, TYPE, what, got, wanted)                                                                      \
    CHECK_SAY((got) == (wanted), #NAME " " what ": %#llx, not %#llx", (unsigned long long)(got),                       \
              (unsigned long long)(wanted))

#define DEFINE_STANDARD(NAME, TYPE)                                                                                    \
    static void NAME##_standard(weft_world *world, TYPE *word, int pe, TYPE before, TYPE value)                        \
    {                                                                                                                  \
        TYPE sum = (TYPE)((uint64_t)before + (uint64_t)value);                                                         \
        TYPE next = (TYPE)((uint64_t)sum + 1);                                                                         \
        TYPE got = (TYPE)0x5a;                                                                                         \
        CHECK_OK(weft_##NAME##_atomic_set(world, word, before, pe));                                                   \
        CHECK_OK(weft_##NAME##_atomic_fetch(world, word, pe, &got));                                                   \
        CHECK_WORD(NAME, TYPE, "set, fetch", got, before);                                                             \
        CHECK_OK(weft_##NAME##_atomic_fetch_add(world, word, value, pe, &got));                                        \
        CHECK_WORD(NAME, TYPE, "fetch_add's old value", got, before);                                                  \
        CHECK_OK(weft_##NAME##_atomic_fetch_inc(world, word, pe, &got));                                               \
        CHECK_WORD(NAME, TYPE, "fetch_inc's old value", got, sum);                                                     \
        CHECK_OK(weft_##NAME##_atomic_swap(world, word, before, pe, &got));                                            \
        CHECK_WORD(NAME, TYPE, "swap's old value", got, next);                                                         \
        CHECK_OK(weft_##NAME##_atomic_add(world, word, value, pe));                                                    \
        CHECK_OK(weft_##NAME##_atomic_inc(world, word, pe));                                                           \
        CHECK_OK(weft_##NAME##_atomic_compare_swap(world, word, next, before, pe, &got));                              \
        CHECK_WORD(NAME, TYPE, "compare_swap's old value", got, next);                                                 \
        CHECK_OK(weft_##NAME##_atomic_compare_swap(world, word, (TYPE)((uint64_t)before + 1), value, pe, &got));       \
        CHECK_WORD(NAME, TYPE, "what a failing compare_swap found", got, before);                                      \
        CHECK_OK(weft_##NAME##_atomic_fetch(world, word, pe, &got));                                                   \
        CHECK_WORD(NAME, TYPE, "what a failing compare_swap left", got, before);                                       \
        CHECK_OK(weft_##NAME##_g(world, word, pe, &got));                                                              \
        CHECK_WORD(NAME, TYPE, "g of an atomic's word", got, before);                                                  \
    }                                                                                                                  \
    static void NAME##_standard_all(weft_world *world, unsigned char *block)                                           \
    {                                                                                                                  \
        TYPE *word = word_of(block, weft_world_pe(world));                                                             \
        for (int pe = 0; pe < weft_world_pes(world); pe++) {                                                           \
            for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {                                                         \
                NAME##_standard(world, word, pe, (TYPE)extremes[i / EXTREMES], (TYPE)extremes[i % EXTREMES]);          \
            }                                                                                                          \
        }                                                                                                              \
    }
WEFT_INTEGER_TYPES(DEFINE_STANDARD)

#define TRY_BITWISE(NAME, TYPE, name, op)                                                                              \
    CHECK_OK(weft_##NAME##_atomic_set(world, word, before, pe));                                                       \
    CHECK_OK(weft_##NAME##_atomic_##name(world, word, value, pe));                                                     \
    CHECK_OK(weft_##NAME##_atomic_fetch(world, word, pe, &got));                                                       \
    CHECK_WORD(NAME, TYPE, #name, got, (TYPE)(before op value));                                                       \
    CHECK_OK(weft_##NAME##_atomic_set(world, word, before, pe));                                                       \
    CHECK_OK(weft_##NAME##_atomic_fetch_##name(world, word, value, pe, &got));                                         \
    CHECK_WORD(NAME, TYPE, "fetch_" #name, got, before);                                                               \
    CHECK_OK(weft_##NAME##_atomic_fetch(world, word, pe, &got));                                                       \
    CHECK_WORD(NAME, TYPE, "after fetch_" #name, got, (TYPE)(before op value));

#define DEFINE_BITWISE(NAME, TYPE)                                                                                     \
    static void NAME##_bitwise_all(weft_world *world, unsigned char *block)                                            \
    {                                                                                                                  \
        TYPE *word = word_of(block, weft_world_pe(world));                                                             \
        for (int pe = 0; pe < weft_world_pes(world); pe++) {                                                           \
            for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {                                                         \
                TYPE before = (TYPE)extremes[i / EXTREMES];                                                            \
                TYPE value = (TYPE)extremes[i % EXTREMES];                                                             \
                TYPE got = 0;                                                                                          \
                TRY_BITWISE(NAME, TYPE, and, &)                                                                        \
                TRY_BITWISE(NAME, TYPE, or, |)                                                                         \
                TRY_BITWISE(NAME, TYPE, xor, ^)                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
WEFT_BITWISE_TYPES(DEFINE_BITWISE)

static const double reals[] = {0.0,
                               -0.0,
                               1.5,
                               -1.0 / 3,
                               FLT_MAX,
                               -FLT_MAX,
                               FLT_MIN / 2,
                               DBL_MAX,
                               DBL_MIN / 2,
                               __builtin_inf(),
                               __builtin_nan("17")};

/* Floats are compared by their bits: nothing computes with them on the way. */
#define DEFINE_FLOAT(NAME, TYPE)                                                                                       \
    static void NAME##_float_all(weft_world *world, unsigned char *block)                                              \
    {                                                                                                                  \
        TYPE *word = word_of(block, weft_world_pe(world));                                                             \
        for (int pe = 0; pe < weft_world_pes(world); pe++) {                                                           \
            for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {                                                \
                TYPE value = (TYPE)reals[i];                                                                           \
                TYPE got = 7;                                                                                          \
                CHECK_OK(weft_##NAME##_atomic_set(world, word, value, pe));                                            \
                CHECK_OK(weft_##NAME##_atomic_fetch(world, word, pe, &got));                                           \
                CHECK_SAY(memcmp(&got, &value, sizeof got) == 0, #NAME " set, fetch of %g", reals[i]);                 \
                CHECK_OK(weft_##NAME##_atomic_swap(world, word, (TYPE)3.25, pe, &got));                                \
                CHECK_SAY(memcmp(&got, &value, sizeof got) == 0, #NAME " swap of %g", reals[i]);                       \
                CHECK_OK(weft_##NAME##_atomic_fetch(world, word, pe, &got));                                           \
                CHECK(got == (TYPE)3.25);                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
WEFT_FLOAT_TYPES(DEFINE_FLOAT)

static void work_alone(weft_world *world)
{
    int pes = weft_world_pes(world);
    size_t bytes = (size_t)pes * SLOT_BYTES;
    unsigned char *block = pe_poisoned(world, bytes);
#define RUN(NAME, TYPE, kind)                                                                                          \
    NAME##_##kind##_all(world, block);                                                                                 \
    CHECK_OK(weft_barrier(world));                                                                                     \
    check_around(block, pes, sizeof(TYPE));                                                                            \
    memset(block, POISON, bytes);                                                                                      \
    CHECK_OK(weft_barrier(world));
#define RUN_STANDARD(NAME, TYPE) RUN(NAME, TYPE, standard)
#define RUN_BITWISE(NAME, TYPE) RUN(NAME, TYPE, bitwise)
#define RUN_FLOAT(NAME, TYPE) RUN(NAME, TYPE, float)
    WEFT_INTEGER_TYPES(RUN_STANDARD)
    WEFT_BITWISE_TYPES(RUN_BITWISE)
    WEFT_FLOAT_TYPES(RUN_FLOAT)
    CHECK_OK(weft_free(world, block));
}

/* ---- all PEs on one word of each ---- */

#define TIMES 40

/* What all PEs share on each PE, a cache line each. */
typedef struct line {
    uint64_t word;
    uint64_t unused[7];
} line;

enum { SUM, TICKETS, SWAPPED, BITS, TOGGLED, HALVES, LINES };

#define DEFINE_SUM(NAME, TYPE)                                                                                         \
    static void NAME##_sum(weft_world *world, line *lines, int pe)                                                     \
    {                                                                                                                  \
        TYPE *word = (TYPE *)(void *)&lines[SUM].word;                                                                 \
        TYPE old;                                                                                                      \
        for (int i = 0; i < TIMES; i++) {                                                                              \
            CHECK_OK(weft_##NAME##_atomic_add(world, word, (TYPE)3, pe));                                              \
            CHECK_OK(weft_##NAME##_atomic_fetch_add(world, word, (TYPE)-1, pe, &old));                                 \
            CHECK_OK(weft_##NAME##_atomic_inc(world, word, pe));                                                       \
            CHECK_OK(weft_##NAME##_atomic_fetch_inc(world, word, pe, &old));                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_sums(weft_world *world, line *lines)                                                            \
    {                                                                                                                  \
        int pes = weft_world_pes(world);                                                                               \
        TYPE got = 0;                                                                                                  \
        for (int i = 0; i < pes; i++) {                                                                                \
            NAME##_sum(world, lines, (weft_world_pe(world) + i) % pes);                                                \
        }                                                                                                              \
        CHECK_OK(weft_barrier(world));                                                                                 \
        CHECK_OK(weft_##NAME##_g(world, (TYPE *)(void *)&lines[SUM].word, weft_world_pe(world), &got));                \
        CHECK_WORD(NAME, TYPE, "sum", got, (TYPE)(4 * TIMES * pes));                                                   \
        CHECK(sizeof(TYPE) == 8 || lines[SUM].word >> 32 == 0);                                                        \
        CHECK_OK(weft_barrier(world));                                                                                 \
        lines[SUM].word = 0;                                                                                           \
        CHECK_OK(weft_barrier(world));                                                                                 \
    }
WEFT_INTEGER_TYPES(DEFINE_SUM)

/* Each ticket of PE 0 is drawn once: who draws it marks it there. */
static void draw_tickets(weft_world *world, line *lines)
{
    int pes = weft_world_pes(world);
    uint32_t *marks = pe_zeroed(world, (size_t)pes * TIMES * sizeof *marks);
    int32_t last = -1;
    for (int i = 0; i < TIMES; i++) {
        int32_t ticket = -1;
        CHECK_OK(weft_int32_atomic_fetch_inc(world, (int32_t *)(void *)&lines[TICKETS].word, 0, &ticket));
        if (CHECK_SAY(ticket > last && ticket < pes * TIMES, "ticket %d after %d", ticket, last)) {
            CHECK_OK(weft_uint32_atomic_inc(world, &marks[ticket], 0));
            last = ticket;
        }
    }
    CHECK_OK(weft_barrier(world));
    for (int i = 0; weft_world_pe(world) == 0 && i < pes * TIMES; i++) {
        CHECK_SAY(marks[i] == 1, "ticket %d was drawn %u times", i, marks[i]);
    }
    CHECK_OK(weft_free(world, marks));
}

/* Add one by compare and swap. */
static void swap_up(weft_world *world, line *lines)
{
    uint64_t *word = &lines[SWAPPED].word;
    for (int i = 0; i < TIMES; i++) {
        uint64_t expected = 0;
        uint64_t old = 0;
        CHECK_OK(weft_uint64_atomic_fetch(world, word, 0, &expected));
        for (;;) {
            if (!CHECK_OK(weft_uint64_atomic_compare_swap(world, word, expected, expected + 1, 0, &old)) ||
                old == expected) {
                break;
            }
            expected = old;
        }
    }
}

/* Each PE's own bit of a word of the last PE: it alone turns it on and off. */
static void turn_bits(weft_world *world, line *lines)
{
    int me = weft_world_pe(world);
    int to = weft_world_pes(world) - 1;
    uint32_t own = UINT32_C(1) << (me % 32);
    uint32_t *bits = (uint32_t *)(void *)&lines[BITS].word;
    uint64_t *toggled = &lines[TOGGLED].word;
    for (int i = 0; i < TIMES; i++) {
        uint32_t old = 0;
        CHECK_OK(weft_uint32_atomic_fetch_or(world, bits, own, to, &old));
        CHECK_SAY((old & own) == 0, "my bit was on in %#x", old);
        CHECK_OK(weft_uint32_atomic_fetch_and(world, bits, ~own, to, &old));
        CHECK_SAY((old & own) == own, "my bit was off in %#x", old);
        CHECK_OK(weft_uint64_atomic_xor(world, toggled, (uint64_t)own << 31, to));
    }
    CHECK_OK(weft_uint32_atomic_or(world, bits, own, to));
}

/* Two words of 32 bits in one of 64: atomics on one leave the other alone. */
static void work_on_halves(weft_world *world, line *lines)
{
    uint32_t *half = (uint32_t *)(void *)&lines[HALVES].word + weft_world_pe(world) % 2;
    for (int i = 0; i < TIMES; i++) {
        CHECK_OK(weft_uint32_atomic_inc(world, half, 0));
    }
}

static void work_together(weft_world *world)
{
    int pes = weft_world_pes(world);
    int me = weft_world_pe(world);
    line *lines = pe_zeroed(world, LINES * sizeof *lines);
#define RUN_SUM(NAME, TYPE) NAME##_sums(world, lines);
    WEFT_INTEGER_TYPES(RUN_SUM)
    draw_tickets(world, lines);
    swap_up(world, lines);
    turn_bits(world, lines);
    work_on_halves(world, lines);
    CHECK_OK(weft_barrier(world));
    if (me == 0) {
        const uint32_t *halves = (const uint32_t *)(const void *)&lines[HALVES].word;
        CHECK(lines[SWAPPED].word == (uint64_t)pes * TIMES);
        CHECK(halves[0] == (uint32_t)((pes + 1) / 2 * TIMES) && halves[1] == (uint32_t)(pes / 2 * TIMES));
    }
    if (me == pes - 1) {
        CHECK(lines[BITS].word == (pes >= 32 ? UINT32_MAX : (UINT64_C(1) << pes) - 1));
        CHECK(lines[TOGGLED].word == 0);
    }
    CHECK_OK(weft_free(world, lines));
}

static void body(weft_world *world)
{
    work_alone(world);
    work_together(world);
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
