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
