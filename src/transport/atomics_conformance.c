/* The part of the suite of transports on atomics: what each operation gives and leaves, and many at one word. See
 * conformance.c. */
#include "transport/tester_conformance.h"

#include <string.h>

#include "support/pattern.h"

static uint64_t mask_of(int bits)
{
    return bits == 32 ? UINT32_MAX : UINT64_MAX;
}

/* What the word holds after the operation. */
static uint64_t model_of(wefti_amo_op op, uint64_t before, uint64_t value, uint64_t cond)
{
    switch (op) {
    case WEFTI_AMO_FETCH:
        return before;
    case WEFTI_AMO_SET:
    case WEFTI_AMO_SWAP:
        return value;
    case WEFTI_AMO_COMPARE_SWAP:
        return before == cond ? value : before;
    case WEFTI_AMO_ADD:
        return before + value;
    case WEFTI_AMO_AND:
        return before & value;
    case WEFTI_AMO_OR:
        return before | value;
    default:
        return before ^ value;
    }
}

/* One operation on the word at `at` of `to`, from `before`. For 32 bits the upper halves of the operands are noise. */
static void try_amo(tester *t, int to, void *at, wefti_amo_op op, int bits, uint64_t before, uint64_t value,
                    uint64_t cond)
{
    uint64_t mask = mask_of(bits);
    uint64_t noise = bits == 32 ? UINT64_C(0xabcdef01) << 32 : 0;
    uint64_t old = 0;
    uint64_t wanted = model_of(op, before & mask, value & mask, cond & mask) & mask;
    CHECK_OK(amo(t, to, at, WEFTI_AMO_SET, bits, before, 0, &old));
    CHECK_OK(amo(t, to, at, op, bits, (value & mask) | noise, (cond & mask) | noise, &old));
    CHECK_SAY((old & mask) == (before & mask), "amo %d of %d bits: old is %#llx, not %#llx", (int)op, bits,
              (unsigned long long)old, (unsigned long long)before);
    CHECK_OK(amo(t, to, at, WEFTI_AMO_FETCH, bits, 0, 0, &old));
    CHECK_SAY((old & mask) == wanted, "amo %d of %d bits on %#llx with %#llx, %#llx made %#llx, not %#llx", (int)op,
              bits, (unsigned long long)before, (unsigned long long)value, (unsigned long long)cond,
              (unsigned long long)old, (unsigned long long)wanted);
}

static const uint64_t extremes[] = {0,
                                    1,
                                    UINT64_MAX,
                                    INT64_MAX,
                                    (uint64_t)INT64_MIN,
                                    UINT32_MAX,
                                    INT32_MAX,
                                    UINT64_C(0x80000000),
                                    UINT64_C(0x100000000),
                                    UINT64_C(0x0123456789abcdef)};
#define EXTREMES (sizeof extremes / sizeof *extremes)

void conformance_amo_values(tester *t)
{
    uint64_t *mine = t->words + 8 * (size_t)t->pe + 4; /* the neighbours stay poisoned */
    memset(t->words, POISON, WORDS * sizeof(uint64_t));
    CHECK_OK(weft_barrier(t->world));
    for (int to = 0; to < t->pes; to++) {
        if (!must_reach(t->pe, to)) {
            continue;
        }
        for (int op = WEFTI_AMO_FETCH; op <= WEFTI_AMO_XOR; op++) {
            for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {
                uint64_t before = extremes[i / EXTREMES];
                uint64_t value = extremes[i % EXTREMES];
                try_amo(t, to, mine, (wefti_amo_op)op, 64, before, value, i % 2 == 0 ? before : before + 1);
                try_amo(t, to, (uint32_t *)mine + 3, (wefti_amo_op)op, 32, before, value,
                        i % 2 == 0 ? before : before + 1);
            }
        }
    }
    CHECK_OK(weft_barrier(t->world));
    for (int from = 0; from < PES; from++) {
        const unsigned char *around = (const unsigned char *)(t->words + 8 * (size_t)from);
        int reached = must_reach(from, t->pe);
        poison_check(around, 4 * sizeof(uint64_t), "the words before an atomic");
        poison_check(around + 40, 4, "the bytes between two atomics");
        poison_check(around + 48, 16, "the words after an atomic");
        CHECK(!reached || memcmp(around + 32, "\xee\xee\xee\xee", 4) != 0);
    }
}

#define ADDS 2000

/* How often each old value was seen; all PEs are threads of this process. */
static unsigned char olds_seen[PES * ADDS];

/* Everybody counts on the word of PE 0, by the transport and, its owner, also by load and store. */
static void count_together(tester *t, uint64_t *counter, int pes)
{
    uint64_t last = 0;
    for (int i = 0; i < ADDS; i++) {
        uint64_t old = UINT64_MAX;
        if (t->pe == 0 && i % 2 == 0) {
            CHECK_OK(weft_uint64_atomic_fetch_add(t->world, counter, 1, 0, &old));
        } else {
            CHECK_OK(amo(t, 0, counter, WEFTI_AMO_ADD, 64, 1, 0, &old));
        }
        if (!CHECK_SAY(old < (uint64_t)pes * ADDS, "an old value of %llu", (unsigned long long)old)) {
            return;
        }
        CHECK(i == 0 || old > last);
        last = old;
        __atomic_fetch_add(&olds_seen[old], 1, __ATOMIC_RELAXED);
    }
}

/* Each PE turns its own bits on and off, and adds 1 by compare and swap, all in words of PE 0. */
static void mix_together(tester *t, uint64_t *bits, uint32_t *swapped)
{
    uint64_t own = UINT64_C(1) << (t->pe * 3);
    uint64_t old;
    for (int i = 0; i < ADDS; i++) {
        CHECK_OK(amo(t, 0, bits, WEFTI_AMO_OR, 64, own, 0, &old));
        CHECK((old & own) == 0);
        CHECK_OK(amo(t, 0, bits, WEFTI_AMO_XOR, 64, own | own << 1, 0, &old));
        CHECK((old & own) == own);
        CHECK_OK(amo(t, 0, bits, WEFTI_AMO_AND, 64, ~(own << 1), 0, &old));
        uint64_t expected;
        CHECK_OK(amo(t, 0, swapped, WEFTI_AMO_FETCH, 32, 0, 0, &expected));
        for (;;) {
            CHECK_OK(amo(t, 0, swapped, WEFTI_AMO_COMPARE_SWAP, 32, expected + 1, expected, &old));
            if ((uint32_t)old == (uint32_t)expected) {
                break;
            }
            expected = old;
        }
    }
}

void conformance_amo_contended(tester *t)
{
    int pes = conformance_reached == CONFORMANCE_REACHES_ALL ? t->pes : 1;
    uint64_t *counter = t->words;
    uint64_t *bits = t->words + 8;
    uint32_t *swapped = (uint32_t *)(t->words + 16);
    if (t->pe == 0) {
        memset(olds_seen, 0, sizeof olds_seen);
    }
    CHECK_OK(weft_barrier(t->world));
    if (must_reach(t->pe, 0)) {
        count_together(t, counter, pes);
        mix_together(t, bits, swapped);
    }
    CHECK_OK(weft_barrier(t->world));
    if (t->pe == 0) {
        CHECK(*counter == (uint64_t)pes * ADDS);
        CHECK(*bits == 0);
        CHECK(*swapped == (uint32_t)pes * ADDS && swapped[1] == 0);
        for (int i = 0; i < pes * ADDS; i++) {
            CHECK_SAY(olds_seen[i] == 1, "the old value %d was seen %d times", i, olds_seen[i]);
        }
    }
}
