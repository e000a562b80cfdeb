/* faces/nvshmem/every/kernels.cuh: what the kernels are made of that generate.py writes: EVERY_PUT(k, TYPE, routine)
 * and its like make call k. They are compiled by nvcc; and by g++ for the CPU, where a thread of a kernel is a
 * coroutine (testing/fake_driver/threads.h). */
#ifndef FACES_NVSHMEM_EVERY_KERNELS_CUH
#define FACES_NVSHMEM_EVERY_KERNELS_CUH

#include "faces/nvshmem/every/set.h"

#include <stdio.h>
#include <type_traits>

#if defined(WEFT_DEVICE_ON_HOST)
#define EVERY_KERNEL(NAME) static void NAME(every_args a)
#define EVERY_DEVICE static inline
#define EVERY_OUT_OF_LINE static

struct every_grid {
    void (*kernel)(every_args args);
    every_args args;
};

static inline void every_thread(const void *grid)
{
    ((const every_grid *)grid)->kernel(((const every_grid *)grid)->args);
}

static inline int every_launch(void (*kernel)(every_args), unsigned threads, every_args args)
{
    const every_grid grid = {kernel, args};
    fake_grid_run(every_thread, &grid, 1, threads, 0);
    return 0;
}

/* Some time, in which others run. */
EVERY_DEVICE void every_rest()
{
    for (int i = 0; i < 20; i++) {
        fake_pause();
    }
}
#else
#define EVERY_KERNEL(NAME) static __global__ void NAME(every_args a)
#define EVERY_DEVICE static __device__ inline
#define EVERY_OUT_OF_LINE static __device__ __noinline__

static inline int every_launch(void (*kernel)(every_args), unsigned threads, every_args args)
{
    void *arguments[] = {&args};
    const int status = nvshmemx_collective_launch((const void *)kernel, 1, threads, arguments, 0, 0);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
    }
    return status != 0 ? status : (int)error;
}

EVERY_DEVICE void every_rest()
{
    for (int i = 0; i < 20; i++) {
        __nanosleep(1000);
    }
}
#endif

template <class T> constexpr enum every_number every_number()
{
    return std::is_floating_point<T>::value ? EVERY_FLOAT : std::is_signed<T>::value ? EVERY_SIGNED : EVERY_UNSIGNED;
}
template <> constexpr enum every_number every_number<half>() { return EVERY_HALF; }
template <> constexpr enum every_number every_number<__nv_bfloat16>() { return EVERY_BFLOAT16; }

#define EVERY_CALL(NAME, K)                                                                                            \
    EVERY_OUT_OF_LINE void NAME##_##K(const every_args &a, [[maybe_unused]] int kind, [[maybe_unused]] unsigned rank,  \
                                      [[maybe_unused]] unsigned size)

#define EVERY_SET(NAME, SCOPE, ELEMENT, NUMBER)                                                                        \
    static int NAME##_launch(unsigned threads, every_args args)                                                        \
    {                                                                                                                  \
        return every_launch(NAME, threads, args);                                                                      \
    }                                                                                                                  \
    static const every_set NAME##_set = {#NAME,        EVERY_##SCOPE, ELEMENT,                                         \
                                         NUMBER,       NAME##_calls,  sizeof NAME##_calls / sizeof NAME##_calls[0],    \
                                         NAME##_launch};

/* ---- who calls: one thread, not the first; the second warp of two; the block ---- */

EVERY_DEVICE void every_meet(int kind)
{
    if (kind == EVERY_BLOCK) {
        __syncthreads();
    } else if (kind == EVERY_WARP) {
        __syncwarp();
    }
}

#define EVERY_ENTER_THREAD                                                                                             \
    const int kind = EVERY_THREAD;                                                                                     \
    const unsigned rank = 0;                                                                                           \
    const unsigned size = 1;                                                                                           \
    (void)kind, (void)rank, (void)size;                                                                                \
    if (threadIdx.x != 5) {                                                                                            \
        return;                                                                                                        \
    }
#define EVERY_ENTER_WARP                                                                                               \
    const int kind = EVERY_WARP;                                                                                       \
    const unsigned rank = threadIdx.x % 32;                                                                            \
    const unsigned size = 32;                                                                                          \
    (void)kind, (void)rank, (void)size;                                                                                \
    if (threadIdx.x / 32 != 1) {                                                                                       \
        return;                                                                                                        \
    }
#define EVERY_ENTER_BLOCK                                                                                              \
    const int kind = EVERY_BLOCK;                                                                                      \
    const unsigned rank = threadIdx.x;                                                                                 \
    const unsigned size = blockDim.x;                                                                                  \
    (void)kind, (void)rank, (void)size;

/* All threads, as they meet at the end; two of them do something. */
#define EVERY_ENTER_WAIT                                                                                               \
    const int kind = EVERY_THREAD;                                                                                     \
    const unsigned rank = 0;                                                                                           \
    const unsigned size = 1;                                                                                           \
    (void)kind, (void)rank, (void)size;

/* ---- one-sided ---- */

#define EVERY_AT(ARRAY, K, T, OFFSET) ((T *)(void *)(a.ARRAY + (K)*a.slot + (OFFSET)))
#define EVERY_TO(K, T) EVERY_AT(to, K, T, a.cases[K].dest)
#define EVERY_FROM(K, T) ((const T *)EVERY_AT(from, K, T, a.cases[K].source))
#define EVERY_GOT(K, T) EVERY_AT(got, K, T, a.cases[K].dest)
#define EVERY_STRIDES(K) a.cases[K].dest_stride, a.cases[K].source_stride
#define EVERY_SIGNAL(K) &a.signals[K], a.cases[K].signal, a.cases[K].op

#define EVERY_PUT(K, T, CALL) CALL(EVERY_TO(K, T), EVERY_FROM(K, T), a.cases[K].count, a.next);
#define EVERY_GET(K, T, CALL) CALL(EVERY_GOT(K, T), EVERY_FROM(K, T), a.cases[K].count, a.next);
#define EVERY_IPUT(K, T, CALL) CALL(EVERY_TO(K, T), EVERY_FROM(K, T), EVERY_STRIDES(K), a.cases[K].count, a.next);
#define EVERY_IGET(K, T, CALL) CALL(EVERY_GOT(K, T), EVERY_FROM(K, T), EVERY_STRIDES(K), a.cases[K].count, a.next);
#define EVERY_PUT_SIGNAL(K, T, CALL) CALL(EVERY_TO(K, T), EVERY_FROM(K, T), a.cases[K].count, EVERY_SIGNAL(K), a.next);
#define EVERY_P(K, T, CALL)                                                                                            \
    for (unsigned i = 0; i < a.cases[K].count; i++) {                                                                  \
        CALL(EVERY_TO(K, T) + i, EVERY_FROM(K, T)[i], a.next);                                                         \
    }
#define EVERY_G(K, T, CALL)                                                                                            \
    for (unsigned i = 0; i < a.cases[K].count; i++) {                                                                  \
        EVERY_GOT(K, T)[i] = CALL(EVERY_FROM(K, T) + i, a.next);                                                       \
    }

/* With a queue pair. */
#define EVERY_QP_PUT(K, T, CALL) CALL(EVERY_TO(K, T), EVERY_FROM(K, T), a.cases[K].count, a.next, NVSHMEMX_QP_DEFAULT);
#define EVERY_QP_GET(K, T, CALL) CALL(EVERY_GOT(K, T), EVERY_FROM(K, T), a.cases[K].count, a.next, NVSHMEMX_QP_ANY);
#define EVERY_QP_PUT_SIGNAL(K, T, CALL)                                                                                \
    CALL(EVERY_TO(K, T), EVERY_FROM(K, T), a.cases[K].count, EVERY_SIGNAL(K), a.next, NVSHMEMX_QP_DEFAULT);
#define EVERY_QP_P(K, T, CALL)                                                                                         \
    for (unsigned i = 0; i < a.cases[K].count; i++) {                                                                  \
        CALL(EVERY_TO(K, T) + i, EVERY_FROM(K, T)[i], a.next, NVSHMEMX_QP_DEFAULT);                                    \
    }
#define EVERY_QP_G(K, T, CALL)                                                                                         \
    for (unsigned i = 0; i < a.cases[K].count; i++) {                                                                  \
        EVERY_GOT(K, T)[i] = CALL(EVERY_FROM(K, T) + i, a.next, NVSHMEMX_QP_DEFAULT);                                  \
    }

/* Keep what lies in `to` as soon as the signal of call k has come. */
#define EVERY_SEE(K)                                                                                                   \
    if (rank == 0) {                                                                                                   \
        a.results[(K)*EVERY_RESULTS] = nvshmem_signal_wait_until(&a.signals[K], NVSHMEM_CMP_EQ, a.cases[K].awaited);   \
    }                                                                                                                  \
    every_meet(kind);                                                                                                  \
    for (size_t i = rank; i < a.slot / sizeof(uint64_t); i += size) {                                                  \
        EVERY_AT(seen, K, uint64_t, 0)[i] = EVERY_AT(to, K, uint64_t, 0)[i];                                           \
    }

/* ---- collectives ---- */

#define EVERY_STATUS_OF(K, CALL)                                                                                       \
    {                                                                                                                  \
        const int status = CALL;                                                                                       \
        if (rank == size - 1) {                                                                                        \
            a.results[(K)*EVERY_RESULTS] = (uint64_t)status;                                                           \
        }                                                                                                              \
    }
#define EVERY_STATUS(CALL)                                                                                             \
    if ((CALL) != 0) {                                                                                                 \
        a.results[0] = __LINE__;                                                                                       \
    }
#define EVERY_BROADCAST(K, T, CALL)                                                                                    \
    EVERY_STATUS_OF(K, CALL(a.team, EVERY_TO(K, T), EVERY_FROM(K, T), a.cases[K].count, a.cases[K].root))
#define EVERY_FCOLLECT(K, T, CALL) EVERY_STATUS_OF(K, CALL(a.team, EVERY_TO(K, T), EVERY_FROM(K, T), a.cases[K].count))
#define EVERY_ALLTOALL EVERY_FCOLLECT
#define EVERY_AND_REDUCE EVERY_FCOLLECT
#define EVERY_AND_REDUCE_SCATTER EVERY_FCOLLECT
#define EVERY_OR_REDUCE EVERY_FCOLLECT
#define EVERY_OR_REDUCE_SCATTER EVERY_FCOLLECT
#define EVERY_XOR_REDUCE EVERY_FCOLLECT
#define EVERY_XOR_REDUCE_SCATTER EVERY_FCOLLECT
#define EVERY_MAX_REDUCE EVERY_FCOLLECT
#define EVERY_MAX_REDUCE_SCATTER EVERY_FCOLLECT
#define EVERY_MIN_REDUCE EVERY_FCOLLECT
#define EVERY_MIN_REDUCE_SCATTER EVERY_FCOLLECT
#define EVERY_SUM_REDUCE EVERY_FCOLLECT
#define EVERY_SUM_REDUCE_SCATTER EVERY_FCOLLECT
#define EVERY_PROD_REDUCE EVERY_FCOLLECT
#define EVERY_PROD_REDUCE_SCATTER EVERY_FCOLLECT

/* ---- atomics: words of the next PE; operands 0 and 1 of this PE's `from`; sums by a warp of threads at once, all else
 * by one thread ---- */

#define EVERY_WORD(ARRAY, K, T, I) (((T *)(void *)(a.ARRAY + (K)*EVERY_GROUP_BYTES))[I])
#define EVERY_WHERE(K, T) &EVERY_WORD(to, K, T, 0)
#define EVERY_RESULT(K, T, I) (*(T *)(void *)&a.results[(K)*EVERY_RESULTS + (I)])
#define EVERY_BY_ONE(DO)                                                                                               \
    if (rank == 0) {                                                                                                   \
        DO;                                                                                                            \
    }
#define EVERY_ATOMIC_FETCH(K, T, CALL) EVERY_BY_ONE(EVERY_RESULT(K, T, 0) = CALL(EVERY_WHERE(K, T), a.next))
#define EVERY_ATOMIC_SET(K, T, CALL) EVERY_BY_ONE(CALL(EVERY_WHERE(K, T), EVERY_WORD(from, K, T, 0), a.next))
#define EVERY_ATOMIC_SWAP(K, T, CALL)                                                                                  \
    EVERY_BY_ONE(EVERY_RESULT(K, T, 0) = CALL(EVERY_WHERE(K, T), EVERY_WORD(from, K, T, 0), a.next))
/* With what is there, then with what is not any more. */
#define EVERY_ATOMIC_COMPARE_SWAP(K, T, CALL)                                                                          \
    for (int i = 0; rank == 0 && i < 2; i++) {                                                                         \
        EVERY_RESULT(K, T, i) = CALL(EVERY_WHERE(K, T), EVERY_WORD(from, K, T, 1), EVERY_WORD(from, K, T, 0), a.next); \
    }
#define EVERY_ATOMIC_INC(K, T, CALL)                                                                                   \
    if (rank < EVERY_LANES) {                                                                                          \
        CALL(EVERY_WHERE(K, T), a.next);                                                                               \
    }
#define EVERY_ATOMIC_ADD(K, T, CALL)                                                                                   \
    if (rank < EVERY_LANES) {                                                                                          \
        CALL(EVERY_WHERE(K, T), EVERY_WORD(from, K, T, 0), a.next);                                                    \
    }
#define EVERY_ATOMIC_FETCH_INC EVERY_ATOMIC_FETCH
#define EVERY_ATOMIC_FETCH_ADD EVERY_ATOMIC_SWAP
#define EVERY_ATOMIC_AND EVERY_ATOMIC_SET
#define EVERY_ATOMIC_FETCH_AND EVERY_ATOMIC_SWAP
#define EVERY_ATOMIC_OR EVERY_ATOMIC_SET
#define EVERY_ATOMIC_FETCH_OR EVERY_ATOMIC_SWAP
#define EVERY_ATOMIC_XOR EVERY_ATOMIC_SET
#define EVERY_ATOMIC_FETCH_XOR EVERY_ATOMIC_SWAP

/* ---- waits: EVERY_WORDS variables a call, which a thread of the PE before sends; those of group EVERY_NEVER nobody
 * sends. Values to compare with are behind those to send.
 *
 * The thread that waits says by signal 0 of the PE before that it is about to make call k, 2k + 1, and that it has made
 * it, 2k + 2. Some time after the former the other one sends: the word apart last; or first, and the rest after the
 * latter. So what a call that returns at once should have waited for is not there yet, and what a call for any finds is
 * known. The words are looked at right behind the call. ---- */

#define EVERY_WAITER 5
#define EVERY_SENDER 37 /* of the other warp */

EVERY_DEVICE void every_tell(const every_args &a, int number)
{
    nvshmemx_signal_op(&a.signals[0], (uint64_t)number, NVSHMEM_SIGNAL_SET, (a.pe + a.pes - 1) % a.pes);
}

EVERY_DEVICE void every_await(const every_args &a, int number)
{
    (void)nvshmem_signal_wait_until(&a.signals[0], NVSHMEM_CMP_GE, (uint64_t)number);
}

EVERY_DEVICE bool every_is_sent(const every_args &a, int i)
{
    return a.status == NULL || i != EVERY_MASKED;
}

/* Send the word apart of call k; or the others. */
#define EVERY_SEND(T, P, IS_APART)                                                                                     \
    for (int i = 0; i < EVERY_WORDS; i++) {                                                                            \
        if (every_is_sent(a, i) && (i == a.cases[k].apart) == (IS_APART)) {                                            \
            P(&EVERY_WORD(to, k, T, i), EVERY_WORD(from, k, T, i), a.next);                                            \
        }                                                                                                              \
    }
#define EVERY_SENDS(COUNT, T, P)                                                                                       \
    if (threadIdx.x == EVERY_SENDER) {                                                                                 \
        for (int k = 0; k < (COUNT); k++) {                                                                            \
            every_await(a, 2 * k + 1);                                                                                 \
            every_rest();                                                                                              \
            EVERY_SEND(T, P, a.cases[k].is_first)                                                                      \
            if (a.cases[k].is_first) {                                                                                 \
                every_await(a, 2 * k + 2);                                                                             \
            }                                                                                                          \
            every_rest();                                                                                              \
            EVERY_SEND(T, P, !a.cases[k].is_first)                                                                     \
        }                                                                                                              \
    }
#define EVERY_ARRIVE(T, WAIT_VECTOR)                                                                                   \
    const auto arrive = [&](int k) {                                                                                   \
        WAIT_VECTOR(&EVERY_WORD(to, k, T, 0), EVERY_WORDS, a.status, a.cmp, &EVERY_ONE_VALUE(k, T));                   \
    };
#define EVERY_VARIABLES(K, T) &EVERY_WORD(to, K, T, 0), EVERY_WORDS
#define EVERY_ONE_VALUE(K, T) EVERY_WORD(from, EVERY_NEVER + 1 + (K), T, 0)
#define EVERY_VALUES(K, T) &EVERY_ONE_VALUE(K, T)
#define EVERY_GIVES(K, I) a.results[(K)*EVERY_RESULTS + (I)]
#define EVERY_INDICES(K, I) (size_t *)&EVERY_GIVES(K, I)

#define EVERY_LOOK_AT(K, T, I)                                                                                         \
    EVERY_GIVES(K, EVERY_LOOK) |= EVERY_WORD(to, K, T, I) == EVERY_WORD(from, K, T, I) ? 1u << (I) : 0;
#define EVERY_LOOK_AT_ALL(K, T)                                                                                        \
    for (int i = 0; i < EVERY_WORDS; i++) {                                                                            \
        if (every_is_sent(a, i)) {                                                                                     \
            EVERY_LOOK_AT(K, T, i)                                                                                     \
        }                                                                                                              \
    }
#define EVERY_LOOK_AT_ONE(K, T) EVERY_LOOK_AT(K, T, a.cases[K].apart)

#define EVERY_WAIT(K, T, CALL)                                                                                         \
    CALL(&EVERY_WORD(to, K, T, 0), a.cmp, EVERY_ONE_VALUE(K, T));                                                      \
    EVERY_LOOK_AT_ONE(K, T)
#define EVERY_WAIT_ALL(K, T, CALL)                                                                                     \
    CALL(EVERY_VARIABLES(K, T), a.status, a.cmp, EVERY_ONE_VALUE(K, T));                                               \
    EVERY_LOOK_AT_ALL(K, T)
#define EVERY_WAIT_ALL_VECTOR(K, T, CALL)                                                                              \
    CALL(EVERY_VARIABLES(K, T), a.status, a.cmp, EVERY_VALUES(K, T));                                                  \
    EVERY_LOOK_AT_ALL(K, T)
#define EVERY_WAIT_ANY_OF(K, T, CALL, VALUES)                                                                          \
    EVERY_GIVES(K, 0) = CALL(EVERY_VARIABLES(K, T), a.status, a.cmp, VALUES);                                          \
    EVERY_LOOK_AT_ONE(K, T)
#define EVERY_WAIT_ANY(K, T, CALL) EVERY_WAIT_ANY_OF(K, T, CALL, EVERY_ONE_VALUE(K, T))
#define EVERY_WAIT_ANY_VECTOR(K, T, CALL) EVERY_WAIT_ANY_OF(K, T, CALL, EVERY_VALUES(K, T))
#define EVERY_WAIT_SOME_OF(K, T, CALL, VALUES)                                                                         \
    EVERY_GIVES(K, 0) = CALL(EVERY_VARIABLES(K, T), EVERY_INDICES(K, 1), a.status, a.cmp, VALUES);                     \
    EVERY_LOOK_AT_ONE(K, T)
#define EVERY_WAIT_SOME(K, T, CALL) EVERY_WAIT_SOME_OF(K, T, CALL, EVERY_ONE_VALUE(K, T))
#define EVERY_WAIT_SOME_VECTOR(K, T, CALL) EVERY_WAIT_SOME_OF(K, T, CALL, EVERY_VALUES(K, T))

/* On what never comes, then on what has come. */
#define EVERY_TEST(K, T, CALL)                                                                                         \
    EVERY_GIVES(K, 7) = (uint64_t)CALL(&EVERY_WORD(to, EVERY_NEVER, T, 0), a.cmp, EVERY_ONE_VALUE(K, T));              \
    arrive(K);                                                                                                         \
    EVERY_GIVES(K, 0) = (uint64_t)CALL(&EVERY_WORD(to, K, T, 0), a.cmp, EVERY_ONE_VALUE(K, T));
#define EVERY_TEST_OF(K, T, CALL, VALUES)                                                                              \
    EVERY_GIVES(K, 7) = (uint64_t)CALL(EVERY_VARIABLES(EVERY_NEVER, T), a.status, a.cmp, VALUES);                      \
    arrive(K);                                                                                                         \
    EVERY_GIVES(K, 0) = (uint64_t)CALL(EVERY_VARIABLES(K, T), a.status, a.cmp, VALUES);
#define EVERY_TEST_ALL(K, T, CALL) EVERY_TEST_OF(K, T, CALL, EVERY_ONE_VALUE(K, T))
#define EVERY_TEST_ANY EVERY_TEST_ALL
#define EVERY_TEST_ALL_VECTOR(K, T, CALL) EVERY_TEST_OF(K, T, CALL, EVERY_VALUES(K, T))
#define EVERY_TEST_ANY_VECTOR EVERY_TEST_ALL_VECTOR
#define EVERY_TEST_SOME_OF(K, T, CALL, VALUES)                                                                         \
    EVERY_GIVES(K, 7) = CALL(EVERY_VARIABLES(EVERY_NEVER, T), EVERY_INDICES(K, 1), a.status, a.cmp, VALUES);           \
    arrive(K);                                                                                                         \
    EVERY_GIVES(K, 0) = CALL(EVERY_VARIABLES(K, T), EVERY_INDICES(K, 1), a.status, a.cmp, VALUES);
#define EVERY_TEST_SOME(K, T, CALL) EVERY_TEST_SOME_OF(K, T, CALL, EVERY_ONE_VALUE(K, T))
#define EVERY_TEST_SOME_VECTOR(K, T, CALL) EVERY_TEST_SOME_OF(K, T, CALL, EVERY_VALUES(K, T))

#endif
