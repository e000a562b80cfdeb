/* lib/options.c: command lines of options with lists of values. */
#include "tools/lib/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/status.h"

static int wrong(const char *option, const char *text, const char *remedy)
{
    fprintf(stderr, "%s: --%s: \"%s\": %s\n", program_invocation_short_name, option, text, remedy);
    return TOOL_USAGE;
}

/* Bits to shift a number by, for the letter behind it; *end moves past it. */
static int suffix_shift(char **end)
{
    static const char letters[] = "KMG";
    const char *letter = **end != '\0' ? strchr(letters, toupper((unsigned char)**end)) : NULL;
    *end += letter != NULL;
    return letter != NULL ? 10 * (int)(letter - letters + 1) : 0;
}

static int read_number(const tool_option *row, const char *text, long *value)
{
    char remedy[80];
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    int is_number = end != text && errno == 0;
    int shift = is_number ? suffix_shift(&end) : 0;
    if (!is_number || *end != '\0' || number < 0 || number > LONG_MAX >> shift || number << shift < row->least ||
        number << shift > row->most) {
        snprintf(remedy, sizeof remedy, "give a number from %ld to %ld", row->least, row->most);
        return wrong(row->name, text, remedy);
    }
    *value = number << shift;
    return TOOL_GO_ON;
}

static int add(const tool_option *row, const char *text, tool_list *list, long value)
{
    if (list->count == TOOL_LIST_MAX) {
        return wrong(row->name, text, "too many values; give at most 64");
    }
    list->values[list->count++] = value;
    return TOOL_GO_ON;
}

/* "8" or "8:1024". */
static int read_range(const tool_option *row, char *text, tool_list *list)
{
    char *colon = strchr(text, ':');
    long first;
    long last;
    if (colon != NULL) {
        *colon = '\0';
    }
    int code = read_number(row, text, &first);
    last = first;
    if (code == TOOL_GO_ON && colon != NULL) {
        code = read_number(row, colon + 1, &last);
    }
    if (code == TOOL_GO_ON && (last < first || (colon != NULL && first == 0))) {
        return wrong(row->name, colon + 1, "a range goes from a number above 0 to a larger one");
    }
    for (long value = first; value <= last && code == TOOL_GO_ON; value *= 2) {
        code = add(row, text, list, value);
        if (first == last) {
            break;
        }
    }
    return code;
}

static int read_name(const tool_option *row, const char *text, tool_list *list)
{
    char remedy[1024] = "give one of:";
    for (int i = 0; i < row->names_count; i++) {
        if (strcmp(text, row->names[i]) == 0) {
            return add(row, text, list, i);
        }
        strcat(strcat(remedy, i == 0 ? " " : ", "), row->names[i]);
    }
    return wrong(row->name, text, remedy);
}

static int read_list(const tool_option *row, const char *text)
{
    tool_list *list = row->at;
    char copy[512];
    int code = TOOL_GO_ON;
    char *rest = copy;
    if (strlen(text) >= sizeof copy) {
        return wrong(row->name, text, "too long");
    }
    strcpy(copy, text);
    list->count = 0;
    while (rest != NULL && code == TOOL_GO_ON) {
        char *value = strsep(&rest, ",");
        code = row->kind == TOOL_NAMES ? read_name(row, value, list) : read_range(row, value, list);
    }
    return code;
}

static int read_seed(const tool_option *row, const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    if (end == text || *end != '\0' || errno != 0) {
        return wrong(row->name, text, "give a number");
    }
    *(uint64_t *)row->at = value;
    return TOOL_GO_ON;
}

static int read_value(const tool_option *row, const char *text)
{
    switch (row->kind) {
    case TOOL_NUMBERS:
    case TOOL_NAMES:
        return read_list(row, text);
    case TOOL_NUMBER: {
        long value;
        int code = read_number(row, text, &value);
        if (code == TOOL_GO_ON) {
            *(int *)row->at = (int)value;
        }
        return code;
    }
    case TOOL_SEED:
        return read_seed(row, text);
    default:
        *(const char **)row->at = text;
        return TOOL_GO_ON;
    }
}

/* The row of "--name", "--name=value" or "-x"; *value is what follows "=", or NULL. */
static const tool_option *find(const tool_option *rows, const char *argument, const char **value)
{
    size_t length = strcspn(argument, "=");
    *value = argument[length] == '=' ? argument + length + 1 : NULL;
    for (; rows->name != NULL; rows++) {
        int is_long = length > 2 && strncmp(argument, "--", 2) == 0 && strlen(rows->name) == length - 2 &&
                      strncmp(argument + 2, rows->name, length - 2) == 0;
        int is_short = argument[0] == '-' && rows->letter != '\0' && argument[1] == rows->letter && length == 2;
        if (is_long || is_short) {
            return rows;
        }
    }
    return NULL;
}

int tool_options_read(const tool_option *rows, int argc, char **argv)
{
    int code = TOOL_GO_ON;
    for (int i = 1; i < argc && code == TOOL_GO_ON; i++) {
        const char *value;
        const tool_option *row = find(rows, argv[i], &value);
        if (row == NULL) {
            fprintf(stderr, "%s: no option \"%s\"; see %s --help\n", program_invocation_short_name, argv[i],
                    program_invocation_short_name);
            return TOOL_USAGE;
        }
        if (row->kind == TOOL_FLAG) {
            *(int *)row->at = 1;
            continue;
        }
        value = value != NULL ? value : ++i < argc ? argv[i] : NULL;
        if (value == NULL) {
            fprintf(stderr, "%s: --%s: its value is missing; see %s --help\n", program_invocation_short_name, row->name,
                    program_invocation_short_name);
            return TOOL_USAGE;
        }
        code = read_value(row, value);
    }
    return code;
}

long tool_list_take(const tool_list *list, long *i)
{
    long value = list->values[*i % list->count];
    *i /= list->count;
    return value;
}

void tool_print_version(void)
{
    printf("weft %d.%d.%d\n", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
}
