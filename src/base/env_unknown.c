/* base/env_unknown.c: variables that may be typing errors of those in the table. */
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/nearest.h"

extern char **environ;

/* ---- names that are in no row ---- */

#define PREFIX "WEFT_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

/* Names are compared without what they all begin with, so that a short one is not near to all short ones. */
int wefti_env_is_unknown(const char *name, const char **nearest)
{
    const char *known[WEFTI_ENV_COUNT];
    int count = 0;
    if (strncmp(name, PREFIX, PREFIX_LENGTH) != 0) {
        return 0;
    }
    for (int id = 0; id < WEFTI_ENV_COUNT; id++) {
        if (strcmp(name, wefti_env_entry_of(id)->name) == 0) {
            return 0;
        }
        if (strncmp(wefti_env_entry_of(id)->name, PREFIX, PREFIX_LENGTH) == 0) {
            known[count++] = wefti_env_entry_of(id)->name + PREFIX_LENGTH;
        }
    }
    int found = wefti_nearest(name + PREFIX_LENGTH, known, count, 1);
    *nearest = found < 0 ? NULL : known[found] - PREFIX_LENGTH;
    return 1;
}

int wefti_env_next_unknown(size_t *at, char name[WEFTI_ENV_NAME_BYTES], const char **nearest)
{
    while (environ != NULL && environ[*at] != NULL) {
        const char *variable = environ[(*at)++];
        size_t length = strcspn(variable, "=");
        if (strncmp(variable, PREFIX, PREFIX_LENGTH) == 0 && length < WEFTI_ENV_NAME_BYTES) {
            memcpy(name, variable, length);
            name[length] = '\0';
            if (wefti_env_is_unknown(name, nearest)) {
                return 1;
            }
        }
    }
    return 0;
}

void wefti_env_warn_of_unknown(const char *who)
{
    char name[WEFTI_ENV_NAME_BYTES];
    char first[WEFTI_ENV_NAME_BYTES] = "";
    const char *nearest = NULL;
    const char *meant = NULL;
    char others[48] = "";
    size_t at = 0;
    int count = 0;
    while (wefti_env_next_unknown(&at, name, &nearest)) {
        if (nearest != NULL && count++ == 0) {
            memcpy(first, name, sizeof first);
            meant = nearest;
        }
    }
    if (count == 0) {
        return;
    }
    if (count > 1) {
        (void)snprintf(others, sizeof others, " Others unknown like it: %d.", count - 1);
    }
    wefti_log(WEFTI_LOG_WARN, "%s: weft has no variable %s and does not read it; did you mean %s?%s See weft-info env",
              who, first, meant, others);
}
