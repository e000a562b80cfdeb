/* tools/weft-info/sections.h: what there is to show. */
#ifndef WEFT_INFO_SECTIONS_H
#define WEFT_INFO_SECTIONS_H

#include "tools/weft-info/table.h"
#include "tools/weft-info/trial.h"

/* X(id, name, whether it needs a world, what it shows) */
#define INFO_SECTION_TABLE(X)                                                                                          \
    X(BUILD, build, 0, "version, compiler, options, what was found when it was built")                                 \
    X(ENV, env, 0, "environment variables: default, value here, what is wrong with it; unknown WEFT_ variables")       \
    X(NVSHMEM, nvshmem, 0, "environment variables of NVSHMEM: what becomes of each, value here")                       \
    X(STATUSES, statuses, 0, "what calls return")                                                                      \
    X(WORLD, world, 1, "the trial world, and the phases of its creation")                                              \
    X(TRANSPORTS, transports, 1, "who reaches whom by what")                                                           \
    X(HEAP, heap, 1, "the symmetric heap")                                                                             \
    X(TEAMS, teams, 1, "the teams that every world has")                                                               \
    X(TUNING, tuning, 1, "which algorithm a collective takes on all PEs, by bytes")                                    \
    X(COUNTERS, counters, 1, "what a world counts, with the trial world's values")

typedef enum info_section {
#define INFO_SECTION_ENUM(id, name, needs_world, text) INFO_SECTION_##id,
    INFO_SECTION_TABLE(INFO_SECTION_ENUM)
#undef INFO_SECTION_ENUM
        INFO_SECTIONS
} info_section;

#define INFO_TABLES_MAX 2

const char *info_section_name(info_section section);
const char *info_section_text(info_section section);
int info_section_needs_world(info_section section);

/* The tables of a section; the caller destroys them. Returns how many, at most INFO_TABLES_MAX. */
int info_section_tables(info_section section, const info_trial *trial, info_table **tables);

/* Each fills `tables` and returns how many: build.c, env.c, nvshmem.c, sections.c, world.c. */
#define INFO_SECTION_DECLARE(id, name, needs_world, text)                                                              \
    int info_##name##_tables(const info_trial *trial, info_table **tables);
INFO_SECTION_TABLE(INFO_SECTION_DECLARE)
#undef INFO_SECTION_DECLARE

#endif
