/* tools/weft-info/world.c: what the trial world is like. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "tools/weft-info/sections.h"
#include "weft/coll.h"
#include "weft/team.h"
#include "world/world.h"

#define TEXT_BYTES 16384

static void add_number(info_table *table, const char *name, uint64_t value)
{
    info_table_add(table, "%s", name);
    info_table_add(table, "%llu", (unsigned long long)value);
}

int info_world_tables(const info_trial *trial, info_table **tables)
{
    weft_world_phase phases[16];
    size_t count = weft_world_phases(trial->world, phases, sizeof phases / sizeof *phases);
    uint64_t total_ns = 0;
    tables[0] = info_table_create("world", "name value");
    tables[1] = info_table_create("phases", "name us#");
    for (size_t i = 0; i < count && i < sizeof phases / sizeof *phases; i++) {
        info_table_add(tables[1], "%s", phases[i].name);
        info_table_add(tables[1], "%.1f", (double)phases[i].ns * 1e-3);
        total_ns += phases[i].ns;
    }
    add_number(tables[0], "pes", (uint64_t)weft_world_pes(trial->world));
    info_table_add(tables[0], "creation us");
    info_table_add(tables[0], "%.1f", (double)total_ns * 1e-3);
    add_number(tables[0], "processors", wefti_os_cores_query().count);
    add_number(tables[0], "memory bytes", wefti_os_memory_bytes());
    add_number(tables[0], "page bytes", wefti_os_page_bytes());
    return 2;
}

/* A text of lines, each `cells` words, the last with the rest of its line. */
static void add_lines(info_table *table, const char *text, int cells)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        const char *end = text + length;
        for (int i = 0; i < cells; i++) {
            size_t word = i + 1 < cells ? strcspn(text, " \n") : (size_t)(end - text);
            info_table_add(table, "%.*s", (int)word, text);
            text += word;
            text += i + 1 < cells ? strspn(text, " ") : 0;
        }
        text = *end == '\n' ? end + 1 : end;
    }
}

int info_transports_tables(const info_trial *trial, info_table **tables)
{
    static char text[TEXT_BYTES];
    (void)weft_world_transport_map(trial->world, text, sizeof text);
    tables[0] = info_table_create("transports", "rule");
    add_lines(tables[0], text, 1);
    return 1;
}

int info_tuning_tables(const info_trial *trial, info_table **tables)
{
    static char text[TEXT_BYTES];
    size_t length;
    tables[0] = info_table_create("tuning", "collective algorithm bytes");
    if (weft_team_tuning(weft_team_world(trial->world), text, sizeof text, &length) == WEFT_OK) {
        add_lines(tables[0], text, 3);
    }
    return 1;
}

int info_heap_tables(const info_trial *trial, info_table **tables)
{
    weft_counters counters;
    tables[0] = info_table_create("heap", "name value");
    if (weft_world_counters(trial->world, &counters) == WEFT_OK) {
        add_number(tables[0], "bytes reserved", counters.heap_bytes_reserved);
        add_number(tables[0], "bytes used", counters.heap_bytes_used);
        add_number(tables[0], "bytes at most", trial->world->heap_max_bytes);
        add_number(tables[0], "bytes available on this machine", wefti_os_memory_available_bytes());
    }
    return 1;
}

static void add_team(info_table *table, const char *name, weft_team *team)
{
    info_table_add(table, "%s", name);
    info_table_add(table, "%d", weft_team_pes(team));
    info_table_add(table, "%d", weft_team_pe(team));
}

int info_teams_tables(const info_trial *trial, info_table **tables)
{
    tables[0] = info_table_create("teams", "team members# number_of_pe_0#");
    add_team(tables[0], "world", weft_team_world(trial->world));
    add_team(tables[0], "node", weft_team_node(trial->world));
    add_team(tables[0], "link domain", weft_team_link(trial->world));
    add_team(tables[0], "same slot", weft_team_same_slot(trial->world));
    return 1;
}

int info_counters_tables(const info_trial *trial, info_table **tables)
{
    weft_counters counters;
    tables[0] = info_table_create("counters", "name value# meaning");
    if (weft_world_counters(trial->world, &counters) != WEFT_OK) {
        return 1;
    }
#define ADD(name, text)                                                                                                \
    info_table_add(tables[0], "%s", #name);                                                                            \
    info_table_add(tables[0], "%llu", (unsigned long long)counters.name);                                              \
    info_table_add(tables[0], "%s", text);
    WEFT_COUNTER_TABLE(ADD)
#undef ADD
    return 1;
}
