/* common/mix.h: numbers that look random, for tables, signatures and draws. Whom an opponent must not foresee has
 * base/hash.h. */
#ifndef WEFTI_COMMON_MIX_H
#define WEFTI_COMMON_MIX_H

#include <stdint.h>

/* Spreads what differs in a few low bits evenly over the high ones: 2^64 over the golden ratio. */
static inline uint64_t wefti_mix(uint64_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}

/* FNV-1a, from WEFTI_FNV on. */
#define WEFTI_FNV UINT64_C(0xcbf29ce484222325)
static inline uint64_t wefti_fnv(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(0x100000001b3);
}

/* The next of a sequence of random numbers. (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.)
 */
static inline uint64_t wefti_split_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
