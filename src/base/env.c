/* base/env.c: environment variables and their parsers. */
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"

extern char **environ;

#define NS_PER_S UINT64_C(1000000000)

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

const char *wefti_env_word(wefti_env_id id)
{
    return wefti_env_is_set(id) ? getenv(entries[id].name) : entries[id].standard;
}

/* Parse decimal digits and move *text behind them. Returns 0 when there is none or the number does not fit. */
static int parse_digits(const char **text, uint64_t *value)
{
    const char *at = *text;
    uint64_t number = 0;
    while (*at >= '0' && *at <= '9') {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number)) {
            return 0;
        }
        at++;
    }
    if (at == *text) {
        return 0;
    }
    *text = at;
    *value = number;
    return 1;
}

/* Parse a binary unit, which may be absent, and move *text behind it. Returns its power of two. */
static unsigned parse_unit(const char **text)
{
    static const char units[] = "KMGT";
    for (unsigned i = 0; i < sizeof units - 1; i++) {
        if (**text == units[i] || **text == units[i] + ('a' - 'A')) {
            (*text)++;
            return 10 * (i + 1);
        }
    }
    return 0;
}

/* Parse the digits behind a decimal point, of which nine count, and move *text behind them. */
static uint64_t parse_fraction_ns(const char **text)
{
    uint64_t fraction_ns = 0;
    uint64_t digit_ns = NS_PER_S / 10;
    while (**text >= '0' && **text <= '9') {
        fraction_ns += (uint64_t)(**text - '0') * digit_ns;
        digit_ns /= 10;
        (*text)++;
    }
    return fraction_ns;
}

static int parse_size(const char *text, uint64_t *value)
{
    uint64_t number;
    if (!parse_digits(&text, &number)) {
        return 0;
    }
    unsigned shift = parse_unit(&text);
    if (*text != '\0' || number > UINT64_MAX >> shift) {
        return 0;
    }
    *value = number << shift;
    return 1;
}

static int parse_seconds_ns(const char *text, uint64_t *value)
{
    if (strcmp(text, "inf") == 0) {
        *value = UINT64_MAX;
        return 1;
    }
    uint64_t seconds;
    uint64_t fraction_ns = 0;
    uint64_t total_ns;
    if (!parse_digits(&text, &seconds)) {
        return 0;
    }
    if (*text == '.') {
        text++;
        fraction_ns = parse_fraction_ns(&text);
    }
    if (*text != '\0' || __builtin_mul_overflow(seconds, NS_PER_S, &total_ns) ||
        __builtin_add_overflow(total_ns, fraction_ns, &total_ns)) {
        return 0;
    }
    *value = total_ns;
    return 1;
}

static int parse_count(const char *text, uint64_t *value)
{
    uint64_t number;
    if (!parse_digits(&text, &number) || *text != '\0') {
        return 0;
    }
    *value = number;
    return 1;
}

static weft_status refuse(wefti_env_id id, const char *form)
{
    return wefti_error(WEFT_ERR_ARGUMENT, "%s=\"%s\" cannot be read: give %s", entries[id].name, wefti_env_word(id),
                       form);
}

weft_status wefti_env_size(wefti_env_id id, uint64_t *value)
{
    if (!parse_size(wefti_env_word(id), value)) {
        return refuse(id, "a whole number of bytes below 2^64, with K, M, G or T for powers of 1024, as in 64M");
    }
    return WEFT_OK;
}

weft_status wefti_env_seconds_ns(wefti_env_id id, uint64_t *value)
{
    if (!parse_seconds_ns(wefti_env_word(id), value)) {
        return refuse(id, "a decimal number of seconds, as in 2.5, or inf");
    }
    return WEFT_OK;
}

weft_status wefti_env_count(wefti_env_id id, uint64_t *value)
{
    if (!parse_count(wefti_env_word(id), value)) {
        return refuse(id, "a whole number below 2^64");
    }
    return WEFT_OK;
}

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
        if (strcmp(name, entries[id].name) == 0) {
            return 0;
        }
        if (strncmp(entries[id].name, PREFIX, PREFIX_LENGTH) == 0) {
            known[count++] = entries[id].name + PREFIX_LENGTH;
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
        (void)snprintf(others, sizeof others, " So it is with %d more.", count - 1);
    }
    wefti_log(WEFTI_LOG_WARN, "%s: weft has no variable %s and does not read it; did you mean %s?%s See weft-info env",
              who, first, meant, others);
}
