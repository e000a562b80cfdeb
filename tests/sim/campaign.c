/* Goal: worlds, heaps, teams, barriers, signals, faults and expert parallelism hold under every order of events that a
 * seed can ask for.
 * Method: run after run, each of the case that has had the least time of a processor so far; a number of PEs, a shape
 * of link domains and processes and a memory's mood are drawn from the run's seed. The base seed is fresh and printed;
 * a failing run prints its own, and
 *     campaign --seed N --seeds 1 --case NAME
 * is that run again. Options: --seed BASE, --seeds COUNT, --seconds LIMIT, --case NAME,..., --pes N, --quiet. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"
#include "sim/cases.h"
#include "support/check.h"

typedef struct one_case {
    const char *name;
    int least;
    int most;
    weft_sim_deadlock deadlock;
    void (*pe_main)(void *argument);
} one_case;

static const one_case cases[] = {
#define CASE_ROW(name, least, most, mode, text) {#name, least, most, WEFT_SIM_DEADLOCK_##mode, case_##name},
    CASE_TABLE(CASE_ROW)
#undef CASE_ROW
};

#define MESSAGES_PES_MAX 16 /* each has two threads */
#define CASES (sizeof cases / sizeof *cases)

typedef struct options {
    uint64_t base;
    uint64_t seeds;
    double seconds;
    const char *only; /* names with commas between them; NULL: all */
    int pes; /* 0: drawn */
    int quiet;
} options;

typedef struct tally {
    uint64_t runs[CASES];
    double seconds[CASES];
    uint64_t events;
} tally;

static double read_clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double now_s(void)
{
    return read_clock_s(CLOCK_MONOTONIC);
}

/* What cases share: of a busy machine's time one would else be charged for what others did meanwhile. */
static double used_s(void)
{
    return read_clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static void stop_run(const char *text)
{
    weft_sim_fail("%s", text);
}

static int is_asked_for(const options *asked, const char *name)
{
    const char *at = asked->only;
    size_t bytes = strlen(name);
    while (at != NULL) {
        if (strncmp(at, name, bytes) == 0 && (at[bytes] == '\0' || at[bytes] == ',')) {
            return 1;
        }
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    return asked->only == NULL;
}

/* The case that has had the least of a processor; of equals, the first from a place on that the base seed decides. */
static size_t choose_case(const options *asked, const tally *done)
{
    size_t chosen = CASES;
    for (size_t i = 0; i < CASES; i++) {
        size_t at = (asked->base + i) % CASES;
        if (is_asked_for(asked, cases[at].name) && (chosen == CASES || done->seconds[at] < done->seconds[chosen])) {
            chosen = at;
        }
    }
    return chosen;
}

/* Few PEs are cheaper, and find as much. */
static int draw_pes(const options *asked, const one_case *one, uint64_t *state)
{
    int most = common_below(state, 4) == 0 ? one->most : one->least + (one->most - one->least) / 5;
    int pes = one->least + common_below(state, most - one->least + 1);
    return asked->pes > 0 ? asked->pes : pes;
}

static void draw_shape(weft_sim_config *config, int pes, int *domains, uint64_t *state)
{
    switch (common_below(state, 5)) {
    case 0:
        break; /* one domain, one process */
    case 1:
        config->process_pes = 1 + common_below(state, pes);
        break;
    case 2:
        config->domain_pes = 1 + common_below(state, pes);
        break;
    case 3:
        config->domain_pes = 1 + common_below(state, pes);
        config->round_robin = 1;
        config->process_pes = 1 + common_below(state, pes);
        break;
    default: {
        int count = 1 + common_below(state, 4);
        for (int pe = 0; pe < pes; pe++) {
            domains[pe] = common_below(state, count);
        }
        config->domain_of = domains;
    }
    }
}

/* Whether it runs over messages alone. */
static int is_of_messages(const one_case *one)
{
    static const char *const names[] = {"gets", "floods", "unanswered", "silent", "statuses"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(one->name, names[i]) != 0) {
        i++;
    }
    return i < sizeof names / sizeof *names;
}

/* Whether PEs of it are played, which say at what time they say something. */
static int is_played(const one_case *one)
{
    return strcmp(one->name, "tree") == 0;
}

/* Whether the library's own messages run between link domains; seldom where PEs wait for deadlines, while which threads
 * look for what comes. Where PEs meet there are no messages yet. A lock whose home stands still with all its threads
 * cannot be asked for: who gave up half-way does not know whether it stands in the queue. */
static int draw_messages(const one_case *one, int pes, uint64_t *state)
{
    if (is_of_messages(one)) {
        return 1;
    }
    const int may_have = pes <= MESSAGES_PES_MAX && strstr(one->name, "_locks") == NULL &&
                         strncmp(one->name, "meet", 4) != 0 && !is_played(one);
    const int is_often = strcmp(one->name, "late") == 0 || strcmp(one->name, "ep_masks") == 0 ||
                         strcmp(one->name, "ep_lost") == 0 || strcmp(one->name, "ep_forwarder_lost") == 0;
    const int is_mostly = strcmp(one->name, "no_deadline") == 0; /* on other nodes is where PEs are missed */
    const int one_of = is_mostly ? 2 : one->deadlock == WEFT_SIM_DEADLOCK_FAIL ? 3 : is_often ? 4 : 12;
    return may_have && common_below(state, one_of) == 0;
}

/* What a case needs of the shape that was drawn. */
static void fit_shape(weft_sim_config *config, const one_case *one, int pes, uint64_t *state)
{
    if (is_of_messages(one)) {
        config->domain_of = NULL;
        const int most = strcmp(one->name, "statuses") == 0 ? pes - 1 : pes / 2;
        config->domain_pes = 1 + common_below(state, most); /* some PEs are beyond it */
    }
    if (strcmp(one->name, "meet_slowly") == 0 && common_below(state, 2) == 0) { /* no memory is handed over */
        config->domain_of = NULL;
        config->domain_pes = config->process_pes = 0;
    }
}

static weft_status run_one(const options *asked, uint64_t seed, size_t chosen, tally *done)
{
    uint64_t state = seed;
    const one_case *one = &cases[chosen];
    int domains[64];
    weft_sim_result result;
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    case_run run = {.seed = seed ^ 0x5eed, .pes = draw_pes(asked, one, &state)};
    config.seed = seed;
    config.deadlock = one->deadlock;
    config.same_speed = is_played(one);
    config.events_max = UINT64_C(100000000);
    config.silent = asked->quiet;
    config.result = &result;
    draw_shape(&config, run.pes, domains, &state);
    fit_shape(&config, one, run.pes, &state);
    config.messages = draw_messages(one, run.pes, &state);
    run.messages = config.messages;
    if (strcmp(one->name, "gone") == 0) {
        shape_gone(&run, &config);
    }
    wefti_fault_arm(0, 0); /* a case may have left it armed */
    double start = used_s();
    weft_status status = weft_sim_run(&config, run.pes, one->pe_main, &run);
    done->runs[chosen]++;
    done->seconds[chosen] += used_s() - start;
    done->events += result.events;
    if (status != WEFT_OK) {
        printf("FAILED: case %s, %d PEs: PE %d: %s\nagain: campaign --seed %" PRIu64 " --seeds 1 --case %s", one->name,
               run.pes, result.culprit_pe, result.text, seed, one->name);
        if (asked->pes > 0) {
            printf(" --pes %d", asked->pes);
        }
        (void)putchar('\n');
    }
    return status;
}

static uint64_t fresh_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        seed = (uint64_t)time(NULL);
    }
    return (seed >> 20) + 1;
}

static int parse(int argc, char **argv, options *asked)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quiet") == 0) {
            asked->quiet = 1;
            continue;
        }
        if (value == NULL) {
            return 0;
        }
        if (strcmp(argv[i], "--seed") == 0) {
            asked->base = strtoull(value, NULL, 0);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            asked->seeds = strtoull(value, NULL, 0);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            asked->seconds = strtod(value, NULL);
        } else if (strcmp(argv[i], "--case") == 0) {
            asked->only = value;
        } else if (strcmp(argv[i], "--pes") == 0) {
            asked->pes = (int)strtol(value, NULL, 0);
        } else {
            return 0;
        }
        i++;
    }
    return 1;
}

static void print_tally(const tally *done, double seconds)
{
    uint64_t runs = 0;
    for (size_t i = 0; i < CASES; i++) {
        runs += done->runs[i];
        if (done->runs[i] > 0) {
            printf("%-16s %7" PRIu64 " runs, %7.1f s, %6.2f ms each\n", cases[i].name, done->runs[i], done->seconds[i],
                   1e3 * done->seconds[i] / (double)done->runs[i]);
        }
    }
    printf("%" PRIu64 " runs, %" PRIu64 " events, %.1f s\n", runs, done->events, seconds);
}

int main(int argc, char **argv)
{
    options asked = {.base = fresh_seed(), .seeds = 1000};
    tally done = {0};
    if (!parse(argc, argv, &asked) || choose_case(&asked, &done) == CASES) {
        fprintf(stderr, "usage: campaign [--seed BASE] [--seeds COUNT] [--seconds LIMIT] [--case NAME,...] [--pes N] "
                        "[--quiet]\n");
        return EXIT_FAILURE;
    }
    setenv("WEFT_LOG", "none", 0); /* faults are meant here */
    check_stop = stop_run;
    weft_status status = WEFT_OK;
    double start = now_s();
    printf("base seed %" PRIu64 "\n", asked.base);
    for (uint64_t i = 0; i < asked.seeds && status == WEFT_OK; i++) {
        if (asked.seconds > 0 && now_s() - start > asked.seconds) {
            break;
        }
        size_t chosen = choose_case(&asked, &done);
        if (asked.quiet) {
            printf("at seed %" PRIu64 ", case %s\n", asked.base + i,
                   cases[chosen].name); /* a run may end the program */
        }
        (void)fflush(stdout);
        status = run_one(&asked, asked.base + i, chosen, &done);
    }
    print_tally(&done, now_s() - start);
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
