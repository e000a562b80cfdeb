/* cuda/driver/process_lock.h: a lock of what a process has for a GPU, in static memory. It is free again in a process
 * that was forked while another thread held it: its holder is the process, by number. */
#ifndef WEFTI_CUDA_PROCESS_LOCK_H
#define WEFTI_CUDA_PROCESS_LOCK_H

#include "os/os.h"

#define WEFTI_CUDA_LOCK_WAIT_NS UINT64_C(20000)

/* `holder` is 0 at first; atomic. */
static inline void wefti_cuda_process_lock(int *holder)
{
    const int mine = wefti_os_owner_number();
    int seen = __atomic_load_n(holder, __ATOMIC_RELAXED);
    while (seen == mine || !__atomic_compare_exchange_n(holder, &seen, mine, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (seen == mine) {
            wefti_os_sleep_ns(WEFTI_CUDA_LOCK_WAIT_NS);
            seen = __atomic_load_n(holder, __ATOMIC_RELAXED);
        }
    }
}

static inline void wefti_cuda_process_unlock(int *holder)
{
    __atomic_store_n(holder, 0, __ATOMIC_RELEASE);
}

#endif
