/* suite/coll.h: collectives and locks, back to back, with a barrier every SUITE_ROUND calls and at the end of a block.
 * Beside what a face_... of suite/face.h gives, a face has here
 *
 *   face_coll_open(f)                          memory that its collectives want; collective
 *   face_broadcast(f, to, from, words, turn)   from PE 0; `words` of 8 bytes; turn counts up to SUITE_ROUND - 1
 *   face_fcollect face_alltoall(f, to, from, words, turn)
 *   face_sum(f, to, from, words, turn)         of doubles
 *   face_lock face_unlock(f, lock)             one symmetric long
 *
 * `floor` is the copying that a collective needs, by memcpy on all PEs at once, where others' memory can be had. */
#ifndef SUITE_COLL_H
#define SUITE_COLL_H

#include <string.h>

#include "suite/pairs.h"

#define SUITE_COLL_BYTES_MAX ((size_t)1 << 20)
#define SUITE_ROUND 64

#define SUITE_COLL_BODY(NAME, CALL)                                                                                    \
    static int NAME(void *context, uint64_t count)                                                                     \
    {                                                                                                                  \
        suite *s = context;                                                                                            \
        const face f = s->face;                                                                                        \
        const size_t words = s->bytes / 8;                                                                             \
        void *from = s->memory;                                                                                        \
        void *to = s->memory + (size_t)face_pes(&f) * SUITE_COLL_BYTES_MAX;                                            \
        int failed = 0;                                                                                                \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            failed |= CALL;                                                                                            \
            if (i % SUITE_ROUND == SUITE_ROUND - 1 || i + 1 == count) {                                                \
                failed |= face_barrier(&f);                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        return failed;                                                                                                 \
    }
SUITE_COLL_BODY(suite_broadcast, face_broadcast(&f, to, from, words, (int)(i % SUITE_ROUND)))
SUITE_COLL_BODY(suite_fcollect, face_fcollect(&f, to, from, words, (int)(i % SUITE_ROUND)))
SUITE_COLL_BODY(suite_alltoall, face_alltoall(&f, to, from, words, (int)(i % SUITE_ROUND)))
SUITE_COLL_BODY(suite_sum, face_sum(&f, to, from, words, (int)(i % SUITE_ROUND)))

/* ---- floors ---- */

static int suite_floor_broadcast_once(const suite *s, void *to, const void *from, size_t words)
{
    if (s->pe != 0) {
        memcpy(to, face_ptr(&s->face, from, 0), words * 8);
    }
    tool_compiler_barrier();
    return 0;
}

/* Block `of` of every PE: its whole source (fcollect), or this PE's block of it (alltoall). */
static int suite_floor_blocks_once(const suite *s, void *to, const void *from, size_t words, int is_alltoall)
{
    for (int i = 0; i < face_pes(&s->face); i++) {
        int pe = (s->pe + i) % face_pes(&s->face);
        const unsigned char *theirs = face_ptr(&s->face, from, pe);
        memcpy((unsigned char *)to + (size_t)pe * words * 8, theirs + (is_alltoall ? (size_t)s->pe * words * 8 : 0),
               words * 8);
        tool_compiler_barrier();
    }
    return 0;
}
SUITE_COLL_BODY(suite_floor_broadcast, suite_floor_broadcast_once(s, to, from, words))
SUITE_COLL_BODY(suite_floor_fcollect, suite_floor_blocks_once(s, to, from, words, 0))
SUITE_COLL_BODY(suite_floor_alltoall, suite_floor_blocks_once(s, to, from, words, 1))

/* ---- all of them ---- */

static int suite_run_coll_one(suite *s, const char *name, tool_body body, tool_body floor_body)
{
    static const size_t sizes[] = {8, 1024, 65536, SUITE_COLL_BYTES_MAX};
    int failed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && failed == 0; i++) {
        tool_samples ours = {0};
        tool_samples least = {0};
        s->bytes = sizes[i];
        failed |= suite_blocks(s, body, sizes[i] > 1024 ? floor_body : NULL, &ours, &least);
        suite_scale(&ours, 1e-3);
        suite_scale(&least, 1e-3);
        suite_write(s, name, NULL, sizes[i], "us", &ours);
        if (least.count > 0) {
            suite_write(s, name, "floor", sizes[i], "us", &least);
        }
    }
    return failed;
}

/* Taken by PE 0 alone. */
static int suite_lock(void *context, uint64_t count)
{
    suite *s = context;
    const face f = s->face;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        failed |= face_lock(&f, s->words) | face_unlock(&f, s->words);
    }
    return failed;
}

static int suite_run_lock(suite *s)
{
    int failed = 0;
    memset(s->words, 0, SUITE_WORDS * sizeof *s->words);
    failed |= face_barrier(&s->face);
    if (s->pe == 0) {
        tool_samples samples = {0};
        failed |= tool_blocks(suite_lock, s, s->options.blocks, &samples);
        suite_scale(&samples, 1e-3);
        suite_write(s, "lock", NULL, sizeof(long), "us", &samples);
    }
    return failed | face_barrier(&s->face);
}

/* floors: measure them too. Collective. */
static int suite_run_coll(suite *s, int floors)
{
    s->memory = face_alloc(&s->face, 2 * (size_t)face_pes(&s->face) * SUITE_COLL_BYTES_MAX);
    if (s->memory == NULL || face_coll_open(&s->face) != 0) {
        return -1;
    }
    int failed = suite_run_collective(s, "barrier", 0, suite_barrier);
    failed |= suite_run_lock(s);
    failed |= suite_run_coll_one(s, "broadcast", suite_broadcast, floors ? suite_floor_broadcast : NULL);
    failed |= suite_run_coll_one(s, "fcollect", suite_fcollect, floors ? suite_floor_fcollect : NULL);
    failed |= suite_run_coll_one(s, "alltoall", suite_alltoall, floors ? suite_floor_alltoall : NULL);
    return failed | suite_run_coll_one(s, "sum", suite_sum, NULL);
}

#endif
