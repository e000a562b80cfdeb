/* base/env_values.c: environment variables as sizes, times and counts. */
#include <string.h>

#include "base/durations.h"
#include "base/env.h"
#include "base/error.h"

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
    uint64_t digit_ns = WEFTI_SECOND_NS / 10;
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
    if (*text != '\0' || __builtin_mul_overflow(seconds, WEFTI_SECOND_NS, &total_ns) ||
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
    return wefti_error(WEFT_ERR_ARGUMENT, "%s=\"%s\" cannot be read: give %s", wefti_env_entry_of(id)->name,
                       wefti_env_word(id), form);
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
