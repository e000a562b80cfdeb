/* weft/slab.h: pieces of a block of symmetric memory, which each PE takes and gives back for itself, with no collective
 * call: what an allocator of tensors needs, whose calls differ from PE to PE.
 *
 * A piece lies in symmetric memory, though others need not have the same one there: calls that tell others where their
 * memory is, as those of weft_ep.h do, write and read it in place; puts and gets of others at its address do not find
 * the piece.
 *
 * A slab belongs to the process that made it: in one that was forked from it weft_slab_destroy does nothing,
 * weft_slab_contains says what it said, and the others are WEFT_ERR_STATE (docs/processes.md). */
#ifndef WEFT_SLAB_H
#define WEFT_SLAB_H

#include <stddef.h>

#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_slab weft_slab;

/* Make a slab of `bytes` bytes at `block`: memory that weft_malloc, weft_team_malloc, weft_device_malloc and their like
 * gave or that has been registered, or any other; it stays the caller's, outlives the slab, and is never read or
 * written by it, so that it may be a GPU's. Local. WEFT_ERR_ARGUMENT: a NULL, no bytes, or bytes beyond the end of the
 * address space. WEFT_ERR_MEMORY. */
WEFT_API weft_status weft_slab_create(void *block, size_t bytes, weft_slab **slab) WEFT_MUST_CHECK;

/* Take the first piece of at least `bytes` bytes that is free, its address a multiple of `alignment`, a power of two;
 * 0: 64, the least. *piece is NULL, and the status WEFT_OK, if there is none, or bytes is 0: take other memory then;
 * rows for it are received in a group's memory and copied. Any thread. WEFT_ERR_ARGUMENT: a NULL, or no power of two.
 * WEFT_ERR_MEMORY: no memory for the record of the piece. */
WEFT_API weft_status weft_slab_alloc(weft_slab *slab, size_t bytes, size_t alignment, void **piece) WEFT_MUST_CHECK;

/* Give a piece back. Nobody uses it any more, other PEs and kernels included. NULL is allowed. Any thread.
 * WEFT_ERR_ARGUMENT: it is no piece of the slab. */
WEFT_API weft_status weft_slab_free(weft_slab *slab, void *piece);

/* 1: the address lies in the slab, so that weft_slab_free is what frees a piece there; else 0, as of a NULL slab. Any
 * thread. */
WEFT_API int weft_slab_contains(const weft_slab *slab, const void *address);

/* What a slab has. Start from WEFT_SLAB_USE_INIT. */
typedef struct weft_slab_use {
    size_t size; /* sizeof(weft_slab_use) */
    size_t bytes; /* of the slab, from the first multiple of 64 on */
    size_t bytes_used; /* of its pieces, each rounded up to a multiple of 64 */
    size_t pieces;
} weft_slab_use;

#define WEFT_SLAB_USE_INIT WEFTI_SIZED(weft_slab_use)

/* Any thread. WEFT_ERR_ARGUMENT: a NULL, or a size that is not this one's. */
WEFT_API weft_status weft_slab_query(weft_slab *slab, weft_slab_use *use) WEFT_MUST_CHECK;

/* End a slab. NULL is allowed. WEFT_ERR_STATE, and it stays, while it has pieces. */
WEFT_API weft_status weft_slab_destroy(weft_slab *slab);

#ifdef __cplusplus
}
#endif
#endif
