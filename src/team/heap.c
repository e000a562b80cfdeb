/* The symmetric heap as users see it. Every call is an agreement of its team. */
#include "weft/heap.h"

#include <string.h>

#include "base/error.h"
#include "team/team.h"

#define ALIGNMENT_MAX WEFTI_OS_MEMORY_ALIGNMENT /* windows are mapped at a multiple of it */
#define NO_BLOCK UINT64_MAX /* stands for NULL where members compare the blocks they free */

/* `mine` is what is wrong with this PE's arguments so far: also a PE that cannot go on takes part in the agreement, so
 * that no other waits for it in vain. The team is alive. */
static weft_status agree_and_allocate(weft_team *team, const char *call, size_t bytes, size_t alignment,
                                      weft_status mine, void **block)
{
    if (mine == WEFT_OK && block == NULL) {
        mine = wefti_error_null(call, "block");
    }
    alignment = alignment < WEFTI_BLOCK_ALIGNMENT ? WEFTI_BLOCK_ALIGNMENT : alignment;
    if (mine == WEFT_OK && bytes > 0) {
        const wefti_block_wanted wanted = {.bytes = bytes, .alignment = alignment, .owner = team->number};
        return wefti_host_alloc(team, call, &wanted, block);
    }
    wefti_vote vote = wefti_vote_init(team, call, bytes, alignment);
    vote.status = mine;
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    *block = NULL;
    return WEFT_OK;
}

static weft_status allocate(weft_team *team, const char *call, size_t bytes, size_t alignment, weft_status mine,
                            void **block)
{
    WEFT_TRY(wefti_team_check(team, call));
    const wefti_span span = wefti_team_span_begin(team, call);
    return wefti_team_span_end(team, &span, bytes, agree_and_allocate(team, call, bytes, alignment, mine, block));
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

static weft_status agree_and_free(weft_team *team, const char *call, void *block)
{
    WEFT_TRY(wefti_team_quiet(team));
    if (block == NULL) {
        wefti_vote vote = wefti_vote_init(team, call, NO_BLOCK, 0);
        return wefti_team_agree(team, &vote, call);
    }
    return wefti_host_dealloc(team, call, team->number, block);
}

static weft_status deallocate(weft_team *team, const char *call, void *block)
{
    WEFT_TRY(wefti_team_check(team, call));
    const wefti_span span = wefti_team_span_begin(team, call);
    return wefti_team_span_end(team, &span, SIZE_MAX, agree_and_free(team, call, block));
}

weft_status weft_free(weft_world *world, void *block)
{
    return deallocate(weft_team_world(world), "weft_free", block);
}

weft_status weft_team_free(weft_team *team, void *block)
{
    return deallocate(team, "weft_team_free", block);
}

/* ---- realloc ---- */

static uint64_t offset_of(const weft_world *world, const void *block)
{
    uint64_t offset = (uint64_t)((uintptr_t)block - (uintptr_t)world->heap);
    return offset < world->heap_max_bytes ? offset : WEFTI_BLOCK_FOREIGN;
}

/* Agree that all mean the same block of the team's and the same bytes; its bytes now. What any member put there before
 * is complete then. */
static weft_status agree_on_block(weft_team *team, const char *call, const void *block, size_t bytes, weft_status mine,
                                  uint64_t *bytes_now)
{
    const wefti_records records = wefti_host_records(team->world);
    const uint64_t offset = (uint64_t)((uintptr_t)block - (uintptr_t)records.base);
    WEFT_TRY(wefti_team_quiet(team));
    wefti_vote vote = wefti_vote_init(team, "another size", offset_of(team->world, block), bytes);
    vote.status = mine == WEFT_OK ? wefti_records_check(team, &records, call, offset, team->number) : mine;
    WEFT_TRY(wefti_team_agree(team, &vote, call));
    wefti_os_monitor_enter(records.lock);
    *bytes_now = wefti_blocks_find(records.blocks, offset)->bytes;
    wefti_os_monitor_leave(records.lock);
    return WEFT_OK;
}

/* Another block, with the contents of this one; nobody writes to the new one before all have copied, and the old one is
 * free then. */
static weft_status move_block(weft_team *team, const char *call, void *from, uint64_t bytes_now, size_t bytes,
                              void **to)
{
    const wefti_records records = wefti_host_records(team->world);
    const wefti_block_wanted wanted = {.bytes = bytes, .alignment = WEFTI_BLOCK_ALIGNMENT, .owner = team->number};
    void *made;
    WEFT_TRY(wefti_host_alloc(team, call, &wanted, &made));
    wefti_copy(made, from, bytes < bytes_now ? bytes : bytes_now);
    WEFT_TRY(wefti_team_sync(team, call));
    wefti_records_forget(&records, from);
    WEFTI_COUNT(team->world, heap_frees, 1);
    *to = made;
    return WEFT_OK;
}

static void cut_block(weft_world *world, const void *block, size_t bytes)
{
    const wefti_records records = wefti_host_records(world);
    wefti_os_monitor_enter(records.lock);
    wefti_blocks_cut(records.blocks, offset_of(world, block), bytes);
    records.blocks->changes++;
    __atomic_store_n(records.used_counter, records.blocks->bytes_used, __ATOMIC_RELAXED);
    wefti_os_monitor_leave(records.lock);
}

/* The block is one, and bytes of it are wanted. */
static weft_status resize(weft_team *team, const char *call, void *block, size_t bytes, void **out)
{
    uint64_t bytes_now = 0;
    weft_status mine = out != NULL ? WEFT_OK : wefti_error_null(call, "result");
    WEFT_TRY(agree_on_block(team, call, block, bytes, mine, &bytes_now));
    if (bytes > bytes_now) {
        return move_block(team, call, block, bytes_now, bytes, out);
    }
    cut_block(team->world, block, bytes);
    *out = block;
    return WEFT_OK;
}

static weft_status reallocate(weft_team *team, const char *call, void *block, size_t bytes, void **out)
{
    WEFT_TRY(wefti_team_check(team, call));
    if (block == NULL) {
        return allocate(team, call, bytes, 0, WEFT_OK, out);
    }
    if (bytes == 0) {
        WEFT_TRY(deallocate(team, call, block));
        if (out != NULL) {
            *out = NULL;
        }
        return WEFT_OK;
    }
    const wefti_span span = wefti_team_span_begin(team, call);
    return wefti_team_span_end(team, &span, bytes, resize(team, call, block, bytes, out));
}

weft_status weft_realloc(weft_world *world, void *block, size_t bytes, void **out)
{
    return reallocate(weft_team_world(world), "weft_realloc", block, bytes, out);
}

weft_status weft_team_realloc(weft_team *team, void *block, size_t bytes, void **out)
{
    return reallocate(team, "weft_team_realloc", block, bytes, out);
}

int weft_pe_accessible(const weft_world *world, int pe)
{
    return wefti_world_is_alive(world) && pe >= 0 && pe < (int)world->view.pes;
}

int weft_addr_accessible(const weft_world *world, const void *address, int pe)
{
    uint64_t left;
    if (!weft_pe_accessible(world, pe)) {
        return 0;
    }
    return wefti_is_near(world, address, 1, (int)world->view.pe) ||
           (world->device != NULL && world->device->ops->memory->locate(world->device, address, pe, &left) != 0);
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
               : (void *)world->device->ops->memory->locate(world->device, address, pe, &left);
}
