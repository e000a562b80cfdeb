/* Goal: the deprecated collectives of active sets (9.9), used many times with alternating work arrays.
 * Method: every set of the form start, 2^k apart, size that has room; all of its routines a few times each, with two
 * work arrays in turn, which must be as they were initialised at the end; a broadcast must leave the root's dest as it
 * was. */
#include <complex.h>

#include "faces/shmem/check.h"

#define COUNT 4
#define ARRAYS 2

typedef struct set {
    int start;
    int log_stride;
    int size;
    int me; /* in the set */
    long *sync;
    int calls;
} set;

static void *dest;
static void *source;
static void *work;

/* The set's work array of this call. */
static long *sync_of(set *s)
{
    return s->sync + (s->calls++ % ARRAYS) * SHMEM_SYNC_SIZE;
}
#define SET(s) (s)->start, (s)->log_stride, (s)->size

static int small_of(int pe, int i)
{
    return (pe + i) % 3 + 1;
}

static long combined(const char *op, int i, int size)
{
    long result = *op == 'p' ? 1 : *op == 'a' ? -1 : op[1] == 'i' ? 100 : 0;
    for (int pe = 0; pe < size; pe++) {
        const long one = small_of(pe, i);
        result = *op == 'a'     ? result & one
                 : *op == 'o'   ? result | one
                 : *op == 'x'   ? result ^ one
                 : *op == 's'   ? result + one
                 : *op == 'p'   ? result * one
                 : op[1] == 'i' ? (one < result ? one : result)
                                : (one > result ? one : result);
    }
    return result;
}

#define REDUCE(NAME, TYPE, OP)                                                                                         \
    static void NAME##_##OP(set *s)                                                                                    \
    {                                                                                                                  \
        TYPE *to = dest;                                                                                               \
        TYPE *from = source;                                                                                           \
        for (int round = 0; round < 4; round++) {                                                                      \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                from[i] = (TYPE)small_of(s->me, i + round);                                                            \
            }                                                                                                          \
            shmem_##NAME##_##OP##_to_all(to, from, COUNT, SET(s), work, sync_of(s));                                   \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK_SAY(to[i] == (TYPE)combined(#OP, i + round, s->size), #NAME " " #OP ": element %d", i);          \
            }                                                                                                          \
            shmem_barrier(SET(s), sync_of(s));                                                                         \
        }                                                                                                              \
    }
#define INTEGERS(X) X(short, short) X(int, int) X(long, long) X(longlong, long long)
#define REALS(X) X(float, float) X(double, double) X(longdouble, long double)
#define COMPLEX(X) X(complexf, float _Complex) X(complexd, double _Complex)
#define TEST_BITS(NAME, TYPE) REDUCE(NAME, TYPE, and) REDUCE(NAME, TYPE, or) REDUCE(NAME, TYPE, xor)
#define TEST_ORDER(NAME, TYPE) REDUCE(NAME, TYPE, max) REDUCE(NAME, TYPE, min)
#define TEST_ARITHMETIC(NAME, TYPE) REDUCE(NAME, TYPE, sum) REDUCE(NAME, TYPE, prod)
INTEGERS(TEST_BITS)
INTEGERS(TEST_ORDER)
REALS(TEST_ORDER)
INTEGERS(TEST_ARITHMETIC)
REALS(TEST_ARITHMETIC)
COMPLEX(TEST_ARITHMETIC)

#define MOVES(BITS, TYPE)                                                                                              \
    static void moves##BITS(set *s)                                                                                    \
    {                                                                                                                  \
        TYPE *to = dest;                                                                                               \
        TYPE *from = source;                                                                                           \
        for (int root = 0; root < s->size; root++) {                                                                   \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                from[i] = (TYPE)number_of(s->me, i);                                                                   \
                to[i] = 101;                                                                                           \
            }                                                                                                          \
            shmem_sync(SET(s), sync_of(s));                                                                            \
            shmem_broadcast##BITS(to, from, COUNT, root, SET(s), sync_of(s));                                          \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK_SAY(to[i] == (TYPE)(s->me == root ? 101 : number_of(root, i)), "broadcast" #BITS " from %d: %d", \
                          root, i);                                                                                    \
            }                                                                                                          \
            shmem_barrier(SET(s), sync_of(s));                                                                         \
        }                                                                                                              \
        shmem_fcollect##BITS(to, from, COUNT, SET(s), sync_of(s));                                                     \
        for (int i = 0; i < COUNT * s->size; i++) {                                                                    \
            CHECK_SAY(to[i] == (TYPE)number_of(i / COUNT, i % COUNT), "fcollect" #BITS ": %d", i);                     \
        }                                                                                                              \
        shmem_barrier(SET(s), sync_of(s));                                                                             \
        shmem_collect##BITS(to, from, (size_t)(s->me % 3), SET(s), sync_of(s));                                        \
        for (int pe = 0, at = 0; pe < s->size; pe++) {                                                                 \
            for (int i = 0; i < pe % 3; i++, at++) {                                                                   \
                CHECK_SAY(to[at] == (TYPE)number_of(pe, i), "collect" #BITS ": %d of %d", i, pe);                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int i = 0; i < 3 * COUNT * s->size; i++) {                                                                \
            from[i] = (TYPE)number_of(s->me, i);                                                                       \
        }                                                                                                              \
        shmem_barrier(SET(s), sync_of(s));                                                                             \
        shmem_alltoall##BITS(to, from, COUNT, SET(s), sync_of(s));                                                     \
        for (int i = 0; i < COUNT * s->size; i++) {                                                                    \
            CHECK_SAY(to[i] == (TYPE)number_of(i / COUNT, s->me * COUNT + i % COUNT), "alltoall" #BITS ": %d", i);     \
        }                                                                                                              \
        shmem_barrier(SET(s), sync_of(s));                                                                             \
        shmem_alltoalls##BITS(to, from, 2, 3, COUNT, SET(s), sync_of(s));                                              \
        for (int i = 0; i < COUNT * s->size; i++) {                                                                    \
            CHECK_SAY(to[2 * i] == (TYPE)number_of(i / COUNT, 3 * (s->me * COUNT + i % COUNT)),                        \
                      "alltoalls" #BITS ": %d", i);                                                                    \
        }                                                                                                              \
        shmem_barrier(SET(s), sync_of(s));                                                                             \
    }
MOVES(32, uint32_t)
MOVES(64, uint64_t)

static void check_set(set *s)
{
    const int distance = shmem_my_pe() - s->start;
    const int stride = 1 << s->log_stride;
    if (distance < 0 || distance % stride != 0 || distance / stride >= s->size) {
        return;
    }
    s->me = distance / stride;
    moves32(s);
    moves64(s);
#define RUN_BITS(NAME, TYPE)                                                                                           \
    NAME##_and(s);                                                                                                     \
    NAME##_or(s);                                                                                                      \
    NAME##_xor(s);
    INTEGERS(RUN_BITS)
#define RUN_ORDER(NAME, TYPE)                                                                                          \
    NAME##_max(s);                                                                                                     \
    NAME##_min(s);
    INTEGERS(RUN_ORDER)
    REALS(RUN_ORDER)
#define RUN_ARITHMETIC(NAME, TYPE)                                                                                     \
    NAME##_sum(s);                                                                                                     \
    NAME##_prod(s);
    INTEGERS(RUN_ARITHMETIC)
    REALS(RUN_ARITHMETIC)
    COMPLEX(RUN_ARITHMETIC)
    long wrong = 0;
    for (int i = 0; i < ARRAYS * SHMEM_SYNC_SIZE; i++) {
        wrong += s->sync[i] != SHMEM_SYNC_VALUE;
    }
    CHECK_SAY(wrong == 0, "%ld words of the work arrays are not as they were", wrong);
}

/* A PE that broadcasts to itself alone and names the root by its number of all PEs, as Mellanox's tests do. */
static void check_alone(void)
{
    static long sync[SHMEM_BCAST_SYNC_SIZE];
    static uint64_t from;
    static uint64_t to;
    for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; i++) {
        sync[i] = SHMEM_SYNC_VALUE;
    }
    from = 7;
    to = 8;
    shmem_barrier_all();
    shmem_broadcast64(&to, &from, 1, shmem_my_pe(), shmem_my_pe(), 0, 1, sync);
    CHECK(to == 8);
}

int main(void)
{
    shmem_init();
    const int pes = shmem_n_pes();
    check_alone();
    dest = ZEROED(long double, 3 * COUNT * pes);
    source = ZEROED(long double, 3 * COUNT * pes);
    work = ZEROED(long double, SHMEM_REDUCE_MIN_WRKDATA_SIZE + COUNT);
    for (int start = 0; start < pes; start += 1 + pes / 4) {
        for (int log_stride = 0; log_stride < 3; log_stride++) {
            for (int size = 1; start + ((size - 1) << log_stride) < pes; size++) {
                set s = {.start = start, .log_stride = log_stride, .size = size};
                s.sync = shmem_malloc(ARRAYS * SHMEM_SYNC_SIZE * sizeof(long));
                for (int i = 0; i < ARRAYS * SHMEM_SYNC_SIZE; i++) {
                    s.sync[i] = SHMEM_SYNC_VALUE;
                }
                shmem_barrier_all();
                check_set(&s);
                shmem_barrier_all();
                shmem_free(s.sync);
            }
        }
    }
    return check_end();
}
