#include "topo/nic_list.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

typedef struct reader {
    const char *variable;
    const char *text;
    const char *at;
} reader;

static weft_status wrong(const reader *r, const char *at, const char *what)
{
    return wefti_error(WEFT_ERR_ARGUMENT, "%s: \"%.200s\", character %d: %s", r->variable, r->text,
                       (int)(at - r->text) + 1, what);
}

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

static weft_status read_name(reader *r, wefti_topo_nic_entry *entry)
{
    size_t length = 0;
    const char *start = r->at;
    entry->column = (int)(r->at - r->text) + 1;
    for (; is_name(*r->at); r->at++) {
        if (length == sizeof entry->name - 1) {
            return wrong(r, start, "a name of more than 47 bytes");
        }
        entry->name[length++] = *r->at;
    }
    entry->name[length] = '\0';
    return length > 0 ? WEFT_OK : wrong(r, r->at, "expected the name of a NIC, as mlx5_0");
}

/* ":NUMBER", of 1 .. most. */
static weft_status read_number(reader *r, int most, const char *what, int *number)
{
    if (*r->at != ':') {
        return wrong(r, r->at, what);
    }
    const char *start = ++r->at;
    *number = 0;
    for (; *r->at >= '0' && *r->at <= '9' && *number <= most; r->at++) {
        *number = *number * 10 + (*r->at - '0');
    }
    return r->at > start && *number >= 1 && *number <= most ? WEFT_OK : wrong(r, start, what);
}

static weft_status read_entry(reader *r, int is_mapping, wefti_topo_nic_entry *entry)
{
    WEFT_TRY(read_name(r, entry));
    entry->port = 0;
    entry->count = 0;
    if (is_mapping) {
        WEFT_TRY(read_number(r, 255, "expected : and a port of 1 .. 255, as in mlx5_0:1:3", &entry->port));
        WEFT_TRY(
            read_number(r, 100000, "expected : and a count of GPUs of 1 .. 100000, as in mlx5_0:1:3", &entry->count));
    } else if (*r->at == ':') {
        WEFT_TRY(read_number(r, 255, "expected a port of 1 .. 255", &entry->port));
    }
    return *r->at == ',' || *r->at == '\0' ? WEFT_OK : wrong(r, r->at, "expected , or the end");
}

/* How many entries, and where the last of them begins; of more than fit, the first that does not. */
static int count_entries(const char *text, const char **last)
{
    int count = 1;
    *last = text;
    for (const char *at = text; *at != '\0' && count <= WEFTI_TOPO_NIC_ENTRIES_MAX; at++) {
        if (*at == ',') {
            count++;
            *last = at + 1;
        }
    }
    return count;
}

static weft_status read_list(reader *r, int is_mapping, wefti_topo_nic_list *list)
{
    const char *last;
    const int count = count_entries(r->text, &last);
    if (count > WEFTI_TOPO_NIC_ENTRIES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: character %d: more than %d entries", r->variable,
                           (int)(last - r->text) + 1, WEFTI_TOPO_NIC_ENTRIES_MAX);
    }
    list->entries = wefti_alloc_zeroed((size_t)count, sizeof *list->entries);
    if (list->entries == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for %d entries", r->variable, count);
    }
    list->excludes = !is_mapping && *r->at == '^';
    r->at += list->excludes;
    while (1) {
        WEFT_TRY(read_entry(r, is_mapping, &list->entries[list->count++]));
        if (*r->at == '\0') {
            return WEFT_OK;
        }
        r->at++;
    }
}

static weft_status parse(wefti_topo_nic_list *list, const char *variable, const char *text, int is_mapping)
{
    reader r = {.variable = variable, .text = text, .at = text};
    memset(list, 0, sizeof *list);
    if (text[0] == '\0') {
        return WEFT_OK;
    }
    const weft_status status = read_list(&r, is_mapping, list);
    if (status != WEFT_OK) {
        wefti_topo_nic_list_fini(list);
    }
    return status;
}

weft_status wefti_topo_nic_list_parse(wefti_topo_nic_list *list, const char *variable, const char *text)
{
    return parse(list, variable, text, 0);
}

weft_status wefti_topo_nic_mapping_parse(wefti_topo_nic_list *list, const char *variable, const char *text)
{
    return parse(list, variable, text, 1);
}

void wefti_topo_nic_list_fini(wefti_topo_nic_list *list)
{
    wefti_free(list->entries);
    memset(list, 0, sizeof *list);
}

int wefti_topo_nic_matches(const wefti_topo_nic_entry *entry, const wefti_topo_object *nic)
{
    return strcmp(entry->name, nic->name) == 0 && (entry->port == 0 || entry->port == nic->port);
}
