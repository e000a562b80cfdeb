/* testing/sim/lines.c: what is known of cache lines. */
#include "testing/sim/lines.h"

#include <stdlib.h>
#include <string.h>

int wefti_lines_init(wefti_lines *lines, size_t known_about, int with_history)
{
    memset(lines, 0, sizeof *lines);
    uint64_t buckets = 1024;
    while (buckets < 2 * known_about) {
        buckets *= 2;
    }
    lines->bucket_mask = buckets - 1;
    lines->free = WEFTI_LINE_NONE;
    lines->buckets = malloc(buckets * sizeof *lines->buckets);
    lines->landings = with_history ? malloc(WEFTI_LANDINGS * sizeof *lines->landings) : NULL;
    if (lines->buckets == NULL || (with_history && lines->landings == NULL)) {
        wefti_lines_fini(lines);
        return 0;
    }
    memset(lines->buckets, 0xff, buckets * sizeof *lines->buckets);
    for (size_t i = 0; with_history && i < WEFTI_LANDINGS; i++) {
        lines->landings[i].line = WEFTI_LINE_NONE;
    }
    return 1;
}

void wefti_lines_fini(wefti_lines *lines)
{
    free(lines->buckets);
    free(lines->all);
    free(lines->landings);
    memset(lines, 0, sizeof *lines);
}

static void grow(wefti_lines *lines)
{
    uint32_t capacity = lines->capacity == 0 ? 256 : 2 * lines->capacity;
    wefti_line_record *all = realloc(lines->all, capacity * sizeof *all);
    if (all == NULL) {
        abort(); /* a test program without memory */
    }
    for (uint32_t i = lines->capacity; i < capacity; i++) {
        all[i].next = i + 1 < capacity ? i + 1 : WEFTI_LINE_NONE;
    }
    lines->free = lines->capacity;
    lines->all = all;
    lines->capacity = capacity;
}

uint32_t wefti_lines_get(wefti_lines *lines, uint64_t number)
{
    uint32_t index = wefti_lines_find(lines, number);
    if (index != WEFTI_LINE_NONE) {
        return index;
    }
    if (lines->free == WEFTI_LINE_NONE) {
        grow(lines);
    }
    index = lines->free;
    wefti_line_record *record = &lines->all[index];
    uint32_t *bucket = &lines->buckets[wefti_lines_bucket(lines, number)];
    lines->free = record->next;
    *record = (wefti_line_record){.number = number, .newest = WEFTI_LINE_NONE, .next = *bucket};
    *bucket = index;
    lines->count++;
    return index;
}

void wefti_lines_settle(wefti_lines *lines, uint32_t index)
{
    wefti_line_record *record = &lines->all[index];
    if (record->pending != 0 || record->watchers != NULL || record->newest != WEFTI_LINE_NONE) {
        return;
    }
    uint32_t *link = &lines->buckets[wefti_lines_bucket(lines, record->number)];
    while (*link != index) {
        link = &lines->all[*link].next;
    }
    *link = record->next;
    record->next = lines->free;
    lines->free = index;
    lines->count--;
}

/* The oldest landing of all is the last of its line's chain. */
static void forget(wefti_lines *lines, wefti_landing *landing)
{
    uint32_t line = landing->line;
    if (line == WEFTI_LINE_NONE) {
        return;
    }
    if (landing->newer != WEFTI_LINE_NONE) {
        lines->landings[landing->newer].older = WEFTI_LINE_NONE;
    } else {
        lines->all[line].newest = WEFTI_LINE_NONE;
    }
    landing->line = WEFTI_LINE_NONE;
    wefti_lines_settle(lines, line);
}

wefti_landing *wefti_lines_keep(wefti_lines *lines, uint64_t number)
{
    uint32_t own = lines->next_landing;
    wefti_landing *landing = &lines->landings[own];
    lines->next_landing = (own + 1) % WEFTI_LANDINGS;
    forget(lines, landing);
    uint32_t line = wefti_lines_get(lines, number);
    wefti_line_record *record = &lines->all[line];
    landing->line = line;
    landing->newer = WEFTI_LINE_NONE;
    landing->older = record->newest;
    if (record->newest != WEFTI_LINE_NONE) {
        lines->landings[record->newest].newer = own;
    }
    record->newest = own;
    return landing;
}

void wefti_lines_drop_history(wefti_lines *lines, uint32_t index)
{
    uint32_t at = lines->all[index].newest;
    while (at != WEFTI_LINE_NONE) {
        uint32_t older = lines->landings[at].older;
        lines->landings[at].line = WEFTI_LINE_NONE;
        at = older;
    }
    lines->all[index].newest = WEFTI_LINE_NONE;
}
