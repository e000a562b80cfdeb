/* suite/pairs.h: operations in which all PEs take part: ping-pong, barrier, sync. Every PE runs the same number of
 * blocks and repetitions; PE 0 chooses the number and its time counts. */
#ifndef SUITE_PAIRS_H
#define SUITE_PAIRS_H

#include "suite/face.h"

/* One way is half of a round. */
static int suite_pingpong(void *context, uint64_t count)
{
    suite *s = context;
    const face f = s->face;
    int failed = 0;
    long round = s->round;
    for (uint64_t i = 0; i < count && s->peer != s->pe; i++) {
        round++;
        if (s->pe == 0) {
            failed |= face_p(&f, &s->ping->value, round, s->peer);
            failed |= face_wait(&f, &s->ping->value, round);
        } else if (s->pe == face_pes(&f) - 1) {
            failed |= face_wait(&f, &s->ping->value, round);
            failed |= face_p(&f, &s->ping->value, round, s->peer);
        }
    }
    s->round = round;
    return failed;
}

static int suite_barrier(void *context, uint64_t count)
{
    suite *s = context;
    const face f = s->face;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        failed |= face_barrier(&f);
    }
    return failed;
}

static int suite_sync(void *context, uint64_t count)
{
    suite *s = context;
    const face f = s->face;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        failed |= face_sync(&f);
    }
    return failed;
}

/* The repetitions of a block, by PE 0's clock: so many that it is long enough twice, since what the first call sets
 * up, or another process, makes a block long once. Collective. 0 on failure. */
static uint64_t suite_count(suite *s, tool_body body)
{
    uint64_t count = 16;
    for (int times = 0; times < 2;) {
        int failed = face_barrier(&s->face);
        uint64_t start = tool_now_ns();
        failed |= body(s, count);
        long enough = suite_agree(s, tool_now_ns() - start >= TOOL_BLOCK_NS);
        if (failed != 0) {
            return 0;
        }
        times = enough ? times + 1 : 0;
        count = enough ? count : count * 2;
    }
    return count;
}

/* Blocks of up to two operations in turn (other may be NULL); samples in ns a repetition, on PE 0. Collective. */
static int suite_blocks(suite *s, tool_body one, tool_body other, tool_samples *of_one, tool_samples *of_other)
{
    uint64_t count_one = suite_count(s, one);
    uint64_t count_other = other != NULL ? suite_count(s, other) : 1;
    int failed = count_one == 0 || count_other == 0;
    for (int i = 0; i < s->options.blocks && failed == 0; i++) {
        failed |= face_barrier(&s->face);
        tool_samples_add(of_one, tool_block_ns(one, s, count_one));
        if (other != NULL) {
            failed |= face_barrier(&s->face);
            tool_samples_add(of_other, tool_block_ns(other, s, count_other));
        }
    }
    return failed;
}

static void suite_scale(tool_samples *samples, double factor)
{
    for (int i = 0; i < samples->count; i++) {
        samples->values[i] *= factor;
    }
}

/* Measure a collective operation, in µs. Collective. */
static int suite_run_collective(suite *s, const char *name, size_t bytes, tool_body body)
{
    tool_samples samples = {0};
    int failed = suite_blocks(s, body, NULL, &samples, NULL);
    suite_scale(&samples, 1e-3);
    suite_write(s, name, NULL, bytes, "us", &samples);
    return failed;
}

/* Ping-pong, beside `raw` (NULL: none), barrier and sync. Collective. */
static inline int suite_run_pairs(suite *s, tool_body raw)
{
    tool_samples ours = {0};
    tool_samples hardware = {0};
    int failed = suite_blocks(s, suite_pingpong, raw, &ours, &hardware);
    suite_scale(&ours, 0.5e-3);
    suite_scale(&hardware, 0.5e-3);
    suite_write(s, "pingpong", NULL, sizeof(long), "us", &ours);
    if (raw != NULL) {
        suite_write(s, "pingpong", "hardware", sizeof(long), "us", &hardware);
    }
    failed |= suite_run_collective(s, "barrier", 0, suite_barrier);
    return failed | suite_run_collective(s, "sync", 0, suite_sync);
}

#endif
