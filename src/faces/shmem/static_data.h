/* faces/shmem/static_data.h: global and static variables of the executable as symmetric data. (OpenSHMEM 1.6, 3.1.)
 *
 * While a world lives, the pages of the executable's writable data are pages of this PE's slot in the symmetric heap:
 * the program goes on to use them where they were, and every PE reaches them where the heap has them. What a library or
 * a thread has of its own is not symmetric. */
#ifndef WEFTI_SHMEM_STATIC_DATA_H
#define WEFTI_SHMEM_STATIC_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "weft/world.h"

/* The executable's data in this process: the byte at `a`, begin <= a < begin + bytes, is the symmetric byte at a +
 * delta, in this PE's heap. bytes is 0 while nothing is mapped. Begin and delta are each process' own: what PEs have in
 * common is the place from `begin` on. */
typedef struct wefti_static_data {
    uintptr_t begin;
    size_t bytes;
    intptr_t delta;
} wefti_static_data;

/* Written by map and unmap, and in a forked child, alone. */
extern __attribute__((visibility("hidden"))) wefti_static_data wefti_static;

/* The symmetric address of what lies at `address`: an address of the heap for a variable of the executable, the address
 * itself for all else. */
static inline void *wefti_static_translate(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    return (void *)(at - wefti_static.begin < wefti_static.bytes ? at + (uintptr_t)wefti_static.delta : at);
}

/* What this needs of the world, before it is created: room in the heap, and PEs that run one program. */
__attribute__((visibility("hidden"))) void wefti_static_configure(weft_world_config *config);

/* Make the executable's data symmetric in this world, which was created so. Local; the values stay. No other PE may
 * reach for them before all have returned. The calling process' other threads may read their variables meanwhile, and
 * those that write wait; only what the system writes for them, in a call such as read(), fails in them with EFAULT for
 * as long. NULL, or why it could not be and the remedy; the values are as they were. */
__attribute__((visibility("hidden"))) const char *wefti_static_map(weft_world *world);

/* Give the executable private data again, with the values that it has now; likewise. Local, before the world is
 * destroyed, when no other PE reaches for them any more. NULL, also when nothing is mapped, or why not: then they stay
 * as they are. */
__attribute__((visibility("hidden"))) const char *wefti_static_unmap(void);

#endif
