/* device/memory.h: the seam to GPUs: device memory. It grows and is shared, registered and read and written from the
 * host. */
#ifndef WEFTI_DEVICE_MEMORY_H
#define WEFTI_DEVICE_MEMORY_H

#include "device/access.h"
#include "weft/team.h"

/* Memory of the user's that a call makes symmetric; what is wrong with it is told to all members. */
typedef struct wefti_registration {
    const char *call;
    void *address;
    size_t bytes;
    int is_mapped; /* `peers` has where the part of each PE of the world, which the team then is, is mapped here */
    void *const *peers;
} wefti_registration;

typedef struct wefti_device_memory_ops {
    /* Bytes of the heap that have memory on this PE and, of the near members of `team`, are mapped here. Any thread. */
    uint64_t (*backed)(const wefti_device *device, const weft_team *team);
    /* Back the heap up to `end` <= max_bytes on all members and map it where one reaches another; advances
     * device->heap_bytes. Collective over `team`, which has the devices of its members (wefti_team_device_take).
     * WEFT_ERR_MEMORY and others on all members alike; then nothing has changed, unless the team is dead. */
    weft_status (*grow)(wefti_device *device, weft_team *team, const char *call, uint64_t end);
    /* Make user memory symmetric, and end that. Collective over the same team, which has the devices of its members. */
    weft_status (*register_memory)(wefti_device *device, weft_team *team, const wefti_registration *what);
    weft_status (*deregister)(wefti_device *device, weft_team *team, void *address);
    /* New host memory has been reserved by this PE and perhaps others: let kernels reach it. Local. */
    weft_status (*host_grown)(wefti_device *device);

    /* Where PE `pe`, in range, has the byte at `address`, of the heap or registered; 0 when address is neither or pe is
     * not reached. *left gets the bytes from there to the end of its object. Any thread; does not block. */
    uintptr_t (*locate)(const wefti_device *device, const void *address, int pe, uint64_t *left);
    /* Copy between device addresses that `locate` gave and any memory of this process, host or device. Complete, and
     * visible to all, on return. Any thread, several at once. Must not be called while the thread captures a stream. */
    weft_status (*copy)(wefti_device *device, void *to, const void *from, size_t bytes);
    /* Begin such a copy, after those that were begun before: it is complete after `settle`, until when both ranges stay
     * as they are. */
    weft_status (*copy_nbi)(wefti_device *device, void *to, const void *from, size_t bytes);
    /* Wait until the copies that were begun are complete and visible to all. Any thread, for those of all threads. */
    weft_status (*settle)(wefti_device *device);
    /* Atomic on a word that `locate` gave, against kernels and other calls of this; release and acquire. *old gets the
     * value before. Otherwise as copy. */
    weft_status (*amo)(wefti_device *device, wefti_amo_op op, int bits, void *word, uint64_t value, uint64_t cond,
                       uint64_t *old);
    /* Clear `bytes` bytes of this PE's own device memory. As copy. */
    weft_status (*clear)(wefti_device *device, void *address, size_t bytes);

    /* Whether `pe`, in range, is far: its memory, also that of the host heap, is reached by a proxy and not by
     * `locate`. */
    int (*is_far)(const wefti_device *device, int pe);
    /* Access a far PE; complete on return. Any thread; as copy, and blocks at most the deadline. */
    weft_status (*far)(wefti_device *device, const wefti_device_request *request);
    /* Wait until what kernels that have ended, of this PE, asked of far PEs has taken effect. Any thread; blocks at
     * most the deadline. Only where far_count is not 0. */
    weft_status (*quiet)(wefti_device *device);
} wefti_device_memory_ops;

#endif
