/* os/posix/pause.c: how a waiter gives way. A store wakes nobody, so it yields first and sleeps briefly later. */
#include "os/os.h"

#define SPINS_ALONE 4000
#define SPINS_CROWDED 8
#define YIELD_NS 200000 /* yield so long */
#define SLEEP_SHORT_NS 50000 /* then sleep so, */
#define SLEEP_LONG_AFTER_NS 50000000 /* and from this time on */
#define SLEEP_LONG_NS 500000 /* so */

uint32_t wefti_os_spins(int crowded)
{
    return crowded ? SPINS_CROWDED : SPINS_ALONE;
}

void wefti_os_pause(const void *address, const char *what, uint64_t waited_ns, uint64_t left_ns)
{
    (void)address;
    (void)what;
    if (waited_ns < YIELD_NS) {
        wefti_os_yield();
        return;
    }
    uint64_t sleep_ns = waited_ns < SLEEP_LONG_AFTER_NS ? SLEEP_SHORT_NS : SLEEP_LONG_NS;
    wefti_os_sleep_ns(sleep_ns < left_ns ? sleep_ns : left_ns);
}
