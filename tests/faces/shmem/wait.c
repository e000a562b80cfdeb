/* Goal: point-to-point synchronisation (9.10): waits and tests of every type and form.
 * Method: the left neighbour writes into this PE's variables, in an order and at times that differ; each form is called
 * for every comparison, with variables that do not count, and with none. */
#include <unistd.h>

#include "faces/shmem/check.h"

#define VARIABLES 6

static int me;
static int pes;
static int right;

#define CALL_TESTS_BY(NAME, TYPE, WRITE)                                                                               \
    static void NAME##_tests(TYPE *v)                                                                                  \
    {                                                                                                                  \
        static const int cmps[] = {                                                                                    \
            SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};                       \
        static const int holds[3][6] = {{0, 1, 0, 0, 1, 1}, {1, 0, 0, 1, 0, 1}, {0, 1, 1, 1, 0, 0}};                   \
        for (int k = 0; k < 3; k++) { /* the variable is 9, 10, 11 */                                                  \
            v[0] = (TYPE)(9 + k);                                                                                      \
            for (int c = 0; c < 6; c++) {                                                                              \
                CHECK(shmem_##NAME##_test(v, cmps[c], 10) == holds[k][c]);                                             \
                if (holds[k][c]) {                                                                                     \
                    shmem_##NAME##_wait_until(v, cmps[c], 10);                                                         \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        const int none[VARIABLES] = {1, 1, 1, 1, 1, 1};                                                                \
        const int some[VARIABLES] = {0, 1, 0, 1, 0, 1};                                                                \
        const TYPE wanted[VARIABLES] = {1, 2, 3, 4, 5, 6};                                                             \
        size_t found[VARIABLES];                                                                                       \
        for (int i = 0; i < VARIABLES; i++) {                                                                          \
            v[i] = (TYPE)(i % 2 == 0 ? i + 1 : 0);                                                                     \
        }                                                                                                              \
        CHECK(shmem_##NAME##_test_all(v, VARIABLES, some, SHMEM_CMP_GE, 1) == 1);                                      \
        CHECK(shmem_##NAME##_test_all(v, VARIABLES, NULL, SHMEM_CMP_GE, 1) == 0);                                      \
        CHECK(shmem_##NAME##_test_all(v, VARIABLES, none, SHMEM_CMP_EQ, 100) == 1);                                    \
        CHECK(shmem_##NAME##_test_all(v, 0, NULL, SHMEM_CMP_EQ, 100) == 1);                                            \
        CHECK(shmem_##NAME##_test_any(v, VARIABLES, NULL, SHMEM_CMP_EQ, 5) == 4);                                      \
        CHECK(shmem_##NAME##_test_any(v, VARIABLES, NULL, SHMEM_CMP_EQ, 2) == SIZE_MAX);                               \
        CHECK(shmem_##NAME##_test_any(v, VARIABLES, none, SHMEM_CMP_GE, 0) == SIZE_MAX);                               \
        CHECK(shmem_##NAME##_test_some(v, VARIABLES, found, NULL, SHMEM_CMP_GT, 1) == 2);                              \
        CHECK(found[0] + found[1] == 6 && (found[0] == 2 || found[0] == 4));                                           \
        CHECK(shmem_##NAME##_test_some(v, VARIABLES, found, none, SHMEM_CMP_GE, 0) == 0);                              \
        CHECK(shmem_##NAME##_test_all_vector(v, VARIABLES, some, SHMEM_CMP_EQ, wanted) == 1);                          \
        CHECK(shmem_##NAME##_test_all_vector(v, VARIABLES, NULL, SHMEM_CMP_EQ, wanted) == 0);                          \
        const size_t one = shmem_##NAME##_test_any_vector(v, VARIABLES, NULL, SHMEM_CMP_NE, wanted);                   \
        CHECK(one == 1 || one == 3 || one == 5);                                                                       \
        CHECK(shmem_##NAME##_test_some_vector(v, VARIABLES, found, NULL, SHMEM_CMP_NE, wanted) == 3);                  \
        shmem_##NAME##_wait_until_all(v, VARIABLES, some, SHMEM_CMP_GE, 1);                                            \
        shmem_##NAME##_wait_until_all(v, VARIABLES, none, SHMEM_CMP_GE, 100);                                          \
        shmem_##NAME##_wait_until_all(v, 0, NULL, SHMEM_CMP_GE, 100);                                                  \
        CHECK(shmem_##NAME##_wait_until_any(v, VARIABLES, none, SHMEM_CMP_GE, 100) == SIZE_MAX);                       \
        CHECK(shmem_##NAME##_wait_until_any(v, VARIABLES, NULL, SHMEM_CMP_EQ, 3) == 2);                                \
        CHECK(shmem_##NAME##_wait_until_some(v, VARIABLES, found, none, SHMEM_CMP_GE, 100) == 0);                      \
        CHECK(shmem_##NAME##_wait_until_some(v, VARIABLES, found, some, SHMEM_CMP_GE, 5) == 1 && found[0] == 4);       \
        shmem_##NAME##_wait_until_all_vector(v, VARIABLES, some, SHMEM_CMP_EQ, wanted);                                \
        CHECK(shmem_##NAME##_wait_until_any_vector(v, VARIABLES, none, SHMEM_CMP_EQ, wanted) == SIZE_MAX);             \
        CHECK(shmem_##NAME##_wait_until_some_vector(v, VARIABLES, found, NULL, SHMEM_CMP_EQ, wanted) == 3);            \
    }                                                                                                                  \
    static void NAME##_waits(TYPE *v)                                                                                  \
    {                                                                                                                  \
        TYPE wanted[VARIABLES];                                                                                        \
        int status[VARIABLES] = {0};                                                                                   \
        size_t found[VARIABLES];                                                                                       \
        for (int form = 0; form < 6; form++) {                                                                         \
            shmem_barrier_all();                                                                                       \
            for (int i = 0; i < VARIABLES; i++) {                                                                      \
                v[i] = 0;                                                                                              \
                wanted[i] = (TYPE)(i + 1);                                                                             \
                status[i] = 0;                                                                                         \
            }                                                                                                          \
            shmem_barrier_all();                                                                                       \
            for (int i = 0; i < VARIABLES; i++) {                                                                      \
                const int k = (i * 5 + form) % VARIABLES;                                                              \
                WRITE(v + k, form < 3 ? 7 : (TYPE)(k + 1), right);                                                     \
            }                                                                                                          \
            size_t left = VARIABLES;                                                                                   \
            if (form == 0) {                                                                                           \
                shmem_##NAME##_wait_until_all(v, VARIABLES, NULL, SHMEM_CMP_EQ, 7);                                    \
                left = 0;                                                                                              \
            } else if (form == 3) {                                                                                    \
                shmem_##NAME##_wait_until_all_vector(v, VARIABLES, NULL, SHMEM_CMP_EQ, wanted);                        \
                left = 0;                                                                                              \
            }                                                                                                          \
            while (left > 0) {                                                                                         \
                size_t count = 1;                                                                                      \
                if (form == 1) {                                                                                       \
                    found[0] = shmem_##NAME##_wait_until_any(v, VARIABLES, status, SHMEM_CMP_NE, 0);                   \
                } else if (form == 4) {                                                                                \
                    found[0] = shmem_##NAME##_wait_until_any_vector(v, VARIABLES, status, SHMEM_CMP_EQ, wanted);       \
                } else if (form == 2) {                                                                                \
                    count = shmem_##NAME##_wait_until_some(v, VARIABLES, found, status, SHMEM_CMP_NE, 0);              \
                } else {                                                                                               \
                    count = shmem_##NAME##_wait_until_some_vector(v, VARIABLES, found, status, SHMEM_CMP_EQ, wanted);  \
                }                                                                                                      \
                CHECK(count >= 1 && count <= left);                                                                    \
                for (size_t i = 0; i < count; i++) {                                                                   \
                    CHECK(found[i] < VARIABLES && status[found[i]] == 0);                                              \
                    status[found[i] % VARIABLES] = 1;                                                                  \
                }                                                                                                      \
                left -= count;                                                                                         \
            }                                                                                                          \
            for (int i = 0; i < VARIABLES; i++) {                                                                      \
                CHECK(v[i] == (form < 3 ? 7 : wanted[i]));                                                             \
            }                                                                                                          \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        v[0] = 0;                                                                                                      \
        shmem_barrier_all();                                                                                           \
        for (TYPE round = 1; round < 20; round++) { /* round the ring */                                               \
            if (me == 0) {                                                                                             \
                shmem_##NAME##_p(v, round, right);                                                                     \
            }                                                                                                          \
            shmem_##NAME##_wait_until(v, SHMEM_CMP_EQ, round);                                                         \
            if (me != 0) {                                                                                             \
                shmem_##NAME##_p(v, round, right);                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }
#define CALL_TESTS(NAME, TYPE) CALL_TESTS_BY(NAME, TYPE, shmem_##NAME##_atomic_set)
AMO_TYPES(CALL_TESTS)
CALL_TESTS_BY(short, short, shmem_short_p)
CALL_TESTS_BY(ushort, unsigned short, shmem_ushort_p)

/* Deprecated: variables of 16 bits, and first names. */
#define FIRST(NAME, TYPE)                                                                                              \
    static void NAME##_first(void)                                                                                     \
    {                                                                                                                  \
        static const int cmps[] = {                                                                                    \
            SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};                       \
        static const int holds[6] = {0, 1, 0, 0, 1, 1};                                                                \
        TYPE *v = ZEROED(TYPE, 1);                                                                                     \
        if (me == pes - 1) {                                                                                           \
            usleep(20000); /* the next waits meanwhile */                                                              \
        }                                                                                                              \
        shmem_##NAME##_p(v, 3, right);                                                                                 \
        shmem_##NAME##_wait(v, 0);                                                                                     \
        CHECK(*v == 3);                                                                                                \
        for (int i = 0; i < 6; i++) {                                                                                  \
            CHECK(shmem_##NAME##_test(v, cmps[i], 4) == holds[i]);                                                     \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_p(v, 8, right);                                                                                 \
        shmem_##NAME##_wait_until(v, SHMEM_CMP_GE, 8);                                                                 \
        CHECK(shmem_##NAME##_test(v, SHMEM_CMP_EQ, 8) == 1 && shmem_##NAME##_test(v, SHMEM_CMP_LT, 8) == 0);           \
        shmem_barrier_all();                                                                                           \
        shmem_free(v);                                                                                                 \
    }
FIRST(short, short)
FIRST(int, int)
FIRST(long, long)
FIRST(longlong, long long)
static void shmem_ushort_wait(unsigned short *v, unsigned short value)
{
    shmem_ushort_wait_until(v, SHMEM_CMP_NE, value);
}
FIRST(ushort, unsigned short)

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    right = (me + 1) % pes;
    uint64_t *v = ZEROED(uint64_t, VARIABLES);
#define RUN(NAME, TYPE)                                                                                                \
    NAME##_tests((TYPE *)(void *)v);                                                                                   \
    NAME##_waits((TYPE *)(void *)v);                                                                                   \
    shmem_barrier_all();
    AMO_TYPES(RUN)
    RUN(short, short)
    RUN(ushort, unsigned short)
    short_first();
    int_first();
    long_first();
    longlong_first();
    ushort_first();
    long *old = ZEROED(long, 1);
    shmem_long_p(old, 4, right);
    shmem_wait(old, 0);
    (shmem_wait_until)(old, SHMEM_CMP_EQ, 4);
    CHECK(*old == 4);
    shmem_barrier_all();
    return check_end();
}
