/* faces/shmem/static_data.h: global and static variables of the executable as symmetric data. (OpenSHMEM 1.6, 3.1.)
 *
 * While a world lives, the pages of the executable's writable data are pages of this PE's slot in the symmetric heap: the
 * program goes on to use them where they were, and every PE reaches them where the heap has them. */
#ifndef WEFTI_SHMEM_STATIC_DATA_H
#define WEFTI_SHMEM_STATIC_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "weft/world.h"

/* The executable's data in this process: the byte at `a`, begin <= a < begin + bytes, is the symmetric byte at a + delta, in
 * this PE's heap. bytes is 0 while nothing is mapped. */
typedef struct wefti_static_data {
    uintptr_t begin;
    size_t bytes;
    intptr_t delta;
} wefti_static_data;

/* Written by map and unmap alone. */
extern __attribute__((visibility("hidden"))) wefti_static_data wefti_static;

/* The symmetric address of what lies at `address`: an address of the heap for a variable of the executable, the address
 * itself for all else. */
static inline void *wefti_static_translate(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    return (void *)(at - wefti_static.begin < wefti_static.bytes ? at + (uintptr_t)wefti_static.delta : at);
}

/* Make the executable's data symmetric in this world. Collective over the world, once it is created; the calling process'
 * other threads may not use their variables meanwhile. On failure, the same on all PEs, nothing has changed. */
weft_status wefti_static_map(weft_world *world);

/* Give the executable private data again, with the values that it has now. Local, before the world is destroyed; WEFT_OK when
 * nothing is mapped. */
weft_status wefti_static_unmap(weft_world *world);

#endif
