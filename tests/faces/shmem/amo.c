/* Goal: atomic memory operations (9.7) of every type, fetching, non-blocking and not, by the default context and by
 * others, under their names of today and the deprecated ones. Method: each operation alone on the right neighbour's
 * variable, against what it must give; then all PEs at once on PE 0's. */
#include "faces/shmem/check.h"

#define ROUNDS 50

static int me;
static int pes;
static int right;
static shmem_ctx_t ctx;

#define COMMA ,

/* Each PE's variable is changed by its left neighbour alone. */
#define EXTENDED(NAME, TYPE, CALL, C)                                                                                  \
    {                                                                                                                  \
        TYPE old = 0;                                                                                                  \
        shmem_barrier_all();                                                                                           \
        *at = (TYPE)(10 + me);                                                                                         \
        shmem_barrier_all();                                                                                           \
        CHECK(CALL##fetch(C at, right) == (TYPE)(10 + right));                                                         \
        CHECK(CALL##swap(C at, 33, right) == (TYPE)(10 + right));                                                      \
        CALL##fetch_nbi(C &old, at, right);                                                                            \
        QUIET(C);                                                                                                      \
        CHECK(old == 33);                                                                                              \
        CALL##swap_nbi(C &old, at, 34, right);                                                                         \
        QUIET(C);                                                                                                      \
        CHECK(old == 33);                                                                                              \
        CALL##set(C at, (TYPE)(me + 50), right);                                                                       \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(*at == (TYPE)((me + pes - 1) % pes + 50));                                                               \
    }
#define QUIET(...)                                                                                                     \
    shmem_quiet();                                                                                                     \
    shmem_ctx_quiet(ctx)

#define STANDARD(NAME, TYPE, CALL, C)                                                                                  \
    {                                                                                                                  \
        TYPE old = 0;                                                                                                  \
        shmem_barrier_all();                                                                                           \
        *at = 5;                                                                                                       \
        shmem_barrier_all();                                                                                           \
        CHECK(CALL##compare_swap(C at, 4, 9, right) == 5);                                                             \
        CHECK(CALL##compare_swap(C at, 5, 9, right) == 5);                                                             \
        CHECK(CALL##fetch_inc(C at, right) == 9);                                                                      \
        CALL##inc(C at, right);                                                                                        \
        CHECK(CALL##fetch_add(C at, 4, right) == 11);                                                                  \
        CALL##add(C at, (TYPE)-5, right);                                                                              \
        CALL##fetch_inc_nbi(C &old, at, right);                                                                        \
        QUIET(C);                                                                                                      \
        CHECK(old == 10);                                                                                              \
        CALL##fetch_add_nbi(C &old, at, 9, right);                                                                     \
        QUIET(C);                                                                                                      \
        CHECK(old == 11);                                                                                              \
        CALL##compare_swap_nbi(C &old, at, 20, 70, right);                                                             \
        QUIET(C);                                                                                                      \
        CHECK(old == 20);                                                                                              \
        shmem_barrier_all();                                                                                           \
        CHECK(*at == 70);                                                                                              \
    }

#define BITWISE(NAME, TYPE, CALL, C)                                                                                   \
    {                                                                                                                  \
        TYPE old = 0;                                                                                                  \
        shmem_barrier_all();                                                                                           \
        *at = 0xf0;                                                                                                    \
        shmem_barrier_all();                                                                                           \
        CALL## or (C at, 0x0c, right);                                                                                 \
        CHECK(CALL##fetch_or(C at, 0x01, right) == 0xfc);                                                              \
        CALL## and (C at, 0x3f, right);                                                                                \
        CHECK(CALL##fetch_and(C at, 0x0f, right) == 0x3d);                                                             \
        CALL## xor (C at, 0xff, right);                                                                                \
        CHECK(CALL##fetch_xor(C at, 0x03, right) == 0xf2);                                                             \
        CALL##fetch_or_nbi(C &old, at, 0x0e, right);                                                                   \
        QUIET(C);                                                                                                      \
        CHECK(old == 0xf1);                                                                                            \
        CALL##fetch_and_nbi(C &old, at, 0x1f, right);                                                                  \
        QUIET(C);                                                                                                      \
        CHECK(old == 0xff);                                                                                            \
        CALL##fetch_xor_nbi(C &old, at, 0x10, right);                                                                  \
        QUIET(C);                                                                                                      \
        CHECK(old == 0x1f);                                                                                            \
        shmem_barrier_all();                                                                                           \
        CHECK(*at == 0x0f);                                                                                            \
    }

#define TEST(NAME, TYPE, WHAT)                                                                                         \
    static void NAME##_##WHAT(void)                                                                                    \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 1);                                                                                    \
        WHAT(NAME, TYPE, shmem_##NAME##_atomic_, )                                                                     \
        WHAT(NAME, TYPE, shmem_ctx_##NAME##_atomic_, ctx COMMA)                                                        \
        WHAT(NAME, TYPE, shmem_ctx_##NAME##_atomic_, SHMEM_CTX_DEFAULT COMMA)                                          \
        shmem_barrier_all();                                                                                           \
        shmem_free(at);                                                                                                \
    }
#define TEST_EXTENDED(NAME, TYPE) TEST(NAME, TYPE, EXTENDED)
#define TEST_BITWISE(NAME, TYPE) TEST(NAME, TYPE, BITWISE)
/* And all PEs at once: nothing is lost, nothing comes twice. */
#define TEST_STANDARD(NAME, TYPE)                                                                                      \
    TEST(NAME, TYPE, STANDARD)                                                                                         \
    static void NAME##_contend(void)                                                                                   \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 3);                                                                                    \
        for (int i = 0; i < ROUNDS; i++) {                                                                             \
            (void)shmem_##NAME##_atomic_fetch_add(at, 3, 0);                                                           \
            shmem_ctx_##NAME##_atomic_inc(ctx, at, 0);                                                                 \
            TYPE seen = shmem_##NAME##_atomic_fetch(at + 1, 0);                                                        \
            for (TYPE was = seen; (was = shmem_##NAME##_atomic_compare_swap(at + 1, seen, seen + 1, 0)) != seen;) {    \
                seen = was;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(shmem_##NAME##_g(at, 0) == (TYPE)(4 * ROUNDS * pes));                                                    \
        CHECK(shmem_##NAME##_g(at + 1, 0) == (TYPE)(ROUNDS * pes));                                                    \
        shmem_barrier_all();                                                                                           \
        shmem_free(at);                                                                                                \
    }
EXTENDED_TYPES(TEST_EXTENDED)
AMO_TYPES(TEST_STANDARD)
BITWISE_TYPES(TEST_BITWISE)

/* Deprecated names: here for all types, as Sandia's OpenSHMEM has them. */
#define FIRST_NAMES(NAME, TYPE)                                                                                        \
    static void NAME##_first(void)                                                                                     \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 1);                                                                                    \
        shmem_##NAME##_set(at, 4, right);                                                                              \
        CHECK(shmem_##NAME##_swap(at, 5, right) == 4);                                                                 \
        CHECK(shmem_##NAME##_fetch(at, right) == 5);                                                                   \
        FIRST_ADDS(NAME)                                                                                               \
        shmem_barrier_all();                                                                                           \
        shmem_free(at);                                                                                                \
    }
#define FIRST_ADDS(NAME)                                                                                               \
    CHECK(shmem_##NAME##_cswap(at, 5, 6, right) == 5);                                                                 \
    CHECK(shmem_##NAME##_finc(at, right) == 6);                                                                        \
    CHECK(shmem_##NAME##_fadd(at, 3, right) == 7);                                                                     \
    shmem_##NAME##_inc(at, right);                                                                                     \
    shmem_##NAME##_add(at, 9, right);                                                                                  \
    CHECK(shmem_##NAME##_fetch(at, right) == 20);
AMO_TYPES(FIRST_NAMES)
#undef FIRST_ADDS
#define FIRST_ADDS(NAME)
FIRST_NAMES(float, float)
FIRST_NAMES(double, double)

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    right = (me + 1) % pes;
    CHECK(shmem_ctx_create(SHMEM_CTX_NOSTORE, &ctx) == 0);
#define RUN_EXTENDED(NAME, TYPE) NAME##_EXTENDED();
    EXTENDED_TYPES(RUN_EXTENDED)
#define RUN_STANDARD(NAME, TYPE)                                                                                       \
    NAME##_STANDARD();                                                                                                 \
    NAME##_contend();
    AMO_TYPES(RUN_STANDARD)
#define RUN_BITWISE(NAME, TYPE) NAME##_BITWISE();
    BITWISE_TYPES(RUN_BITWISE)
#define RUN_FIRST(NAME, TYPE) NAME##_first();
    EXTENDED_TYPES(RUN_FIRST)
    shmem_ctx_destroy(ctx);
    return check_end();
}
