/* What a program can ask of a world. */
#include "world/world.h"

int weft_world_pe(const weft_world *world)
{
    return wefti_world_is_alive(world) ? (int)world->view.pe : -1;
}

int weft_world_pes(const weft_world *world)
{
    return wefti_world_is_alive(world) ? (int)world->view.pes : -1;
}

weft_status weft_world_sparse(const weft_world *world, weft_sparse *out)
{
    WEFT_TRY(wefti_world_expect(world, "weft_world_sparse"));
    if (out == NULL) {
        return wefti_error_null("weft_world_sparse", "out");
    }
    if (world->sparse_bytes == 0) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "weft_world_sparse: the heap of world \"%s\" has no sparse part; create the world with "
                           "config.sparse_bytes",
                           world->name);
    }
    *out = (weft_sparse){
        .address = world->heap,
        .bytes = world->sparse_bytes,
        .descriptor = world->window->memory.descriptor,
        .offset = (uint64_t)(world->heap - world->window->memory.base),
    };
    return WEFT_OK;
}

size_t weft_world_phases(const weft_world *world, weft_world_phase *phases, size_t capacity)
{
    if (!wefti_world_is_alive(world)) {
        return 0;
    }
    for (size_t i = 0; phases != NULL && i < capacity && i < world->phase_count; i++) {
        phases[i] = world->phases[i];
    }
    return world->phase_count;
}
