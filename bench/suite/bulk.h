/* suite/bulk.h: put and get of large blocks by PE 0, to and from the same pages of PE 1 each time, beside memcpy on
 * those pages where they can be had. */
#ifndef SUITE_BULK_H
#define SUITE_BULK_H

#include <string.h>

#include "suite/face.h"

static int suite_bulk_put(void *context, uint64_t count)
{
    suite *s = context;
    const face f = s->face;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        failed |= face_put(&f, s->target, s->source, s->bytes, s->peer);
        tool_compiler_barrier();
    }
    return failed;
}

static int suite_bulk_get(void *context, uint64_t count)
{
    suite *s = context;
    const face f = s->face;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        failed |= face_get(&f, s->target, s->source, s->bytes, s->peer);
        tool_compiler_barrier();
    }
    return failed;
}

static int suite_bulk_copy(unsigned char *to, const unsigned char *from, size_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(to, from, bytes);
        tool_compiler_barrier();
    }
    return 0;
}

static int suite_bulk_copy_there(void *context, uint64_t count)
{
    suite *s = context;
    return suite_bulk_copy(face_ptr(&s->face, s->target, s->peer), s->source, s->bytes, count);
}

static int suite_bulk_copy_here(void *context, uint64_t count)
{
    suite *s = context;
    return suite_bulk_copy(s->target, face_ptr(&s->face, s->source, s->peer), s->bytes, count);
}

/* From ns a copy to GB/s. */
static void suite_to_rate(tool_samples *samples, size_t bytes)
{
    for (int i = 0; i < samples->count; i++) {
        samples->values[i] = (double)bytes / samples->values[i];
    }
}

static int suite_run_bulk_one(suite *s, const char *name, tool_body body, tool_body copy)
{
    tool_samples ours = {0};
    tool_samples plain = {0};
    int failed = copy != NULL ? tool_blocks_beside(body, copy, s, s->options.blocks, &ours, &plain)
                              : tool_blocks(body, s, s->options.blocks, &ours);
    suite_to_rate(&ours, s->bytes);
    suite_to_rate(&plain, s->bytes);
    suite_write(s, name, NULL, s->bytes, "GB/s", &ours);
    if (copy != NULL) {
        suite_write(s, name, "memcpy", s->bytes, "GB/s", &plain);
    }
    return failed;
}

/* beside: compare with memcpy. Collective. */
static int suite_run_bulk(suite *s, int beside)
{
    static const size_t sizes[] = {(size_t)64 << 10, (size_t)1 << 20, (size_t)4 << 20, SUITE_BULK_BYTES};
    int failed = 0;
    for (size_t i = 0; s->pe == 0 && i < sizeof sizes / sizeof *sizes; i++) {
        s->bytes = sizes[i];
        failed |= suite_run_bulk_one(s, "put_bw", suite_bulk_put, beside ? suite_bulk_copy_there : NULL);
        failed |= suite_run_bulk_one(s, "get_bw", suite_bulk_get, beside ? suite_bulk_copy_here : NULL);
    }
    return failed | face_barrier(&s->face);
}

#endif
