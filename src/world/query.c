/* What a program can ask of a world. */
#include "base/error.h"
#include "world/world.h"

int weft_world_pe(const weft_world *world)
{
    return world == NULL ? -1 : (int)world->view.pe;
}

int weft_world_pes(const weft_world *world)
{
    return world == NULL ? -1 : (int)world->view.pes;
}

size_t weft_world_phases(const weft_world *world, weft_world_phase *phases, size_t capacity)
{
    if (world == NULL) {
        return 0;
    }
    for (size_t i = 0; phases != NULL && i < capacity && i < world->phase_count; i++) {
        phases[i] = world->phases[i];
    }
    return world->phase_count;
}

weft_status weft_world_counters(const weft_world *world, weft_counters *out)
{
    if (world == NULL || out == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_counters: %s is NULL", world == NULL ? "world" : "out");
    }
#define READ(name, text) out->name = __atomic_load_n(&world->counters.name, __ATOMIC_RELAXED);
    WEFT_COUNTER_TABLE(READ)
#undef READ
    return WEFT_OK;
}
