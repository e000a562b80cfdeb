/* Goal: expert parallelism gives what the serial reference gives, whatever the shapes, in every array, to the bit.
 *
 * Method: many small random cases. A case is a group of 1 to 16 ranks, threads of this process, with one or two routes
 * and a few calls on them (support/ep_session.h); tokens 0..300, hidden 8..1024, choices 1..64, experts 1..300,
 * alignments, -1s, ids out of range, duplicates, skew, caps; all types, layouts and calls, masked ranks, both ways of
 * counts. All of a case follows from its seed. A case that fails is shrunk a little, and the command that repeats it is
 * printed, also when the library crashes or the test runs out of time. What the cases met is counted and printed.
 *
 *     property_ep [--cases N] [--seed S]                               many cases; WEFT_TEST_SEED sets S as well
 *     property_ep --case SEED --ranks R [--counts owners|direct] [--tokens T] [--topk K] [--experts E] [--hidden H]
 *                                                                      one, of at most so many of each */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ep_coverage.h"
#include "support/ep_session.h"
#include "support/pes.h"
#include "weft/protocol/mem.h"

#define RANKS_MAX 16
#define BATCH (WEFTI_TSAN ? 12 : 25) /* cases a world */
#define CASES_FOR_ALL 5000 /* so many meet everything at least once */

typedef struct property_case {
    uint64_t seed;
    int ranks;
    int counts; /* of counts_ways */
    ep_size size; /* the most of each */
} property_case;

/* How counts go: as the table has it, or as WEFT_EP_COUNTS says. */
static const char *const counts_ways[] = {"", "owners", "direct"};

static const char *program;
static const ep_size size_max = {EP_TOKENS_MAX, EP_TOPK_MAX, EP_EXPERTS_MAX, 1024, (size_t)8 << 20};

/* ---- the command that repeats a case ---- */

static char command[256];

static void note(const property_case *one)
{
    int bytes = snprintf(command, sizeof command, "%s --case %#llx --ranks %d", program, (unsigned long long)one->seed,
                         one->ranks);
    if (one->counts != 0) {
        bytes += snprintf(command + bytes, sizeof command - (size_t)bytes, " --counts %s", counts_ways[one->counts]);
    }
    const struct {
        const char *name;
        int value;
        int usual;
    } limits[] = {{"tokens", one->size.tokens_max, size_max.tokens_max},
                  {"topk", one->size.topk_max, size_max.topk_max},
                  {"experts", one->size.experts_max, size_max.experts_max},
                  {"hidden", one->size.hidden_max, size_max.hidden_max}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].value != limits[i].usual) {
            bytes +=
                snprintf(command + bytes, sizeof command - (size_t)bytes, " --%s %d", limits[i].name, limits[i].value);
        }
    }
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        return;
    }
}

static void crashed(int number)
{
    say("\nended by a signal in the case\n    ");
    say(command);
    say("\n");
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* ---- cases ---- */

/* What of a case is drawn beside the groups and routings: how many of them, and how large rows may become. */
static ep_session_plan plan_of(const property_case *one)
{
    uint64_t state = one->seed;
    ep_session_plan plan = {.size = one->size, .groups = 1, .updates = 35};
    plan.routes = 1 + (int)random_below(&state, 2);
    plan.calls = 3 + (int)random_below(&state, 4);
    plan.size.bytes_max = (size_t)1 << (15 + random_below(&state, 8));
    if (random_below(&state, 50) == 0) {
        plan.size.bytes_max = one->size.bytes_max;
    }
    plan.grows = random_below(&state, 5) == 0;
    if (random_below(&state, 12) == 0) {
        plan.grows = 0;
        plan.masks = 35;
        plan.calls += 4;
        plan.size.bytes_max = 64 << 10;
    }
    if (random_below(&state, 4) == 0) { /* many choices of few tokens */
        plan.size.tokens_max = plan.size.tokens_max < 12 ? plan.size.tokens_max : 12;
    }
    if (random_below(&state, 16) == 0) {
        plan.slow_us = 100;
    }
    plan.flags = random_below(&state, 4) == 0 ? WEFT_EP_STATISTICS : 0;
    return plan;
}

/* Cases that follow each other in one world. */
typedef struct batch {
    property_case cases[BATCH];
    int count;
    int done; /* of them, without a failure */
    int stop; /* decided by PE 0 between two cases */
} batch;

static void run_batch(weft_world *world, void *context)
{
    batch *all = context;
    for (int i = 0; i < all->count && !all->stop; i++) {
        if (weft_world_pe(world) == 0) {
            note(&all->cases[i]);
        }
        ep_session_plan plan = plan_of(&all->cases[i]);
        ep_session_run(world, all->cases[i].seed, &plan);
        int ok = CHECK_OK(weft_barrier(world));
        if (weft_world_pe(world) == 0) {
            all->stop = check_failures() > 0;
            all->done += !all->stop;
        }
        if (!ok || !CHECK_OK(weft_barrier(world))) {
            return;
        }
    }
}

/* Whether all went well; else all->cases[all->done] failed. */
static int run(batch *all)
{
    (void)check_begin(NULL);
    (void)setenv("WEFT_EP_COUNTS", counts_ways[all->cases[0].counts], 1);
    all->done = 0;
    all->stop = 0;
    weft_world *worlds[PES_MAX];
    const int ranks = all->cases[0].ranks;
    pes_create_world_of(ranks, (size_t)64 << 20, worlds); /* a group that grows has old and new memory for a while */
    pes_run_in(ranks, worlds, run_batch, all);
    pes_destroy_world(ranks, worlds);
    return check_failures() == 0;
}

/* ---- shrinking ---- */

static int fails(const property_case *one)
{
    batch alone = {.cases = {*one}, .count = 1};
    return !run(&alone);
}

/* Halve each limit while the case still fails. Another size is another case, but one that fails too will do. */
static void shrink(property_case *one)
{
    uint64_t until = wefti_os_now_ns() + 40 * WEFTI_SECOND_NS;
    int shrunk = 1;
    while (shrunk) {
        shrunk = 0;
        for (int i = 0; i < 4 && wefti_os_now_ns() < until; i++) {
            property_case smaller = *one;
            int *limits[] = {&smaller.size.tokens_max, &smaller.size.experts_max, &smaller.size.topk_max,
                             &smaller.size.hidden_max};
            int least = i == 3 ? 8 : 1;
            if (*limits[i] / 2 >= least) {
                *limits[i] /= 2;
                if (fails(&smaller)) {
                    *one = smaller;
                    shrunk = 1;
                }
            }
        }
    }
}

static void report(property_case one)
{
    note(&one);
    fprintf(stderr, "\nthis case failed:\n    %s\nshrinking it ...\n", command);
    if (!fails(&one)) {
        fprintf(stderr, "it did not fail again: it depends on timing\n");
        return;
    }
    shrink(&one);
    note(&one);
    fprintf(stderr, "\nthe smallest that failed:\n    %s\n", command);
}

/* ---- the program ---- */

static int run_many(uint64_t seed, int cases)
{
    uint64_t start = wefti_os_now_ns();
    for (int i = 0; i < cases;) {
        batch all = {.count = cases - i < BATCH ? cases - i : BATCH};
        int ranks = 1 + (i / BATCH) % RANKS_MAX;
        int counts = (i / BATCH / RANKS_MAX) % 3;
        for (int j = 0; j < all.count; j++) {
            all.cases[j] = (property_case){random_next(&seed), ranks, counts, size_max};
        }
        if (!run(&all)) {
            report(all.cases[all.done]);
            return 1;
        }
        i += all.count;
    }
    int missing = ep_coverage_print();
    printf("%d cases in %.1f s, none failed\n", cases, (double)(wefti_os_now_ns() - start) * 1e-9);
    if (cases >= CASES_FOR_ALL && missing > 0) {
        fprintf(stderr, "%d of these were never met: the cases do not test what they are there for\n", missing);
        return 1;
    }
    return 0;
}

static int run_one(const property_case *one)
{
    note(one);
    if (fails(one)) {
        fprintf(stderr, "failed: %s\n", command);
        return 1;
    }
    printf("passed: %s\n", command);
    return 0;
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: %s [--cases N] [--seed S]\n"
        "       %s --case SEED --ranks R [--counts owners|direct] [--tokens T] [--topk K] [--experts E] [--hidden H]\n",
        program, program);
    return 2;
}

int main(int argc, char **argv)
{
    property_case one = {.size = size_max};
    int cases = 10000;
    int has_case = 0;
    uint64_t seed = 0;
    int has_seed = 0;
    program = argv[0];
    /* Memory that a case frees serves the next one: to map it and give it back takes a fifth of the time. */
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)mallopt(M_TOP_PAD, 16 << 20);
    for (int i = 1; i < argc; i += 2) {
        const struct {
            const char *name;
            int *value;
            int most;
        } numbers[] = {{"--cases", &cases, INT32_MAX},
                       {"--ranks", &one.ranks, PES_MAX},
                       {"--tokens", &one.size.tokens_max, EP_TOKENS_MAX},
                       {"--topk", &one.size.topk_max, 64},
                       {"--experts", &one.size.experts_max, EP_EXPERTS_MAX},
                       {"--hidden", &one.size.hidden_max, 1024}};
        int known = 0;
        if (i + 1 == argc) {
            return usage();
        }
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
            if (strcmp(argv[i], numbers[j].name) == 0) {
                *numbers[j].value = atoi(argv[i + 1]);
                known = *numbers[j].value >= 1 && *numbers[j].value <= numbers[j].most;
            }
        }
        for (int j = 0; j < 3 && strcmp(argv[i], "--counts") == 0; j++) {
            if (strcmp(argv[i + 1], counts_ways[j]) == 0) {
                one.counts = j;
                known = 1;
            }
        }
        if (strcmp(argv[i], "--case") == 0 || strcmp(argv[i], "--seed") == 0) {
            int is_case = strcmp(argv[i], "--case") == 0;
            *(is_case ? &one.seed : &seed) = strtoull(argv[i + 1], NULL, 0);
            *(is_case ? &has_case : &has_seed) = 1;
            known = 1;
        }
        if (!known) {
            return usage();
        }
    }
    if (has_case != (one.ranks > 0)) {
        return usage();
    }
    (void)setenv("WEFT_LOG", "none", 0); /* overflows are expected */
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        (void)signal(signals[i], crashed);
    }
    return has_case ? run_one(&one) : run_many(has_seed ? seed : test_seed(), cases);
}
