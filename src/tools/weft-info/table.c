/* tools/weft-info/table.c: tables, as text or as JSON. */
#include "tools/weft-info/table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 8
#define CELL_BYTES 1024

struct info_table {
    char *name;
    char *columns[COLUMNS_MAX];
    int is_number[COLUMNS_MAX];
    size_t width; /* columns */
    char **cells;
    size_t count;
    size_t capacity;
};

static void *checked(void *memory)
{
    if (memory == NULL) {
        (void)fputs("weft-info: no memory\n", stderr);
        exit(1);
    }
    return memory;
}

info_table *info_table_create(const char *name, const char *columns)
{
    info_table *table = checked(calloc(1, sizeof *table));
    table->name = checked(strdup(name));
    for (const char *at = columns; *at != '\0' && table->width < COLUMNS_MAX; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        int is_number = at[length - 1] == '#';
        table->is_number[table->width] = is_number;
        table->columns[table->width++] = checked(strndup(at, length - (size_t)is_number));
        at += length;
    }
    return table;
}

void info_table_destroy(info_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->cells[i]);
    }
    for (size_t i = 0; i < table->width; i++) {
        free(table->columns[i]);
    }
    free(table->cells);
    free(table->name);
    free(table);
}

void info_table_add(info_table *table, const char *format, ...)
{
    char text[CELL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (table->count == table->capacity) {
        table->capacity = 2 * table->capacity + 64;
        table->cells = checked(realloc(table->cells, table->capacity * sizeof *table->cells));
    }
    table->cells[table->count++] = checked(strdup(text));
}

static int is_record(const info_table *table)
{
    return table->width == 2 && strcmp(table->columns[0], "name") == 0 && strcmp(table->columns[1], "value") == 0;
}

/* The widest cell of a column, its heading included where there are headings. */
static size_t width_of(const info_table *table, size_t column)
{
    size_t widest = is_record(table) ? 0 : strlen(table->columns[column]);
    for (size_t i = column; i < table->count; i += table->width) {
        size_t width = strlen(table->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void print_row(const info_table *table, char *const *cells, const size_t *widths, FILE *to)
{
    size_t used = table->width;
    while (used > 1 && cells[used - 1][0] == '\0') {
        used--; /* no blanks at the end of a line */
    }
    for (size_t i = 0; i < used; i++) {
        int width = i + 1 < used || table->is_number[i] ? (int)widths[i] : 0;
        (void)fprintf(to, "  %*s", table->is_number[i] ? width : -width, cells[i]);
    }
    (void)fputc('\n', to);
}

void info_table_print_text(const info_table *table, FILE *to)
{
    size_t widths[COLUMNS_MAX];
    for (size_t i = 0; i < table->width; i++) {
        widths[i] = width_of(table, i);
    }
    (void)fprintf(to, "%s:%s\n", table->name, table->count == 0 ? " none" : "");
    if (table->count > 0 && !is_record(table) && table->width > 1) {
        print_row(table, table->columns, widths, to);
    }
    for (size_t i = 0; i < table->count; i += table->width) {
        print_row(table, &table->cells[i], widths, to);
    }
}

/* ---- JSON ---- */

/* Bytes that are no printable ASCII become \u00XX: names and values of the environment may be anything. */
static void print_string(const char *text, FILE *to)
{
    (void)fputc('"', to);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            (void)fprintf(to, "\\%c", *at);
        } else if (*at < 0x20 || *at > 0x7e) {
            (void)fprintf(to, "\\u%04x", *at);
        } else {
            (void)fputc(*at, to);
        }
    }
    (void)fputc('"', to);
}

static int looks_like_number(const char *text)
{
    const char *at = text + (text[0] == '-');
    size_t whole = strspn(at, "0123456789");
    if (whole == 0 || (at[0] == '0' && whole > 1)) {
        return 0;
    }
    at += whole;
    if (at[0] == '.' && isdigit((unsigned char)at[1])) {
        at += 1 + strspn(at + 1, "0123456789");
    }
    return at[0] == '\0';
}

static void print_value(const char *text, int may_be_number, FILE *to)
{
    if (may_be_number && looks_like_number(text)) {
        (void)fputs(text, to);
    } else {
        print_string(text, to);
    }
}

static void print_object(const info_table *table, char *const *cells, FILE *to)
{
    for (size_t i = 0; i < table->width; i++) {
        (void)fputs(i == 0 ? "{" : ", ", to);
        print_string(table->columns[i], to);
        (void)fputs(": ", to);
        print_value(cells[i], table->is_number[i], to);
    }
    (void)fputc('}', to);
}

void info_table_print_json(const info_table *table, FILE *to)
{
    int record = is_record(table);
    (void)fputs("  ", to);
    print_string(table->name, to);
    (void)fputs(record ? ": {" : ": [", to);
    for (size_t i = 0; i < table->count; i += table->width) {
        (void)fputs(i == 0 ? "\n    " : ",\n    ", to);
        if (record) {
            print_string(table->cells[i], to);
            (void)fputs(": ", to);
            print_value(table->cells[i + 1], 1, to);
        } else {
            print_object(table, &table->cells[i], to);
        }
    }
    (void)fputs(record ? "\n  }" : "\n  ]", to);
}
