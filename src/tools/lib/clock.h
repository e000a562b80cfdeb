/* lib/clock.h: the one clock of what measures. CLOCK_MONOTONIC is the same for all processes of a machine, so that
 * instants of different PEs may be compared. */
#ifndef TOOL_CLOCK_H
#define TOOL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t tool_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same clock in microseconds. */
static inline double tool_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* Keep the compiler from joining, moving or dropping memory accesses across this point. Costs no instruction. */
static inline void tool_compiler_barrier(void)
{
    __asm__ __volatile__("" ::: "memory");
}

/* Let the compiler know nothing of `value` but its type. */
static inline uint64_t tool_opaque(uint64_t value)
{
    __asm__ __volatile__("" : "+r"(value));
    return value;
}

#endif
