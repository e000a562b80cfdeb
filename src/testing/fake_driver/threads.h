/* testing/fake_driver/threads.h: CUDA's names for who a thread is and where threads meet, for the CPU, on top of
 * grid.h. Warps are always whole: masks are ~0.
 *
 * Included before the device headers, with WEFT_DEVICE_ON_HOST and WEFT_DEVICE_ON_HOST_THREADS, it gives those their
 * warps and blocks; without the latter calls are made by one thread each. */
#ifndef WEFTI_CUDA_FAKE_THREADS_H
#define WEFTI_CUDA_FAKE_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "testing/fake_driver/grid.h"

#define threadIdx (fake_here()->thread)
#define blockIdx (fake_here()->block)
#define blockDim (fake_here()->threads)
#define gridDim (fake_here()->blocks)

enum { SIMT_SYNC, SIMT_BALLOT, SIMT_SHUFFLE, SIMT_UP, SIMT_XOR, SIMT_SUM, SIMT_MAX, SIMT_MATCH };

static inline unsigned simt_lane()
{
    return threadIdx.x % FAKE_WARP;
}

static inline void __syncthreads()
{
    fake_sync_block();
}

static inline void __syncwarp()
{
    (void)fake_exchange(SIMT_SYNC, 0);
}

static inline unsigned __ballot_sync(unsigned, int predicate)
{
    const uint64_t *values = fake_exchange(SIMT_BALLOT, predicate != 0);
    unsigned bits = 0;
    for (unsigned i = 0; i < FAKE_WARP; i++) {
        bits |= (unsigned)values[i] << i;
    }
    return bits;
}

static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) == ~0u;
}

template <class T> static inline T simt_take(const uint64_t *values, unsigned lane)
{
    T value;
    memcpy(&value, &values[lane], sizeof value);
    return value;
}

template <class T> static inline uint64_t simt_bits(T value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> static inline T __shfl_sync(unsigned, T value, int lane)
{
    return simt_take<T>(fake_exchange(SIMT_SHUFFLE, simt_bits(value)), (unsigned)lane % FAKE_WARP);
}

template <class T> static inline T __shfl_up_sync(unsigned, T value, unsigned step)
{
    unsigned lane = simt_lane();
    return simt_take<T>(fake_exchange(SIMT_UP, simt_bits(value)), lane < step ? lane : lane - step);
}

template <class T> static inline T __shfl_xor_sync(unsigned, T value, int bits)
{
    return simt_take<T>(fake_exchange(SIMT_XOR, simt_bits(value)), simt_lane() ^ (unsigned)bits);
}

static inline unsigned __reduce_add_sync(unsigned, unsigned value)
{
    const uint64_t *values = fake_exchange(SIMT_SUM, value);
    unsigned sum = 0;
    for (unsigned i = 0; i < FAKE_WARP; i++) {
        sum += (unsigned)values[i];
    }
    return sum;
}

static inline unsigned __reduce_max_sync(unsigned, unsigned value)
{
    const uint64_t *values = fake_exchange(SIMT_MAX, value);
    unsigned most = 0;
    for (unsigned i = 0; i < FAKE_WARP; i++) {
        most = (unsigned)values[i] > most ? (unsigned)values[i] : most;
    }
    return most;
}

static inline unsigned __match_any_sync(unsigned, int value)
{
    const uint64_t *values = fake_exchange(SIMT_MATCH, simt_bits(value));
    unsigned bits = 0;
    for (unsigned i = 0; i < FAKE_WARP; i++) {
        bits |= (unsigned)(simt_take<int>(values, i) == value) << i;
    }
    return bits;
}

static inline int __syncthreads_or(int predicate)
{
    unsigned *const any = (unsigned *)(void *)(fake_here()->fixed_shared + FAKE_FIXED_SHARED) - 1;
    fake_sync_block(); /* who asked before has its answer */
    *any = 0;
    fake_sync_block();
    *any |= predicate != 0;
    fake_sync_block();
    return *any != 0;
}

#if defined(WEFT_DEVICE_ON_HOST_THREADS)
#define __shared__ static /* of the only block that runs */

static inline void wefti_rest(unsigned)
{
    fake_pause();
}
#endif

#endif
