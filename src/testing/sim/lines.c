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
    lines->commits = with_history ? malloc(WEFTI_COMMITS * sizeof *lines->commits) : NULL;
    if (lines->buckets == NULL || (with_history && lines->commits == NULL)) {
        wefti_lines_fini(lines);
        return 0;
    }
    memset(lines->buckets, 0xff, buckets * sizeof *lines->buckets);
    for (size_t i = 0; with_history && i < WEFTI_COMMITS; i++) {
        lines->commits[i].line = WEFTI_LINE_NONE;
    }
    return 1;
}

void wefti_lines_fini(wefti_lines *lines)
{
    free(lines->buckets);
    free(lines->all);
    free(lines->commits);
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

/* The oldest commit of all is the last of its line's chain. */
static void forget(wefti_lines *lines, wefti_commit *commit)
{
    uint32_t line = commit->line;
    if (line == WEFTI_LINE_NONE) {
        return;
    }
    if (commit->newer != WEFTI_LINE_NONE) {
        lines->commits[commit->newer].older = WEFTI_LINE_NONE;
    } else {
        lines->all[line].newest = WEFTI_LINE_NONE;
    }
    commit->line = WEFTI_LINE_NONE;
    wefti_lines_settle(lines, line);
}

wefti_commit *wefti_lines_keep(wefti_lines *lines, uint64_t number)
{
    uint32_t commit_number = lines->next_commit;
    wefti_commit *commit = &lines->commits[commit_number];
    lines->next_commit = (commit_number + 1) % WEFTI_COMMITS;
    forget(lines, commit);
    uint32_t line = wefti_lines_get(lines, number);
    wefti_line_record *record = &lines->all[line];
    commit->line = line;
    commit->newer = WEFTI_LINE_NONE;
    commit->older = record->newest;
    if (record->newest != WEFTI_LINE_NONE) {
        lines->commits[record->newest].newer = commit_number;
    }
    record->newest = commit_number;
    return commit;
}

void wefti_lines_drop_history(wefti_lines *lines, uint32_t index)
{
    uint32_t at = lines->all[index].newest;
    while (at != WEFTI_LINE_NONE) {
        uint32_t older = lines->commits[at].older;
        lines->commits[at].line = WEFTI_LINE_NONE;
        at = older;
    }
    lines->all[index].newest = WEFTI_LINE_NONE;
}
