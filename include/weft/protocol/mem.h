/* protocol/mem.h: the only way in which the library's host code touches symmetric memory of the host.
 *
 *   wefti_ld{8,16,32,64}(p, order)          load
 *   wefti_st{8,16,32,64}(p, value, order)   store
 *   wefti_{add,xchg,cas,and,or,xor}{32,64}  read-modify-write, returning the old value, always sequentially consistent
 *   wefti_copy(dst, src, bytes)             bulk copy into or out of symmetric memory, no order of its own
 *   wefti_copy_stream(dst, src, bytes)      the same past the caches, for copies that together exceed them, that is
 *                                           wefti_stream_bytes(); all of them are ended by one
 *   wefti_copy_stream_end()                 which comes before the flag that announces them
 *   wefti_zero(dst, bytes)                  clear this PE's own symmetric memory, no order of its own
 *   wefti_fence_release()                   what this PE stored before is seen no later than what it stores after
 *   wefti_fence_full()                      ... and before it loads or stores anything more
 *
 * Release builds compile these to plain instructions. The simulator build (WEFT_SIM) sends them through store buffers
 * and a history of old values, so that late, reordered and split delivery and missing acquires show. No other file
 * spells atomics on symmetric memory; on memory of a process its own code may.
 *
 * Pairing: a flag is stored with WEFTI_RELEASE and loaded with WEFTI_ACQUIRE. Data before it needs no order. */
#ifndef WEFTI_PROTOCOL_MEM_H
#define WEFTI_PROTOCOL_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "weft/status.h"

#define WEFTI_RELAXED __ATOMIC_RELAXED
#define WEFTI_ACQUIRE __ATOMIC_ACQUIRE
#define WEFTI_RELEASE __ATOMIC_RELEASE
#define WEFTI_SEQ_CST __ATOMIC_SEQ_CST

#define WEFTI_CACHE_LINE 64

/* The least size from which a copy, or many of one operation, goes past the caches: source and destination together
 * exceed what the last cache of a few cores holds. Measured with 32 MiB of it: such stores lose a fifth at 8 MiB, win a
 * quarter at 16 and half at 64. With 480 MiB they lose half at 16 MiB and a tenth at 64: see wefti_stream_bytes. */
#ifndef WEFT_SIM
#define WEFTI_STREAM_BYTES ((size_t)12 << 20)
#else
#define WEFTI_STREAM_BYTES ((size_t)64) /* what the simulator moves is small */
#endif

#if defined(__SANITIZE_THREAD__)
#define WEFTI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFTI_TSAN 1
#endif
#endif
#ifndef WEFTI_TSAN
#define WEFTI_TSAN 0
#endif

/* The order of single-element puts, which promise none: relaxed, but ThreadSanitizer does not see fences, so that the
 * pattern put, fence, p is shown to it as a release. In the simulator it watches one thread. */
#ifdef WEFT_SIM
#define WEFTI_PUT_ORDER WEFTI_RELAXED
#define WEFTI_GET_ORDER WEFTI_RELAXED
#else
#define WEFTI_PUT_ORDER (WEFTI_TSAN ? WEFTI_RELEASE : WEFTI_RELAXED)
#define WEFTI_GET_ORDER (WEFTI_TSAN ? WEFTI_ACQUIRE : WEFTI_RELAXED)
#endif

#define WEFTI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define WEFTI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#ifdef __cplusplus
extern "C" {
#endif

/* Tell the processor that this thread spins. */
static inline void wefti_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#ifndef WEFT_SIM

WEFT_API void wefti_copy_bulk(void *dst, const void *src, size_t bytes);
WEFT_API void wefti_copy_bulk_stream(void *dst, const void *src, size_t bytes);
WEFT_API void wefti_copy_bulk_end(void);
/* WEFTI_STREAM_BYTES, or a share of a last cache that is larger; equal at every call. */
WEFT_API size_t wefti_stream_bytes(void);

#define WEFTI_DEFINE_ACCESS(bits)                                                                                      \
    static inline uint##bits##_t wefti_ld##bits(const void *p, int order)                                              \
    {                                                                                                                  \
        return __atomic_load_n((const uint##bits##_t *)p, order);                                                      \
    }                                                                                                                  \
    static inline void wefti_st##bits(void *p, uint##bits##_t value, int order)                                        \
    {                                                                                                                  \
        __atomic_store_n((uint##bits##_t *)p, value, order);                                                           \
    }

WEFTI_DEFINE_ACCESS(8)
WEFTI_DEFINE_ACCESS(16)
WEFTI_DEFINE_ACCESS(32)
WEFTI_DEFINE_ACCESS(64)
#undef WEFTI_DEFINE_ACCESS

/* gcc 12.2 takes `if (v) s = fetch_add(p, v) + v;` for twice the old value, unless it cannot see that the sum is of
 * both. */
#define WEFTI_DEFINE_RMW(bits)                                                                                         \
    static inline uint##bits##_t wefti_add##bits(void *p, uint##bits##_t value)                                        \
    {                                                                                                                  \
        uint##bits##_t old = __atomic_fetch_add((uint##bits##_t *)p, value, __ATOMIC_SEQ_CST);                         \
        __asm__("" : "+r"(old));                                                                                       \
        return old;                                                                                                    \
    }                                                                                                                  \
    static inline uint##bits##_t wefti_xchg##bits(void *p, uint##bits##_t value)                                       \
    {                                                                                                                  \
        return __atomic_exchange_n((uint##bits##_t *)p, value, __ATOMIC_SEQ_CST);                                      \
    }                                                                                                                  \
    /* Returns the old value: equal to `expected` when the exchange was made. */                                       \
    static inline uint##bits##_t wefti_cas##bits(void *p, uint##bits##_t expected, uint##bits##_t value)               \
    {                                                                                                                  \
        __atomic_compare_exchange_n((uint##bits##_t *)p, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
        return expected;                                                                                               \
    }

WEFTI_DEFINE_RMW(32)
WEFTI_DEFINE_RMW(64)
#undef WEFTI_DEFINE_RMW

/* gcc 11.3 and 12.2 miscompile __atomic_fetch_and, _or and _xor of 32 and 64 bits when the result merges with the
 * operand, so these are compare-exchange loops. */
#define WEFTI_DEFINE_BITWISE(name, bits, op)                                                                           \
    static inline uint##bits##_t wefti_##name##bits(void *p, uint##bits##_t value)                                     \
    {                                                                                                                  \
        uint##bits##_t old = __atomic_load_n((uint##bits##_t *)p, __ATOMIC_RELAXED);                                   \
        while (!__atomic_compare_exchange_n((uint##bits##_t *)p, &old, (uint##bits##_t)(old op value), 1,              \
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {                                     \
        }                                                                                                              \
        return old;                                                                                                    \
    }

WEFTI_DEFINE_BITWISE(and, 32, &)
WEFTI_DEFINE_BITWISE(or, 32, |)
WEFTI_DEFINE_BITWISE(xor, 32, ^)
WEFTI_DEFINE_BITWISE(and, 64, &)
WEFTI_DEFINE_BITWISE(or, 64, |)
WEFTI_DEFINE_BITWISE(xor, 64, ^)
#undef WEFTI_DEFINE_BITWISE

static inline void wefti_copy(void *dst, const void *src, size_t bytes)
{
    if (__builtin_constant_p(bytes) && bytes <= 64) {
        memcpy(dst, src, bytes);
    } else {
        wefti_copy_bulk(dst, src, bytes);
    }
}

static inline void wefti_zero(void *dst, size_t bytes)
{
    memset(dst, 0, bytes);
}

static inline void wefti_copy_stream(void *dst, const void *src, size_t bytes)
{
    wefti_copy_bulk_stream(dst, src, bytes);
}

static inline void wefti_copy_stream_end(void)
{
    wefti_copy_bulk_end();
}

static inline void wefti_fence_release(void)
{
#if !WEFTI_TSAN
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

static inline void wefti_fence_full(void)
{
#if defined(__x86_64__)
    /* A locked instruction on our own stack: cheaper than mfence. */
    uint64_t word = 0;
    __atomic_fetch_add((volatile uint64_t *)&word, 0, __ATOMIC_SEQ_CST);
#elif !WEFTI_TSAN
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#else /* WEFT_SIM */

#define WEFTI_DECLARE_ACCESS(bits)                                                                                     \
    WEFT_API uint##bits##_t wefti_ld##bits(const void *p, int order);                                                  \
    WEFT_API void wefti_st##bits(void *p, uint##bits##_t value, int order);
WEFTI_DECLARE_ACCESS(8)
WEFTI_DECLARE_ACCESS(16)
WEFTI_DECLARE_ACCESS(32)
WEFTI_DECLARE_ACCESS(64)
#undef WEFTI_DECLARE_ACCESS

#define WEFTI_DECLARE_RMW(bits)                                                                                        \
    WEFT_API uint##bits##_t wefti_add##bits(void *p, uint##bits##_t value);                                            \
    WEFT_API uint##bits##_t wefti_xchg##bits(void *p, uint##bits##_t value);                                           \
    WEFT_API uint##bits##_t wefti_cas##bits(void *p, uint##bits##_t expected, uint##bits##_t value);                   \
    WEFT_API uint##bits##_t wefti_and##bits(void *p, uint##bits##_t value);                                            \
    WEFT_API uint##bits##_t wefti_or##bits(void *p, uint##bits##_t value);                                             \
    WEFT_API uint##bits##_t wefti_xor##bits(void *p, uint##bits##_t value);
WEFTI_DECLARE_RMW(32)
WEFTI_DECLARE_RMW(64)
#undef WEFTI_DECLARE_RMW

WEFT_API void wefti_copy(void *dst, const void *src, size_t bytes);
WEFT_API void wefti_zero(void *dst, size_t bytes);
WEFT_API void wefti_fence_release(void);
WEFT_API void wefti_fence_full(void);
WEFT_API void wefti_copy_stream(void *dst, const void *src, size_t bytes);
WEFT_API void wefti_copy_stream_end(void);

static inline size_t wefti_stream_bytes(void)
{
    return WEFTI_STREAM_BYTES;
}

#endif

#ifdef __cplusplus
}
#endif
#endif
