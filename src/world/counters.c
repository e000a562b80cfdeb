/* What a world has counted. */
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "world/world.h"

#define TEXT_BYTES 1536

static const char *const names[] = {
#define NAME(name, text) #name,
    WEFT_COUNTER_TABLE(NAME)
#undef NAME
};
#define COUNTERS (sizeof names / sizeof *names)

void wefti_world_count(weft_world *world, wefti_counter counter, uint64_t amount)
{
    uint64_t *counters = (uint64_t *)&world->counters; /* a struct of words only, in the order of the table */
    (void)__atomic_fetch_add(&counters[counter], amount, __ATOMIC_RELAXED);
}

/* The predefined teams count for themselves. */
static uint64_t value_of(const weft_world *world, unsigned counter)
{
    const uint64_t *counters = (const uint64_t *)&world->counters;
    const weft_team *const teams[] = {&world->team_world, &world->team_node, &world->team_same_slot, &world->team_link};
    uint64_t value = __atomic_load_n(&counters[counter], __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        unsigned call = counter - WEFTI_COUNTER_barriers;
        value += call < WEFTI_TEAM_CALLS ? __atomic_load_n(&teams[i]->calls[call], __ATOMIC_RELAXED) : 0;
    }
    return value;
}

weft_status weft_world_counters(const weft_world *world, weft_counters *out)
{
    WEFT_TRY(wefti_world_expect(world, "weft_world_counters"));
    if (out == NULL) {
        return wefti_error_null("weft_world_counters", "out");
    }
    uint64_t *values = (uint64_t *)out;
    for (unsigned i = 0; i < COUNTERS; i++) {
        values[i] = value_of(world, i);
    }
    return WEFT_OK;
}

const char *weft_world_counter(const weft_world *world, size_t index, uint64_t *value)
{
    if (!wefti_world_is_alive(world) || value == NULL || index >= COUNTERS) {
        return NULL;
    }
    *value = value_of(world, (unsigned)index);
    return names[index];
}

/* One line, without those that are 0. */
void wefti_world_counters_print(const weft_world *world)
{
    char text[TEXT_BYTES];
    size_t used = 0;
    if (!world->prints_counters) {
        return;
    }
    text[0] = '\0';
    for (unsigned i = 0; i < COUNTERS; i++) {
        uint64_t value = value_of(world, i);
        if (value != 0 && used < sizeof text) {
            int more = snprintf(text + used, sizeof text - used, " %s=%llu", names[i], (unsigned long long)value);
            used += more > 0 ? (size_t)more : 0;
        }
    }
    wefti_log(WEFTI_LOG_ASKED, "world \"%s\" PE %u of %u:%s", world->name, world->view.pe, world->view.pes, text);
}
