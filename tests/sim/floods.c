/* sim/floods.c: over messages, several threads of each PE flood one PE at once: with more small puts than it takes,
 * with puts and gets of many pieces, with signals behind what they announce. What one thread completes is there,
 * whatever the others have under way to the same PE; nobody waits for ever for what others hold. The PE that is flooded
 * stands still now and then, so that credits and buffers run out. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "sim/cases.h"

#define THREADS_MAX 4
#define PES_MAX 4
#define WORDS 6500 /* of a thread at another PE: 17 pieces of a network's writes and reads */
#define SMALL 96 /* words that are put one by one */
#define ROUNDS 6
#define STALL_NS 200000

typedef struct area {
    uint64_t words[WORDS];
    uint64_t small[SMALL];
    uint64_t signal;
} area;

typedef struct areas {
    area of[THREADS_MAX];
} areas;

typedef struct flood {
    wefti_os_thread *thread;
    const case_run *run;
    weft_world *world;
    areas *mine; /* in this PE's heap: where others have their own at the same place */
    int number;
    int to; /* whom most of the run's threads flood */
    uint64_t puts; /* how often all of `words` were put anew */
    uint64_t values[WORDS]; /* what this thread has put at `to` */
    uint64_t seen[WORDS];
} flood;

static flood floods[PES_MAX][THREADS_MAX];

/* This thread's area at PE `to`, in the memory of that PE itself: what is there has arrived. */
static const volatile area *arrived(const flood *f)
{
    const areas *there = (const areas *)(uintptr_t)f->run->board[f->to];
    return &there[weft_world_pe(f->world)].of[f->number];
}

static area *own(const flood *f)
{
    return &f->mine[weft_world_pe(f->world)].of[f->number];
}

static void check_words(const flood *f, size_t first, size_t count, const char *when)
{
    const volatile area *at = arrived(f);
    for (size_t i = first; i < first + count; i++) {
        if (at->words[i] != f->values[i]) {
            weft_sim_fail("%s of thread %d word %zu at PE %d is %llx, not %llx", when, f->number, i, f->to,
                          (unsigned long long)at->words[i], (unsigned long long)f->values[i]);
        }
    }
}

static size_t draw_count(void)
{
    static const size_t counts[] = {40, 300, 384, 1000, 2000, 3500, WORDS};
    return counts[weft_sim_random(sizeof counts / sizeof *counts)];
}

/* From memory of the thread's own, or of the heap, which a network takes where it is. */
static void put_words(flood *f, int is_blocking)
{
    const size_t count = draw_count();
    const size_t first = (size_t)weft_sim_random(WORDS - count + 1);
    f->puts++;
    for (size_t i = first; i < first + count; i++) {
        f->values[i] = case_value(f->number, f->to, f->puts * WORDS + i);
    }
    if (weft_sim_random(3) == 0) { /* one that a later one overwrites */
        MUST(weft_uint64_put(f->world, own(f)->words + first, f->seen, count, f->to));
        MUST(weft_fence(f->world));
    }
    if (is_blocking) {
        MUST(weft_uint64_put(f->world, own(f)->words + first, f->values + first, count, f->to));
    } else {
        MUST(weft_uint64_put_nbi(f->world, own(f)->words + first, f->values + first, count, f->to));
    }
    dawdle(3, 3000);
    MUST(weft_quiet(f->world));
    check_words(f, first, count, "after a quiet");
}

static void get_words(flood *f)
{
    const size_t count = draw_count();
    const size_t first = (size_t)weft_sim_random(WORDS - count + 1);
    MUST(weft_uint64_get(f->world, f->seen, own(f)->words + first, count, f->to));
    for (size_t i = 0; i < count; i++) {
        if (f->seen[i] != f->values[first + i]) {
            weft_sim_fail("thread %d gets word %zu of PE %d, which is %llx, not %llx", f->number, first + i, f->to,
                          (unsigned long long)f->seen[i], (unsigned long long)f->values[first + i]);
        }
    }
}

/* A word after the other, most of them more than once: the last value stays. */
static void put_small(flood *f, uint64_t round)
{
    static const uint64_t fences[] = {2, 4, 8, 100}; /* behind one of so many words */
    const uint64_t fence_one_in = fences[weft_sim_random(4)];
    const int turns = 1 + (int)weft_sim_random(2);
    const uint64_t base = case_value(f->number, f->to, round * 1000);
    for (int turn = 1; turn <= turns; turn++) {
        for (size_t i = 0; i < SMALL; i++) {
            MUST(weft_uint64_p(f->world, &own(f)->small[i], base + (uint64_t)turn, f->to));
            if (weft_sim_random(fence_one_in) == 0) {
                MUST(weft_fence(f->world));
            }
        }
    }
    if (weft_sim_random(2) == 0) {
        MUST(weft_quiet(f->world));
    } else { /* what lies before a fence is there when the signal is */
        MUST(weft_fence(f->world));
        MUST(weft_uint64_p(f->world, &own(f)->signal, round, f->to));
        while (arrived(f)->signal != round) {
            weft_sim_sleep_ns(1000);
        }
    }
    for (size_t i = 0; i < SMALL; i++) {
        const uint64_t seen = arrived(f)->small[i];
        if (seen != base + (uint64_t)turns) {
            weft_sim_fail("round %d: small word %zu of thread %d at PE %d is %llx, not %llx", (int)round, i, f->number,
                          f->to, (unsigned long long)seen, (unsigned long long)base + (uint64_t)turns);
        }
    }
}

static void work(void *argument)
{
    flood *f = argument;
    const int kind = (int)(f->run->seed / 8 % 4); /* of the run: all do the same, or anything */
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (weft_sim_random(4) == 0) {
            weft_sim_stall(f->to, 1 + weft_sim_random(STALL_NS));
        }
        switch (kind < 3 ? kind : (int)weft_sim_random(3)) {
        case 0:
            put_small(f, round);
            break;
        case 1:
            put_words(f, (int)weft_sim_random(2));
            break;
        default:
            get_words(f);
        }
        dawdle(4, 3000);
    }
}

void case_floods(void *argument)
{
    case_run *run = argument;
    const int pe = weft_sim_pe();
    uint64_t common = run->seed;
    const int threads = 2 + common_below(&common, THREADS_MAX - 1);
    const int flooded = common_below(&common, run->pes);
    const int floods_all = common_below(&common, 3) == 0;
    weft_world *world = case_world("floods");
    areas *mine;
    MUST(weft_calloc(world, (size_t)run->pes, sizeof *mine, (void **)&mine));
    run->board[pe] = (uint64_t)(uintptr_t)mine;
    MUST(weft_sync(world));
    const int count = pe != flooded || floods_all ? threads : 0; /* else it is in the barrier */
    for (int i = 0; i < count; i++) {
        flood *f = &floods[pe][i];
        memset(f, 0, sizeof *f);
        f->run = run;
        f->world = world;
        f->mine = mine;
        f->number = i;
        f->to = pe == flooded ? (flooded + 1) % run->pes : flooded;
        MUST(wefti_os_thread_start(&f->thread, work, f));
    }
    for (int i = 0; i < count; i++) {
        wefti_os_thread_join(floods[pe][i].thread);
    }
    MUST(weft_barrier(world));
    MUST(weft_world_destroy(world));
}
