/* Allocation on all members of a team: they agree on an offset (offset.c), and memory that is not reserved yet is
 * reserved before any member may touch it.
 *
 * The same for both heaps of a world, which differ in how they grow: see wefti_records. */
#include <string.h>

#include "base/error.h"
#include "team/team.h"

#define GROWTH_BYTES_MIN ((uint64_t)64 << 10)
#define GROWTH_BYTES_ENOUGH ((uint64_t)1 << 20)

/* A heap doubles, between two bounds: the system clears what it gives, and a thousand PEs of a node grow at once. */
static uint64_t growth_of(uint64_t reserved)
{
    return reserved < GROWTH_BYTES_MIN      ? GROWTH_BYTES_MIN
           : reserved < GROWTH_BYTES_ENOUGH ? reserved
                                            : GROWTH_BYTES_ENOUGH;
}

/* Reserve memory up to `end` of this PE's heap. */
static weft_status grow(weft_world *world, uint64_t end)
{
    weft_status status = WEFT_OK;
    wefti_os_monitor_enter(world->heap_lock);
    uint64_t reserved = wefti_ld64(&world->view.heap_bytes, WEFTI_RELAXED);
    if (end > reserved) {
        uint64_t page = wefti_os_page_bytes();
        uint64_t growth = growth_of(reserved);
        uint64_t wanted = end - reserved < growth ? reserved + growth : end;
        wanted = (wanted + page - 1) / page * page;
        wanted = wanted < world->heap_max_bytes ? wanted : world->heap_max_bytes;
        size_t heap_offset = (size_t)(world->heap - world->window->memory.base);
        status = wefti_os_memory_reserve(&world->window->memory, heap_offset + reserved, wanted - reserved);
        if (status == WEFT_OK) {
            wefti_st64(&world->view.heap_bytes, wanted, WEFTI_RELAXED);
            wefti_st64(&world->control->reserved, (uint64_t)(world->heap - (unsigned char *)world->control) + wanted,
                       WEFTI_RELAXED);
            WEFTI_COUNT_SET(world, heap_bytes_reserved, wanted - world->sparse_bytes);
        }
    }
    wefti_os_monitor_leave(world->heap_lock);
    return status;
}

/* Each member reserves its own; they agree that all could. */
static weft_status grow_host(weft_team *team, const char *call, uint64_t offset, uint64_t end)
{
    weft_world *world = team->world;
    wefti_vote vote = wefti_vote_init(team, call, offset, 0);
    vote.status = grow(world, end);
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    if (world->device == NULL) {
        return WEFT_OK;
    }
    /* All have what they will have: kernels can be shown it. Every PE of the world has a device, or none has. */
    vote = wefti_vote_init(team, call, offset, 1);
    vote.status = world->device->ops->memory->host_grown(world->device);
    return wefti_team_agree(team, &vote, call);
}

wefti_records wefti_host_records(weft_world *world)
{
    return (wefti_records){
        .lock = world->heap_lock,
        .blocks = &world->blocks,
        .base = world->heap,
        .max_bytes = world->heap_max_bytes,
        .reserved = wefti_ld64(&world->view.heap_bytes, WEFTI_RELAXED),
        .used_counter = &world->counters.heap_bytes_used,
        .remedy = "heap_max_bytes or WEFT_HEAP_MAX",
        .grow = grow_host,
    };
}

weft_status wefti_records_alloc(weft_team *team, const wefti_records *records, const char *call,
                                const wefti_block_wanted *wanted, void **block)
{
    uint64_t offset;
    uint64_t reserved_low;
    WEFT_TRY(wefti_offset_agree(team, records, call, wanted, &offset, &reserved_low));
    if (offset + wanted->bytes > reserved_low) {
        weft_status status = records->grow(team, call, offset, offset + wanted->bytes);
        if (status != WEFT_OK) {
            wefti_offset_refuse(team, records, offset);
            return status;
        }
    }
    *block = records->base + offset;
    return WEFT_OK;
}

weft_status wefti_records_check(const weft_team *team, const wefti_records *records, const char *call, uint64_t offset,
                                uint32_t owner)
{
    wefti_os_monitor_enter(records->lock);
    const wefti_block *found = wefti_blocks_find(records->blocks, offset);
    int is_owners = found != NULL && found->owner == owner;
    int is_library = found != NULL && found->owner == WEFTI_OWNER_LIBRARY;
    wefti_os_monitor_leave(records->lock);
    if (is_owners) {
        return WEFT_OK;
    }
    return wefti_error(WEFT_ERR_ARGUMENT, "%s: %p is %s \"%s\"; %s", call, (void *)((uintptr_t)records->base + offset),
                       found == NULL ? "no block of world"
                       : is_library  ? "memory of the library in world"
                                     : "a block of another team of world",
                       team->world->name,
                       found == NULL || is_library ? "give what was allocated, once"
                                                   : "free it over the team (or the world) that allocated it");
}

void wefti_records_forget(const wefti_records *records, const void *block)
{
    wefti_offset_drop(records, (uint64_t)((uintptr_t)block - (uintptr_t)records->base));
}

/* That all may drop the block. */
static weft_status agree_to_drop(weft_team *team, const wefti_records *records, const char *call, uint32_t owner,
                                 const void *block)
{
    uint64_t offset = (uint64_t)((uintptr_t)block - (uintptr_t)records->base);
    wefti_vote vote = wefti_vote_init(team, call, offset < records->max_bytes ? offset : WEFTI_BLOCK_FOREIGN, 0);
    vote.status = wefti_records_check(team, records, call, offset, owner);
    return wefti_team_agree(team, &vote, call);
}

weft_status wefti_records_dealloc(weft_team *team, const wefti_records *records, const char *call, uint32_t owner,
                                  void *block)
{
    WEFT_TRY(agree_to_drop(team, records, call, owner, block));
    wefti_records_forget(records, block);
    return WEFT_OK;
}

weft_status wefti_host_alloc(weft_team *team, const char *call, const wefti_block_wanted *wanted, void **block)
{
    const wefti_records records = wefti_host_records(team->world);
    WEFT_TRY(wefti_records_alloc(team, &records, call, wanted, block));
    WEFTI_COUNT(team->world, heap_allocs, 1);
    return WEFT_OK;
}

weft_status wefti_host_dealloc(weft_team *team, const char *call, uint32_t owner, void *block)
{
    const wefti_records records = wefti_host_records(team->world);
    WEFT_TRY(wefti_records_dealloc(team, &records, call, owner, block));
    WEFTI_COUNT(team->world, heap_frees, 1);
    return WEFT_OK;
}

weft_status wefti_team_alloc(weft_team *team, const char *call, size_t bytes, size_t alignment, void **block)
{
    const wefti_block_wanted wanted = {.bytes = bytes, .alignment = alignment, .owner = WEFTI_OWNER_LIBRARY};
    return wefti_host_alloc(team, call, &wanted, block);
}

weft_status wefti_team_dealloc(weft_team *team, const char *call, void *block)
{
    return wefti_host_dealloc(team, call, WEFTI_OWNER_LIBRARY, block);
}

weft_status wefti_team_dealloc_area(weft_team *team, const char *call)
{
    const wefti_records records = wefti_host_records(team->world);
    WEFT_TRY(agree_to_drop(team, &records, call, WEFTI_OWNER_LIBRARY, team->area));
    if (team->counted) {
        WEFT_TRY(wefti_team_arrive_by_count(team, call));
    }
    wefti_records_forget(&records, team->area);
    WEFTI_COUNT(team->world, heap_frees, 1);
    return WEFT_OK;
}

void wefti_team_forget(weft_team *team, const void *block)
{
    const wefti_records records = wefti_host_records(team->world);
    wefti_records_forget(&records, block);
}
