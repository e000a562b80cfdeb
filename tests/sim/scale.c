/* Goal: worlds of thousands of PEs are made and used, and one step of expert parallelism is simulated often enough.
 * Method: one run makes a world, two teams, a barrier and an EP step whose results are checked, with T=8, K=4 and H=64.
 *     scale step --pes 64 --seeds 1000      many seeds, everything drawn; by turns one link domain and several
 *     scale table --pes 64,256,1024,4096    one run each, in the order in which PEs became ready: what a PE did and
 *                                           keeps
 * Figures go to standard output as JSON lines (docs: bench/records). Further options: --experts E, --seed BASE;
 * --domain PES: link domains of so many PEs, in which case what each PE puts to other domains has to be what it is on
 * paper: a notice to each and one row a (token, domain) each way, with what goes beside them. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "weft.h"
#include "weft/protocol/ep_layout.h"
#include "weft_ep.h"
#include "weft_sim.h"

#define TOKENS 8
#define TOPK 4
#define HIDDEN 64
#define DOMAIN_PES 8
#define ROUNDS_PES_MAX 1024 /* beyond, counting rounds takes too long */

enum {
    PHASE_CREATE,
    PHASE_TEAM,
    PHASE_TEAM_END,
    PHASE_BARRIER,
    PHASE_GROUP,
    PHASE_UPDATE,
    PHASE_DISPATCH,
    PHASE_COMBINE,
    PHASES
};

static const char *const phase_names[PHASES] = {"world_create", "team_create", "team_use",    "barrier",
                                                "ep_create",    "ep_update",   "ep_dispatch", "ep_combine"};

/* What a PE puts to other domains, with a signal or without. */
typedef struct crossed {
    uint64_t bytes;
    uint64_t puts;
} crossed;

static struct {
    int experts;
    weft_sim_counts most[PHASES]; /* of any PE; the rounds since the beginning */
    uint64_t heap_bytes; /* allocated, of any PE */
    uint64_t group_bytes; /* of these by the group, of any PE */
    uint64_t group_bytes_on_paper;
    uint32_t domain_pes; /* 0: one domain */
    crossed most_crossed[PHASES]; /* of any PE */
    crossed most_on_paper[PHASES];
} now;

static void must(weft_status status, const char *what)
{
    if (status != WEFT_OK) {
        weft_sim_fail("%s gave %s: %s", what, weft_status_name(status), weft_last_error());
    }
}

static void end_phase(int phase, weft_sim_counts *counts)
{
    const weft_sim_counts before = *counts;
    weft_sim_counts after;
    weft_sim_counts *most = &now.most[phase];
    weft_sim_counts_query(&after);
#define MOST(field)                                                                                                    \
    if (after.field - before.field > most->field) {                                                                    \
        most->field = after.field - before.field;                                                                      \
    }
    MOST(loads)
    MOST(stores)
    MOST(messages)
#undef MOST
    most->rounds = after.rounds > most->rounds ? after.rounds : most->rounds;
    *counts = after;
}

/* ---- one step ---- */

typedef struct step_data {
    int32_t ids[TOKENS * TOPK];
    float weights[TOKENS * TOPK];
    float in[TOKENS * HIDDEN];
    float out[TOKENS * HIDDEN];
} step_data;

static int expert_of(int pe, int token, int choice)
{
    return (int)(((unsigned)pe * 7919 + (unsigned)token * 104729 + (unsigned)choice * (unsigned)now.experts / TOPK) %
                 (unsigned)now.experts);
}

static float element(int pe, int token, int column)
{
    return (float)((pe * TOKENS + token) % 4093 + column);
}

static void fill(step_data *data, int pe)
{
    for (int token = 0; token < TOKENS; token++) {
        for (int choice = 0; choice < TOPK; choice++) {
            data->ids[token * TOPK + choice] = expert_of(pe, token, choice);
            data->weights[token * TOPK + choice] = (float)(1 + choice);
        }
        for (int column = 0; column < HIDDEN; column++) {
            data->in[token * HIDDEN + column] = element(pe, token, column);
        }
    }
}

/* ---- what crosses, on paper ---- */

static int has_alike_domains(int pes)
{
    return now.domain_pes != 0 && pes % (int)now.domain_pes == 0;
}

/* How many tokens of a PE have an expert in the domain, and on how many PEs there each one of them: ranks[]. */
static int tokens_to(int pe, int pes, int domain, int *ranks)
{
    const int each = (int)now.domain_pes;
    int tokens = 0;
    for (int token = 0; token < TOKENS; token++) {
        uint64_t owners = 0; /* the places in the domain, as bits */
        for (int choice = 0; choice < TOPK; choice++) {
            const int owner = expert_of(pe, token, choice) / (now.experts / pes);
            owners |= owner / each == domain ? UINT64_C(1) << owner % each : 0;
        }
        ranks[tokens] = __builtin_popcountll(owners);
        tokens += owners != 0;
    }
    return tokens;
}

static uint64_t chunks_of(int tokens, const wefti_ep_ring_shape *shape)
{
    return tokens == 0 ? 1 : ((uint64_t)tokens + shape->tokens - 1) / shape->tokens;
}

/* As a source of one other domain, and as the forwarder there would be: that of the source in the same slot. */
static void add_domain_on_paper(int pe, int pes, int domain, const wefti_ep_ring_shape *shape, crossed *dispatch,
                                crossed *combine)
{
    const int each = (int)now.domain_pes;
    const uint64_t row_bytes = HIDDEN * sizeof(float);
    int ranks[TOKENS];
    const int tokens = tokens_to(pe, pes, domain, ranks);
    const uint64_t chunks = chunks_of(tokens, shape);
    dispatch->puts += chunks;
    combine->puts += chunks; /* that ask */
    dispatch->bytes += chunks * sizeof(wefti_ep_chunk_header);
    combine->bytes += chunks * sizeof(wefti_ep_chunk_header);
    for (int i = 0; i < tokens; i++) {
        dispatch->bytes += wefti_ep_chunk_entry_bytes((size_t)ranks[i], 0) + row_bytes;
        combine->bytes += wefti_ep_ask_entry_bytes((size_t)ranks[i]);
    }
    const int source = domain * each + pe % each;
    const int taken = tokens_to(source, pes, pe / each, ranks);
    const uint64_t taken_chunks = chunks_of(taken, shape);
    dispatch->puts += taken_chunks / (shape->slots / 2); /* credits */
    combine->puts += taken > 0 ? taken_chunks : 0; /* that answer */
    combine->bytes += taken > 0 ? taken_chunks * sizeof(wefti_ep_chunk_header) + (uint64_t)taken * row_bytes : 0;
}

/* Of domains of one size and experts that are as many on each PE: one row a (token, domain) each way. */
static void cross_on_paper(int pe, int pes, crossed *dispatch, crossed *combine)
{
    const size_t domains = (size_t)pes / now.domain_pes;
    const wefti_ep_ring_shape shape = wefti_ep_ring_shape_of(
        domains, domains - 1, 1, wefti_ep_row_pitch_max(HIDDEN * sizeof(float), 0), TOPK, TOKENS);
    const uint64_t others = (uint64_t)pes - now.domain_pes;
    const uint64_t notices = (domains - 1) * sizeof(wefti_ep_call_header);
    *dispatch = (crossed){notices, domains - 1};
    *combine = (crossed){notices, domains - 1 + others}; /* notices, and that a rank is done */
    for (int domain = 0; domain < (int)domains; domain++) {
        if (domain != pe / (int)now.domain_pes) {
            add_domain_on_paper(pe, pes, domain, &shape, dispatch, combine);
        }
    }
}

static crossed crossed_so_far(const weft_world *world)
{
    weft_counters counters;
    must(weft_world_counters(world, &counters), "counters");
    return (crossed){counters.remote_put_bytes, counters.remote_puts + counters.remote_put_signals};
}

static void keep_most(crossed *most, const crossed *of)
{
    most->bytes = of->bytes > most->bytes ? of->bytes : most->bytes;
    most->puts = of->puts > most->puts ? of->puts : most->puts;
}

/* What crossed in a phase, after `before`, and, unless `paper` is NULL, that it is what it is on paper. */
static void end_crossing(const weft_world *world, int phase, crossed *before, const crossed *paper)
{
    const crossed after = crossed_so_far(world);
    const crossed of = {after.bytes - before->bytes, after.puts - before->puts};
    *before = after;
    keep_most(&now.most_crossed[phase], &of);
    if (paper != NULL) {
        keep_most(&now.most_on_paper[phase], paper);
    }
    if (paper != NULL && (of.bytes != paper->bytes || of.puts != paper->puts)) {
        weft_sim_fail("%s of PE %d: %" PRIu64 " bytes in %" PRIu64 " puts, on paper %" PRIu64 " in %" PRIu64,
                      phase_names[phase], weft_world_pe(world), of.bytes, of.puts, paper->bytes, paper->puts);
    }
}

/* ---- running it ---- */

/* The experts return what they get, so a token comes back as often as its weights say; whole numbers are exact. */
static void check(const step_data *data, int pe)
{
    for (int token = 0; token < TOKENS; token++) {
        for (int column = 0; column < HIDDEN; column++) {
            float wanted = element(pe, token, column) * (1 + 2 + 3 + 4);
            if (data->out[token * HIDDEN + column] != wanted) {
                weft_sim_fail("token %d column %d is %f, not %f", token, column,
                              (double)data->out[token * HIDDEN + column], (double)wanted);
            }
        }
    }
}

static weft_ep_rows rows_at(void *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static void move(weft_world *world, weft_ep_route *route, step_data *data, weft_sim_counts *counts)
{
    const int pes = weft_world_pes(world);
    const int has_paper = has_alike_domains(pes) && now.domain_pes <= 64 && now.experts % pes == 0;
    crossed dispatch = {0};
    crossed combine = {0};
    crossed so_far = crossed_so_far(world);
    if (has_paper) {
        cross_on_paper(weft_world_pe(world), pes, &dispatch, &combine);
    }
    weft_ep_host_counts received;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = data->ids;
    choices.weights = data->weights;
    must(weft_ep_route_update(route, &choices, NULL), "update");
    end_phase(PHASE_UPDATE, counts);
    end_crossing(world, PHASE_UPDATE, &so_far, NULL);
    must(weft_ep_route_query(route, NULL, &received), "query");
    float *rows = malloc((size_t)(received.rows + 1) * HIDDEN * sizeof *rows);
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows in = rows_at(data->in);
    weft_ep_rows out = rows_at(data->out);
    got.rows = rows_at(rows);
    got.rows_capacity = (size_t)received.rows;
    must(weft_ep_dispatch(route, &in, &got, NULL), "dispatch");
    end_phase(PHASE_DISPATCH, counts);
    end_crossing(world, PHASE_DISPATCH, &so_far, has_paper ? &dispatch : NULL);
    in = rows_at(rows);
    must(weft_ep_combine(route, &in, &out, WEFT_EP_WEIGHTED, NULL), "combine");
    end_phase(PHASE_COMBINE, counts);
    end_crossing(world, PHASE_COMBINE, &so_far, has_paper ? &combine : NULL);
    free(rows);
}

static void step(weft_world *world, weft_sim_counts *counts)
{
    step_data *data = malloc(sizeof *data);
    weft_counters counters;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = now.experts;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.rows_max = 16 * TOKENS * TOPK; /* balanced enough; the worst case grows with the PEs */
    plan.topk = TOPK;
    fill(data, weft_world_pe(world));
    must(weft_world_counters(world, &counters), "counters");
    const uint64_t before = counters.heap_bytes_used;
    must(weft_ep_create(weft_team_world(world), &config, &ep), "ep_create");
    end_phase(PHASE_GROUP, counts);
    must(weft_world_counters(world, &counters), "counters");
    config.domain_ranks = has_alike_domains(weft_world_pes(world)) ? (int)now.domain_pes : 0;
    must(weft_ep_bytes(&config, weft_world_pes(world), &memory), "ep_bytes");
    now.group_bytes_on_paper = memory.symmetric_bytes;
    now.group_bytes =
        counters.heap_bytes_used - before > now.group_bytes ? counters.heap_bytes_used - before : now.group_bytes;
    now.heap_bytes = counters.heap_bytes_used > now.heap_bytes ? counters.heap_bytes_used : now.heap_bytes;
    must(weft_ep_route_create(ep, &plan, NULL, &route), "route_create");
    move(world, route, data, counts);
    check(data, weft_world_pe(world));
    must(weft_ep_route_destroy(route), "route_destroy");
    must(weft_ep_destroy(ep), "ep_destroy");
    free(data);
}

static void pe_main(void *argument)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_sim_counts counts = {0};
    weft_world *world;
    weft_team *team;
    (void)argument;
    weft_sim_world_config(&config);
    config.heap_max_bytes = (size_t)16 << 20;
    must(weft_world_create(&config, &world), "create");
    end_phase(PHASE_CREATE, &counts);
    int half = (weft_world_pes(world) + 1) / 2;
    must(weft_team_split_strided(weft_team_world(world), 0, 2, half, &team), "split");
    end_phase(PHASE_TEAM, &counts);
    if (team != NULL) {
        must(weft_team_barrier(team), "team_barrier");
        must(weft_team_destroy(team), "team_destroy");
    }
    must(weft_barrier(world), "barrier");
    end_phase(PHASE_TEAM_END, &counts);
    must(weft_barrier(world), "barrier");
    end_phase(PHASE_BARRIER, &counts);
    step(world, &counts);
    must(weft_world_destroy(world), "destroy");
}

/* ---- the two kinds of measurement ---- */

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void figure(const char *name, const char *phase, int pes, double value, const char *unit)
{
    printf("{\"name\": \"%s\", \"impl\": \"weft\", ", name);
    if (phase != NULL) {
        printf("\"phase\": \"%s\", ", phase);
    }
    printf("\"pes\": %d, \"experts\": %d, \"value\": %.6g, \"unit\": \"%s\"}\n", pes, now.experts, value, unit);
}

static int run_steps(int pes, uint64_t base, uint64_t seeds)
{
    double start = now_s();
    for (uint64_t i = 0; i < seeds; i++) {
        weft_sim_config config = WEFT_SIM_CONFIG_INIT;
        config.seed = base + i;
        config.domain_pes = now.domain_pes != 0 ? now.domain_pes : i % 2 == 0 ? 0 : DOMAIN_PES;
        if (weft_sim_run(&config, pes, pe_main, NULL) != WEFT_OK) {
            return EXIT_FAILURE;
        }
    }
    figure("sim_step", NULL, pes, (now_s() - start) * 1e3 / (double)seeds, "ms");
    return EXIT_SUCCESS;
}

static int run_table(int pes, uint64_t seed)
{
    weft_sim_result result;
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    memset(now.most, 0, sizeof now.most);
    memset(now.most_crossed, 0, sizeof now.most_crossed);
    memset(now.most_on_paper, 0, sizeof now.most_on_paper);
    now.heap_bytes = now.group_bytes = 0;
    config.seed = seed;
    config.domain_pes = now.domain_pes;
    config.switch_one_in = WEFT_SIM_NEVER;
    config.delay_one_in = WEFT_SIM_NEVER;
    config.stale_one_in = WEFT_SIM_NEVER;
    config.split_one_in = WEFT_SIM_NEVER;
    config.order = WEFT_SIM_ORDER_FIFO;
    config.same_speed = 1;
    config.count_rounds = pes <= ROUNDS_PES_MAX;
    config.result = &result;
    double start = now_s();
    if (weft_sim_run(&config, pes, pe_main, NULL) != WEFT_OK) {
        return EXIT_FAILURE;
    }
    figure("sim_run", NULL, pes, now_s() - start, "s");
    figure("sim_peak", NULL, pes, peak_mb(), "MB");
    figure("heap_used", NULL, pes, (double)now.heap_bytes / 1024, "KB");
    for (int phase = 0; phase < PHASES; phase++) {
        uint64_t before = phase > 0 ? now.most[phase - 1].rounds : 0;
        if (config.count_rounds) {
            figure("rounds", phase_names[phase], pes, (double)(now.most[phase].rounds - before), "count");
        }
        figure("stores", phase_names[phase], pes, (double)now.most[phase].stores, "count");
        figure("loads", phase_names[phase], pes, (double)now.most[phase].loads, "count");
    }
    figure("group_heap", NULL, pes, (double)now.group_bytes / 1024, "KB");
    figure("group_heap_on_paper", NULL, pes, (double)now.group_bytes_on_paper / 1024, "KB");
    for (int phase = PHASE_UPDATE; phase < PHASES && now.domain_pes != 0; phase++) {
        const crossed *most = &now.most_crossed[phase];
        const crossed *paper = &now.most_on_paper[phase];
        figure("crossed", phase_names[phase], pes, (double)most->bytes, "bytes");
        figure("crossing_puts", phase_names[phase], pes, (double)most->puts, "count");
        if (paper->puts > 0) {
            figure("crossed_on_paper", phase_names[phase], pes, (double)paper->bytes, "bytes");
            figure("crossing_puts_on_paper", phase_names[phase], pes, (double)paper->puts, "count");
        }
    }
    return EXIT_SUCCESS;
}

typedef struct options {
    const char *mode;
    const char *pes;
    uint64_t seeds;
    uint64_t base;
    int experts; /* 0: two a PE */
} options;

static int parse(int argc, char **argv, options *asked)
{
    if (argc < 2) {
        return 0;
    }
    asked->mode = argv[1];
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--pes") == 0) {
            asked->pes = argv[i + 1];
        } else if (strcmp(argv[i], "--seeds") == 0) {
            asked->seeds = strtoull(argv[i + 1], NULL, 0);
        } else if (strcmp(argv[i], "--seed") == 0) {
            asked->base = strtoull(argv[i + 1], NULL, 0);
        } else if (strcmp(argv[i], "--experts") == 0) {
            asked->experts = (int)strtol(argv[i + 1], NULL, 0);
        } else if (strcmp(argv[i], "--domain") == 0) {
            now.domain_pes = (uint32_t)strtoul(argv[i + 1], NULL, 0);
        } else {
            return 0;
        }
    }
    return argc % 2 == 0 && (strcmp(asked->mode, "step") == 0 || strcmp(asked->mode, "table") == 0);
}

int main(int argc, char **argv)
{
    options asked = {.pes = "64", .seeds = 100, .base = 1};
    if (!parse(argc, argv, &asked)) {
        fprintf(stderr,
                "usage: scale step|table [--pes N,...] [--seeds COUNT] [--seed BASE] [--experts E] [--domain PES]\n");
        return EXIT_FAILURE;
    }
    int code = EXIT_SUCCESS;
    setenv("WEFT_SPIN", "1", 0); /* looks without a pause between them show nothing new here */
    for (const char *at = asked.pes; at != NULL && code == EXIT_SUCCESS;) {
        int pes = (int)strtol(at, NULL, 0);
        now.experts = asked.experts > 0 ? asked.experts : 2 * pes;
        code = strcmp(asked.mode, "step") == 0 ? run_steps(pes, asked.base, asked.seeds) : run_table(pes, asked.base);
        (void)fflush(stdout);
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    return code;
}
