/* Host: one-sided access, ping-pong, barrier and bulk copies between two PEs, beside what the hardware does without a
 * library. Run it as `weftrun -n 2 --bind bench_host [--json FILE] [--blocks N]`. See bench/README.md. */
#include "suite/face_weft.h"

#include "suite/bulk.h"
#include "suite/pairs.h"
#include "suite/words.h"

/* A ping-pong of one cache line a direction: store, and look until the answer is there. */
static int raw_pingpong(void *context, uint64_t count)
{
    suite *s = context;
    long *mine = &s->raw->value;
    long *theirs = face_ptr(&s->face, mine, s->peer);
    long round = s->raw_round;
    for (uint64_t i = 0; i < count && s->peer != s->pe; i++) {
        round++;
        if (s->pe == 0) {
            __atomic_store_n(theirs, round, __ATOMIC_RELEASE);
        }
        while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != round) {
        }
        if (s->pe != 0) {
            __atomic_store_n(theirs, round, __ATOMIC_RELEASE);
        }
    }
    s->raw_round = round;
    return 0;
}

/* A locked add on the words that the library's fetch_add uses. */
static int raw_fetch_add(void *context, uint64_t count)
{
    suite *s = context;
    long *words = face_ptr(&s->face, s->words, s->peer);
    for (uint64_t i = 0; i < count; i++) {
        (void)tool_opaque((uint64_t)__atomic_fetch_add(&words[i % SUITE_WORDS], 1, __ATOMIC_SEQ_CST));
    }
    return 0;
}

/* A plain store to the words of the library's put and p. */
static int raw_store(void *context, uint64_t count)
{
    suite *s = context;
    long *words = face_ptr(&s->face, s->words, s->peer);
    for (uint64_t i = 0; i < count; i++) {
        __atomic_store_n(&words[i % SUITE_WORDS], (long)i, __ATOMIC_RELAXED);
        tool_compiler_barrier();
    }
    return 0;
}

static int run_hardware(suite *s)
{
    if (s->pe == 0) {
        tool_samples add = {0};
        tool_samples store = {0};
        int failed = tool_blocks(raw_fetch_add, s, s->options.blocks, &add);
        failed |= tool_blocks(raw_store, s, s->options.blocks, &store);
        suite_write(s, "fetch_add", "hardware", sizeof(long), "ns", &add);
        suite_write(s, "p_issue", "hardware", sizeof(long), "ns", &store);
        return failed | face_barrier(&s->face);
    }
    return face_barrier(&s->face);
}

int main(int argc, char **argv)
{
    static suite s;
    if (suite_open(&s, argc, argv) != 0) {
        return 1;
    }
    int pair = face_pes(&s.face) == 2; /* the raw ping-pong wants exactly two */
    int failed = suite_run_words(&s);
    failed |= run_hardware(&s);
    failed |= suite_run_pairs(&s, pair ? raw_pingpong : NULL);
    failed |= suite_run_bulk(&s, 1);
    return suite_close(&s, failed);
}
