/* os/posix/pause.c: how a waiter gives way. A store wakes nobody, so it yields first and sleeps briefly later.
 *
 * Looking costs a turn of the processor. A thousand waiters that look every 50 us want more turns than two processors
 * have, and the one for whom they wait gets a thousandth of them: so the more share a processor, the longer they sleep,
 * but no longer than half of what they have waited already. */
#include "os/os.h"

#define SPINS_ALONE 4000
#define SPINS_SHARED 8
#define SPINS_OVERSUBSCRIBED 1
#define YIELD_NS 200000 /* yield in this time at first */
#define SLEEP_SHORT_NS 50000 /* then sleep so long */
#define SLEEP_LONG_AFTER_NS 50000000 /* after this time sleeps are longer */
#define SLEEP_LONG_NS 500000 /* how long a sleep is then */
#define SLEEP_EACH_NS                                                                                                  \
    12000 /* longer by this for each PE of a processor: a look and two switches take about half of it */

/* Of two PEs of a processor each may wait for those of other processors alone, which a few looks see come. Of three and
 * more most wait for one that needs this processor: looks only keep it from its turn. */
uint32_t wefti_os_spins(unsigned pes_per_core, int has_far)
{
    if (pes_per_core > 2) {
        return SPINS_OVERSUBSCRIBED;
    }
    return pes_per_core > 1 || has_far ? SPINS_SHARED : SPINS_ALONE;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t wefti_os_pause_ns(uint64_t waited_ns, uint64_t left_ns, unsigned pes_per_core)
{
    if (waited_ns < YIELD_NS) {
        return 0;
    }
    uint64_t sleep_ns = waited_ns < SLEEP_LONG_AFTER_NS ? SLEEP_SHORT_NS : SLEEP_LONG_NS;
    uint64_t each_ns = least((uint64_t)pes_per_core * SLEEP_EACH_NS, waited_ns / 2);
    sleep_ns = each_ns > sleep_ns ? each_ns : sleep_ns;
    return least(sleep_ns, left_ns);
}

void wefti_os_pause(const void *address, const char *what, uint64_t waited_ns, uint64_t left_ns, unsigned pes_per_core)
{
    (void)address;
    (void)what;
    const uint64_t sleep_ns = wefti_os_pause_ns(waited_ns, left_ns, pes_per_core);
    if (sleep_ns == 0) {
        wefti_os_yield();
    } else {
        wefti_os_sleep_ns(sleep_ns);
    }
}
