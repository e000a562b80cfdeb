#include "heap/blocks.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

void wefti_blocks_init(wefti_blocks *blocks, uint64_t limit)
{
    memset(blocks, 0, sizeof *blocks);
    blocks->limit = limit;
}

void wefti_blocks_fini(wefti_blocks *blocks)
{
    wefti_free(blocks->list);
    memset(blocks, 0, sizeof *blocks);
}

/* The index of the first block that ends after `offset`. */
static size_t first_ending_after(const wefti_blocks *blocks, uint64_t offset)
{
    size_t low = 0;
    size_t high = blocks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (blocks->list[middle].offset + blocks->list[middle].bytes <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t end_of_previous(const wefti_blocks *blocks, size_t index)
{
    return index == 0 ? 0 : blocks->list[index - 1].offset + blocks->list[index - 1].bytes;
}

uint64_t wefti_blocks_end(const wefti_blocks *blocks)
{
    return end_of_previous(blocks, blocks->count);
}

uint64_t wefti_blocks_fit(const wefti_blocks *blocks, uint64_t bytes, uint64_t alignment, uint64_t floor)
{
    assert(bytes > 0 && alignment >= WEFTI_BLOCK_ALIGNMENT && (alignment & (alignment - 1)) == 0);
    if (bytes > blocks->limit || floor > blocks->limit) {
        return WEFTI_BLOCK_NONE;
    }
    size_t index = first_ending_after(blocks, floor);
    if (index < blocks->first_gap) {
        index = blocks->first_gap;
    }
    for (;; index++) {
        uint64_t start = end_of_previous(blocks, index);
        uint64_t end = index < blocks->count ? blocks->list[index].offset : blocks->limit;
        uint64_t offset = round_up((start > floor ? start : floor) + blocks->lead, alignment) - blocks->lead;
        if (offset <= end && end - offset >= bytes) {
            return offset;
        }
        if (index == blocks->count) {
            return WEFTI_BLOCK_NONE;
        }
    }
}

weft_status wefti_blocks_take(wefti_blocks *blocks, uint64_t offset, uint64_t bytes, uint32_t owner)
{
    bytes = round_up(bytes, WEFTI_BLOCK_ALIGNMENT);
    if (blocks->count == blocks->capacity) {
        size_t capacity = blocks->capacity == 0 ? 16 : 2 * blocks->capacity;
        wefti_block *list = wefti_realloc(blocks->list, capacity * sizeof *list);
        if (list == NULL) {
            return wefti_error(WEFT_ERR_MEMORY, "no memory for the record of a heap block");
        }
        blocks->list = list;
        blocks->capacity = capacity;
    }
    size_t index = first_ending_after(blocks, offset);
    assert(index == blocks->count || offset + bytes <= blocks->list[index].offset);
    memmove(&blocks->list[index + 1], &blocks->list[index], (blocks->count - index) * sizeof *blocks->list);
    blocks->list[index] = (wefti_block){.offset = offset, .bytes = bytes, .owner = owner};
    blocks->count++;
    blocks->bytes_used += bytes;
    while (blocks->first_gap < blocks->count &&
           blocks->list[blocks->first_gap].offset == end_of_previous(blocks, blocks->first_gap)) {
        blocks->first_gap++;
    }
    return WEFT_OK;
}

const wefti_block *wefti_blocks_find(const wefti_blocks *blocks, uint64_t offset)
{
    size_t index = first_ending_after(blocks, offset);
    return index < blocks->count && blocks->list[index].offset == offset ? &blocks->list[index] : NULL;
}

void wefti_blocks_cut(wefti_blocks *blocks, uint64_t offset, uint64_t bytes)
{
    size_t index = first_ending_after(blocks, offset);
    assert(index < blocks->count && blocks->list[index].offset == offset);
    uint64_t less = blocks->list[index].bytes - round_up(bytes, WEFTI_BLOCK_ALIGNMENT);
    assert(less < blocks->list[index].bytes);
    blocks->list[index].bytes -= less;
    blocks->bytes_used -= less;
    if (less > 0 && blocks->first_gap > index + 1) {
        blocks->first_gap = index + 1;
    }
}

void wefti_blocks_drop(wefti_blocks *blocks, uint64_t offset)
{
    size_t index = first_ending_after(blocks, offset);
    assert(index < blocks->count && blocks->list[index].offset == offset);
    blocks->bytes_used -= blocks->list[index].bytes;
    blocks->count--;
    memmove(&blocks->list[index], &blocks->list[index + 1], (blocks->count - index) * sizeof *blocks->list);
    if (blocks->first_gap > index) {
        blocks->first_gap = index;
    }
}

int wefti_blocks_check(const wefti_blocks *blocks)
{
    uint64_t end = 0;
    uint64_t used = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        const wefti_block *block = &blocks->list[i];
        if (block->offset < end || block->bytes == 0 || block->offset % WEFTI_BLOCK_ALIGNMENT != 0 ||
            block->bytes % WEFTI_BLOCK_ALIGNMENT != 0 || (i < blocks->first_gap && block->offset != end)) {
            return 0;
        }
        end = block->offset + block->bytes;
        used += block->bytes;
    }
    return end <= round_up(blocks->limit, WEFTI_BLOCK_ALIGNMENT) && used == blocks->bytes_used &&
           blocks->first_gap <= blocks->count;
}
