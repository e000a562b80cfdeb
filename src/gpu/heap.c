/* The device heap's calls: what they check; the records of blocks are the teams'. */
#include "base/error.h"
#include "gpu/gpu.h"

static weft_status allocate(weft_team *team, const char *call, size_t bytes, void **block)
{
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(team->world, call));
    if (block == NULL) {
        return wefti_error_null(call, "block");
    }
    if (bytes == 0) {
        *block = NULL;
        return WEFT_OK;
    }
    const wefti_records records = wefti_team_device_records(team);
    const wefti_block_wanted wanted = {
        .bytes = bytes, .alignment = WEFTI_DEVICE_BLOCK_ALIGNMENT, .owner = team->number};
    return wefti_records_alloc(team, &records, call, &wanted, block);
}

static weft_status deallocate(weft_team *team, const char *call, void *block)
{
    WEFT_TRY(wefti_team_check(team, call));
    WEFT_TRY(wefti_world_need_device(team->world, call));
    if (block == NULL) {
        return WEFT_OK;
    }
    const wefti_records records = wefti_team_device_records(team);
    return wefti_records_dealloc(team, &records, call, team->number, block);
}

weft_status weft_device_malloc(weft_world *world, size_t bytes, void **block)
{
    return allocate(weft_team_world(world), "weft_device_malloc", bytes, block);
}

weft_status weft_device_team_malloc(weft_team *team, size_t bytes, void **block)
{
    return allocate(team, "weft_device_team_malloc", bytes, block);
}

weft_status weft_device_free(weft_world *world, void *block)
{
    return deallocate(weft_team_world(world), "weft_device_free", block);
}

weft_status weft_device_team_free(weft_team *team, void *block)
{
    return deallocate(team, "weft_device_team_free", block);
}

static weft_status register_memory(weft_team *team, const wefti_registration *what)
{
    WEFT_TRY(wefti_team_check(team, what->call));
    weft_world *world = team->world;
    WEFT_TRY(wefti_world_need_device(world, what->call));
    WEFT_TRY(wefti_team_device_take(team, what->call));
    const weft_status status = world->device->ops->memory->register_memory(world->device, team, what);
    wefti_team_device_give_back(team);
    return status;
}

weft_status weft_device_team_register(weft_team *team, void *address, size_t bytes)
{
    const wefti_registration what = {.call = "weft_device_register", .address = address, .bytes = bytes};
    return register_memory(team, &what);
}

weft_status weft_device_register(weft_world *world, void *address, size_t bytes)
{
    return weft_device_team_register(weft_team_world(world), address, bytes);
}

weft_status weft_device_register_mapped(weft_world *world, void *address, size_t bytes, void *const *peers)
{
    const wefti_registration what = {
        .call = "weft_device_register_mapped", .address = address, .bytes = bytes, .is_mapped = 1, .peers = peers};
    return register_memory(weft_team_world(world), &what);
}

weft_status weft_device_team_unregister(weft_team *team, void *address)
{
    static const char call[] = "weft_device_unregister";
    WEFT_TRY(wefti_team_check(team, call));
    weft_world *world = team->world;
    WEFT_TRY(wefti_world_need_device(world, call));
    if (address == NULL) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_team_device_take(team, call));
    const weft_status status = world->device->ops->memory->deregister(world->device, team, address);
    wefti_team_device_give_back(team);
    return status;
}

weft_status weft_device_unregister(weft_world *world, void *address)
{
    return weft_device_team_unregister(weft_team_world(world), address);
}
