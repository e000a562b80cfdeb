/* heap/blocks.h: which parts of the symmetric heap are allocated. The records lie outside the heap, so that a stray
 * write cannot corrupt them, and hold offsets only: every PE that makes the same calls has the same records.
 *
 * Not thread-safe; the caller holds the world's heap lock. */
#ifndef WEFTI_HEAP_BLOCKS_H
#define WEFTI_HEAP_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

#define WEFTI_BLOCK_ALIGNMENT 64
#define WEFTI_BLOCK_NONE UINT64_MAX

typedef struct wefti_block {
    uint64_t offset;
    uint64_t bytes; /* as reserved: a multiple of WEFTI_BLOCK_ALIGNMENT */
    uint32_t owner; /* a number of the caller's */
} wefti_block;

/* Allocated blocks in ascending order of offset. Zeroed memory is a valid empty set but for `limit`. */
typedef struct wefti_blocks {
    wefti_block *list;
    size_t count;
    size_t capacity;
    size_t first_gap; /* the blocks before this index leave no gap between them, from offset 0 on */
    uint64_t limit; /* bytes of the heap */
    uint64_t lead; /* bytes before the heap from where blocks are aligned; 0 unless set */
    uint64_t bytes_used;
    uint64_t proposed; /* how many of them are only proposed, and may be free again soon: counted by the caller */
    uint64_t changes; /* how often one has been made, cut or freed, proposals aside: counted by the caller */
} wefti_blocks;

void wefti_blocks_init(wefti_blocks *blocks, uint64_t limit);
void wefti_blocks_fini(wefti_blocks *blocks); /* safe on zeroed memory */

/* The lowest offset >= floor, a multiple of alignment, at which `bytes` bytes are free; WEFTI_BLOCK_NONE if there is
 * none. bytes > 0; alignment a power of two of at least WEFTI_BLOCK_ALIGNMENT. What is aligned is lead + offset.
 * Reserves nothing. */
uint64_t wefti_blocks_fit(const wefti_blocks *blocks, uint64_t bytes, uint64_t alignment, uint64_t floor);

/* Reserve what wefti_blocks_fit gave. WEFT_ERR_MEMORY when the record cannot be kept. */
weft_status wefti_blocks_take(wefti_blocks *blocks, uint64_t offset, uint64_t bytes, uint32_t owner);

/* The end of the highest block; 0 if there is none. */
uint64_t wefti_blocks_end(const wefti_blocks *blocks);

/* The block that begins at `offset`, or NULL. */
const wefti_block *wefti_blocks_find(const wefti_blocks *blocks, uint64_t offset);

/* Cut the block that begins at `offset`, which exists, to `bytes` bytes, at least 1 and no more than it has. */
void wefti_blocks_cut(wefti_blocks *blocks, uint64_t offset, uint64_t bytes);

/* Free the block that begins at `offset`, which exists. */
void wefti_blocks_drop(wefti_blocks *blocks, uint64_t offset);

/* Walk the records: sorted, disjoint, aligned, inside the limit, sums right. Returns 1 if so. For tests. */
int wefti_blocks_check(const wefti_blocks *blocks);

#endif
