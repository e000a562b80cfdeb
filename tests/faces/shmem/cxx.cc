// Goal: C++ programs: the routines of C, the same by their arguments' types, complex numbers, threads.
// Method: one ring of puts a type and level, by functions that templates choose.
#include <shmem.h>
#include <shmemx.h>
#include <pshmem.h>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

static int failures;

#define CHECK(HOLDS)                                                                                                   \
    do {                                                                                                               \
        if (!(HOLDS)) {                                                                                                \
            std::printf("%s:%d: PE %d: not so: %s\n", __FILE__, __LINE__, shmem_my_pe(), #HOLDS);                      \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

template <typename T> static T *zeroed(std::size_t count)
{
    return static_cast<T *>(shmem_calloc(count, sizeof(T)));
}

template <typename T> static void move(shmem_ctx_t ctx)
{
    const int right = (shmem_my_pe() + 1) % shmem_n_pes();
    T *at = zeroed<T>(8);
    const T out[3] = {1, 2, 3};
    T in[3] = {};
    shmem_put(at, out, 3, right);
    shmem_put(ctx, at + 3, out, 3, right);
    shmem_p(at + 6, out[0], right);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    shmem_get(in, at, 2, right);
    in[2] = shmem_g(ctx, at + 5, right);
    CHECK(at[2] == 3 && at[5] == 3 && at[6] == 1 && in[0] == 1 && in[1] == 2 && in[2] == 3);
    shmem_barrier_all();
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, at, at + 1, 1, 0) == 0 && at[0] == 2);
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0 && at[0] == 2);
    shmem_barrier_all();
    shmem_free(at);
}

template <typename T> static void bits(shmem_ctx_t ctx)
{
    T *at = zeroed<T>(1);
    shmem_atomic_or(at, T(6), 0);
    shmem_atomic_xor(ctx, at, T(0), 0);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(shmem_atomic_fetch_and(at, T(6), 0) == T(6));
    shmem_barrier_all();
    *at = T(5);
    shmem_sync_all();
    CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, at, at, 1) == 0 && *at == T(5));
    shmem_barrier_all();
    shmem_free(at);
}

template <typename T> static void add(shmem_ctx_t ctx)
{
    T *at = zeroed<T>(1);
    shmem_atomic_inc(at, 0);
    (void)shmem_atomic_fetch_add(ctx, at, T(2), 0);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(shmem_atomic_fetch(at, 0) == T(3 * shmem_n_pes()));
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        shmem_wait_until(at, SHMEM_CMP_EQ, T(3 * shmem_n_pes()));
        CHECK(shmem_test(at, SHMEM_CMP_GT, T(0)) == 1);
    }
    shmem_barrier_all();
    shmem_free(at);
}

template <typename T> static void combine()
{
    T *at = zeroed<T>(2);
    at[1] = T(1, 2);
    shmem_sync_all();
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, at, at + 1, 1) == 0);
    CHECK(at[0] == T(static_cast<typename T::value_type>(shmem_n_pes())) * T(1, 2));
    shmem_barrier_all();
    shmem_free(at);
}

// C's complex numbers, an extension of C++ compilers: by the routines of a team and of an active set.
__extension__ typedef double _Complex c_complex;
static c_complex c_numbers[2], c_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long c_sync[SHMEM_REDUCE_SYNC_SIZE];

static void combine_c()
{
    const double pes = shmem_n_pes();
    double parts[2] = {1, 2};
    __builtin_memcpy(&c_numbers[1], parts, sizeof parts);
    shmem_sync_all();
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, c_numbers, c_numbers + 1, 1) == 0);
    __builtin_memcpy(parts, c_numbers, sizeof parts);
    CHECK(parts[0] == pes && parts[1] == 2 * pes);
    CHECK(shmem_complexd_sum_inscan(SHMEM_TEAM_WORLD, c_numbers, c_numbers + 1, 1) == 0);
    __builtin_memcpy(parts, c_numbers, sizeof parts);
    CHECK(parts[0] == shmem_my_pe() + 1);
    shmem_complexd_sum_to_all(c_numbers, c_numbers + 1, 1, 0, 0, shmem_n_pes(), c_work, c_sync);
    __builtin_memcpy(parts, c_numbers, sizeof parts);
    CHECK(parts[0] == pes && parts[1] == 2 * pes);
    shmem_barrier_all();
}

// As programs for OpenSHMEM 1.3 declare what they wait for.
template <typename T> static void await_volatile()
{
    T *at = zeroed<T>(1);
    volatile T *flag = at;
    shmem_p(at, T(1), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_wait_until(flag, SHMEM_CMP_EQ, T(1));
    CHECK(*flag == 1 && shmem_test(flag, SHMEM_CMP_EQ, T(1)) == 1 && shmem_test(flag, SHMEM_CMP_NE, T(1)) == 0);
    shmem_barrier_all();
    shmem_free(at);
}

static void await_volatile_by_name()
{
    static volatile int number = 1;
    static volatile long word = 1;
    static volatile long lock = 0;
    shmem_int_wait_until(&number, SHMEM_CMP_EQ, 1);
    shmem_long_wait(&word, 0);
    shmem_wait(&word, 0);
    CHECK(shmem_int_test(&number, SHMEM_CMP_GT, 1) == 0 && shmem_long_test(&word, SHMEM_CMP_EQ, 1) == 1);
    shmem_set_lock(&lock);
    CHECK(shmem_test_lock(&lock) == 1);
    shmem_clear_lock(&lock);
}

int main()
{
    int provided = -1;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    move<float>(ctx);
    move<double>(ctx);
    move<long double>(ctx);
    move<char>(ctx);
    move<short>(ctx);
    move<int>(ctx);
    move<long>(ctx);
    move<unsigned long long>(ctx);
    move<std::uint8_t>(ctx);
    bits<unsigned>(ctx);
    bits<std::int32_t>(ctx);
    bits<std::int64_t>(ctx);
    add<int>(ctx);
    add<std::int64_t>(ctx);
    add<std::size_t>(ctx);
    combine<std::complex<float>>();
    combine<std::complex<double>>();
    combine_c();
    await_volatile<short>();
    await_volatile<int>();
    await_volatile<long>();
    await_volatile<std::uint64_t>();
    await_volatile_by_name();
    std::uint64_t *sig = zeroed<std::uint64_t>(1);
    shmem_signal_add(sig, 1, 0);
    shmem_signal_add(ctx, sig, 1, 0);
    shmemx_signal_add(sig, 1, 0);
    pshmem_signal_add(sig, 1, 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([=] { shmem_signal_add(sig, 1, 0); });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(shmem_my_pe() != 0 || *sig == std::uint64_t(7 * shmem_n_pes()));
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return failures == 0 ? 0 : 1;
}
