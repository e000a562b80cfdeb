/* faces/shmem/waits.c: deprecated waits: of 16-bit variables, and under their first names. (OpenSHMEM 1.6, 9.10.) */
#include <sched.h>
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

#define LOOKS_PER_YIELD 64
#define YIELDS_PER_CHECK 256

static int compare(const char *call, int seen, int cmp, int value)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return seen == value;
    case SHMEM_CMP_NE:
        return seen != value;
    case SHMEM_CMP_GT:
        return seen > value;
    case SHMEM_CMP_GE:
        return seen >= value;
    case SHMEM_CMP_LT:
        return seen < value;
    case SHMEM_CMP_LE:
        return seen <= value;
    default:
        wefti_shmem_refuse(call, "no such comparison; give one of SHMEM_CMP_EQ to SHMEM_CMP_LE");
    }
}

/* Atomics have no words of 16 bits, so weft does not wait for one: look, give way, and look whether the world has
 * failed. */
static void pause_short(const char *call, unsigned look)
{
    if (look % LOOKS_PER_YIELD == 0) {
        (void)sched_yield();
    }
    if (look % (LOOKS_PER_YIELD * YIELDS_PER_CHECK) == 0) {
        weft_status status = weft_world_fault(wefti_shmem.world, NULL);
        if (status != WEFT_OK) {
            wefti_shmem_fail(call, status);
        }
    }
}

#define SHORT_WAITS(NAME, TYPE)                                                                                        \
    void pshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value)                                               \
    {                                                                                                                  \
        for (unsigned look = 1; !compare(__func__, __atomic_load_n(ivar, __ATOMIC_ACQUIRE), cmp, cmp_value); look++) { \
            pause_short(__func__, look);                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    int pshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value)                                                      \
    {                                                                                                                  \
        return compare(__func__, __atomic_load_n(ivar, __ATOMIC_ACQUIRE), cmp, cmp_value);                             \
    }
SHORT_WAITS(short, short)
SHORT_WAITS(ushort, unsigned short)
WEAK_pshmem_short_wait_until WEAK_pshmem_ushort_wait_until WEAK_pshmem_short_test WEAK_pshmem_ushort_test

/* Until the variable is another than it was. */
#define WAIT(NAME, TYPE)                                                                                               \
    void pshmem_##NAME##_wait(TYPE *ivar, TYPE cmp_value)                                                              \
    {                                                                                                                  \
        pshmem_##NAME##_wait_until(ivar, SHMEM_CMP_NE, cmp_value);                                                     \
    }
WAIT(short, short) WAIT(int, int) WAIT(long, long)
    WAIT(longlong,
         long long) WEAK_pshmem_short_wait WEAK_pshmem_int_wait WEAK_pshmem_long_wait WEAK_pshmem_longlong_wait

    void pshmem_wait(long *ivar, long cmp_value)
{
    pshmem_long_wait_until(ivar, SHMEM_CMP_NE, cmp_value);
}
WEAK_pshmem_wait

    void
    pshmem_wait_until(long *ivar, int cmp, long cmp_value)
{
    pshmem_long_wait_until(ivar, cmp, cmp_value);
}
WEAK_pshmem_wait_until
