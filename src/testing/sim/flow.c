/* testing/sim/flow.c: stores on their way. */
#include "testing/sim/flow.h"

#include <stdlib.h>
#include <string.h>

void wefti_entry_pool_init(wefti_entry_pool *pool)
{
    *pool = (wefti_entry_pool){.free = WEFTI_ENTRY_NONE};
}

void wefti_entry_pool_fini(wefti_entry_pool *pool)
{
    free(pool->all);
    wefti_entry_pool_init(pool);
}

static void pool_grow(wefti_entry_pool *pool)
{
    uint32_t capacity = pool->capacity == 0 ? 256 : 2 * pool->capacity;
    wefti_entry *all = realloc(pool->all, capacity * sizeof *all);
    if (all == NULL) {
        abort(); /* a test program without memory */
    }
    for (uint32_t i = pool->capacity; i < capacity; i++) {
        all[i].next = i + 1 < capacity ? i + 1 : WEFTI_ENTRY_NONE;
    }
    pool->free = pool->capacity;
    pool->all = all;
    pool->capacity = capacity;
}

void wefti_flow_init(wefti_flow *flow)
{
    *flow = (wefti_flow){.first = WEFTI_ENTRY_NONE, .last = WEFTI_ENTRY_NONE, .speed = 256};
}

uint32_t wefti_flow_append(wefti_flow *flow, wefti_entry_pool *pool, const wefti_entry *entry)
{
    if (pool->free == WEFTI_ENTRY_NONE) {
        pool_grow(pool);
    }
    uint32_t index = pool->free;
    wefti_entry *pooled = &pool->all[index];
    pool->free = pooled->next;
    memcpy(pooled, entry, offsetof(wefti_entry, data));
    memcpy(pooled->data, entry->data, entry->bytes);
    pooled->next = WEFTI_ENTRY_NONE;
    pooled->previous = flow->last;
    if (flow->last != WEFTI_ENTRY_NONE) {
        pool->all[flow->last].next = index;
    } else {
        flow->first = index;
    }
    flow->last = index;
    flow->count++;
    return index;
}

void wefti_flow_remove(wefti_flow *flow, wefti_entry_pool *pool, uint32_t index)
{
    wefti_entry *entry = &pool->all[index];
    if (entry->previous != WEFTI_ENTRY_NONE) {
        pool->all[entry->previous].next = entry->next;
    } else {
        flow->first = entry->next;
    }
    if (entry->next != WEFTI_ENTRY_NONE) {
        pool->all[entry->next].previous = entry->previous;
    } else {
        flow->last = entry->previous;
    }
    flow->count--;
    entry->next = pool->free;
    pool->free = index;
}

static int overlap(const wefti_entry *entry, uint64_t offset, size_t bytes)
{
    return entry->offset < offset + bytes && offset < entry->offset + entry->bytes;
}

static int must_follow(const wefti_entry *entry, const wefti_entry *earlier)
{
    if (overlap(earlier, entry->offset, entry->bytes)) {
        return 1;
    }
    if (earlier->target != entry->target || earlier->kind == WEFTI_ENTRY_STREAM) {
        return 0;
    }
    return earlier->group != entry->group || entry->kind == WEFTI_ENTRY_RELEASE ||
           (entry->kind == WEFTI_ENTRY_AFTER_OPERATION && earlier->operation == entry->operation);
}

int wefti_flow_may_commit(const wefti_flow *flow, const wefti_entry_pool *pool, uint32_t index)
{
    const wefti_entry *entry = &pool->all[index];
    for (uint32_t i = flow->first; i != index; i = pool->all[i].next) {
        if (must_follow(entry, &pool->all[i])) {
            return 0;
        }
    }
    return 1;
}

uint32_t wefti_flow_at(const wefti_flow *flow, const wefti_entry_pool *pool, uint32_t place)
{
    uint32_t index = flow->first;
    while (place-- > 0) {
        index = pool->all[index].next;
    }
    return index;
}

int wefti_flow_may_pass(const wefti_flow *flow, const wefti_entry_pool *pool, uint64_t offset, size_t bytes)
{
    for (uint32_t i = flow->first; i != WEFTI_ENTRY_NONE; i = pool->all[i].next) {
        const wefti_entry *entry = &pool->all[i];
        if ((entry->group != flow->group && entry->kind != WEFTI_ENTRY_STREAM) || overlap(entry, offset, bytes)) {
            return 0;
        }
    }
    return 1;
}

void wefti_flow_end_streams(const wefti_flow *flow, wefti_entry_pool *pool)
{
    for (uint32_t i = flow->first; i != WEFTI_ENTRY_NONE; i = pool->all[i].next) {
        if (pool->all[i].kind == WEFTI_ENTRY_STREAM) {
            pool->all[i].kind = WEFTI_ENTRY_RELAXED;
        }
    }
}

void wefti_flow_forward(const wefti_flow *flow, const wefti_entry_pool *pool, uint64_t offset, size_t bytes,
                        unsigned char *out)
{
    for (uint32_t i = flow->first; i != WEFTI_ENTRY_NONE; i = pool->all[i].next) {
        const wefti_entry *entry = &pool->all[i];
        if (overlap(entry, offset, bytes)) {
            uint64_t from = entry->offset > offset ? entry->offset : offset;
            uint64_t end = entry->offset + entry->bytes;
            end = end < offset + bytes ? end : offset + bytes;
            memcpy(out + (from - offset), entry->data + (from - entry->offset), (size_t)(end - from));
        }
    }
}
