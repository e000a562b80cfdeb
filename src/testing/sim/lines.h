/* testing/sim/lines.h: what is known of cache lines of symmetric memory: who waits for a commit there, how many stores
 * wait to commit there, and the last commits with the bytes they overwrote. Most lines are not known at all.
 *
 * History is a ring over all lines: the newest WEFTI_COMMITS commits, chained by line, newest first. */
#ifndef WEFTI_SIM_LINES_H
#define WEFTI_SIM_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "common/mix.h"

#define WEFTI_LINE_BYTES 64
#define WEFTI_LINE_WORDS (WEFTI_LINE_BYTES / 8)
#define WEFTI_LINE_NONE UINT32_MAX
#define WEFTI_COMMITS 4096

struct wefti_fiber;

typedef struct wefti_commit {
    uint64_t seq;
    uint64_t sync; /* commits up to this one are seen by who acquires this one; 0: none */
    uint32_t stream; /* of the writer's stores past the caches to its own memory; 0: another store */
    uint32_t line; /* WEFTI_LINE_NONE: unused */
    uint32_t older; /* of the same line */
    uint32_t newer;
    int32_t writer; /* fiber */
    uint8_t from; /* byte of the line */
    uint8_t bytes;
    unsigned char old_data[WEFTI_LINE_BYTES];
    unsigned char new_data[WEFTI_LINE_BYTES];
} wefti_commit;

typedef struct wefti_line_record {
    uint64_t number; /* offset / WEFTI_LINE_BYTES */
    struct wefti_fiber *watchers;
    uint32_t pending; /* stores that wait */
    uint32_t newest; /* commit */
    uint32_t next; /* in its bucket, or in the free list */
} wefti_line_record;

typedef struct wefti_lines {
    uint32_t *buckets;
    uint64_t bucket_mask;
    wefti_line_record *all;
    uint32_t capacity;
    uint32_t free;
    uint32_t count;
    wefti_commit *commits; /* NULL: no history is kept */
    uint32_t next_commit;
} wefti_lines;

/* Returns 0 when there is no memory. `known_about`: lines that will be known at a time, roughly. */
int wefti_lines_init(wefti_lines *lines, size_t known_about, int with_history);
void wefti_lines_fini(wefti_lines *lines);

static inline uint64_t wefti_lines_bucket(const wefti_lines *lines, uint64_t number)
{
    return wefti_mix(number) >> 20 & lines->bucket_mask;
}

/* The index of a known line, or WEFTI_LINE_NONE. */
static inline uint32_t wefti_lines_find(const wefti_lines *lines, uint64_t number)
{
    uint32_t index = lines->buckets[wefti_lines_bucket(lines, number)];
    while (index != WEFTI_LINE_NONE && lines->all[index].number != number) {
        index = lines->all[index].next;
    }
    return index;
}

/* The index of a line, known from now on. */
uint32_t wefti_lines_get(wefti_lines *lines, uint64_t number);
/* Forget the line if nothing is known of it any more. */
void wefti_lines_settle(wefti_lines *lines, uint32_t index);

/* Keep a commit; the oldest is forgotten. */
wefti_commit *wefti_lines_keep(wefti_lines *lines, uint64_t number);
/* The commit that was kept last. */
static inline wefti_commit *wefti_lines_newest(wefti_lines *lines)
{
    return &lines->commits[(lines->next_commit + WEFTI_COMMITS - 1) % WEFTI_COMMITS];
}
/* Forget all commits of a line, which stays known. */
void wefti_lines_drop_history(wefti_lines *lines, uint32_t index);

#endif
