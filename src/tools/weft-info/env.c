/* tools/weft-info/env.c: the variables that weft reads, what they say here, and those it does not know. */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "tools/weft-info/sections.h"
#include "weft/bootstrap.h"
#include "world/tuning.h"

/* ---- whether a value can be read ---- */

static const char *check_word(wefti_env_id id, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i] != NULL && strcmp(wefti_env_word(id), words[i]) == 0) {
            return NULL;
        }
    }
    return "not one of the words that it may be";
}

static const char *check_status(weft_status status)
{
    return status == WEFT_OK ? NULL : weft_last_error();
}

/* Words that are read where they are used. */
static const char *check_text(wefti_env_id id)
{
    static const char *const levels[] = {"none", "error", "warn", "info", "debug"};
    static const char *const bootstraps[] = {
#define WORD(name, value, word, text) word,
        WEFT_BOOTSTRAP_TABLE(WORD)
#undef WORD
    };
    wefti_preferences preferences;
    switch (id) {
    case WEFTI_ENV_LOG:
        return check_word(id, levels, sizeof levels / sizeof *levels);
    case WEFTI_ENV_BOOTSTRAP:
        return check_word(id, bootstraps, sizeof bootstraps / sizeof *bootstraps);
    case WEFTI_ENV_COLL:
        return check_status(wefti_preferences_read(&preferences));
    default:
        return NULL;
    }
}

/* What is wrong with a variable's value, or NULL. */
static const char *check(wefti_env_id id)
{
    const char *kind = wefti_env_entry_of(id)->kind;
    uint64_t value;
    if (!wefti_env_is_set(id)) {
        return NULL;
    }
    if (strcmp(kind, "SIZE") == 0) {
        return check_status(wefti_env_size(id, &value));
    }
    if (strcmp(kind, "SECONDS") == 0) {
        return check_status(wefti_env_seconds_ns(id, &value));
    }
    if (strcmp(kind, "COUNT") == 0) {
        return check_status(wefti_env_count(id, &value));
    }
    return check_text(id);
}

static int is_secret(wefti_env_id id)
{
    return id == WEFTI_ENV_LOCAL_JOB || id == WEFTI_ENV_SECRET;
}

/* ---- the table ---- */

static const char *kind_in_words(const char *kind)
{
    return strcmp(kind, "SIZE") == 0      ? "bytes"
           : strcmp(kind, "SECONDS") == 0 ? "seconds"
           : strcmp(kind, "COUNT") == 0   ? "number"
                                          : "text";
}

static void add_variable(info_table *table, wefti_env_id id)
{
    const wefti_env_entry *entry = wefti_env_entry_of(id);
    const char *value = getenv(entry->name);
    const char *problem = check(id);
    info_table_add(table, "%s", entry->name);
    info_table_add(table, "%s", kind_in_words(entry->kind));
    info_table_add(table, "%s", entry->standard);
    info_table_add(table, "%s", value == NULL ? "" : is_secret(id) ? "(set)" : value);
    info_table_add(table, "%s", problem != NULL ? "UNREADABLE" : wefti_env_is_set(id) ? "set" : "default");
    info_table_add(table, "%s", problem != NULL ? problem : entry->text);
}

static info_table *known_variables(void)
{
    info_table *table = info_table_create("env", "name type default here state description");
    /* Values are tried by reading them, whose errors are for the table and not for the log. */
    const char *log = getenv("WEFT_LOG");
    char *kept = log == NULL ? NULL : strdup(log);
    add_variable(table, WEFTI_ENV_LOG);
    (void)setenv("WEFT_LOG", "none", 1);
    wefti_log_read();
    for (int id = 0; id < WEFTI_ENV_COUNT; id++) {
        if (id != WEFTI_ENV_LOG) {
            add_variable(table, (wefti_env_id)id);
        }
    }
    (void)(kept == NULL ? unsetenv("WEFT_LOG") : setenv("WEFT_LOG", kept, 1));
    wefti_log_read();
    free(kept);
    return table;
}

static info_table *unknown_variables(void)
{
    info_table *table = info_table_create("unknown_variables", "name nearest");
    char name[WEFTI_ENV_NAME_BYTES];
    const char *nearest;
    size_t at = 0;
    while (wefti_env_next_unknown(&at, name, &nearest)) {
        info_table_add(table, "%s", name);
        info_table_add(table, "%s", nearest == NULL ? "" : nearest);
    }
    return table;
}

int info_env_tables(const info_trial *trial, info_table **tables)
{
    (void)trial;
    tables[0] = known_variables();
    tables[1] = unknown_variables();
    return 2;
}
