/* cuda/heap/window.h: what the PEs of one process share of a world's device memory: one reserved range of address space
 * with a slot a PE of the link domain, the pieces mapped into it, and the parts of the host window that kernels reach.
 *
 * Every PE joins and leaves; when the last has left, all is unmapped. Functions lock by themselves. */
#ifndef WEFTI_CUDA_WINDOW_H
#define WEFTI_CUDA_WINDOW_H

#include "cuda/driver/budget.h"
#include "cuda/driver/driver.h"
#include "heap/window.h"
#include "os/os.h"

/* A part of a slot that has memory: a PE's own allocation, or an imported one. */
typedef struct wefti_cuda_piece {
    size_t slot;
    uint64_t offset;
    uint64_t bytes;
    CUmemGenericAllocationHandle handle;
} wefti_cuda_piece;

/* How much of a slot this process maps: other processes may map less of it, or more. */
typedef struct wefti_cuda_extent {
    uint64_t bytes; /* pieces follow one another up to here */
    uint64_t sure; /* up to here they stay; the rest is of a growth that may still fail; atomic */
} wefti_cuda_extent;

typedef struct wefti_cuda_host_range {
    unsigned char *address;
    uint64_t bytes;
} wefti_cuda_host_range;

typedef struct wefti_cuda_window {
    wefti_os_monitor *lock;
    wefti_cuda_driver driver;
    int users;
    uint64_t key[2]; /* random: tells this process's PEs of this world from others */

    CUdeviceptr base;
    uint64_t bytes;
    uint64_t stride;
    wefti_cuda_extent *extents; /* a slot */
    wefti_cuda_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;

    CUdeviceptr *allocations; /* without VMM: of this process's PEs, each until all have left */
    size_t allocation_count;

    uint64_t *host_registered; /* the host window's head, then a slot each: bytes from its start that kernels reach */
    wefti_cuda_host_range *host_ranges;
    size_t host_range_count;
    size_t host_range_capacity;
} wefti_cuda_window;

/* Join, making the window if this PE is the first. */
weft_status wefti_cuda_window_join(wefti_window *host, wefti_cuda_window **window);
/* Leave; a context of the leaver is current. */
void wefti_cuda_window_leave(wefti_cuda_window *window);

/* Reserve the address space, once; later callers give the same sizes. */
weft_status wefti_cuda_window_reserve(wefti_cuda_window *window, size_t slots, uint64_t stride);

/* What is mapped of a slot. */
uint64_t wefti_cuda_window_extent(wefti_cuda_window *window, size_t slot);
/* What of it stays. Any thread; does not lock. */
uint64_t wefti_cuda_window_sure(const wefti_cuda_window *window, size_t slot);
/* Map an allocation behind what its slot has and let these devices access it; one that is mapped already is let go.
 * Takes the handle over, also on failure. */
weft_status wefti_cuda_window_map(wefti_cuda_window *window, const wefti_cuda_piece *piece, const CUdevice *devices,
                                  int count);
/* The piece that begins there; its bytes are 0 if there is none. */
wefti_cuda_piece wefti_cuda_window_find(wefti_cuda_window *window, size_t slot, uint64_t offset);
/* A growth has ended: what it has mapped of this slot stays, or goes. */
void wefti_cuda_window_settle(wefti_cuda_window *window, size_t slot, int stays);

/* Free this allocation when the last PE leaves. Takes it over, also on failure. */
weft_status wefti_cuda_window_keep(wefti_cuda_window *window, CUdeviceptr memory);

/* Let kernels reach the first `bytes` bytes of a slot of the host window. A context is current. */
weft_status wefti_cuda_window_register(wefti_cuda_window *window, const wefti_window *host, size_t slots, size_t slot,
                                       uint64_t bytes);
/* The same for the head of the host window, up to the end of its first page. */
weft_status wefti_cuda_window_register_head(wefti_cuda_window *window, const wefti_window *host, size_t slots);

/* Of the `bytes` bytes at `address`, any memory, how many one copy of the driver may take: it refuses those that lie in
 * two registrations, or inside and outside of one. At least 1. */
size_t wefti_cuda_window_host_span(wefti_cuda_window *window, const void *address, size_t bytes);

#endif
