/* support/pe_main.h: the main function of the programs in tests/multi. */
#ifndef SUPPORT_PE_MAIN_H
#define SUPPORT_PE_MAIN_H

#include "weft.h"

/* Run body(world) on every PE and return the exit status: 1 when a check failed. PEs are the processes that weftrun
 * started, or, with `--threads N` among the arguments, N threads of this process (which ThreadSanitizer can see). */
int pe_main(int argc, char **argv, void (*body)(weft_world *world));

/* Whether the PEs are processes. */
int pe_main_is_process(void);

/* The same random number on all PEs: PE 0's test_seed. Collective. */
uint64_t pe_common_seed(weft_world *world);

/* A symmetric block, poisoned on all PEs before any returns; ends the program when there is none. Collective. */
void *pe_poisoned(weft_world *world, size_t bytes);

/* The same, zeroed. */
void *pe_zeroed(weft_world *world, size_t bytes);

#endif
