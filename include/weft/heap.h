/* weft/heap.h: the symmetric heap. (OpenSHMEM 1.5, 9.3.)
 *
 * An allocation has the same offset in the heap of every PE that took part; the address may differ between processes.
 * Blocks are aligned to 64 bytes at least and never share a cache line. The heap grows up to the world's
 * heap_max_bytes; memory is reserved before it is handed out, so that lack of it is WEFT_ERR_MEMORY and not a signal.
 * The same sequence of calls gives the same offsets in every run. */
#ifndef WEFT_HEAP_H
#define WEFT_HEAP_H

#include "weft/team.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocate `bytes` of symmetric memory on every PE. Collective over the world (weft_team_malloc: over the team), equal
 * arguments everywhere. When it returns, the block may be written by any member. Contents: undefined. bytes 0 gives
 * NULL and WEFT_OK.
 * Errors, the same on all members: WEFT_ERR_ARGUMENT (a size that overflows), WEFT_ERR_MISMATCH (the call or its
 * arguments differ; names a PE), WEFT_ERR_MEMORY. WEFT_ERR_TIMEOUT and WEFT_ERR_PEER are those of a member that has
 * given up: another that came late may have WEFT_OK and the block. So the memory stays taken on members that gave up,
 * until the world ends. */
WEFT_API weft_status weft_malloc(weft_world *world, size_t bytes, void **block) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_malloc(weft_team *team, size_t bytes, void **block) WEFT_MUST_CHECK;

/* As weft_malloc, for count * bytes bytes, zeroed on every PE before any returns. */
WEFT_API weft_status weft_calloc(weft_world *world, size_t count, size_t bytes, void **block) WEFT_MUST_CHECK;

/* As weft_malloc, the address a multiple of `alignment` in every process, a power of two up to 16 MiB: that is what
 * processes have in common in where they map the heap. */
WEFT_API weft_status weft_align(weft_world *world, size_t alignment, size_t bytes, void **block) WEFT_MUST_CHECK;

/* Give a block of weft_malloc, weft_calloc or weft_align (weft_team_realloc: of weft_team_malloc over the same team) at
 * least `bytes` bytes. Collective as weft_malloc, equal arguments everywhere. *result is the block itself where it has
 * room or gets smaller, else another, aligned to 64 bytes, and the block is freed; what was in it, up to the smaller of
 * both sizes, is there on every PE when the call returns, also what any PE put there before it called. A NULL block: as
 * weft_malloc. bytes 0: as weft_free, *result becomes NULL. Errors as weft_malloc's and weft_free's; with
 * WEFT_ERR_ARGUMENT, WEFT_ERR_MISMATCH and WEFT_ERR_MEMORY the block is as it was. (OpenSHMEM 1.5, 9.3.1.) */
WEFT_API weft_status weft_realloc(weft_world *world, void *block, size_t bytes, void **result) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_realloc(weft_team *team, void *block, size_t bytes, void **result) WEFT_MUST_CHECK;

/* Free a block on every PE. Collective over the world or team that allocated it (weft_free for weft_malloc, weft_calloc
 * and weft_align, weft_team_free over the same team for weft_team_malloc), the same block everywhere. Completes
 * the caller's outstanding puts (a quiet) and waits for all members before the block can be allocated again. NULL is
 * allowed, on all members. A block ends with the world at the latest; that of a destroyed team not before. Errors:
 * WEFT_ERR_ARGUMENT when the block is none that was allocated so (freed already, another team's, the library's own). A
 * member that gets WEFT_ERR_TIMEOUT or WEFT_ERR_PEER may not use the block any more, and its memory stays taken
 * there. */
WEFT_API weft_status weft_free(weft_world *world, void *block) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_free(weft_team *team, void *block) WEFT_MUST_CHECK;

/* Whether PE `pe` has the symmetric object at `address` (1), and every call can reach it there; 0 when the PE is out of
 * range, or the address lies in neither the heap nor the world's device memory. weft_pe_accessible asks for the PE
 * alone: a world has no PE that cannot be reached. Any thread. (OpenSHMEM 1.5, 9.1.6, 9.1.7.) */
WEFT_API int weft_addr_accessible(const weft_world *world, const void *address, int pe);
WEFT_API int weft_pe_accessible(const weft_world *world, int pe);

/* The address at which this process can load and store PE `pe`'s copy of the symmetric object at `address`, or NULL
 * when there is none (another link domain, a PE out of range, an address outside the heap). Any thread.
 * (OpenSHMEM 1.5, 9.1 shmem_ptr.) */
WEFT_API void *weft_ptr(const weft_world *world, const void *address, int pe);

#ifdef __cplusplus
}
#endif
#endif
