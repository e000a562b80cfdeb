/* testing/sim/random.h: the one source of decisions of a simulation. */
#ifndef WEFTI_SIM_RANDOM_H
#define WEFTI_SIM_RANDOM_H

#include <stdint.h>

#include "common/mix.h"

typedef struct wefti_random {
    uint64_t state;
} wefti_random;

static inline uint64_t wefti_random_next(wefti_random *random)
{
    return wefti_split_mix(&random->state);
}

/* Below `bound`, which is at least 1 and below 2^32. */
static inline uint32_t wefti_random_below(wefti_random *random, uint32_t bound)
{
    return (uint32_t)((wefti_random_next(random) >> 32) * bound >> 32);
}

/* A rate "one in N" as a threshold for wefti_random_hit. */
static inline uint32_t wefti_random_threshold(uint32_t one_in)
{
    return one_in == UINT32_MAX ? 0 : UINT32_MAX / one_in;
}

static inline int wefti_random_hit(wefti_random *random, uint32_t threshold)
{
    return threshold != 0 && (uint32_t)(wefti_random_next(random) >> 32) <= threshold;
}

#endif
