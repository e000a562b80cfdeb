/* support/torture.h: repeat a piece of work with each of its fault points failing in turn. */
#ifndef SUPPORT_TORTURE_H
#define SUPPORT_TORTURE_H

#include <stdint.h>

#include "weft/status.h"

/* Work that makes something and, if it could, ends it again. It may be called any number of times. */
typedef weft_status (*torture_work)(void *context);

/* Run `work` without a fault, which must succeed, then with its 1st, 2nd, 3rd ... allocation or system call failing,
 * until it has fewer. Each run must either succeed or give a status of the table and a last error; each leaves as many
 * descriptors, threads, maps and allocations as were there. Skips the cmocka test in builds without WEFT_FAULTS.
 * Returns the number of points. */
int torture(torture_work work, void *context);

/* Whether the work that is called now is one with a fault: it may wait for what does not come. */
int torture_is_failing(void);

/* The same for work that mostly waits for its deadline: the fault points are divided among so many processes, which run
 * at once. Under ThreadSanitizer it is every third of them, from one that WEFT_TEST_SEED draws. */
#define TORTURE_PROCESSES_MAX 16
void torture_apart(torture_work work, void *context, int processes);

#endif
