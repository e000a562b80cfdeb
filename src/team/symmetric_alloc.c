/* Allocation on all members of a team: they agree on an offset (offset.c), and memory that is not reserved yet is reserved
 * before any member may touch it.
 *
 * The same for both heaps of a world, which differ in how they grow: see wefti_records. */
#include <string.h>

#include "base/error.h"
#include "team/team.h"
#include "weft/heap.h"

#define GROWTH_BYTES_MIN ((uint64_t)1 << 20)
#define ALIGNMENT_MAX ((size_t)4096) /* of addresses: a window is mapped at any page */
/* What stands for NULL, and for an address outside the heap, where members compare the blocks they free. */
#define NO_BLOCK UINT64_MAX
#define FOREIGN_BLOCK (UINT64_MAX - 1)

/* Reserve memory up to `end` of this PE's heap. */
static weft_status grow(weft_world *world, uint64_t end)
{
    weft_status status = WEFT_OK;
    wefti_os_monitor_enter(world->heap_lock);
    uint64_t reserved = wefti_ld64(&world->view.heap_bytes, WEFTI_RELAXED);
    if (end > reserved) {
        uint64_t page = wefti_os_page_bytes();
        uint64_t wanted = end - reserved < GROWTH_BYTES_MIN ? reserved + GROWTH_BYTES_MIN : end;
        wanted = (wanted + page - 1) / page * page;
        wanted = wanted < world->heap_max_bytes ? wanted : world->heap_max_bytes;
        size_t heap_offset = (size_t)(world->heap - world->window->memory.base);
        status = wefti_os_memory_reserve(&world->window->memory, heap_offset + reserved, wanted - reserved);
        if (status == WEFT_OK) {
            wefti_st64(&world->view.heap_bytes, wanted, WEFTI_RELAXED);
            wefti_st64(&world->control->reserved, (uint64_t)(world->heap - (unsigned char *)world->control) + wanted,
                       WEFTI_RELAXED);
            WEFTI_COUNT_SET(world, heap_bytes_reserved, wanted);
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
    vote.status = world->device->ops->host_grown(world->device);
    return wefti_team_agree(team, &vote, call);
}

static wefti_records host_records(weft_world *world)
{
    return (wefti_records){
        .lock = world->heap_lock,
        .blocks = &world->blocks,
        .base = world->heap,
        .max_bytes = world->heap_max_bytes,
        .reserved = &world->view.heap_bytes,
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

/* WEFT_OK if a block of this owner begins there. */
static weft_status check_block(const weft_team *team, const wefti_records *records, const char *call, uint64_t offset,
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

weft_status wefti_records_dealloc(weft_team *team, const wefti_records *records, const char *call, uint32_t owner,
                                  void *block)
{
    uint64_t offset = (uint64_t)((uintptr_t)block - (uintptr_t)records->base);
    wefti_vote vote = wefti_vote_init(team, call, offset < records->max_bytes ? offset : FOREIGN_BLOCK, 0);
    vote.status = check_block(team, records, call, offset, owner);
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    wefti_offset_drop(records, offset);
    return WEFT_OK;
}

static weft_status host_alloc(weft_team *team, const char *call, const wefti_block_wanted *wanted, void **block)
{
    const wefti_records records = host_records(team->world);
    WEFT_TRY(wefti_records_alloc(team, &records, call, wanted, block));
    WEFTI_COUNT(team->world, heap_allocs, 1);
    return WEFT_OK;
}

static weft_status host_dealloc(weft_team *team, const char *call, uint32_t owner, void *block)
{
    const wefti_records records = host_records(team->world);
    WEFT_TRY(wefti_records_dealloc(team, &records, call, owner, block));
    WEFTI_COUNT(team->world, heap_frees, 1);
    return WEFT_OK;
}

weft_status wefti_team_alloc(weft_team *team, const char *call, size_t bytes, size_t alignment, void **block)
{
    const wefti_block_wanted wanted = {.bytes = bytes, .alignment = alignment, .owner = WEFTI_OWNER_LIBRARY};
    return host_alloc(team, call, &wanted, block);
}

weft_status wefti_team_dealloc(weft_team *team, const char *call, void *block)
{
    return host_dealloc(team, call, WEFTI_OWNER_LIBRARY, block);
}

void wefti_team_forget(weft_team *team, const void *block)
{
    const wefti_records records = host_records(team->world);
    wefti_records_forget(&records, block);
}

/* ---- public ---- */

/* `mine` is what is wrong with this PE's arguments so far: also a PE that cannot go on takes part in the agreement, so
 * that no other waits for it in vain. */
static weft_status allocate(weft_team *team, const char *call, size_t bytes, size_t alignment, weft_status mine,
                            void **block)
{
    WEFT_TRY(wefti_team_check(team, call));
    if (mine == WEFT_OK && block == NULL) {
        mine = wefti_error(WEFT_ERR_ARGUMENT, "%s: the place for the block is NULL", call);
    }
    alignment = alignment < WEFTI_BLOCK_ALIGNMENT ? WEFTI_BLOCK_ALIGNMENT : alignment;
    if (mine == WEFT_OK && bytes > 0) {
        const wefti_block_wanted wanted = {.bytes = bytes, .alignment = alignment, .owner = team->number};
        return host_alloc(team, call, &wanted, block);
    }
    wefti_vote vote = wefti_vote_init(team, call, bytes, alignment);
    vote.status = mine;
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    *block = NULL;
    return WEFT_OK;
}

weft_status weft_malloc(weft_world *world, size_t bytes, void **block)
{
    return allocate(weft_team_world(world), "weft_malloc", bytes, 0, WEFT_OK, block);
}

weft_status weft_team_malloc(weft_team *team, size_t bytes, void **block)
{
    return allocate(team, "weft_team_malloc", bytes, 0, WEFT_OK, block);
}

weft_status weft_align(weft_world *world, size_t alignment, size_t bytes, void **block)
{
    weft_status mine = WEFT_OK;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > ALIGNMENT_MAX) {
        mine = wefti_error(WEFT_ERR_ARGUMENT, "weft_align: an alignment of %zu; give a power of two of at most %zu",
                           alignment, ALIGNMENT_MAX);
    }
    return allocate(weft_team_world(world), "weft_align", bytes, alignment, mine, block);
}

weft_status weft_calloc(weft_world *world, size_t count, size_t bytes, void **block)
{
    size_t total;
    void *zeroed;
    weft_status mine = WEFT_OK;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        mine = wefti_error(WEFT_ERR_ARGUMENT, "weft_calloc: %zu elements of %zu bytes exceed the address space", count,
                           bytes);
    }
    WEFT_TRY(allocate(weft_team_world(world), "weft_calloc", total, 0, mine, block == NULL ? NULL : &zeroed));
    if (zeroed != NULL) {
        wefti_zero(zeroed, total);
        WEFT_TRY(wefti_team_sync(weft_team_world(world), "weft_calloc"));
    }
    *block = zeroed;
    return WEFT_OK;
}

static weft_status deallocate(weft_team *team, const char *call, void *block)
{
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(weft_quiet(team->world));
    if (block == NULL) {
        wefti_vote vote = wefti_vote_init(team, call, NO_BLOCK, 0);
        return wefti_team_agree(team, &vote, call);
    }
    return host_dealloc(team, call, team->number, block);
}

weft_status weft_free(weft_world *world, void *block)
{
    return deallocate(weft_team_world(world), "weft_free", block);
}

weft_status weft_team_free(weft_team *team, void *block)
{
    return deallocate(team, "weft_team_free", block);
}

void *weft_ptr(const weft_world *world, const void *address, int pe)
{
    if (!wefti_world_is_alive(world)) {
        return NULL;
    }
    if (wefti_is_near(world, address, 1, pe)) {
        return wefti_peer_address(world, address, pe);
    }
    uint64_t left;
    return world->device == NULL || pe < 0 || pe >= (int)world->view.pes
               ? NULL
               : (void *)world->device->ops->locate(world->device, address, pe, &left);
}
