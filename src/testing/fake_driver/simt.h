/* testing/fake_driver/simt.h: CUDA's names for the CPU: what kernels of many threads are written in, on top of grid.h.
 * Included before them, by g++, with WEFT_DEVICE_ON_HOST. Warps are always whole: masks are ~0. */
#ifndef WEFTI_CUDA_FAKE_SIMT_H
#define WEFTI_CUDA_FAKE_SIMT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "testing/fake_driver/threads.h"
#include "weft/protocol/bf16.h"
#include "weft/protocol/f16.h"
#include "weft/protocol/fp8.h"
#include "weft_device.cuh"

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(threads, blocks)
#define EP_SHARED(type, name) type &name = *(type *)fake_here()->fixed_shared
#define EP_DYNAMIC_SHARED(name) unsigned char *const name = fake_here()->dynamic_shared
#define EP_PAUSE() fake_pause()
#define wefti_rest(ns) ((void)(ns), fake_pause())

/* ---- arithmetic ---- */

typedef struct alignas(8) uint2 {
    unsigned x, y;
} uint2;
typedef struct alignas(16) uint4 {
    unsigned x, y, z, w;
} uint4;

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return uint2{x, y};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return uint4{x, y, z, w};
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

static inline int __clz(int bits)
{
    return bits == 0 ? 32 : __builtin_clz((unsigned)bits);
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

static inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline unsigned ep_bf16_pair(float low, float high)
{
    return wefti_bf16_round(low) | (unsigned)wefti_bf16_round(high) << 16;
}

static inline unsigned ep_f16_pair(float low, float high)
{
    return wefti_f16_round(low) | (unsigned)wefti_f16_round(high) << 16;
}

static inline float ep_f16_widen(unsigned bits)
{
    return wefti_f16_widen((uint16_t)bits);
}

static inline unsigned ep_fp8_four(const float *from)
{
    unsigned four = 0;
    for (int i = 0; i < 4; i++) {
        four |= (unsigned)wefti_fp8_quantise(from[i], 1.0f) << (8 * i);
    }
    return four;
}

static inline float ep_amax_with(float amax, float value) /* fmaxf returns a signalling NaN here */
{
    return fabsf(value) > amax ? fabsf(value) : amax;
}

static inline float ep_reciprocal(float value)
{
    return 1.0f / value;
}

/* ---- atomics ---- */

static inline unsigned atomicAdd(unsigned *at, unsigned value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

static inline unsigned long long atomicMax(unsigned long long *at, unsigned long long value)
{
    unsigned long long seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(at, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return seen;
}

static inline void __threadfence_block()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline unsigned atomicOr(unsigned *at, unsigned value)
{
    return wefti_atomic_or(at, value);
}

static inline unsigned atomicCAS(unsigned *at, unsigned expected, unsigned value)
{
    return wefti_atomic_cas(at, expected, value);
}

static inline unsigned atomicInc(unsigned *at, unsigned limit)
{
    return wefti_atomic_count(at, limit);
}

/* ---- bulk copies: loads happen at once; a barrier counts the phases that are over. Every other block loads more
 * slowly than its neighbours, as multiprocessors do that share a way to memory ---- */

static inline void wefti_load_barrier_init(wefti_u64 *barrier)
{
    *barrier = 0;
}

static inline void wefti_load_barrier_publish()
{
}

/* A GPU refuses other bulk copies. */
static inline void simt_aligned(const void *shared, const void *global, unsigned bytes)
{
    if (((uintptr_t)shared | (uintptr_t)global | bytes) % 16 != 0) {
        __builtin_trap();
    }
}

static inline void wefti_bulk_load(void *shared, const void *global, unsigned bytes, wefti_u64 *barrier)
{
    for (int spin = 0; spin < 8 && blockIdx.x % 2 == 1; spin++) {
        fake_pause();
    }
    simt_aligned(shared, global, bytes);
    memcpy(shared, global, bytes);
    (*barrier)++;
}

static inline int wefti_load_barrier_passed(wefti_u64 *barrier, unsigned parity)
{
    if ((*barrier & 1) == parity) {
        fake_pause();
        return 0;
    }
    return 1;
}

static inline void wefti_bulk_store_add(void *global, const void *shared, unsigned bytes)
{
    simt_aligned(shared, global, bytes);
    fake_store_add(global, shared, bytes);
}

static inline void wefti_bulk_stores_commit()
{
    fake_stores_commit();
}

template <int LEFT> static inline void wefti_bulk_stores_read()
{
    fake_stores_wait(LEFT);
}

static inline void wefti_bulk_stores_complete()
{
    fake_stores_wait(0);
}

static inline void wefti_fence_before_bulk()
{
}

static inline void wefti_prefetch(const void *)
{
}

#endif
