/* tools/weft-info/sections.c: what there is to show. */
#include "tools/weft-info/sections.h"

typedef struct row {
    const char *name;
    const char *text;
    int needs_world;
    int (*tables)(const info_trial *trial, info_table **tables);
} row;

static const row rows[INFO_SECTIONS] = {
#define ROW(id, name, needs_world, text) [INFO_SECTION_##id] = {#name, text, needs_world, info_##name##_tables},
    INFO_SECTION_TABLE(ROW)
#undef ROW
};

const char *info_section_name(info_section section)
{
    return rows[section].name;
}

const char *info_section_text(info_section section)
{
    return rows[section].text;
}

int info_section_needs_world(info_section section)
{
    return rows[section].needs_world;
}

int info_section_tables(info_section section, const info_trial *trial, info_table **tables)
{
    const row *r = &rows[section];
    if (r->needs_world && trial->world == NULL) {
        tables[0] = info_table_create(r->name, "name value");
        info_table_add(tables[0], "error");
        info_table_add(tables[0], "%s", trial->error);
        return 1;
    }
    return r->tables(trial, tables);
}

int info_statuses_tables(const info_trial *trial, info_table **tables)
{
    (void)trial;
    tables[0] = info_table_create("statuses", "name value# meaning");
#define ADD(name, value, text)                                                                                         \
    info_table_add(tables[0], "%s", #name);                                                                            \
    info_table_add(tables[0], "%d", value);                                                                            \
    info_table_add(tables[0], "%s", text);
    WEFT_STATUS_TABLE(ADD)
#undef ADD
    return 1;
}
