/* Goal: signals, waits and tests of all types, forms and comparisons.
 * Method: each PE puts data and a signal to the next one, which waits for the signal and then finds the data;
 * words are set by the PE before while this one waits; every comparison is tested against C's own. */
#include <unistd.h>

#include "faces/nvshmem/check.h"

#define COUNT 5

static int me;
static int pes;
static int next;
static int before;

#define CHECK_SIGNAL(NAME, TYPE)                                                                                       \
    static void check_##NAME##_signal(void)                                                                            \
    {                                                                                                                  \
        TYPE *block = ZEROED(TYPE, 2 * COUNT);                                                                         \
        uint64_t *signal = ZEROED(uint64_t, 2);                                                                        \
        uint16_t bits[4 * COUNT];                                                                                      \
        TYPE mine[COUNT];                                                                                              \
        TYPE wanted[COUNT];                                                                                            \
        for (int i = 0; i < 4 * COUNT; i++) {                                                                          \
            bits[i] = (uint16_t)number_of(me, i);                                                                      \
        }                                                                                                              \
        memcpy(mine, bits, sizeof mine);                                                                               \
        for (int i = 0; i < 4 * COUNT; i++) {                                                                          \
            bits[i] = (uint16_t)number_of(before, i);                                                                  \
        }                                                                                                              \
        memcpy(wanted, bits, sizeof wanted);                                                                           \
        nvshmem_##NAME##_put_signal(block, mine, COUNT, &signal[0], 3, NVSHMEM_SIGNAL_SET, next);                      \
        CHECK(nvshmem_signal_wait_until(&signal[0], NVSHMEM_CMP_EQ, 3) == 3);                                          \
        CHECK(memcmp(block, wanted, sizeof wanted) == 0);                                                              \
        nvshmem_##NAME##_put_signal_nbi(block + COUNT, mine, COUNT, &signal[1], 4, NVSHMEM_SIGNAL_ADD, next);          \
        nvshmem_quiet();                                                                                               \
        CHECK(nvshmem_signal_wait_until(&signal[1], NVSHMEM_CMP_GE, 4) == 4);                                          \
        CHECK(memcmp(block + COUNT, wanted, sizeof wanted) == 0);                                                      \
        CHECK(nvshmem_signal_fetch(&signal[1]) == 4);                                                                  \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(signal);                                                                                          \
        nvshmem_free(block);                                                                                           \
    }
RMA_TYPES(CHECK_SIGNAL)
SMALL_TYPES(CHECK_SIGNAL)

#define CHECK_SIZE_SIGNAL(BITS, BYTES)                                                                                 \
    static void check_##BITS##_signal(void)                                                                            \
    {                                                                                                                  \
        unsigned char *block = ZEROED(unsigned char, COUNT *(BYTES));                                                  \
        uint64_t *signal = ZEROED(uint64_t, 1);                                                                        \
        unsigned char mine[COUNT * (BYTES)];                                                                           \
        memset(mine, number_of(me, 1), sizeof mine);                                                                   \
        nvshmem_put##BITS##_signal(block, mine, COUNT, signal, 1, NVSHMEM_SIGNAL_ADD, next);                           \
        nvshmem_put##BITS##_signal_nbi(block, mine, COUNT, signal, 1, NVSHMEM_SIGNAL_ADD, next);                       \
        nvshmem_quiet();                                                                                               \
        (void)nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 2);                                                    \
        CHECK(block[0] == number_of(before, 1) && block[COUNT * (BYTES)-1] == number_of(before, 1));                   \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(signal);                                                                                          \
        nvshmem_free(block);                                                                                           \
    }
SIZES(CHECK_SIZE_SIGNAL)

static void check_signal_op(void)
{
    uint64_t *signal = ZEROED(uint64_t, 1);
    char *block = ZEROED(char, 8);
    nvshmemx_signal_op(signal, 5, NVSHMEM_SIGNAL_SET, next);
    (void)nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 5);
    nvshmem_barrier_all();
    nvshmemx_signal_op(signal, 5, NVSHMEM_SIGNAL_ADD, next);
    (void)nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 10);
    nvshmem_barrier_all();
    nvshmem_putmem_signal(block, "weft", 5, signal, 11, NVSHMEM_SIGNAL_SET, next);
    (void)nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 11);
    CHECK(strcmp(block, "weft") == 0);
    nvshmem_barrier_all();
    nvshmem_putmem_signal_nbi(block, "nvsh", 5, signal, 12, NVSHMEM_SIGNAL_SET, next);
    nvshmem_quiet();
    (void)nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GT, 11);
    CHECK(strcmp(block, "nvsh") == 0);
#ifndef WEFT_DEVICE_ON_HOST /* kernels do not look */
    nvshmemx_signal_op(signal, 1, 3, next); /* no such operation */
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_INVALID_VALUE);
#endif
    nvshmem_barrier_all();
    nvshmem_free(block);
    nvshmem_free(signal);
}

#define CHECK_WAIT(NAME, TYPE)                                                                                         \
    static void check_##NAME(void)                                                                                     \
    {                                                                                                                  \
        TYPE *words = ZEROED(TYPE, COUNT);                                                                             \
        TYPE values[COUNT] = {3, 4, 5, 6, 7};                                                                          \
        const int status[COUNT] = {1, 0, 0, 0, 0}; /* the first does not count */                                      \
        const int none[COUNT] = {1, 1, 1, 1, 1};                                                                       \
        size_t indices[COUNT];                                                                                         \
        CHECK(nvshmem_##NAME##_test(words, NVSHMEM_CMP_EQ, 0) && !nvshmem_##NAME##_test(words, NVSHMEM_CMP_NE, 0));    \
        CHECK(nvshmem_##NAME##_test(words, NVSHMEM_CMP_GE, 0) && !nvshmem_##NAME##_test(words, NVSHMEM_CMP_GT, 0));    \
        CHECK(nvshmem_##NAME##_test(words, NVSHMEM_CMP_LE, 0) && !nvshmem_##NAME##_test(words, NVSHMEM_CMP_LT, 0));    \
        CHECK(nvshmem_##NAME##_test(words, NVSHMEM_CMP_LT, 1) && nvshmem_##NAME##_test(words, NVSHMEM_CMP_LE, 1));     \
        CHECK(!nvshmem_##NAME##_test(words, NVSHMEM_CMP_GT, 1) && !nvshmem_##NAME##_test(words, NVSHMEM_CMP_GE, 1));   \
        CHECK(nvshmem_##NAME##_test_any(words, COUNT, status, NVSHMEM_CMP_NE, 0) == SIZE_MAX);                         \
        CHECK(!nvshmem_##NAME##_test_all(words, COUNT, status, NVSHMEM_CMP_NE, 0));                                    \
        CHECK(nvshmem_##NAME##_test_some(words, COUNT, indices, status, NVSHMEM_CMP_NE, 0) == 0);                      \
        CHECK(nvshmem_##NAME##_wait_until_any(words, COUNT, none, NVSHMEM_CMP_NE, 0) == SIZE_MAX);                     \
        CHECK(nvshmem_##NAME##_wait_until_some(words, COUNT, indices, none, NVSHMEM_CMP_NE, 0) == 0);                  \
        nvshmem_##NAME##_wait_until_all(words, COUNT, none, NVSHMEM_CMP_NE, 0);                                        \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_##NAME##_p(&words[2], 5, next);                                                                        \
        CHECK(nvshmem_##NAME##_wait_until_any(words, COUNT, status, NVSHMEM_CMP_EQ, 5) == 2);                          \
        CHECK(nvshmem_##NAME##_wait_until_any_vector(words, COUNT, status, NVSHMEM_CMP_EQ, values) == 2);              \
        CHECK(nvshmem_##NAME##_wait_until_some(words, COUNT, indices, status, NVSHMEM_CMP_GT, 4) == 1);                \
        CHECK(indices[0] == 2);                                                                                        \
        CHECK(nvshmem_##NAME##_wait_until_some_vector(words, COUNT, indices, NULL, NVSHMEM_CMP_GE, values) == 1);      \
        CHECK(nvshmem_##NAME##_test_any_vector(words, COUNT, NULL, NVSHMEM_CMP_GE, values) == 2);                      \
        CHECK(nvshmem_##NAME##_test_some_vector(words, COUNT, indices, NULL, NVSHMEM_CMP_LT, values) == 4);            \
        CHECK(indices[1] == 1 && indices[2] == 3);                                                                     \
        nvshmem_barrier_all();                                                                                         \
        for (int i = 1; i < COUNT; i++) {                                                                              \
            nvshmem_##NAME##_p(&words[i], values[i], next);                                                            \
        }                                                                                                              \
        nvshmem_##NAME##_wait_until_all(words, COUNT, status, NVSHMEM_CMP_GE, 4);                                      \
        nvshmem_##NAME##_wait_until_all_vector(words, COUNT, status, NVSHMEM_CMP_EQ, values);                          \
        CHECK(nvshmem_##NAME##_test_all_vector(words, COUNT, status, NVSHMEM_CMP_LE, values));                         \
        CHECK(!nvshmem_##NAME##_test_all_vector(words, COUNT, NULL, NVSHMEM_CMP_EQ, values));                          \
        CHECK(nvshmem_##NAME##_test_all(words, COUNT, status, NVSHMEM_CMP_GT, 3));                                     \
        nvshmem_##NAME##_p(&words[0], 9, next);                                                                        \
        nvshmem_##NAME##_wait_until(&words[0], NVSHMEM_CMP_GT, 8);                                                     \
        CHECK(words[0] == 9);                                                                                          \
        nvshmem_barrier_all();                                                                                         \
        nvshmem_free(words);                                                                                           \
    }
WAIT_TYPES(CHECK_WAIT)

/* Numbers below zero, of 16 bits too. */
static void check_signs(void)
{
    short *word = ZEROED(short, 1);
    *word = -3;
    CHECK(nvshmem_short_test(word, NVSHMEM_CMP_LT, 0) && !nvshmem_short_test(word, NVSHMEM_CMP_GT, 2));
    CHECK(nvshmem_ushort_test((unsigned short *)word, NVSHMEM_CMP_GT, 2));
    nvshmem_free(word);
}

int main(void)
{
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    next = (me + 1) % pes;
    before = (me + pes - 1) % pes;
#define RUN(NAME, TYPE) check_##NAME();
#define RUN_SIGNAL(NAME, TYPE) check_##NAME##_signal();
    RMA_TYPES(RUN_SIGNAL)
    SMALL_TYPES(RUN_SIGNAL)
    SIZES(RUN_SIGNAL)
    check_signal_op();
    WAIT_TYPES(RUN)
    check_signs();
    return check_end();
}
