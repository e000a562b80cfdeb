/* heap/window.h: the one mapping through which a process reaches the memory of a world's PEs on its node, shared by all
 * PEs of that world in the process: a head, then slots of equal stride, one a PE, in one sparse memory file. */
#ifndef WEFTI_HEAP_WINDOW_H
#define WEFTI_HEAP_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "os/os.h"
#include "weft/status.h"

/* What is where in it; the same in all processes. */
typedef struct wefti_window_shape {
    size_t head_bytes; /* wanted before the first slot */
    size_t slots;
    size_t stride; /* a multiple of WEFTI_OS_MEMORY_ALIGNMENT */
} wefti_window_shape;

typedef struct wefti_window {
    wefti_os_memory memory;
    size_t first_slot; /* its offset */
    size_t stride;
    uint32_t ready; /* 0, then 1 mapped or 2 failed: stored by the PE that maps, awaited by the process's others */
    void *device; /* what the backend of devices shares among them (src/device); NULL until a PE attaches one */
    void (*device_free)(void *device); /* it is freed with the window */
} wefti_window;

/* Make an empty window, for the PEs of this process that get to know the ticket (os/os.h); the caller, the lowest of
 * them, is in. */
weft_status wefti_window_create(wefti_os_ticket *ticket, wefti_window **window);
/* WEFT_ERR_PEER, without an error being decided: the PE that made it has failed and left. */
weft_status wefti_window_join(const wefti_os_ticket *ticket, wefti_window **window);
/* Each PE that is in leaves once; the last frees the window. NULL is allowed. */
void wefti_window_leave(wefti_window *window);

/* Make the memory (the first process of the node), the head's pages reserved, or map what the first process made. One
 * PE a process. */
weft_status wefti_window_make(wefti_window *window, const wefti_window_shape *shape);
weft_status wefti_window_adopt(wefti_window *window, int descriptor, const wefti_window_shape *shape);

/* Where a slot begins, in the memory. */
static inline size_t wefti_window_slot(const wefti_window *window, size_t slot)
{
    return window->first_slot + slot * window->stride;
}

/* The PE that was to map could not: let the others of its process know. */
void wefti_window_fail(wefti_window *window);
/* Wait until the PE that maps has done so; then the window's fields may be read. WEFT_ERR_PEER when it failed. */
weft_status wefti_window_wait(const wefti_window *window, uint64_t until_ns);

#endif
