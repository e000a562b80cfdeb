/* weft/device/on_host.cuh: the names of ptx.cuh, atomics.cuh and scope.cuh for a CPU, where a kernel is one thread, or,
 * with WEFT_DEVICE_ON_HOST_THREADS, has the warps and blocks that its includer brings. For tests: what waits, flags and
 * counts in the device headers runs here under ThreadSanitizer, which sees the acquires and releases but no fences, so
 * that relaxed stores after a fence are releases here. */
#ifndef WEFTI_DEVICE_ON_HOST_CUH
#define WEFTI_DEVICE_ON_HOST_CUH

#include <stdint.h>
#include <string.h>
#include <time.h>

#define WEFTI_DEVICE inline
#define WEFTI_DEVICE_SLOW static inline
#define WEFTI_HAS_BULK 0
#define WEFTI_UNROLL(times)

#define WEFTI_ON_HOST_ALIGNED(address) ((uintptr_t)(address) % sizeof *(address) == 0 ? (void)0 : __builtin_trap())

template <class T> WEFTI_DEVICE T wefti_ld_acquire(const T *address)
{
    WEFTI_ON_HOST_ALIGNED(address);
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

template <class T> WEFTI_DEVICE T wefti_ld_relaxed(const T *address)
{
    WEFTI_ON_HOST_ALIGNED(address);
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}

template <class T> WEFTI_DEVICE void wefti_st_release(T *address, T value)
{
    WEFTI_ON_HOST_ALIGNED(address);
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

template <class T> WEFTI_DEVICE void wefti_st_relaxed(T *address, T value)
{
    WEFTI_ON_HOST_ALIGNED(address);
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

WEFTI_DEVICE void wefti_red_add_release(wefti_u64 *address, wefti_u64 value)
{
    (void)__atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
}

WEFTI_DEVICE void wefti_red_add_relaxed(wefti_u64 *address, wefti_u64 value)
{
    (void)__atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
}

WEFTI_DEVICE void wefti_fence_acq_rel()
{
}

WEFTI_DEVICE void wefti_fence_sc()
{
}

#define WEFTI_HAS_HALF_FENCES 0

WEFTI_DEVICE void wefti_fence_rel()
{
}

WEFTI_DEVICE void wefti_fence_acq()
{
}

template <class T> WEFTI_DEVICE T wefti_ld_look(const T *address)
{
    return wefti_ld_acquire(address);
}

WEFTI_DEVICE void wefti_fence_looked()
{
}

WEFTI_DEVICE wefti_u64 wefti_time_ns()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (wefti_u64)now.tv_sec * 1000000000u + (wefti_u64)now.tv_nsec;
}

#if !defined(WEFT_DEVICE_ON_HOST_THREADS)
WEFTI_DEVICE void wefti_rest(unsigned ns)
{
    const struct timespec pause = {0, (long)ns};
    nanosleep(&pause, NULL);
}
#endif

typedef struct alignas(16) wefti_wide { /* a CPU ends a program that reads one elsewhere, as a GPU does */
    wefti_u32 x, y, z, w;
} wefti_wide;

WEFTI_DEVICE wefti_wide wefti_ld_wide(const wefti_wide *address)
{
    return *address;
}

WEFTI_DEVICE wefti_u64 wefti_ld_word(const wefti_u64 *address)
{
    return *address;
}

WEFTI_DEVICE wefti_wide wefti_ld_remote(const wefti_wide *address)
{
    return *address;
}

template <class T> WEFTI_DEVICE T wefti_ld_cached(const T *address)
{
    WEFTI_ON_HOST_ALIGNED(address);
    return *address;
}

WEFTI_DEVICE void wefti_st_remote(wefti_wide *address, wefti_wide value)
{
    *address = value;
}

/* Two accesses: a word whose epoch has been seen is read after it, and was written before it. */
WEFTI_DEVICE wefti_dev_packed wefti_ld_packed(const wefti_dev_packed *address)
{
    wefti_dev_packed word;
    word.epoch = __atomic_load_n(&address->epoch, __ATOMIC_ACQUIRE);
    word.value = __atomic_load_n(&address->value, __ATOMIC_RELAXED);
    return word;
}

WEFTI_DEVICE void wefti_st_packed(wefti_dev_packed *address, wefti_u64 value, wefti_u64 epoch)
{
    __atomic_store_n(&address->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&address->epoch, epoch, __ATOMIC_RELEASE);
}

/* ---- atomics ---- */

template <class T> WEFTI_DEVICE T wefti_atomic_add(T *address, T value)
{
    T old;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    T sum = old + value;
    while (!__atomic_compare_exchange(address, &old, &sum, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        sum = old + value;
    }
    return old;
}

template <class T> WEFTI_DEVICE T wefti_atomic_swap(T *address, T value)
{
    T old;
    __atomic_exchange(address, &value, &old, __ATOMIC_ACQ_REL);
    return old;
}

template <class T> WEFTI_DEVICE T wefti_atomic_cas(T *address, T expected, T value)
{
    __atomic_compare_exchange(address, &expected, &value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}

/* Add 1; what has reached `limit` becomes 0. */
WEFTI_DEVICE wefti_u32 wefti_atomic_count(wefti_u32 *address, wefti_u32 limit)
{
    wefti_u32 old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(address, &old, old >= limit ? 0 : old + 1, 1, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

#define WEFTI_DEFINE_BITWISE(name, op)                                                                                 \
    template <class T> WEFTI_DEVICE T wefti_atomic_##name(T *address, T value)                                         \
    {                                                                                                                  \
        T old = __atomic_load_n(address, __ATOMIC_RELAXED);                                                            \
        while (                                                                                                        \
            !__atomic_compare_exchange_n(address, &old, (T)(old op value), 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {   \
        }                                                                                                              \
        return old;                                                                                                    \
    }
WEFTI_DEFINE_BITWISE(and, &)
WEFTI_DEFINE_BITWISE(or, |)
WEFTI_DEFINE_BITWISE(xor, ^)
#undef WEFTI_DEFINE_BITWISE

/* ---- a scope of one thread ---- */

#if !defined(WEFT_DEVICE_ON_HOST_THREADS)
WEFTI_DEVICE void wefti_sync_warp()
{
}

WEFTI_DEVICE void wefti_sync_block()
{
}

WEFTI_DEVICE int wefti_any_of_block(int value)
{
    return value;
}

WEFTI_DEVICE wefti_u32 wefti_first_of_block(wefti_u32 rank, wefti_u32 value)
{
    (void)rank;
    return value;
}

WEFTI_DEVICE int wefti_any_of_warp(int value)
{
    return value;
}

WEFTI_DEVICE int wefti_first_of_warp(int value)
{
    return value;
}
#endif

#endif
