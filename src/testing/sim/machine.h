/* testing/sim/machine.h: what tests say of the machines of a simulation (machine.c), and of the running thread. */
#ifndef WEFTI_SIM_MACHINE_H
#define WEFTI_SIM_MACHINE_H

#include "os/os.h"

/* This is what the running PE finds left of memory, as long as it stands there; NULL: plenty, and no control group. */
void wefti_sim_set_memory_left(const wefti_os_memory_left *left);

/* The running PE takes so long to find that out, which each PE does once in a creation, when all have met. */
void wefti_sim_set_memory_ns(uint64_t ns);

/* The running thread stands still for `ns` once it has come so many steps further, which are accesses, atomics and
 * releases (scheduler.c). Another call takes the place of this one; 0 steps: it does not stand still. */
void wefti_sim_rest_later(uint32_t steps, uint64_t ns);

#endif
