/* Goal: atomics of all types are atomic, and each does what its name says.
 * Method: all PEs work at once on words of PE 0, whose final values no order can change; and each alone on its
 * next PE's. */
#include "faces/nvshmem/check.h"

#define ROUNDS 40

static int me;
static int pes;
static int next;

#define CHECK_EXTENDED(NAME, TYPE)                                                                                     \
    static void check_##NAME##_extended(void)                                                                          \
    {                                                                                                                  \
        TYPE *word = ZEROED(TYPE, 1);                                                                                  \
        nvshmem_##NAME##_atomic_set(word, (TYPE)(me + 1), next);                                                       \
        CHECK(nvshmem_##NAME##_atomic_fetch(word, next) == (TYPE)(me + 1));                                            \
        CHECK(nvshmem_##NAME##_atomic_swap(word, (TYPE)99, next) == (TYPE)(me + 1));                                   \
        nvshmem_barrier_all();                                                                                         \
        CHECK(*word == (TYPE)99);                                                                                      \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(word);                                                                                            \
    }
EXTENDED_TYPES(CHECK_EXTENDED)

#define CHECK_AMO(NAME, TYPE)                                                                                          \
    static void check_##NAME(void)                                                                                     \
    {                                                                                                                  \
        TYPE *words = ZEROED(TYPE, 5);                                                                                 \
        for (int i = 0; i < ROUNDS; i++) {                                                                             \
            nvshmem_##NAME##_atomic_inc(&words[0], 0);                                                                 \
            CHECK(nvshmem_##NAME##_atomic_fetch_inc(&words[1], 0) < (TYPE)(ROUNDS * pes));                             \
            nvshmem_##NAME##_atomic_add(&words[2], (TYPE)(me + 1), 0);                                                 \
            CHECK(nvshmem_##NAME##_atomic_fetch_add(&words[3], (TYPE)2, 0) % 2 == 0);                                  \
            for (TYPE seen = 0, is = 0;; seen = is) { /* one more, by comparison */                                    \
                is = nvshmem_##NAME##_atomic_compare_swap(&words[4], seen, (TYPE)(seen + 1), 0);                       \
                if (is == seen) {                                                                                      \
                    break;                                                                                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_g(&words[0], 0) == (TYPE)(ROUNDS * pes));                                               \
        CHECK(nvshmem_##NAME##_g(&words[1], 0) == (TYPE)(ROUNDS * pes));                                               \
        CHECK(nvshmem_##NAME##_g(&words[2], 0) == (TYPE)(ROUNDS * pes * (pes + 1) / 2));                               \
        CHECK(nvshmem_##NAME##_g(&words[3], 0) == (TYPE)(2 * ROUNDS * pes));                                           \
        CHECK(nvshmem_##NAME##_g(&words[4], 0) == (TYPE)(ROUNDS * pes));                                               \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(words);                                                                                           \
    }
AMO_TYPES(CHECK_AMO)

#define CHECK_BITWISE(NAME, TYPE)                                                                                      \
    static void check_##NAME##_bitwise(void)                                                                           \
    {                                                                                                                  \
        TYPE *words = ZEROED(TYPE, 6);                                                                                 \
        const TYPE bit = (TYPE)1 << me;                                                                                \
        words[2] = words[3] = (TYPE)-1;                                                                                \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_##NAME##_atomic_or(&words[0], bit, 0);                                                                 \
        CHECK((nvshmem_##NAME##_atomic_fetch_or(&words[1], bit, 0) & bit) == 0);                                       \
        nvshmem_##NAME##_atomic_and(&words[2], (TYPE)~bit, 0);                                                         \
        CHECK((nvshmem_##NAME##_atomic_fetch_and(&words[3], (TYPE)~bit, 0) & bit) == bit);                             \
        nvshmem_##NAME##_atomic_xor(&words[4], bit, 0);                                                                \
        CHECK((nvshmem_##NAME##_atomic_fetch_xor(&words[5], bit, 0) & bit) == 0);                                      \
        nvshmem_barrier_all();                                                                                         \
        const TYPE all = (TYPE)(((TYPE)1 << pes) - 1);                                                                 \
        for (int i = 0; i < 6; i++) {                                                                                  \
            CHECK(nvshmem_##NAME##_g(&words[i], 0) == (i == 2 || i == 3 ? (TYPE)~all : all));                          \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(words);                                                                                           \
    }
BITWISE_TYPES(CHECK_BITWISE)

#define CHECK_SUM(NAME, TYPE)                                                                                          \
    static void check_##NAME##_sum(void)                                                                               \
    {                                                                                                                  \
        TYPE *words = ZEROED(TYPE, 2);                                                                                 \
        for (int i = 0; i < ROUNDS; i++) {                                                                             \
            nvshmemx_##NAME##_atomic_add(&words[0], (TYPE)0.5, 0);                                                     \
            CHECK(nvshmemx_##NAME##_atomic_fetch_add(&words[1], (TYPE)1, 0) < (TYPE)(ROUNDS * pes));                   \
        }                                                                                                              \
        nvshmem_barrier_all();                                                                                         \
        CHECK(nvshmem_##NAME##_g(&words[0], 0) == (TYPE)(ROUNDS * pes) / 2);                                           \
        CHECK(nvshmem_##NAME##_g(&words[1], 0) == (TYPE)(ROUNDS * pes));                                               \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(words);                                                                                           \
    }
CHECK_SUM(float, float)
CHECK_SUM(double, double)

/* Halves of one word, of which the sums leave the other ones alone, among them a signalling NaN. */
static half half_of(unsigned short bits)
{
    half value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static unsigned short bits_of(half value)
{
    unsigned short bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The half that is a number from 1 to 2048. */
static unsigned short bits_of_number(int number)
{
    const float value = (float)number;
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return (unsigned short)(((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3ff));
}

static void check_halves(void)
{
    enum { ONE = 0x3c00, NEGATIVE_ZERO = 0x8000, NAN_TO_SIGNAL = 0x7d55, LARGEST = 0x7bff, INFINITE = 0x7c00 };
    enum { EVEN = 0x6800, ODD = 0x6801 }; /* numbers of which the next one is 2 above, so that 1 is rounded */
    half *const words = ZEROED(half, 8);
    words[1] = half_of(NAN_TO_SIGNAL);
    words[2] = half_of(NEGATIVE_ZERO);
    words[4] = half_of(LARGEST);
    words[6] = half_of(EVEN);
    words[7] = half_of(ODD);
    nvshmem_barrier_all();
    for (int i = 0; i < ROUNDS; i++) {
        nvshmemx_half_atomic_add(&words[0], half_of(ONE), 0);
        (void)nvshmemx_half_atomic_fetch_add(&words[3], half_of(ONE), 0);
    }
    CHECK(bits_of(nvshmemx_half_atomic_fetch_add(&words[4], half_of(LARGEST), me)) == LARGEST);
    CHECK(bits_of(nvshmemx_half_atomic_fetch_add(&words[6], half_of(ONE), next)) == EVEN);
    CHECK(bits_of(nvshmemx_half_atomic_fetch_add(&words[7], half_of(ONE), next)) == ODD);
    nvshmem_barrier_all();
    CHECK(bits_of(nvshmem_half_g(&words[0], 0)) == bits_of_number(ROUNDS * pes));
    CHECK(bits_of(nvshmem_half_g(&words[3], 0)) == bits_of_number(ROUNDS * pes));
    CHECK(bits_of(words[1]) == NAN_TO_SIGNAL);
    CHECK(bits_of(words[2]) == NEGATIVE_ZERO);
    CHECK(bits_of(words[4]) == INFINITE);
    CHECK(bits_of(words[5]) == 0);
    CHECK(bits_of(words[6]) == EVEN && bits_of(words[7]) == ODD + 1);
    nvshmem_barrier_all();
    nvshmem_free(words);
}

int main(void)
{
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    next = (me + 1) % pes;
#define RUN(NAME, TYPE) check_##NAME();
#define RUN_EXTENDED(NAME, TYPE) check_##NAME##_extended();
#define RUN_BITWISE(NAME, TYPE) check_##NAME##_bitwise();
    EXTENDED_TYPES(RUN_EXTENDED)
    AMO_TYPES(RUN)
    BITWISE_TYPES(RUN_BITWISE)
    check_float_sum();
    check_double_sum();
    check_halves();
    return check_end();
}
