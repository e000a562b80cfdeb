/* Goal: every access of protocol/mem.h, at every width, does what it says on values, at every optimisation level.
 * Method: this file is built once a level. Each operation runs on patterns of bits, in a function of its own (not
 * inlined, operands unknown), inlined where its result replaces its operand, and where the two are combined: gcc 11.3
 * and 12.2 miscompile __atomic_fetch_and, _or and _xor of 32 and 64 bits in the first form, 12.2 _add in the second.
 * Neighbours of the word must stay as they were. */
/* LEVELS: 0 1 2 3 */
#include "weft/protocol/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

#include "os/os.h"

#define APART __attribute__((noinline, noclone))
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define NEIGHBOUR 0x5a

static const uint64_t patterns[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0xffff,
                                    UINT64_C(0x7fffffff),
                                    UINT64_C(0x80000000),
                                    UINT64_C(0xffffffff),
                                    UINT64_C(0x0123456789abcdef),
                                    UINT64_C(0xfedcba9876543210),
                                    UINT64_C(0x8000000000000000),
                                    UINT64_C(0xffffffffffffffff)};

/* A word between two neighbours, which an access of the wrong width would change. */
typedef struct framed {
    unsigned char before[8];
    uint64_t word;
    unsigned char after[8];
} framed;

static void framed_set(framed *frame, uint64_t word)
{
    memset(frame, NEIGHBOUR, sizeof *frame);
    memcpy(&frame->word, &word, sizeof word);
}

static void assert_framed(const framed *frame)
{
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(frame->before[i], NEIGHBOUR);
        assert_int_equal(frame->after[i], NEIGHBOUR);
    }
}

/* ---- loads and stores ---- */

static const int load_orders[] = {WEFTI_RELAXED, WEFTI_ACQUIRE, WEFTI_SEQ_CST};
static const int store_orders[] = {WEFTI_RELAXED, WEFTI_RELEASE, WEFTI_SEQ_CST};

#define DEFINE_ACCESS_TEST(bits)                                                                                       \
    APART static uint##bits##_t load##bits(const void *p, int order)                                                   \
    {                                                                                                                  \
        switch (order) {                                                                                               \
        case WEFTI_ACQUIRE:                                                                                            \
            return wefti_ld##bits(p, WEFTI_ACQUIRE);                                                                   \
        case WEFTI_SEQ_CST:                                                                                            \
            return wefti_ld##bits(p, WEFTI_SEQ_CST);                                                                   \
        default:                                                                                                       \
            return wefti_ld##bits(p, WEFTI_RELAXED);                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    APART static void store##bits(void *p, uint##bits##_t value, int order)                                            \
    {                                                                                                                  \
        switch (order) {                                                                                               \
        case WEFTI_RELEASE:                                                                                            \
            wefti_st##bits(p, value, WEFTI_RELEASE);                                                                   \
            break;                                                                                                     \
        case WEFTI_SEQ_CST:                                                                                            \
            wefti_st##bits(p, value, WEFTI_SEQ_CST);                                                                   \
            break;                                                                                                     \
        default:                                                                                                       \
            wefti_st##bits(p, value, WEFTI_RELAXED);                                                                   \
            break;                                                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void test_access##bits(void **state)                                                                        \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        for (size_t i = 0; i < COUNT_OF(patterns) * COUNT_OF(load_orders); i++) {                                      \
            uint##bits##_t value = (uint##bits##_t)patterns[i / COUNT_OF(load_orders)];                                \
            size_t order = i % COUNT_OF(load_orders);                                                                  \
            framed frame;                                                                                              \
            framed_set(&frame, ~(uint64_t)value);                                                                      \
            store##bits(&frame.word, value, store_orders[order]);                                                      \
            assert_true(load##bits(&frame.word, load_orders[order]) == value);                                         \
            assert_true((uint##bits##_t)frame.word == value);                                                          \
            assert_memory_equal((unsigned char *)&frame.word + bits / 8,                                               \
                                (unsigned char *)&(uint64_t){~(uint64_t)value} + bits / 8, 8 - bits / 8);              \
            assert_framed(&frame);                                                                                     \
        }                                                                                                              \
    }

DEFINE_ACCESS_TEST(8)
DEFINE_ACCESS_TEST(16)
DEFINE_ACCESS_TEST(32)
DEFINE_ACCESS_TEST(64)

/* ---- read, modify, write ---- */

/* X(operation, what the word becomes, from old and value) */
#define RMW_TABLE(X, bits)                                                                                             \
    X(add, bits, old + value)                                                                                          \
    X(xchg, bits, value)                                                                                               \
    X(and, bits, old &value)                                                                                           \
    X(or, bits, old | value)                                                                                           \
    X(xor, bits, old ^ value)

/* apart: operands unknown, result returned. merged: the result takes the operand's place when `condition` holds.
 * reckoned: what the word becomes, from result and operand, unless that is 0. dropped: nobody looks at the result. */
#define DEFINE_RMW_FORMS(name, bits, result)                                                                           \
    APART static uint##bits##_t name##bits##_apart(void *p, uint##bits##_t value)                                      \
    {                                                                                                                  \
        return wefti_##name##bits(p, value);                                                                           \
    }                                                                                                                  \
    APART static uint##bits##_t name##bits##_merged(int condition, void *p, uint##bits##_t value)                      \
    {                                                                                                                  \
        if (condition) {                                                                                               \
            value = wefti_##name##bits(p, value);                                                                      \
        }                                                                                                              \
        return value;                                                                                                  \
    }                                                                                                                  \
    APART static uint##bits##_t name##bits##_reckoned(void *p, uint##bits##_t value)                                   \
    {                                                                                                                  \
        uint##bits##_t becomes = 0;                                                                                    \
        if (value != 0) {                                                                                              \
            uint##bits##_t old = wefti_##name##bits(p, value);                                                         \
            (void)old;                                                                                                 \
            becomes = (uint##bits##_t)(result);                                                                        \
        }                                                                                                              \
        return becomes;                                                                                                \
    }                                                                                                                  \
    APART static void name##bits##_dropped(void *p, uint##bits##_t value)                                              \
    {                                                                                                                  \
        (void)wefti_##name##bits(p, value);                                                                            \
    }                                                                                                                  \
    static uint##bits##_t name##bits##_result(uint##bits##_t old, uint##bits##_t value)                                \
    {                                                                                                                  \
        (void)old;                                                                                                     \
        return (uint##bits##_t)(result);                                                                               \
    }                                                                                                                  \
    static void name##bits##_check(uint##bits##_t old, uint##bits##_t value)                                           \
    {                                                                                                                  \
        uint##bits##_t wanted = name##bits##_result(old, value);                                                       \
        uint64_t high = bits == 32 ? UINT64_C(0x1122334400000000) : 0;                                                 \
        framed frame;                                                                                                  \
        framed_set(&frame, high | old);                                                                                \
        assert_true(name##bits##_apart(&frame.word, value) == old);                                                    \
        assert_true(frame.word == (high | wanted));                                                                    \
        framed_set(&frame, high | old);                                                                                \
        assert_true(name##bits##_merged(1, &frame.word, value) == old);                                                \
        assert_true(frame.word == (high | wanted));                                                                    \
        assert_true(name##bits##_merged(0, &frame.word, value) == value);                                              \
        assert_true(frame.word == (high | wanted));                                                                    \
        framed_set(&frame, high | old);                                                                                \
        assert_true(name##bits##_reckoned(&frame.word, value) == (value != 0 ? wanted : 0));                           \
        framed_set(&frame, high | old);                                                                                \
        name##bits##_dropped(&frame.word, value);                                                                      \
        assert_true(frame.word == (high | wanted));                                                                    \
        framed_set(&frame, high | old);                                                                                \
        uint##bits##_t operand = value; /* inlined here, merged with its operand */                                    \
        operand = wefti_##name##bits(&frame.word, operand);                                                            \
        assert_true(operand == old);                                                                                   \
        assert_true(frame.word == (high | wanted));                                                                    \
        assert_framed(&frame);                                                                                         \
    }                                                                                                                  \
    static void test_##name##bits(void **state)                                                                        \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        for (size_t i = 0; i < COUNT_OF(patterns); i++) {                                                              \
            for (size_t j = 0; j < COUNT_OF(patterns); j++) {                                                          \
                name##bits##_check((uint##bits##_t)patterns[i], (uint##bits##_t)patterns[j]);                          \
            }                                                                                                          \
        }                                                                                                              \
    }

RMW_TABLE(DEFINE_RMW_FORMS, 32)
RMW_TABLE(DEFINE_RMW_FORMS, 64)

#define DEFINE_CAS_TEST(bits)                                                                                          \
    APART static uint##bits##_t cas##bits##_apart(void *p, uint##bits##_t expected, uint##bits##_t value)              \
    {                                                                                                                  \
        return wefti_cas##bits(p, expected, value);                                                                    \
    }                                                                                                                  \
    APART static uint##bits##_t cas##bits##_merged(int condition, void *p, uint##bits##_t expected,                    \
                                                   uint##bits##_t value)                                               \
    {                                                                                                                  \
        if (condition) {                                                                                               \
            value = wefti_cas##bits(p, expected, value);                                                               \
        }                                                                                                              \
        return value;                                                                                                  \
    }                                                                                                                  \
    static void cas##bits##_check(uint##bits##_t old, uint##bits##_t expected, uint##bits##_t value)                   \
    {                                                                                                                  \
        uint##bits##_t wanted = old == expected ? value : old;                                                         \
        framed frame;                                                                                                  \
        framed_set(&frame, old);                                                                                       \
        assert_true(cas##bits##_apart(&frame.word, expected, value) == old);                                           \
        assert_true(frame.word == wanted);                                                                             \
        framed_set(&frame, old);                                                                                       \
        assert_true(cas##bits##_merged(1, &frame.word, expected, value) == old);                                       \
        assert_true(frame.word == wanted);                                                                             \
        assert_framed(&frame);                                                                                         \
    }                                                                                                                  \
    static void test_cas##bits(void **state)                                                                           \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        for (size_t i = 0; i < COUNT_OF(patterns); i++) {                                                              \
            for (size_t j = 0; j < COUNT_OF(patterns); j++) {                                                          \
                uint##bits##_t old = (uint##bits##_t)patterns[i];                                                      \
                uint##bits##_t value = (uint##bits##_t)patterns[j];                                                    \
                cas##bits##_check(old, old, value);                                                                    \
                cas##bits##_check(old, value, (uint##bits##_t)(value + 3));                                            \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_CAS_TEST(32)
DEFINE_CAS_TEST(64)

/* ---- atomicity ---- */

#define ADDERS 4
#define ADDS 20000

typedef struct contended {
    uint64_t sum;
    uint64_t parity; /* each thread flips its own bit an even number of times */
    uint64_t bits;
    uint32_t sum32;
    uint64_t number; /* hands out the threads' bits */
} contended;

static void contend(void *argument)
{
    contended *words = argument;
    uint64_t own = UINT64_C(1) << wefti_add64(&words->number, 1);
    for (int i = 0; i < ADDS; i++) {
        (void)wefti_add64(&words->sum, 3);
        (void)wefti_add32(&words->sum32, 1);
        (void)wefti_xor64(&words->parity, own);
        uint64_t before = (i & 1) == 0 ? wefti_or64(&words->bits, own) : wefti_and64(&words->bits, ~own);
        assert_int_equal((before & own) != 0, i & 1);
    }
}

static void test_operations_are_atomic(void **state)
{
    (void)state;
    contended words = {0};
    wefti_os_thread *threads[ADDERS];
    for (int i = 0; i < ADDERS; i++) {
        assert_int_equal(wefti_os_thread_start(&threads[i], contend, &words), WEFT_OK);
    }
    for (int i = 0; i < ADDERS; i++) {
        wefti_os_thread_join(threads[i]);
    }
    assert_int_equal(words.sum, 3 * ADDERS * ADDS);
    assert_int_equal(words.sum32, ADDERS * ADDS);
    assert_int_equal(words.parity, 0);
    assert_int_equal(words.bits, 0);
}

/* ---- flags and copies ---- */

typedef struct mailbox {
    uint64_t flag;
    unsigned char letter[3000];
} mailbox;

static unsigned char letter_byte(uint64_t round, size_t index)
{
    return (unsigned char)(round * 31 + index);
}

static void post_letters(void *argument)
{
    mailbox *box = argument;
    unsigned char letter[sizeof box->letter];
    for (uint64_t round = 1; round <= 500; round++) {
        for (size_t i = 0; i < sizeof letter; i++) {
            letter[i] = letter_byte(round, i);
        }
        wefti_copy(box->letter, letter, sizeof letter);
        wefti_st64(&box->flag, 2 * round - 1, WEFTI_RELEASE);
        while (wefti_ld64(&box->flag, WEFTI_ACQUIRE) != 2 * round) {
            wefti_cpu_relax();
            wefti_os_yield();
        }
    }
}

static void test_a_flag_follows_its_data(void **state)
{
    (void)state;
    static mailbox box;
    unsigned char letter[sizeof box.letter];
    wefti_os_thread *thread;
    assert_int_equal(wefti_os_thread_start(&thread, post_letters, &box), WEFT_OK);
    for (uint64_t round = 1; round <= 500; round++) {
        while (wefti_ld64(&box.flag, WEFTI_ACQUIRE) != 2 * round - 1) {
            wefti_os_yield();
        }
        wefti_copy(letter, box.letter, sizeof letter);
        for (size_t i = 0; i < sizeof letter; i++) {
            assert_int_equal(letter[i], letter_byte(round, i));
        }
        wefti_st64(&box.flag, 2 * round, WEFTI_RELEASE);
    }
    wefti_os_thread_join(thread);
    wefti_fence_release();
    wefti_fence_full();
}

static unsigned char source[1 << 20];
static unsigned char target[(1 << 20) + 256];

static void check_copy(size_t bytes, size_t source_shift, size_t target_shift)
{
    memset(target, NEIGHBOUR, bytes + 192);
    wefti_copy(target + 64 + target_shift, source + source_shift, bytes);
    assert_true(memcmp(target + 64 + target_shift, source + source_shift, bytes) == 0);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(target[target_shift + i], NEIGHBOUR);
        assert_int_equal(target[64 + target_shift + bytes + i], NEIGHBOUR);
    }
}

static void test_copies_of_any_size_and_alignment(void **state)
{
    (void)state;
    static const size_t large[] = {511, 1024, 4096, 4099, 65536, 65521, 1000000};
    for (size_t i = 0; i < sizeof source; i++) {
        source[i] = (unsigned char)(i * 7 + (i >> 8));
    }
    for (size_t bytes = 0; bytes <= 300; bytes++) {
        for (size_t shift = 0; shift < 256; shift += 5) {
            check_copy(bytes, shift & 15, shift >> 4);
        }
    }
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        for (size_t shift = 0; shift < 64; shift += 7) {
            check_copy(large[i], shift, 63 - shift);
            check_copy(large[i], 8, shift);
        }
    }
}

static void test_copies_of_constant_sizes(void **state)
{
    (void)state;
#define CHECK_CONSTANT(bytes)                                                                                          \
    memset(target, NEIGHBOUR, 128);                                                                                    \
    wefti_copy(target, source + 3, bytes);                                                                             \
    assert_memory_equal(target, source + 3, bytes);                                                                    \
    assert_int_equal(target[bytes], NEIGHBOUR);
    CHECK_CONSTANT(1)
    CHECK_CONSTANT(2)
    CHECK_CONSTANT(4)
    CHECK_CONSTANT(8)
    CHECK_CONSTANT(12)
    CHECK_CONSTANT(16)
    CHECK_CONSTANT(64)
    CHECK_CONSTANT(65)
#undef CHECK_CONSTANT
}

int main(void)
{
#define LIST_RMW(name, bits, result) cmocka_unit_test(test_##name##bits),
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access8),
        cmocka_unit_test(test_access16),
        cmocka_unit_test(test_access32),
        cmocka_unit_test(test_access64),
        RMW_TABLE(LIST_RMW, 32) RMW_TABLE(LIST_RMW, 64) cmocka_unit_test(test_cas32),
        cmocka_unit_test(test_cas64),
        cmocka_unit_test(test_operations_are_atomic),
        cmocka_unit_test(test_a_flag_follows_its_data),
        cmocka_unit_test(test_copies_of_any_size_and_alignment),
        cmocka_unit_test(test_copies_of_constant_sizes),
    };
    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
