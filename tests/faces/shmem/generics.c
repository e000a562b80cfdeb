/* Goal: the routines that C11 chooses by type reach the function of each type, with a context and without.
 * Method: what a call does to a variable of the type, whose size and sign tell which function it was; qualified
 * pointers, expressions and void pointers beside contexts compile as well. */
#include <complex.h>

#include "faces/shmem/check.h"
#include <shmemx.h>

static int right;
static shmem_ctx_t ctx;

#define BASE_TYPES(X)                                                                                                  \
    X(float)                                                                                                           \
    X(double)                                                                                                          \
    X(long double)                                                                                                     \
    X(char)                                                                                                            \
    X(signed char)                                                                                                     \
    X(short)                                                                                                           \
    X(int)                                                                                                             \
    X(long)                                                                                                            \
    X(long long)                                                                                                       \
    X(unsigned char)                                                                                                   \
    X(unsigned short)                                                                                                  \
    X(unsigned int)                                                                                                    \
    X(unsigned long)                                                                                                   \
    X(unsigned long long)                                                                                              \
    X(int8_t)                                                                                                          \
    X(int64_t)                                                                                                         \
    X(uint64_t)                                                                                                        \
    X(size_t)                                                                                                          \
    X(ptrdiff_t)

#define RMA(TYPE)                                                                                                      \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 8);                                                                                    \
        uint64_t *sig = ZEROED(uint64_t, 1);                                                                           \
        TYPE out[8] = {1, 2, 3, 4, 5, 6, 7, 8};                                                                        \
        TYPE in[8] = {0};                                                                                              \
        const TYPE *shown = at;                                                                                        \
        shmem_put(at, out, 2, right);                                                                                  \
        shmem_put(ctx, at + 2, out + 2, 2, right);                                                                     \
        shmem_put_nbi(at + 4, out + 4, 1, right);                                                                      \
        shmem_put_nbi(SHMEM_CTX_DEFAULT, at + 5, out + 5, 1, right);                                                   \
        shmem_p(at + 6, out[6], right);                                                                                \
        shmem_p(ctx, at + 7, 8, right);                                                                                \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(at[0] == 1 && at[1] == 2 && at[2] == 3 && at[3] == 4 && at[4] == 5 && at[5] == 6 && at[6] == 7);         \
        CHECK(at[7] == 8);                                                                                             \
        shmem_get(in, shown, 2, right);                                                                                \
        shmem_get(ctx, in + 2, at + 2, 2, right);                                                                      \
        shmem_get_nbi(in + 4, at + 4, 1, right);                                                                       \
        shmem_get_nbi(ctx, in + 5, at + 5, 1, right);                                                                  \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        in[6] = shmem_g(shown + 6, right);                                                                             \
        in[7] = shmem_g(ctx, at + 7, right);                                                                           \
        CHECK(in[0] == 1 && in[1] == 2 && in[2] == 3 && in[3] == 4 && in[4] == 5 && in[5] == 6 && in[6] == 7);         \
        CHECK(in[7] == 8);                                                                                             \
        shmem_barrier_all();                                                                                           \
        shmem_iput(at, out, 2, 1, 4, right);                                                                           \
        shmem_iput(ctx, at + 1, out, 2, 1, 4, right);                                                                  \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        shmem_iget(in, at, 1, 2, 4, right);                                                                            \
        shmem_iget(ctx, in + 4, at + 1, 1, 2, 4, right);                                                               \
        CHECK(in[3] == 4 && in[7] == 4 && at[6] == 4 && at[7] == 4);                                                   \
        shmem_barrier_all();                                                                                           \
        shmem_ibput(at, out, 4, 2, 2, 2, right);                                                                       \
        shmem_ibput(ctx, at + 2, out + 4, 4, 2, 2, 2, right);                                                          \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        shmem_ibget(in, at, 2, 4, 2, 2, right);                                                                        \
        shmem_ibget(ctx, in + 4, at + 2, 2, 4, 2, 2, right);                                                           \
        CHECK(in[2] == 3 && in[7] == 8 && at[4] == 3 && at[7] == 8);                                                   \
        shmem_barrier_all();                                                                                           \
        shmem_put_signal(at, out, 1, sig, 1, SHMEM_SIGNAL_ADD, right);                                                 \
        shmem_put_signal(ctx, at, out, 1, sig, 1, SHMEM_SIGNAL_ADD, right);                                            \
        shmem_put_signal_nbi(at, out, 1, sig, 1, SHMEM_SIGNAL_ADD, right);                                             \
        shmem_put_signal_nbi(ctx, at, out, 1, sig, 1, SHMEM_SIGNAL_ADD, right);                                        \
        CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_EQ, 4) == 4);                                                     \
        shmem_barrier_all();                                                                                           \
        CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, at, at + 1, 1, 0) == 0);                                               \
        shmem_team_sync(SHMEM_TEAM_WORLD);                                                                             \
        TYPE *all = ZEROED(TYPE, 4 * shmem_n_pes());                                                                   \
        CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, all, at, 1) == 0);                                                      \
        shmem_sync(SHMEM_TEAM_WORLD);                                                                                  \
        CHECK(shmem_collect(SHMEM_TEAM_WORLD, all, at, 1) == 0);                                                       \
        shmem_sync(SHMEM_TEAM_WORLD);                                                                                  \
        CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, all, all + shmem_n_pes(), 1) == 0);                                     \
        shmem_sync(SHMEM_TEAM_WORLD);                                                                                  \
        CHECK(shmem_alltoalls(SHMEM_TEAM_WORLD, all, all + 2 * shmem_n_pes(), 1, 1, 1) == 0);                          \
        ARITHMETIC(TYPE)                                                                                               \
        CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0);                                                 \
        shmem_sync(SHMEM_TEAM_WORLD);                                                                                  \
        CHECK(shmem_min_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0);                                                 \
        shmem_free(all);                                                                                               \
        shmem_free(sig);                                                                                               \
        shmem_free(at);                                                                                                \
    }
#define ARITHMETIC(TYPE)                                                                                               \
    at[1] = 1;                                                                                                         \
    shmem_sync(SHMEM_TEAM_WORLD);                                                                                      \
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0 && at[0] == (TYPE)shmem_n_pes());                     \
    shmem_sync(SHMEM_TEAM_WORLD);                                                                                      \
    CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0 && at[0] == 1);                                      \
    shmem_sync(SHMEM_TEAM_WORLD);                                                                                      \
    CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0 && at[0] == (TYPE)(shmem_my_pe() + 1));               \
    shmem_sync(SHMEM_TEAM_WORLD);                                                                                      \
    CHECK(shmemx_sum_exscan(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0 && at[0] == (TYPE)shmem_my_pe());                    \
    shmem_sync(SHMEM_TEAM_WORLD);

#define AMO(TYPE)                                                                                                      \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 2);                                                                                    \
        const TYPE *shown = at;                                                                                        \
        TYPE old = 0;                                                                                                  \
        size_t found[2];                                                                                               \
        const TYPE wanted[2] = {12, 0};                                                                                \
        shmem_atomic_set(at, 3, right);                                                                                \
        shmem_atomic_set(ctx, at, 3, right);                                                                           \
        CHECK(shmem_atomic_fetch(shown, right) == 3 && shmem_atomic_fetch(ctx, at, right) == 3);                       \
        CHECK(shmem_atomic_swap(at, 4, right) == 3 && shmem_atomic_swap(ctx, at, 5, right) == 4);                      \
        CHECK(shmem_atomic_compare_swap(at, 5, 6, right) == 5 &&                                                       \
              shmem_atomic_compare_swap(ctx, at, 6, 7, right) == 6);                                                   \
        CHECK(shmem_atomic_fetch_inc(at, right) == 7 && shmem_atomic_fetch_inc(ctx, at, right) == 8);                  \
        shmem_atomic_inc(at, right);                                                                                   \
        shmem_atomic_inc(ctx, at, right);                                                                              \
        CHECK(shmem_atomic_fetch_add(at, 1, right) == 11 && shmem_atomic_fetch_add(ctx, at, 1, right) == 12);          \
        shmem_atomic_add(at, 1, right);                                                                                \
        shmem_atomic_add(ctx, at, 1, right);                                                                           \
        shmem_atomic_fetch_nbi(&old, at, right);                                                                       \
        shmem_atomic_fetch_nbi(ctx, &old, at, right);                                                                  \
        shmem_atomic_swap_nbi(&old, at, 15, right);                                                                    \
        shmem_atomic_swap_nbi(ctx, &old, at, 15, right);                                                               \
        shmem_atomic_compare_swap_nbi(&old, at, 15, 12, right);                                                        \
        shmem_atomic_compare_swap_nbi(ctx, &old, at, 12, 10, right);                                                   \
        shmem_atomic_fetch_inc_nbi(&old, at, right);                                                                   \
        shmem_atomic_fetch_inc_nbi(ctx, &old, at, right);                                                              \
        shmem_atomic_fetch_add_nbi(&old, at, 1, right);                                                                \
        shmem_atomic_fetch_add_nbi(ctx, &old, at, (TYPE)-1, right);                                                    \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(*at == 12);                                                                                              \
        shmem_wait_until(at, SHMEM_CMP_EQ, 12);                                                                        \
        shmem_wait_until_all(at, 1, NULL, SHMEM_CMP_EQ, 12);                                                           \
        CHECK(shmem_wait_until_any(at, 2, NULL, SHMEM_CMP_EQ, 12) == 0);                                               \
        CHECK(shmem_wait_until_some(at, 2, found, NULL, SHMEM_CMP_EQ, 12) == 1);                                       \
        shmem_wait_until_all_vector(at, 2, NULL, SHMEM_CMP_EQ, wanted);                                                \
        CHECK(shmem_wait_until_any_vector(at, 2, NULL, SHMEM_CMP_EQ, wanted) < 2);                                     \
        CHECK(shmem_wait_until_some_vector(at, 2, found, NULL, SHMEM_CMP_EQ, wanted) == 2);                            \
        CHECK(shmem_test(at, SHMEM_CMP_EQ, 12) && shmem_test_all(at, 1, NULL, SHMEM_CMP_EQ, 12));                      \
        CHECK(shmem_test_any(at, 2, NULL, SHMEM_CMP_EQ, 12) == 0);                                                     \
        CHECK(shmem_test_some(at, 2, found, NULL, SHMEM_CMP_EQ, 12) == 1);                                             \
        CHECK(shmem_test_all_vector(at, 2, NULL, SHMEM_CMP_EQ, wanted) == 1);                                          \
        CHECK(shmem_test_any_vector(at, 2, NULL, SHMEM_CMP_EQ, wanted) < 2);                                           \
        CHECK(shmem_test_some_vector(at, 2, found, NULL, SHMEM_CMP_EQ, wanted) == 2);                                  \
        shmem_barrier_all();                                                                                           \
        shmem_free(at);                                                                                                \
    }

#define BITWISE_REDUCE(TYPE)                                                                                           \
    {                                                                                                                  \
        TYPE *all = ZEROED(TYPE, 1);                                                                                   \
        *all = 5;                                                                                                      \
        shmem_sync_all();                                                                                              \
        CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, all, all, 1) == 0 && *all == 5);                                      \
        shmem_sync(SHMEM_TEAM_WORLD);                                                                                  \
        CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, all, all, 1) == 0 && *all == 5);                                       \
        shmem_sync(SHMEM_TEAM_WORLD);                                                                                  \
        CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, all, all, 1) == 0 && *all == (shmem_n_pes() % 2 ? 5 : 0));            \
        shmem_barrier_all();                                                                                           \
        shmem_free(all);                                                                                               \
    }

#define BITWISE(TYPE)                                                                                                  \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 1);                                                                                    \
        TYPE old = 0;                                                                                                  \
        shmem_atomic_or(at, 6, right);                                                                                 \
        shmem_atomic_or(ctx, at, 8, right);                                                                            \
        shmem_atomic_and(at, 12, right);                                                                               \
        shmem_atomic_and(ctx, at, 28, right);                                                                          \
        shmem_atomic_xor(at, 1, right);                                                                                \
        shmem_atomic_xor(ctx, at, 1, right);                                                                           \
        CHECK(shmem_atomic_fetch_or(at, 1, right) == 12 && shmem_atomic_fetch_or(ctx, at, 2, right) == 13);            \
        CHECK(shmem_atomic_fetch_and(at, 3, right) == 15 && shmem_atomic_fetch_and(ctx, at, 2, right) == 3);           \
        CHECK(shmem_atomic_fetch_xor(at, 1, right) == 2 && shmem_atomic_fetch_xor(ctx, at, 1, right) == 3);            \
        shmem_atomic_fetch_or_nbi(&old, at, 1, right);                                                                 \
        shmem_atomic_fetch_or_nbi(ctx, &old, at, 1, right);                                                            \
        shmem_atomic_fetch_and_nbi(&old, at, 1, right);                                                                \
        shmem_atomic_fetch_and_nbi(ctx, &old, at, 1, right);                                                           \
        shmem_atomic_fetch_xor_nbi(&old, at, 1, right);                                                                \
        shmem_atomic_fetch_xor_nbi(ctx, &old, at, 5, right);                                                           \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(*at == 5);                                                                                               \
        shmem_free(at);                                                                                                \
        BITWISE_REDUCE(TYPE)                                                                                           \
    }

/* Teams, signals, waits and collectives under the names that they had as extensions. */
static void before_1_5(void)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    shmemx_team_t all;
    shmemx_team_config_t config = {.num_contexts = 1};
    CHECK(shmemx_team_split_strided(SHMEMX_TEAM_WORLD, 0, 1, pes, &config, SHMEMX_TEAM_NUM_CONTEXTS, &all) == 0);
    CHECK(all != SHMEMX_TEAM_INVALID && shmemx_team_my_pe(all) == me && shmemx_team_n_pes(all) == pes);
    CHECK(shmemx_team_translate_pe(all, right, SHMEMX_TEAM_WORLD) == right);
    CHECK(shmemx_team_n_pes(SHMEMX_TEAM_HOST) == shmem_team_n_pes(SHMEM_TEAM_NODE));
    shmem_ctx_t of_all = SHMEMX_CTX_INVALID;
    shmemx_team_t of_ctx;
    CHECK(shmemx_team_create_ctx(all, 0, &of_all) == 0 && shmemx_ctx_get_team(of_all, &of_ctx) == 0 && of_ctx == all);
    shmem_ctx_destroy(of_all);
    long *at = shmemx_malloc_with_hints(2 * sizeof(long), SHMEMX_MALLOC_ATOMICS_REMOTE | SHMEMX_MALLOC_SIGNAL_REMOTE);
    uint64_t *sig = ZEROED(uint64_t, 1);
    at[0] = me;
    at[1] = -1;
    shmemx_sync(SHMEMX_TEAM_WORLD);
    CHECK(shmemx_long_broadcast(all, at + 1, at, 1, pes - 1) == 0);
    CHECK(shmemx_broadcast(all, at + 1, at, 1, pes - 1) == 0);
    CHECK(me == pes - 1 || at[1] == pes - 1);
    shmemx_team_sync(all);
    CHECK(shmemx_int64_max_reduce(all, at + 1, at, 1) == 0 && at[1] == pes - 1);
    shmemx_team_sync(all);
    CHECK(shmemx_sum_reduce(all, at + 1, at, 1) == 0 && at[1] == (long)pes * (pes - 1) / 2);
    shmemx_team_sync(all);
    const long mine = me + 7;
    shmemx_long_put_signal(at, &mine, 1, sig, 3, SHMEMX_SIGNAL_SET, right);
    CHECK(shmemx_uint64_wait_until_any(sig, 1, NULL, SHMEM_CMP_EQ, 3) == 0 && shmemx_signal_fetch(sig) == 3);
    CHECK(at[0] == (me + pes - 1) % pes + 7 && shmemx_test_all(at, 1, NULL, SHMEM_CMP_GE, 7L));
    shmem_barrier_all();
    shmemx_put_signal_nbi(at, &mine, 1, sig, 1, SHMEMX_SIGNAL_ADD, right);
    CHECK(shmemx_signal_wait_until(sig, SHMEM_CMP_EQ, 4) == 4);
    shmem_barrier_all();
    shmemx_team_destroy(all);
}

/* Bitwise reductions of signed types have no place in the specification's tables, but users. */
#define SIGNED_BITS(NAME, TYPE)                                                                                        \
    {                                                                                                                  \
        TYPE *at = ZEROED(TYPE, 2);                                                                                    \
        at[1] = (TYPE) ~(TYPE)(1 << shmem_my_pe() % 4);                                                                \
        shmem_sync_all();                                                                                              \
        CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0 && (at[0] & 1) == 0 && at[0] < 0);                \
        shmem_sync_all();                                                                                              \
        CHECK(shmem_##NAME##_xor_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0);                                        \
        CHECK((at[0] < 0) == (shmem_n_pes() % 2 == 1));                                                                \
        shmem_sync_all();                                                                                              \
        CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0);                                                  \
        CHECK(at[0] == (shmem_n_pes() == 1 ? at[1] : -1));                                                             \
        shmem_sync_all();                                                                                              \
    }

int main(void)
{
    shmem_init();
    right = (shmem_my_pe() + 1) % shmem_n_pes();
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    BASE_TYPES(RMA)
    AMO(int)
    AMO(long)
    AMO(long long)
    AMO(unsigned)
    AMO(unsigned long)
    AMO(unsigned long long)
    AMO(size_t)
    AMO(ptrdiff_t)
    BITWISE(unsigned)
    BITWISE(unsigned long)
    BITWISE(unsigned long long)
    BITWISE(uint64_t)
    BITWISE(int32_t)
    BITWISE(int64_t)
    BITWISE_REDUCE(int8_t)
    BITWISE_REDUCE(int16_t)
    BITWISE_REDUCE(unsigned char)
    BITWISE_REDUCE(unsigned short)
    {
        double _Complex *at = ZEROED(double _Complex, 2);
        ARITHMETIC(double _Complex)
        float _Complex *narrow = ZEROED(float _Complex, 2);
        narrow[1] = 1;
        shmem_sync_all();
        CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, narrow, narrow + 1, 1) == 0 && narrow[0] == (float)shmem_n_pes());
    }
    double *real = ZEROED(double, 1); /* extended ones, and deprecated names */
    shmem_atomic_set(real, 1.5, right);
    CHECK(shmem_atomic_swap(ctx, real, 2.5, right) == 1.5 && shmem_atomic_fetch(real, right) == 2.5);
    shmem_set(real, 3.5, right);
    CHECK(shmem_fetch(real, right) == 3.5 && shmem_swap(real, 4.5, right) == 3.5);
    long *whole = ZEROED(long, 1);
    shmem_add(whole, 2, right);
    shmem_inc(whole, right);
    CHECK(shmem_fadd(whole, 2, right) == 3 && shmem_finc(whole, right) == 5 && shmem_cswap(whole, 6, 9, right) == 6);
    long before = 0; /* as before 1.5 had them */
    shmemx_atomic_fetch_add_nbi(&before, whole, 1, right);
    shmem_quiet();
    CHECK(before == 9);
    shmemx_atomic_swap_nbi(ctx, &before, whole, 20, right);
    shmem_ctx_quiet(ctx);
    CHECK(before == 10);
    uint64_t *sig = ZEROED(uint64_t, 1);
    shmem_signal_set(sig, 1, right);
    shmem_signal_add(ctx, sig, 2, right);
    shmemx_signal_add(sig, 2, right);
    shmemx_signal_set(ctx, sig, 7, right);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(*sig == 7);
    before_1_5();
    SIGNED_BITS(schar, signed char)
    SIGNED_BITS(short, short)
    SIGNED_BITS(int, int)
    SIGNED_BITS(long, long)
    SIGNED_BITS(longlong, long long)
    static long work[SHMEM_SYNC_SIZE]; /* the deprecated sync of an active set is a function still */
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) {
        work[i] = SHMEM_SYNC_VALUE;
    }
    shmem_sync(0, 0, shmem_n_pes(), work);
    shmem_ctx_destroy(ctx);
    return check_end();
}
