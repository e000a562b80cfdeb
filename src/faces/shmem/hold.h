/* faces/shmem/hold.h: keep the process from writing to pages that are about to be exchanged. */
#ifndef WEFTI_SHMEM_HOLD_H
#define WEFTI_SHMEM_HOLD_H

#include <signal.h>

#include "faces/shmem/executable.h"

typedef struct wefti_hold {
    const wefti_executable *executable;
    int is_protected; /* there are other threads */
    sigset_t mask; /* before */
} wefti_hold;

/* From here on no signal handler runs in this thread, and other threads that write to the executable's pages wait. The
 * caller does not write to them, either. Returns 0, or -1 with errno set: nothing is held. */
__attribute__((visibility("hidden"))) int wefti_hold_begin(wefti_hold *hold, const wefti_executable *executable);

/* Let go of all, whether the pages have been exchanged or not. */
__attribute__((visibility("hidden"))) void wefti_hold_end(const wefti_hold *hold);

#endif
