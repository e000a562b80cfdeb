/* Goal: collectives of teams (9.9): of all PEs, of those on a node, of every second PE and of this PE alone, for every
 * type. Method: each element says whose it is; results are compared with what the specification's formulas give. Sums
 * and products of small whole numbers are exact in every type. In place, too, and with no elements. */
#include <complex.h>

#include "faces/shmem/check.h"

#define COUNT 5

static shmem_team_t team;
static int me; /* in the team */
static int pes;

/* Element i of member `from`, and what lies where nothing may be written. */
#define OF(TYPE, from, i) ((TYPE)number_of((from), (i)))
#define OTHER 77

#define TEST_MOVES(NAME, TYPE)                                                                                         \
    static void NAME##_moves(TYPE *dest, TYPE *source)                                                                 \
    {                                                                                                                  \
        for (int root = 0; root < pes; root++) {                                                                       \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                source[i] = OF(TYPE, me, i);                                                                           \
                dest[i] = OTHER;                                                                                       \
            }                                                                                                          \
            shmem_team_sync(team);                                                                                     \
            CHECK(shmem_##NAME##_broadcast(team, dest, source, COUNT, root) == 0);                                     \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK_SAY(dest[i] == OF(TYPE, root, i), #NAME " broadcast from %d: element %d", root, i);              \
            }                                                                                                          \
            shmem_team_sync(team);                                                                                     \
        }                                                                                                              \
        CHECK(shmem_##NAME##_fcollect(team, dest, source, COUNT) == 0);                                                \
        for (int i = 0; i < COUNT * pes; i++) {                                                                        \
            CHECK_SAY(dest[i] == OF(TYPE, i / COUNT, i % COUNT), #NAME " fcollect: element %d", i);                    \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##NAME##_collect(team, dest, source, (size_t)(me % 3)) == 0); /* as much as each likes */          \
        for (int from = 0, at = 0; from < pes; from++) {                                                               \
            for (int i = 0; i < from % 3; i++, at++) {                                                                 \
                CHECK_SAY(dest[at] == OF(TYPE, from, i), #NAME " collect: element %d of %d", i, from);                 \
            }                                                                                                          \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        for (int i = 0; i < 3 * COUNT * pes; i++) {                                                                    \
            source[i] = OF(TYPE, me, i);                                                                               \
            dest[i] = OTHER;                                                                                           \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##NAME##_alltoall(team, dest, source, COUNT) == 0);                                                \
        for (int i = 0; i < COUNT * pes; i++) {                                                                        \
            CHECK_SAY(dest[i] == OF(TYPE, i / COUNT, me * COUNT + i % COUNT), #NAME " alltoall: element %d", i);       \
            dest[i] = OTHER;                                                                                           \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##NAME##_alltoalls(team, dest, source, 2, 3, COUNT) == 0);                                         \
        for (int i = 0; i < 2 * COUNT * pes; i++) {                                                                    \
            const TYPE wanted = OF(TYPE, i / (2 * COUNT), 3 * (me * COUNT + i / 2 % COUNT));                           \
            CHECK_SAY(dest[i] == (i % 2 == 0 ? wanted : OTHER), #NAME " alltoalls: element %d", i);                    \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##NAME##_broadcast(team, NULL, NULL, 0, 0) == 0);                                                  \
        CHECK(shmem_##NAME##_fcollect(team, NULL, NULL, 0) == 0);                                                      \
    }
RMA_TYPES(TEST_MOVES)

/* ---- reductions: TYPE, of numbers 1 .. 3 ---- */

static int small_of(int pe, int i)
{
    return (pe + i) % 3 + 1;
}

/* Members `first` to `last` combined. */
static long combined(const char *op, int i, int first, int last)
{
    long result = *op == 'p' || *op == 'a' ? (*op == 'a' ? -1 : 1) : op[1] == 'i' ? 100 : 0;
    for (int pe = first; pe <= last; pe++) {
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
    static void NAME##_##OP(TYPE *dest, TYPE *source)                                                                  \
    {                                                                                                                  \
        for (int in_place = 0; in_place < 2; in_place++) {                                                             \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                source[i] = (TYPE)small_of(me, i);                                                                     \
                dest[i] = OTHER;                                                                                       \
            }                                                                                                          \
            TYPE *to = in_place ? source : dest;                                                                       \
            shmem_team_sync(team);                                                                                     \
            CHECK(shmem_##NAME##_##OP##_reduce(team, to, source, COUNT) == 0);                                         \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK_SAY(to[i] == (TYPE)combined(#OP, i, 0, pes - 1), #NAME " " #OP ": element %d", i);               \
            }                                                                                                          \
            shmem_team_sync(team);                                                                                     \
        }                                                                                                              \
    }
#define SCAN(NAME, TYPE, KIND, LAST)                                                                                   \
    static void NAME##_##KIND(TYPE *dest, TYPE *source)                                                                \
    {                                                                                                                  \
        for (int in_place = 0; in_place < 2; in_place++) {                                                             \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                source[i] = (TYPE)small_of(me, i);                                                                     \
                dest[i] = OTHER;                                                                                       \
            }                                                                                                          \
            TYPE *to = in_place ? source : dest;                                                                       \
            shmem_team_sync(team);                                                                                     \
            CHECK(shmem_##NAME##_sum_##KIND(team, to, source, COUNT) == 0);                                            \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK_SAY(to[i] == (TYPE)combined("sum", i, 0, LAST), #NAME " " #KIND ": element %d", i);              \
            }                                                                                                          \
            shmem_team_sync(team);                                                                                     \
        }                                                                                                              \
    }

/* Team reduction types and names (table 9 of 1.6). */
#define BITS(X)                                                                                                        \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)
#define COMPLEX(X)                                                                                                     \
    X(complexf, float _Complex)                                                                                        \
    X(complexd, double _Complex)

#define TEST_BITS(NAME, TYPE) REDUCE(NAME, TYPE, and) REDUCE(NAME, TYPE, or) REDUCE(NAME, TYPE, xor)
#define TEST_ORDER(NAME, TYPE) REDUCE(NAME, TYPE, max) REDUCE(NAME, TYPE, min)
#define TEST_ARITHMETIC(NAME, TYPE)                                                                                    \
    REDUCE(NAME, TYPE, sum) REDUCE(NAME, TYPE, prod) SCAN(NAME, TYPE, inscan, me) SCAN(NAME, TYPE, exscan, me - 1)
BITS(TEST_BITS)
RMA_TYPES(TEST_ORDER)
RMA_TYPES(TEST_ARITHMETIC)
COMPLEX(TEST_ARITHMETIC)

static void check_bytes(unsigned char *dest, unsigned char *source)
{
    for (int i = 0; i < COUNT * pes; i++) {
        source[i] = (unsigned char)number_of(me, i);
    }
    shmem_team_sync(team);
    CHECK(shmem_broadcastmem(team, dest, source, COUNT, pes - 1) == 0);
    for (int i = 0; i < COUNT; i++) {
        CHECK(dest[i] == number_of(pes - 1, i));
    }
    shmem_team_sync(team);
    CHECK(shmem_fcollectmem(team, dest, source, COUNT) == 0);
    CHECK(dest[COUNT * pes - 1] == number_of(pes - 1, COUNT - 1) && dest[0] == number_of(0, 0));
    shmem_team_sync(team);
    CHECK(shmem_collectmem(team, dest, source, me == 0 ? 3 : 1) == 0);
    CHECK(dest[2] == number_of(0, 2) && dest[1 + pes] == number_of(pes - 1, pes == 1 ? 2 : 0));
    shmem_team_sync(team);
    CHECK(shmem_alltoallmem(team, dest, source, COUNT) == 0);
    CHECK(dest[COUNT * pes - 1] == number_of(pes - 1, me * COUNT + COUNT - 1));
    shmem_team_sync(team);
    CHECK(shmem_alltoallsmem(team, dest, source, 1, 1, COUNT) == 0);
    CHECK(dest[COUNT * pes - 1] == number_of(pes - 1, me * COUNT + COUNT - 1));
    shmem_team_sync(team);
    CHECK(shmem_alltoallsmem(team, dest, source, 1, 2, COUNT / 2) == 0); /* every other byte of a block */
    CHECK(dest[COUNT / 2 * pes - 1] == number_of(pes - 1, 2 * (me * (COUNT / 2) + COUNT / 2 - 1)));
    shmem_team_sync(team);
}

/* Much at once: other algorithms. */
static void check_large(void)
{
    enum { MANY = 40000 };
    long *source = ZEROED(long, MANY);
    long *dest = ZEROED(long, MANY *shmem_n_pes());
    if (team != SHMEM_TEAM_WORLD) {
        shmem_free(dest);
        shmem_free(source);
        return;
    }
    for (long i = 0; i < MANY; i++) {
        source[i] = i * pes + me;
    }
    shmem_sync_all();
    long wrong = 0;
    CHECK(shmem_long_sum_reduce(team, dest, source, MANY) == 0);
    for (long i = 0; i < MANY; i++) {
        wrong += dest[i] != i * pes * pes + pes * (pes - 1) / 2;
    }
    shmem_sync_all();
    CHECK(shmem_long_fcollect(team, dest, source, MANY) == 0);
    for (long i = 0; i < (long)MANY * pes; i++) {
        wrong += dest[i] != i % MANY * pes + i / MANY;
    }
    shmem_sync_all();
    CHECK(shmem_long_broadcast(team, dest, source, MANY, pes / 2) == 0);
    for (long i = 0; i < MANY; i++) {
        wrong += dest[i] != i * pes + pes / 2;
    }
    shmem_sync_all();
    CHECK(shmem_long_alltoall(team, dest, source, (size_t)(MANY / pes)) == 0);
    for (long i = 0; i < MANY / pes * pes; i++) {
        wrong += dest[i] != (me * (MANY / pes) + i % (MANY / pes)) * pes + i / (MANY / pes);
    }
    CHECK_SAY(wrong == 0, "%ld of many elements are wrong", wrong);
    shmem_free(dest);
    shmem_free(source);
}

static void check_team(shmem_team_t one, void *dest, void *source)
{
    team = one;
    me = shmem_team_my_pe(team);
    pes = shmem_team_n_pes(team);
#define RUN_MOVES(NAME, TYPE) NAME##_moves(dest, source);
    RMA_TYPES(RUN_MOVES)
#define RUN_BITS(NAME, TYPE)                                                                                           \
    NAME##_and(dest, source);                                                                                          \
    NAME##_or(dest, source);                                                                                           \
    NAME##_xor(dest, source);
    BITS(RUN_BITS)
#define RUN_ORDER(NAME, TYPE)                                                                                          \
    NAME##_max(dest, source);                                                                                          \
    NAME##_min(dest, source);
    RMA_TYPES(RUN_ORDER)
#define RUN_ARITHMETIC(NAME, TYPE)                                                                                     \
    NAME##_sum(dest, source);                                                                                          \
    NAME##_prod(dest, source);                                                                                         \
    NAME##_inscan(dest, source);                                                                                       \
    NAME##_exscan(dest, source);
    RMA_TYPES(RUN_ARITHMETIC)
    COMPLEX(RUN_ARITHMETIC)
    check_bytes(dest, source);
}

/* A barrier completes puts; a sync lets nobody go before all have come. */
static void check_barriers(void)
{
    const int all = shmem_n_pes();
    const int mine = shmem_my_pe();
    long *words = ZEROED(long, all);
    for (int round = 1; round <= 200; round++) {
        for (int pe = 0; pe < all; pe++) {
            shmem_long_put_nbi(words + mine, &(long){round}, 1, pe);
            shmem_quiet(); /* the source is gone after this line */
        }
        if (round % 2 == 0) {
            shmem_barrier_all();
        } else {
            shmem_sync_all();
        }
        for (int pe = 0; pe < all; pe++) {
            CHECK_SAY(words[pe] == round || words[pe] == round + 1, "round %d: PE %d's word is %ld", round, pe,
                      words[pe]);
        }
    }
    shmem_barrier_all();
    shmem_free(words);
}

int main(void)
{
    shmem_init();
    const int all = shmem_n_pes();
    void *dest = ZEROED(long double, 3 * COUNT * all);
    void *source = ZEROED(long double, 3 * COUNT * all);
    shmem_team_t evens = SHMEM_TEAM_INVALID;
    shmem_team_t alone = SHMEM_TEAM_INVALID;
    check_barriers();
    check_team(SHMEM_TEAM_WORLD, dest, source);
    check_large();
    check_team(SHMEM_TEAM_SHARED, dest, source);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (all + 1) / 2, NULL, 0, &evens) == 0);
    if (evens != SHMEM_TEAM_INVALID) {
        check_team(evens, dest, source);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < all; pe++) {
        shmem_team_t one = SHMEM_TEAM_INVALID;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, NULL, 0, &one) == 0);
        alone = one == SHMEM_TEAM_INVALID ? alone : one;
    }
    check_team(alone, dest, source);
    shmem_barrier_all();
    return check_end();
}
