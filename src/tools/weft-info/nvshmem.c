/* tools/weft-info/nvshmem.c: the variables of NVSHMEM, and what the face makes of them. */
#include <stdlib.h>

#include "faces/nvshmem/variables.h"
#include "tools/weft-info/sections.h"

static const char *kind_in_words(wefti_nv_kind kind)
{
    return kind == WEFTI_NV_TAKEN ? "honoured" : kind == WEFTI_NV_INSTEAD ? "instead" : "without effect";
}

static void add_variable(info_table *table, const char *name, wefti_nv_kind kind, const char *text)
{
    const char *value = getenv(name);
    info_table_add(table, "%s", name);
    info_table_add(table, "%s", kind_in_words(kind));
    info_table_add(table, "%s", value == NULL ? "" : value);
    info_table_add(table, "%s", text);
}

int info_nvshmem_tables(const info_trial *trial, info_table **tables)
{
    (void)trial;
    tables[0] = info_table_create("nvshmem", "name state here description");
#define ADD(NAME, KIND, TEXT) add_variable(tables[0], "NVSHMEM_" #NAME, WEFTI_NV_##KIND, TEXT);
    WEFTI_NV_VARIABLES(ADD)
#undef ADD
    return 1;
}
