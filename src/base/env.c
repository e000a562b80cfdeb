/* base/env.c: the table of environment variables, and their values as text. */
#include "base/env.h"

#include <stdlib.h>

static const wefti_env_entry entries[WEFTI_ENV_COUNT] = {
#define WEFTI_ENV_ROW(id, name, kind, standard, text) [WEFTI_ENV_##id] = {name, #kind, standard, text},
    WEFTI_ENV_TABLE(WEFTI_ENV_ROW)
#undef WEFTI_ENV_ROW
};

const wefti_env_entry *wefti_env_entry_of(wefti_env_id id)
{
    return &entries[id];
}

int wefti_env_is_set(wefti_env_id id)
{
    const char *value = getenv(entries[id].name);
    return value != NULL && value[0] != '\0';
}

const char *wefti_env_foreign(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "not set";
}

const char *wefti_env_word(wefti_env_id id)
{
    return wefti_env_is_set(id) ? getenv(entries[id].name) : entries[id].standard;
}
